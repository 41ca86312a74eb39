"""What programs tell of their time before they start."""

import sys

import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.examples import EXAMPLES

sys.path.insert(0, str(EXAMPLES))
import expected_time


@pytest.fixture
def model(golden_dir):
    tokenizer = XLNetTokenizer(golden_dir / "spiece.model")
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 16)
    backbone = XLNetBackbone(tokenizer.vocabulary_size(), 2, 2, 16, 24)
    return XLNetTextClassifier(backbone, 2, preprocessor)


def test_counts_six_operations_for_each_weight_of_a_matrix(model):
    # Query, key, value, positions and output; two matrices of the feed-forward layer; the vectors
    # of heads, (2, 8), and of segments, (2, 2, 8).
    expected = 2 * (5 * 16 * 16 + 2 * 16 * 24)
    small = 2 * (3 * 2 * 8 + 2 * 2 * 8)
    assert 6 * expected <= expected_time.operations_per_token(model) <= 6 * (expected + small)


def test_a_frozen_backbone_is_only_read(model):
    trained = expected_time.operations_per_token(model)
    model.backbone.trainable = False
    assert expected_time.operations_per_token(model) * 3 == trained


def test_lora_needs_no_gradients_of_the_large_matrices(model):
    trained = expected_time.operations_per_token(model)
    model.enable_lora(1)
    assert trained / 2 < expected_time.operations_per_token(model) < trained


def test_says_tokens_operations_and_minutes(model, monkeypatch, capsys):
    encoded = model.preprocessor.encode(["a free lunch", "see you at six o'clock"])
    tokens = int(np.sum(encoded.features["padding_mask"]))
    operations = 3 * tokens * expected_time.operations_per_token(model)
    monkeypatch.setattr(expected_time, "rate", lambda dtype: operations / 600 / 0.25)
    expected_time.announce(model, encoded, 3)
    assert f"3 epochs of {tokens} tokens" in capsys.readouterr().out
    expected_time.announce(model, encoded, 3)
    assert capsys.readouterr().out.endswith("about 10 min on this machine\n")
