"""What can be imported: layers and models without the packages of extras, on other backends."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

import keras_xlnet

INSTALLATION = pathlib.Path(__file__).parents[1] / "docs" / "installation.md"

# `None` in `sys.modules` is what Python has for a package that cannot be imported.
WITHOUT_EXTRAS = r"""
    import importlib, pkgutil, re, sys
    for name in ("tensorflow", "tensorflow_text", "sentencepiece", "matplotlib", "sklearn",
                 "tensorboard", "pandas", "huggingface_hub", "apache_beam", "pyarrow", "onnx",
                 "onnxruntime", "onnxscript", "mteb", "lm_eval", "spacy", "uvicorn", "starlette",
                 "tensorflow_serving"):
        sys.modules[name] = None
    import keras
    import keras_xlnet
    import numpy as np

    rng = np.random.default_rng(0)
    tokens = rng.integers(9, 40, (4, 6))
    models = keras_xlnet.models
    causal = models.TransformerXLLanguageModel(
        40, 1, 2, 16, 32, memory_length=8, stateful=True, batch_size=2)
    causal.compile(keras.optimizers.SGD(0.1))
    causal.fit({"token_ids": tokens}, tokens, batch_size=2, shuffle=False, verbose=0)
    backbone = models.XLNetBackbone(40, 1, 2, 16, 32, memory_length=4)
    model = models.XLNetPermutationLM(backbone, stateful=True, batch_size=2)
    model.compile(keras.optimizers.SGD(0.1))
    generator = keras_xlnet.layers.PermutationMaskGenerator(3, seed=0)
    features = generator(tokens, tokens % 2 == 0)
    labels = features.pop("labels")
    weights = features.pop("sample_weight")
    model.fit({"token_ids": tokens, **features}, labels, sample_weight=weights, batch_size=2,
        verbose=0)
    scores = model.with_arguments(stateful=False, batch_size=None).score(list(tokens))
    print(len(scores.totals))
    classifier = models.XLNetTextClassifier(models.XLNetBackbone(40, 1, 2, 16, 32), 2)
    for line in sys.argv[1:]:
        try:
            exec(line)
        except (ImportError, RuntimeError) as error:
            print(error)
    for module in pkgutil.iter_modules(keras_xlnet.__path__, "keras_xlnet."):
        if not module.ispkg or module.name == "keras_xlnet.cli":  # The command `xlnet`.
            continue
        try:
            importlib.import_module(module.name)
            needed = "nothing"
        except ImportError as error:
            (extra,) = re.findall(r"\[(\w+)\]", str(error))
            needed = f"the extra `{extra}`"
        print(module.name.rpartition(".")[2], needed)
