"""The subjects of the comparison: a library, its options, and its environment."""

import dataclasses
import pathlib
import sys

TRAINING = ("W3", "W4", "W4m", "W12")
FORWARD = ("W1", "W2", "W5")


@dataclasses.dataclass(frozen=True)
class Subject:
    """A library with options, for some workloads.

    `peer` is the name of its virtual environment and of its requirements; without one it runs in
    the Python of the comparison. `cannot` has the reasons why other workloads are impossible.
    """

    name: str
    module: str
    workloads: tuple
    peer: str = ""
    options: dict = dataclasses.field(default_factory=dict)
    environment: dict = dataclasses.field(default_factory=dict)
    cannot: dict = dataclasses.field(default_factory=dict)

    def python(self, peers_dir):
        """Path of the interpreter that has the library: this one without `peers_dir`."""
        if not self.peer or not peers_dir:
            return sys.executable
        return str(pathlib.Path(peers_dir).absolute() / self.peer / "bin" / "python")


def _subject(name, module, workloads, backend="", peer="", cannot=None, **options):
    environment = {"KERAS_BACKEND": backend} if backend else {}
    module = f"benchmarks.comparison.with_{module}"
    return Subject(name, module, workloads, peer, options, environment, cannot or {})


def _ours(name, workloads, backend="tensorflow", **options):
    return _subject(name, "keras_xlnet", workloads, backend, **options)


def _huggingface(name, workloads, **options):
    return _subject(name, "huggingface", workloads, peer="huggingface", **options)


def _keras_hub(name, backend="tensorflow", **options):
    cannot = dict.fromkeys(("W4", "W4m", "W6"), "has an encoder and no language model")
    workloads = (*FORWARD, "W3", "W12")
    return _subject(name, "keras_hub", workloads, backend, "keras_hub", cannot, **options)


SERVED, STRINGS = ("W8", "W8c1", "W8c8"), ("W10", "W11", "W13", "W14")
SPEED = (*FORWARD, *TRAINING)
BF16 = ("GEMM", *SPEED, "W6", *SERVED)
ALL = (*BF16, "W7", "W9", *STRINGS)
REFERENCE = "huggingface"
SUBJECTS = {
    subject.name: subject
    for subject in (
        _huggingface(REFERENCE, ALL),
        _huggingface("huggingface-bf16", BF16, dtype="bfloat16"),
        _huggingface("huggingface-fused_adamw", TRAINING, fused=True),
        _huggingface("huggingface-compile", SPEED, compiled=True),
        _huggingface("huggingface-compile-bf16", SPEED, compiled=True, dtype="bfloat16"),
        _huggingface("huggingface-pad_to_longest", SERVED, padding="longest"),
        _huggingface("huggingface-group_by_length", STRINGS, group_by_length=True),
        _subject("huggingface-slow", "huggingface_slow", ("W7",), peer="huggingface_slow"),
        _keras_hub("keras_hub"),
        _keras_hub("keras_hub-xla", jit=True),
        _keras_hub("keras_hub-jax", backend="jax"),
        _subject("tf_models", "tf_models", SPEED, peer="tf_models"),
        _ours("keras_xlnet", ALL),
        _ours("keras_xlnet-one_length", STRINGS, pack=False),
        _ours("keras_xlnet-tf_data", ("W7",), pipeline=True),
        _ours("keras_xlnet-xla", (*SPEED, "W6"), jit=True),
        _ours("keras_xlnet-jax", (*SPEED, *STRINGS), backend="jax"),
        _ours("keras_xlnet-jax-bf16", SPEED, backend="jax", dtype="bfloat16"),
        _ours("keras_xlnet-torch", (*SPEED, *STRINGS), backend="torch"),
        _ours("keras_xlnet-torch-bf16", SPEED, backend="torch", dtype="bfloat16"),
        _ours("keras_xlnet-bf16", BF16, dtype="bfloat16"),
        _ours("keras_xlnet-xla-bf16", (*SPEED, "W6"), jit=True, dtype="bfloat16"),
    )
}
