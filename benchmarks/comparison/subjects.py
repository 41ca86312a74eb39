"""Who is compared: a library, its options, and where it is installed."""

import dataclasses
import pathlib
import sys

TRAINING = ("W3", "W4", "W4m", "W12")
FORWARD = ("W1", "W2", "W5")


@dataclasses.dataclass(frozen=True)
class Subject:
    """A library with options, for some workloads.

    `peer` is the name of its virtual environment and of its requirements; without one it runs in
    the Python that runs the comparison. `cannot` says of other workloads why they are impossible.
    """

    name: str
    module: str
    workloads: tuple
    peer: str = ""
    options: dict = dataclasses.field(default_factory=dict)
    environment: dict = dataclasses.field(default_factory=dict)
    cannot: dict = dataclasses.field(default_factory=dict)

    def python(self, peers_dir):
        """Path of the interpreter that has the library."""
        if not self.peer:
            return sys.executable
        return str(pathlib.Path(peers_dir).absolute() / self.peer / "bin" / "python")


def _ours(name, workloads, backend="tensorflow", **options):
    return Subject(
        name,
        "benchmarks.comparison.with_keras_xlnet",
        workloads,
        options=options,
        environment={"KERAS_BACKEND": backend},
    )


def _huggingface(name, workloads, **options):
    module = "benchmarks.comparison.with_huggingface"
    return Subject(name, module, workloads, "huggingface", options)


def _keras_hub(name, backend="tensorflow", **options):
    no_head = "has an encoder and no language model"
    return Subject(
        name,
        "benchmarks.comparison.with_keras_hub",
        (*FORWARD, "W3", "W12"),
        "keras_hub",
        options,
        {"KERAS_BACKEND": backend},
        dict.fromkeys(("W4", "W4m", "W6"), no_head),
    )


SERVED = ("W8", "W8c1", "W8c8")
STRINGS = ("W10", "W11")
REFERENCE = "huggingface"
SUBJECTS = {
    subject.name: subject
    for subject in (
        _huggingface(REFERENCE, ("GEMM", *FORWARD, *TRAINING, "W6", "W7", *SERVED, "W9", *STRINGS)),
        _huggingface(
            "huggingface-bf16",
            ("GEMM", *FORWARD, *TRAINING, "W6", *SERVED),
            dtype="bfloat16",
        ),
        _huggingface("huggingface-fused_adamw", TRAINING, fused=True),
        _huggingface("huggingface-compile", (*FORWARD, *TRAINING), compiled=True),
        _huggingface(
            "huggingface-compile-bf16", (*FORWARD, *TRAINING), compiled=True, dtype="bfloat16"
        ),
        _huggingface("huggingface-pad_to_longest", SERVED, padding="longest"),
        _huggingface("huggingface-group_by_length", ("W10",), group_by_length=True),
        Subject(
            "huggingface-slow",
            "benchmarks.comparison.with_huggingface_slow",
            ("W7",),
            "huggingface_slow",
        ),
        _keras_hub("keras_hub"),
        _keras_hub("keras_hub-xla", jit=True),
        _keras_hub("keras_hub-jax", backend="jax"),
        Subject(
            "tf_models",
            "benchmarks.comparison.with_tf_models",
            (*FORWARD, *TRAINING),
            "tf_models",
            environment={"TF_USE_LEGACY_KERAS": "1"},
        ),
        _ours("keras_xlnet", ("GEMM", *FORWARD, *TRAINING, "W6", "W7", *SERVED, "W9", *STRINGS)),
        _ours("keras_xlnet-one_length", STRINGS, group_by_length=False),
        _ours("keras_xlnet-tf_data", ("W7",), pipeline=True),
        _ours("keras_xlnet-xla", (*FORWARD, *TRAINING, "W6"), jit=True),
        _ours("keras_xlnet-jax", (*FORWARD, *TRAINING), backend="jax"),
        _ours("keras_xlnet-torch", (*FORWARD, *TRAINING), backend="torch"),
        _ours(
            "keras_xlnet-bf16",
            ("GEMM", *FORWARD, *TRAINING, "W6", *SERVED),
            dtype="bfloat16",
        ),
        _ours("keras_xlnet-xla-bf16", (*FORWARD, *TRAINING, "W6"), jit=True, dtype="bfloat16"),
    )
}
