"""Layers and models give the same numbers on JAX and PyTorch as on TensorFlow.

`compute.py` runs once a backend, in a process of its own; the tests compare what it wrote.
"""

import functools
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from tests import quick_compiler
from tests.backends import compute

SCRIPT = pathlib.Path(compute.__file__)
ROOT = SCRIPT.parents[2]
OTHERS = ("torch", "jax")
BACKENDS = ("tensorflow", *OTHERS)
ATOL = 1e-5
# Half precision keeps 8 or 11 bits of outputs of up to 4, and each backend rounds elsewhere: in
# sums of products above all. Rounding to int8 turns a last bit into a step of 1/127 of a range.
LOOSER = {
    # Scores of up to 20.
    "language_models/": 5e-5,
    "half_precision/mixed_bfloat16/output": 0.15,
    "half_precision/float16/output": 0.03,
    "half_precision/mixed_bfloat16/positions": 2**-8,
    "half_precision/float16/positions": 2**-11,
    "quantization/before": 0.05,
    "quantization/after": 0.05,
    # Logits are ten times as large as hidden states; two backends that are each within 1e-5 of
    # the original may be twice that from each other.
    "two_streams/np_batch0_logits": 2e-5,
    "two_streams/np_batch1_logits": 2e-5,
}
every_backend = pytest.mark.parametrize("backend", BACKENDS)
other_backends = pytest.mark.parametrize("backend", OTHERS)


