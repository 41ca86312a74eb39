"""Code of the long pages runs, with small models in place of theirs.

Other pages: test_guides.py, test_documentation.py, test_quickstart.py,
tests/benchmarks/test_training_flop.py and tests/checkpoints/test_adding_a_task.py.
"""

import re

import pytest
import tensorflow as tf

import keras_xlnet
from keras_xlnet import models, preprocessing, tokenizers
from tests.examples import pages

pytestmark = pytest.mark.slow  # Models are compiled.
DOCS = pages.ROOT / "docs"
SENTENCES = "To be, or not to be.\nThat is the question.\n\nROMEO:\nWhat is a city?\n" * 40


def run(code, names, small=()):
    """Runs a block of code, with some arguments replaced, and adds what it defines to `names`."""
    for argument in small:
        name = argument.partition("=")[0]
        code, count = re.subn(rf"\b{name}=[\d_]+", argument, code)
        assert count == 1, name
    exec(code, names)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.txt").write_text(SENTENCES, encoding="utf-8")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text(SENTENCES, encoding="utf-8")
    return tmp_path


def test_language_models(folder):
    names = {}
    for code in pages.python_blocks(DOCS / "language_models.md"):
        run(code, names)
    assert names["found"].texts[0] and names["fillings"].joint[0].text
    assert (folder / "attention.html").exists()


def test_pretraining(folder):
    (code,) = pages.python_blocks(DOCS / "pretraining.md")
    small = ["vocabulary_size=42", "num_processes=1", "sequence_length=32", "num_predictions=4"]
    small += ["num_layers=1", "num_heads=1", "hidden_dim=8", "intermediate_dim=8"]
    small += ["memory_length=8", "steps_per_epoch=2", "epochs=1"]
    names = {}
    run(code, names, small)
    names["XLNetBackbone"].from_preset(
        "preset", bidirectional_data=False, memory_length=None, reuse_length=None
    )


@pytest.mark.usefixtures("small_preset")
def test_long_sequences(folder):
    checkpointing, document = pages.python_blocks(DOCS / "long_sequences.md")
    names = {"keras_xlnet": keras_xlnet, "XLNetTextClassifier": models.XLNetTextClassifier}
    run(checkpointing, names)
    names |= {"documents": ["a city", "the question"], "labels": [0, 1]}
    run(document, names, ["sequence_length=256"])
    assert names["classifier"].predict(["a city"], verbose=0).shape == (1, 2)


def test_vocabularies(golden_dir):
    *_, code = pages.python_blocks(DOCS / "models.md")
    tokenizer = tokenizers.XLNetTokenizer(golden_dir / "spiece.model")
    names = {
        "tokenizer": tokenizer,
        "model": models.XLNetBackbone(200, 1, 1, 8, 16),
        "preprocessor": preprocessing.XLNetTextClassifierPreprocessor(tokenizer, sequence_length=8),
        "dataset": tf.data.Dataset.from_tensor_slices((["a city"] * 2, [0, 1])).batch(2),
        "texts": ["a city"],
    }
    run(code, names)
    assert names["model"].vocabulary_size == 202
    assert next(iter(names["dataset"]))[0]["token_ids"].shape == (2, 8)


def test_serving(folder, tokenizer):
    export, *others = pages.python_blocks(DOCS / "serving.md")
    (load,) = [code for code in others if "import tensorflow_text" in code]
    preprocessor = preprocessing.XLNetTextClassifierPreprocessor(tokenizer, sequence_length=8)
    backbone = models.XLNetBackbone(200, 1, 1, 8, 16)
    classifier = models.XLNetTextClassifier(backbone, 2, preprocessor)
    run(export, {"classifier": classifier})
    run(load, {})
    section = pages.section(
        DOCS / "serving.md", "| `XLNetTextClassifier` |", "| `XLNetTextRegressor`"
    )
    signatures = tf.saved_model.load(str(folder / "models" / "spam" / "1")).signatures
    assert {*re.findall(r"`(serving_\w+)`", section), "serving_tokens"} == set(signatures)
