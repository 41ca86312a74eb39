"""A process with only TensorFlow and tensorflow_text runs saved tokenizers and preprocessors."""

import json
import pathlib
import subprocess
import sys

import keras
import pytest
import tensorflow as tf

from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.tokenizers import XLNetTokenizer

PROTO = pathlib.Path(__file__).parents[1] / "golden" / "spiece.model"
TEXTS = ["The quiet river, 9,000,", "", "  In 2000, Ann's  café", "x9, 🙂 ``so''", "ΟΔΟΣ İ ½"]
PAIRS = ["a dog and a lantern", "", "so", "the cat", "9,"]
NAMES = ("token_ids", "segment_ids", "padding_mask")
PROGRAM = """
import json, sys
import tensorflow as tf, tensorflow_text
module, model = map(tf.saved_model.load, sys.argv[1:3])
texts, pairs = map(tf.constant, json.loads(sys.argv[3]))
ids = module.tokenize(texts)
packed = model.serve({"text": texts, "pair": pairs})
assert not any(name.startswith("keras_xlnet") for name in sys.modules)
print(json.dumps({key: value.numpy().tolist() for key, value in {**ids, **packed}.items()}))
"""


@pytest.fixture(scope="module")
def tokenizer():
    return XLNetTokenizer(PROTO, lowercase=True, remove_accents=True)


@pytest.fixture(scope="module")
def preprocessor(tokenizer):
    return XLNetTextClassifierPreprocessor(tokenizer, 16)


@pytest.fixture(scope="module")
def outputs(tokenizer, preprocessor, tmp_path_factory):
    """What the process computes, by name."""
    folder = tmp_path_factory.mktemp("saved")
    save_tokenizer(tokenizer, folder / "tokenizer")
    inputs = {name: keras.Input((), dtype="string", name=name) for name in ("text", "pair")}
    model = keras.Model(inputs, preprocessor(inputs))
    model.export(str(folder / "preprocessor"), verbose=False)
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, "tokenizer", "preprocessor", json.dumps([TEXTS, PAIRS])],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout.splitlines()[-1])


def save_tokenizer(tokenizer, path):
    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def tokenize(self, inputs):
            ids = self.tokenizer(inputs)
            return {"ids": ids.values, "splits": ids.row_splits}

    module = Module()
    module.tokenizer = tokenizer
    tf.saved_model.save(module, str(path))


def test_a_saved_tokenizer_runs(outputs, tokenizer):
    ids = tokenizer(TEXTS)
    assert outputs["ids"] == ids.values.numpy().tolist()
    assert outputs["splits"] == ids.row_splits.numpy().tolist()


def test_an_exported_preprocessor_runs(outputs, preprocessor):
    expected = preprocessor((TEXTS, PAIRS))
    for name in NAMES:
        assert outputs[name] == expected[name].numpy().tolist()
