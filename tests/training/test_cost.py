"""What a training costs, before it starts."""

import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.training import cost, training_cost


@pytest.fixture
def model(tokenizer):
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 16)
    backbone = XLNetBackbone(tokenizer.vocabulary_size(), 2, 2, 16, 24)
    return XLNetTextClassifier(backbone, 2, preprocessor)


def operations_per_token(model):
    return training_cost(model, {"padding_mask": np.ones((1, 1))}, 1).operations


def test_counts_six_operations_for_each_weight_of_a_matrix(model):
    # Query, key, value, positions and output; two matrices of the feed-forward layer; the vectors
    # of heads, (2, 8), and of segments, (2, 2, 8).
    expected = 2 * (5 * 16 * 16 + 2 * 16 * 24)
    small = 2 * (3 * 2 * 8 + 2 * 2 * 8)
    assert 6 * expected <= operations_per_token(model) <= 6 * (expected + small)


def test_a_frozen_backbone_needs_the_forward_pass_only(model):
    trained = operations_per_token(model)
    model.backbone.trainable = False
    assert operations_per_token(model) * 3 == trained


def test_blocks_below_the_first_trained_one_need_the_forward_pass_only(model):
    trained = operations_per_token(model)
    model.backbone.blocks[0].trainable = False
    assert operations_per_token(model) == trained * (2 + 6) / 12


def test_lora_needs_no_gradients_of_the_large_matrices(model):
    trained = operations_per_token(model)
    model.enable_lora(1)
    assert trained / 2 < operations_per_token(model) < trained


def test_says_tokens_operations_and_minutes(model, monkeypatch):
    encoded = model.preprocessor.encode(["a free lunch", "see you at six o'clock"])
    tokens = int(np.sum(encoded.features["padding_mask"]))
    operations = 3 * tokens * operations_per_token(model)
    monkeypatch.setattr(cost, "products_per_second", lambda dtype: operations / 600 / 0.25)
    found = training_cost(model, encoded, 3)
    assert (found.tokens, found.operations, found.seconds) == (tokens, operations, 600)
    assert str(found).startswith(f"3 epochs of {tokens} tokens")
    assert str(found).endswith("about 10 min on this machine")