"""

# What needs an extra, and the messages that name it.
USES = {
    "keras_xlnet.tokenizers.XLNetTokenizer(b'')": ("This", "sentencepiece", "text"),
    "keras_xlnet.pretraining": ("`keras_xlnet.pretraining`", "tensorflow", "tensorflow"),
    "import keras_xlnet.pretraining.token_records": (
        "`keras_xlnet.pretraining`",
        "tensorflow",
        "tensorflow",
    ),
    "keras_xlnet.training.make_strategy()": ("This", "tensorflow", "tensorflow"),
    "keras_xlnet.tokenizers.XLNetTokenizer('gs://bucket/spiece.model')": (
        "This",
        "tensorflow",
        "tensorflow",
    ),
    "keras_xlnet.visualization": ("`keras_xlnet.visualization`", "matplotlib", "examples"),
    "keras_xlnet.server": ("`keras_xlnet.server`", "tensorflow_serving", "serve"),
    "from keras_xlnet.cli import serve; serve.run(None)": ("`xlnet serve`", "uvicorn", "serve"),
    "keras_xlnet.integrations.MTEBEncoder": (
        "`keras_xlnet.integrations.MTEBEncoder`",
        "mteb",
        "integrations",
    ),
    "models.Task.from_preset('hf://owner/name')": ("hf://owner/name", "huggingface_hub", "hub"),
    "keras_xlnet.serving.export(classifier, 'x', format='onnx')": (
        "format='onnx'",
        "torch|onnx",
        "onnx",
    ),
    "keras_xlnet.serving.export(classifier, 'x', format='litert')": (
        "format='litert'",
        "tensorflow",
        "tensorflow",
    ),
    "keras_xlnet.serving.export(classifier, 'x')": ("`export`", "", "tensorflow"),
}


@pytest.mark.parametrize("backend", ["jax", pytest.param("torch", marks=pytest.mark.slow)])
def test_layers_and_models_without_the_packages_of_extras(backend):
    pytest.importorskip(backend)
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WITHOUT_EXTRAS), *USES],
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    number, *lines = result.stdout.splitlines()
    assert number == "4"
    messages, rooms = lines[: len(USES)], lines[len(USES) :]
    for (user, package, extra), message in zip(USES.values(), messages, strict=True):
        needs_package = (
            rf"the package '({package})', which" if package else "the TensorFlow backend"
        )
        command = re.escape(f'`pip install ".[{extra}]"` in a clone of keras_xlnet')
        assert re.match(rf"{re.escape(user)} needs {needs_package}.*: {command}", message), message
    needs = documented_needs()
    for room, _, needed in (line.partition(" ") for line in rooms):
        assert needs.pop(room).startswith(needed)
    assert not needs


def documented_needs():
    """Returns a dict from rooms to what docs/installation.md says they need."""
    _, _, text = INSTALLATION.read_text(encoding="utf-8").partition("| rooms of `keras_xlnet` |")
    rows = re.findall(r"^\| (`.*) \| (.*) \|$", text, re.MULTILINE)
    return {room: needs for rooms, needs in rows for room in re.findall(r"`(\w+)`", rooms)}


SAVED = """
    import sys
    import keras
    import keras_xlnet

    assert "tensorflow_text" not in sys.modules
    model = keras.saving.load_model(sys.argv[1])
    preset = keras_xlnet.models.XLNetTextClassifier.from_preset(sys.argv[2])
    backbone = keras_xlnet.models.XLNetBackbone.from_preset(sys.argv[2])
    for classifier in (model, preset):
        print(classifier.predict(["the cat"], verbose=0).shape)
    try:
        keras_xlnet.serving.export(model, "exported")
    except RuntimeError as error:
        print(error)
"""


@pytest.fixture(scope="module")
def on_jax(golden_dir, tmp_path_factory):
    """What `SAVED` prints, and the folder in which it ran."""
    pytest.importorskip("jax")
    folder = tmp_path_factory.mktemp("saved")
    models = keras_xlnet.models
    tokenizer = keras_xlnet.tokenizers.XLNetTokenizer(golden_dir / "spiece.model")
    preprocessor = keras_xlnet.preprocessing.XLNetTextClassifierPreprocessor(tokenizer, 16)
    model = models.XLNetTextClassifier(models.XLNetBackbone(200, 1, 2, 16, 32), 3, preprocessor)
    model.save(folder / "model.keras")
    model.save_to_preset(folder / "preset")
    path = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SAVED), "model.keras", "preset"],
        env={**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines(), folder


def test_models_with_a_preprocessor_load_text_themselves(on_jax):
    printed, _ = on_jax
    assert printed[:2] == ["(1, 3)", "(1, 3)"]


def test_error_of_an_export_on_another_backend(on_jax):
    printed, folder = on_jax
    (message,) = printed[2:]
    assert "the backend 'jax'" in message and "KERAS_BACKEND=tensorflow" in message
    assert {path.name for path in folder.iterdir()} == {"model.keras", "preset"}


LOADED = """
    import keras

    try:
        keras.saving.load_model("model.keras")
    except TypeError as error:
        print(error)
    import keras_xlnet

    print(type(keras.saving.load_model("model.keras")).__name__)
"""


def test_loading_needs_the_import_that_the_page_says(tmp_path):
    backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
    keras_xlnet.models.XLNetTextClassifier(backbone, 2).save(tmp_path / "model.keras")
    path = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LOADED)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    error, loaded = result.stdout.splitlines()
    page = (pathlib.Path(__file__).parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"`TypeError: (Could not locate .+?) \.\.\.`", page, re.DOTALL)
    assert error.startswith(" ".join(said.split()))
    assert loaded == "XLNetTextClassifier"


def test_an_old_keras_is_refused_by_version():
    code = "import keras; keras.__version__ = '3.11.3'; import keras_xlnet"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "needs Keras 3.12 or newer: pip install -U keras. Found: 3.11.3" in result.stderr


def test_every_public_room_is_there():
    for name in keras_xlnet.__all__:
        assert getattr(keras_xlnet, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'rooms'"):
        _ = keras_xlnet.rooms