class Results:
    """What `compute.py` wrote on one backend."""

    def __init__(self, directory):
        self.directory = directory
        self.report = json.loads((directory / "report.json").read_text(encoding="utf-8"))
        with np.load(directory / "arrays.npz") as arrays:
            self._arrays = dict(arrays)

    def of(self, computation):
        """`{name: array}` of a computation. Skips or fails the test that asks if it has none."""
        if computation in self.report["unsupported"]:
            pytest.skip(self.report["unsupported"][computation])
        failure = self.report["failed"].get(computation)
        assert failure is None, f"{computation} failed on {self.report['backend']}:\n{failure}"
        return {
            name.removeprefix(f"{computation}/"): array
            for name, array in self._arrays.items()
            if name.startswith(f"{computation}/")
        }


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """`results("jax")`: computed when first asked for. Skips where the backend is not installed."""
    root = tmp_path_factory.mktemp("backends")

    @functools.cache
    def compute_on(backend, name, *arguments):
        """The results, or a text that says what went wrong: also to be said only once."""
        directory = root / name
        directory.mkdir()
        environment = {
            **os.environ,
            "KERAS_BACKEND": backend,
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            # The same arithmetic for all: GPUs round float32 products to fewer bits.
            "CUDA_VISIBLE_DEVICES": "",
            "JAX_PLATFORMS": "cpu",
            # Many programs come twice.
            "JAX_COMPILATION_CACHE_DIR": str(root / "jax_cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        command = [sys.executable, str(SCRIPT), str(directory), *arguments]
        options = {"capture_output": True, "text": True, "cwd": ROOT, "timeout": 900}
        quick = {"XLA_FLAGS": quick_compiler.with_quick_flags()}
        run = subprocess.run(command, env=environment | quick, **options)
        if "Unknown flag" in run.stderr:
            run = subprocess.run(command, env=environment, **options)
        if run.returncode != 0:
            return f"compute.py failed on {backend}:\n{run.stderr[-3000:]}"
        return Results(directory)

    def get(backend, only=None, weights_of=None):
        if not is_installed(backend):
            pytest.skip(f"{backend} is not installed: pip install '.[backends]' brings it")
        if weights_of is None:
            # In this order, so that each backend loads the weights of those before it.
            weights_of = filter(is_installed, BACKENDS[: BACKENDS.index(backend)])
        files = [str(get(other).directory / "model.weights.h5") for other in weights_of]
        arguments = ["--weights", *files] if files else []
        if only is not None:
            arguments += ["--only", only]
        found = compute_on(backend, backend if only is None else f"{backend}_{only}", *arguments)
        assert isinstance(found, Results), found
        return found

    return get


def is_installed(backend):
    return importlib.util.find_spec(backend) is not None


def assert_close(actual, expected, atol, name=""):
    assert actual.shape == expected.shape, name
    if actual.dtype.kind == "f":
        np.testing.assert_allclose(actual, expected, rtol=0, atol=atol, err_msg=name)
    else:
        np.testing.assert_array_equal(actual, expected, err_msg=name)


def tolerance(computation, name):
    full_name = f"{computation}/{name}"
    return next((a for prefix, a in LOOSER.items() if full_name.startswith(prefix)), ATOL)


@other_backends
@pytest.mark.parametrize(
    "computation",
    # These two have other names, or nothing, on each backend.
    [c for c in compute.COMPUTATIONS if c not in ("weights_of_other_backends", "off_the_cpu")],
)
def test_equals_tensorflow(results, backend, computation):
    actual, expected = (results(b).of(computation) for b in (backend, "tensorflow"))
    # What a backend does beside the rest: its own choice of a compiler.
    own = {name for name in expected if name.startswith(("xla/", "chose_xla"))}
    assert set(actual) - own == set(expected) - own
    assert len(actual) > 0
    for name in sorted(set(actual) & set(expected) - {"chose_xla"}):
        assert_close(actual[name], expected[name], tolerance(computation, name), name)


@every_backend
def test_encoder_equals_the_original(results, golden, backend):
    expected = golden("encoder.npz")
    for name, actual in results(backend).of("encoder").items():
        assert_close(actual, np.swapaxes(expected[name], 0, 1), ATOL, name)


@every_backend
@pytest.mark.parametrize("variant", compute.MEMORY_VARIANTS)
def test_memory_equals_the_original(results, golden, backend, variant):
    expected = golden("encoder_mems.npz")
    computed = results(backend).of("memory_over_three_segments")
    compared = 0
    for name, actual in computed.items():
        if name.startswith(f"{variant}_seg") and name in expected:
            axes = (expected[name], 2, 0) if name.endswith("_mems") else (expected[name], 1, 0)
            assert_close(actual, np.moveaxis(*axes), ATOL, name)
            compared += 1
    assert compared in (2, 6)


@every_backend
def test_two_streams_equal_the_original(results, golden, backend):
    expected, actual = golden("pretrain.npz"), results(backend).of("two_streams")
    for prefix in ("np_batch0_", "np_batch1_"):
        memory = np.moveaxis(expected[f"{prefix}new_mems"], 2, 0)
        assert_close(actual[f"{prefix}new_mems"], memory, ATOL)
        assert_close(actual[f"{prefix}loss"], expected[f"{prefix}loss"], ATOL)
    used = expected["np_batch1_target_mask"] == 1
    logits = np.swapaxes(expected["np_batch1_logits"], 0, 1)
    assert_close(actual["np_batch1_logits"][used], logits[used], ATOL)


def original_gradient(arrays, path):
    """The original's gradient for a variable of ours."""

    def of(name):
        return arrays[f"np_grad/model/{name}"]

    *_, layer, name = path.split("/")
    if layer == "mask_embedding":
        return of("transformer/mask_emb/mask_emb")
    if layer == "logits":
        return of("lm_loss/bias")
    if name == "embeddings":
        return of("transformer/word_embedding/lookup_table")
    i = int(path.split("block_")[1].split("/")[0])
    stacked = {
        "content_bias": "r_w_bias",
        "position_bias": "r_r_bias",
        "segment_bias": "r_s_bias",
        "segment_embeddings": "seg_embed",
    }
    if name in stacked:
        return of(f"transformer/{stacked[name]}")[i]
    if "/attention/" in path:
        letter = {"query": "q", "key": "k", "value": "v", "position": "r", "output": "o"}[layer]
        kernel = of(f"transformer/layer_{i}/rel_attn/{letter}/kernel")
        # The original keeps the output kernel as (hidden, heads, head_dim) like the others.
        return np.transpose(kernel, (1, 2, 0)) if letter == "o" else kernel
    if layer == "norm":
        part = "rel_attn" if "/attention_add_and_norm/" in path else "ff"
        return of(f"transformer/layer_{i}/{part}/LayerNorm/{name}")
    number = {"intermediate": 1, "output": 2}[layer]
    return of(f"transformer/layer_{i}/ff/layer_{number}/{name}")


@every_backend
def test_gradients_equal_the_original(results, golden, backend):
    arrays, actual = golden("pretrain.npz"), results(backend).of("two_streams")
    paths = [name.removeprefix("gradient/") for name in actual if name.startswith("gradient/")]
    # Each layer: 5 kernels, 4 kinds of head weights, 2 norms and 2 denses of 2.
    assert len(paths) == 3 * (5 + 4 + 4 + 4) + 3
    for path in paths:
        expected = original_gradient(arrays, path)
        assert np.abs(expected).max() > 1e-4, path
        assert_close(actual[f"gradient/{path}"], expected, ATOL, path)
    assert_close(actual["loss_of_the_gradients"], arrays["np_batch1_loss"], ATOL)


@every_backend
def test_tied_biases_equal_the_original(results, golden, backend):
    expected, actual = golden("tied.npz"), results(backend).of("tied_biases")
    assert_close(actual["enc_output"], np.swapaxes(expected["enc_output"], 0, 1), ATOL)
    assert_close(actual["loss"], expected["loss"], ATOL)


@every_backend
def test_pooling_equals_the_original(results, golden, backend):
    expected = golden("encoder.npz")
    for name, actual in results(backend).of("pooling").items():
        assert_close(actual, expected[name], ATOL, name)


@every_backend
def test_answers_equal_the_original(results, golden, backend):
    expected, actual = golden("heads.npz"), results(backend).of("answers")
    assert_close(actual["loss"], expected["qa_train_total_loss"], ATOL)
    for name in ("start_top_log_probs", "start_top_index", "end_top_log_probs", "end_top_index",
                 "cls_logits"):  # fmt: skip
        assert_close(actual[f"beams/{name}"], expected[f"qa_eval_{name}"], ATOL, name)
    kernel = actual["gradient/end_logits/dense_0/kernel"]
    assert_close(kernel, expected["qa_train_grad/end_logits/dense_0/kernel"], ATOL)


@every_backend
def test_task_models_train(results, backend):
    arrays = results(backend).of("fit_task_models")
    names = "token_classifier", "multiple_choice", "question_answering", "segments", "windows"
    for name in names:
        losses = arrays[f"{name}/losses"]
        assert losses[2] < losses[0] - 0.01, name


@every_backend
def test_shapes_are_told_before_they_are_computed(results, backend):
    told, computed = (results(backend).of(name) for name in ("output_shapes", "single_layers"))
    assert len(computed) > len(compute.LAYERS)
    for name, array in computed.items():
        assert tuple(told[f"{name}/known"]) == array.shape, name
        unknown = told[f"{name}/unknown"]
        assert all(n in (-1, m) for n, m in zip(unknown, array.shape, strict=True)), name
        for kind in ("known", "unknown"):
            assert told[f"{name}/{kind}_dtype"] == array.dtype.name, name
    for name in ("feed_forward", "positions_uni_both_ways", "pooling_last"):
        assert tuple(told[f"{name}/compute_output_shape"]) == computed[f"{name}/0"].shape, name


@every_backend
def test_half_precision_is_close_to_float32(results, golden, backend):
    exact = np.swapaxes(golden("encoder.npz")["output"], 0, 1)
    arrays = results(backend).of("half_precision")
    for policy in compute.POLICIES:
        assert arrays[f"{policy}/dtype"] == policy.removeprefix("mixed_")
        atol = tolerance("half_precision", f"{policy}/output")
        assert_close(arrays[f"{policy}/output"], exact, atol, policy)
        # Rounded once at the end: sin(300) computed in half precision would be off by far more.
        angles = np.arange(300, -300, -1)[:, None] / 10000 ** (np.arange(0, 32, 2) / 32)
        table = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)[None]
        atol = tolerance("half_precision", f"{policy}/positions") + 1e-4
        assert_close(arrays[f"{policy}/positions"], table.astype("float32"), atol, policy)


@every_backend
def test_xla_changes_nothing(results, backend):
    arrays = results(backend).of("xla")
    for name, actual in arrays.items():
        if name.startswith("compiled/"):
            assert_close(actual, arrays[name.replace("compiled", "eager")], ATOL, name)


@every_backend
def test_training_with_xla_changes_nothing(results, backend):
    if backend == "torch":
        pytest.skip("torch has no XLA: Keras runs it eagerly")
    arrays = results(backend).of("fit_on_tokens")
    if backend == "jax":
        assert arrays["chose_xla"], "Keras compiles with XLA on JAX if a model can be"
    for name in ("losses", *(n for n in arrays if n.startswith("weights/"))):
        assert_close(arrays[f"xla/{name}"], arrays[name], ATOL, name)


@every_backend
def test_what_is_frozen_is_frozen_when_it_is_loaded(results, backend):
    arrays = results(backend).of("frozen")
    assert not arrays.pop("differs")
    trained = {way: set() for way in ("file", "preset", "copy", "made")}
    for name, is_trained in arrays.items():
        way, path = name.split("/", 1)
        trained[way] |= {path} if is_trained else set()
    made = trained.pop("made")
    assert not made
    for way, paths in trained.items():
        assert sum("lora_kernel" in path for path in paths) == len(paths) - 4, way
        assert "block_0/attention/value/lora_kernel_b" in paths
        assert "block_0/attention/value/lora_kernel_a" not in paths


@every_backend
def test_an_adapter_is_merged_into_its_base(results, backend):
    arrays, expected = (results(name).of("adapter") for name in (backend, "tensorflow"))
    assert np.abs(arrays["trained"] - arrays["before"]).max() > 0.01
    for name in ("trained", "merged", "loaded"):
        assert_close(arrays[name], expected["trained"], ATOL, name)


@every_backend
@pytest.mark.parametrize("computation", ["saving", "quantization"])
def test_saved_and_loaded_exactly(results, backend, computation):
    arrays = results(backend).of(computation)
    pairs = [name for name in arrays if "before" in name]
    assert pairs
    for name in pairs:
        np.testing.assert_array_equal(arrays[name.replace("before", "after")], arrays[name], name)


@every_backend
def test_int8_is_int8_and_close(results, backend):
    arrays = results(backend).of("quantization")
    assert arrays["mode"].tolist() == ["int8"]
    difference = max(np.abs(arrays[f"before/{i}"] - arrays[f"exact/{i}"]).max() for i in (0, 2))
    assert 0 < difference < 0.3


@every_backend
def test_weights_of_the_other_backends_give_the_same(results, backend):
    others = {other for other in BACKENDS if other != backend and is_installed(other)}
    if not others:
        pytest.skip("neither torch nor jax is installed: pip install '.[backends]' brings them")
    name = "weights_of_other_backends"
    loaded = results(backend).of(name)
    # Those that ran after this one: their files come in by another process, on TensorFlow only.
    later = others - set(loaded)
    if backend == "tensorflow":
        loaded |= results(backend, only=name, weights_of=tuple(sorted(later))).of(name)
        later = set()
    assert loaded and set(loaded) == others - later
    expected = results("tensorflow").of("saving")["weights/before/0"]
    for other, actual in loaded.items():
        assert_close(actual, expected, ATOL, f"saved by {other}")


@every_backend
def test_no_gradient_flows_through_memory(results, backend):
    arrays = results(backend).of("no_gradient_through_memory")
    names = [n.removeprefix("of_both/") for n in arrays if n.startswith("of_both/")]
    assert arrays["of_both/loss"] > arrays["of_output/loss"] + 0.1
    for name in set(names) - {"loss"}:
        assert_close(arrays[f"of_both/{name}"], arrays[f"of_output/{name}"], ATOL, name)


@every_backend
@pytest.mark.parametrize(
    "computation", ["fit_on_tokens", "fit_on_some_of_the_inputs", "fit_on_text", "sequential"]
)
def test_fit_trains(results, backend, computation):
    losses = results(backend).of(computation)["losses"]
    assert losses.shape == (3,)
    assert losses[2] < losses[0] - 0.01


@every_backend
def test_a_sequential_model_comes_back(results, backend):
    arrays = results(backend).of("sequential")
    assert_close(arrays["after"], arrays["before"], ATOL)


@every_backend
def test_packed_texts_are_those_of_padded_rows(results, backend):
    arrays = results(backend).of("packed_rows")
    for name in ("outputs", "trained"):
        assert_close(arrays[f"{name}_True"], arrays[f"{name}_False"], ATOL, name)


@every_backend
def test_fit_with_memory_trains(results, backend):
    arrays = results(backend).of("fit_with_memory")
    for name in ("losses", "validation_losses"):
        assert arrays[name][1] < arrays[name][0] - 0.01
    assert arrays["memory/memory_0"].any()


@every_backend
def test_each_text_once_a_pass_and_one_loss_for_all_batch_sizes(results, backend):
    arrays = results(backend).of("steps_and_batch_sizes")
    for name in ("counts_True", "counts_False"):
        assert arrays[name].tolist() == [3.0] * 16
    for name, other in (
        ("evaluated_steps", "evaluated_first"),
        ("tagged_2", "tagged_6"),
        ("evaluated_5", "evaluated_16"),
        ("answered_4", "answered_6"),
    ):
        assert_close(arrays[name], arrays[other], ATOL, name)


@every_backend
def test_texts_survive_saving(results, backend):
    arrays = results(backend).of("fit_on_text")
    np.testing.assert_array_equal(arrays["predicted_by_the_copy"], arrays["predicted"])
    assert np.abs(arrays["pairs"] - arrays["predicted"]).max() > 1e-3


@every_backend
def test_dropout_acts_and_follows_its_seed(results, backend):
    arrays = results(backend).of("dropout")
    for name in set(arrays) - {"off_when_not_training"}:
        assert arrays[name].all(), name


def test_torch_is_not_bound_to_the_cpu(results):
    arrays = results("torch").of("off_the_cpu")
    assert set(arrays) == {"sequence_output", "memory", "memory_mask", "probabilities"}
    assert {str(device) for device in arrays.values()} == {"meta"}
