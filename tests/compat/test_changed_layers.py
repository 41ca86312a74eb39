"""Models compute with their layers as they are, also in functions that were compiled before."""

import keras
import numpy as np
import pytest

from keras_xlnet.models import XLNetPermutationLM, XLNetTextClassifier
from tests.small_models import small_backbone

X = {"token_ids": np.random.default_rng(1).integers(10, 200, (4, 6))}
Y = np.array([0, 1, 1, 0])


@pytest.fixture
def model():
    model = XLNetTextClassifier(small_backbone(), 2, dropout=0.0)
    model.compile("sgd")
    model.evaluate(X, Y, verbose=0)
    model.predict(X, verbose=0)
    return model


@pytest.fixture
def fitted(model):
    model.fit(X, Y, verbose=0)
    return model


def change_matrices(model, rng):
    for weight in model.weights:
        if weight.name.startswith("lora_"):
            weight.assign(rng.normal(size=weight.shape))


def check(model, before):
    """All that computes the model's outputs agrees with a call, which is not compiled."""
    expected = np.asarray(model(X))
    assert np.abs(expected - before).max() > 1e-4
    for found in (model.predict(X, verbose=0), model.predict_on_batch(X)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    loss = -np.log(expected[np.arange(4), Y]).mean()
    for found in (model.evaluate(X, Y, verbose=0), model.test_on_batch(X, Y)):
        np.testing.assert_allclose(np.ravel(found)[0], loss, rtol=0, atol=1e-5)


CHANGES = {
    "LoRA of the token embedding": lambda b, m: b.token_embedding.enable_lora(2),
    "LoRA of a layer": lambda b, m: b.blocks[0].feed_forward.output_dense.enable_lora(2),
    "quantized layer": lambda b, m: m.logits_dense.quantize("int4"),
    "dtype policy": lambda b, m: setattr(m.logits_dense, "dtype_policy", "bfloat16"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_layer_is_used(change, model, rng):
    before = model.predict(X, verbose=0)
    CHANGES[change](model.backbone, model)
    change_matrices(model, rng)
    check(model, before)


def test_another_scale_of_lora_is_used(model, rng):
    model.backbone.enable_lora(2)
    change_matrices(model, rng)
    before = model.predict(X, verbose=0)
    for block in model.backbone.blocks:
        block.attention.query_dense.lora_alpha = 9
    check(model, before)


def test_a_layer_that_was_frozen_is_not_trained(fitted):
    model = fitted
    model.backbone.blocks[0].trainable = False
    before = [np.array(weight) for weight in model.backbone.blocks[0].weights]
    head = np.array(model.logits_dense.kernel)
    model.fit(X, Y, verbose=0)
    for weight, expected in zip(model.backbone.blocks[0].weights, before, strict=True):
        np.testing.assert_array_equal(weight, expected)
    assert np.abs(np.array(model.logits_dense.kernel) - head).max() > 0


def test_weights_that_the_optimizer_does_not_know_are_refused(fitted):
    model = fitted
    model.enable_lora(2)
    with pytest.raises(ValueError, match="Call `compile` again, for an optimizer of these"):
        model.fit(X, Y, verbose=0)
    model.compile("sgd")
    model.fit(X, Y, verbose=0)


def test_a_change_while_fit_runs_is_used_from_the_next_validation_on(model):
    block = model.backbone.blocks[0]

    def freeze(epoch, logs):
        block.trainable = False
        values.append(np.array(block.weights[0]))

    values = []
    callback = keras.callbacks.LambdaCallback(on_epoch_end=freeze)
    data = (X, Y)
    model.fit(X, Y, epochs=3, validation_data=data, callbacks=[callback], verbose=0)
    np.testing.assert_array_equal(values[1], values[2])


def test_what_is_not_changed_is_not_compiled_again(fitted):
    model = fitted
    functions = model.train_function, model.test_function, model.predict_function
    for weight in model.weights:
        weight.assign(weight + 0.1)
    model.fit(X, Y, verbose=0)
    model.evaluate(X, Y, verbose=0)
    model.predict(X, verbose=0)
    assert functions == (model.train_function, model.test_function, model.predict_function)


def test_models_that_are_derived_from_a_model_are_made_again(rng):
    model = XLNetPermutationLM(small_backbone())
    before = model.score([[20, 30, 40]]).totals[0]
    model.backbone.enable_lora(2)
    change_matrices(model, rng)
    found = model.score([[20, 30, 40]]).totals[0]
    assert abs(found - before) > 1e-3
    np.testing.assert_allclose(found, model.with_arguments().score([[20, 30, 40]]).totals[0])
