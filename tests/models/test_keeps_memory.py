"""`fit` of stateful models: batch size, order and last batch of arrays; batches of another kind."""

import keras
import numpy as np
import pandas as pd
import pytest

from keras_xlnet.models import TransformerXLLanguageModel, XLNetBackbone, XLNetPermutationLM

BATCH, LENGTH, SIZE = 2, 5, 20


def causal(stateful=True):
    sizes = (SIZE, 1, 2, 8, 12)
    batch_size = BATCH if stateful else None
    return TransformerXLLanguageModel(
        *sizes, memory_length=4, dropout=0.0, attention_dropout=0.0, stateful=stateful,
        batch_size=batch_size, seed=1,
    )  # fmt: skip


def permutation(stateful=True, **arguments):
    arguments = {"memory_length": 4, "dropout": 0.0, "attention_dropout": 0.0, **arguments}
    backbone = XLNetBackbone(SIZE, 1, 2, 8, 12, seed=1, **arguments)
    batch_size = BATCH if stateful else None
    return XLNetPermutationLM(backbone, stateful=stateful, batch_size=batch_size)


def rows_of(make, count):
    """Inputs and labels of a model."""
    rng = np.random.default_rng(3)
    token_ids = rng.integers(9, SIZE, (count, LENGTH))
    if make is causal:
        return {"token_ids": token_ids}, rng.integers(0, SIZE, (count, LENGTH))
    inputs = {
        "token_ids": token_ids,
        "permutation_mask": rng.random((count, LENGTH, LENGTH)) > 0.5,
        "target_positions": np.tile([1, 3], (count, 1)),
    }
    return inputs, rng.integers(0, SIZE, (count, 2))


def trained(make, *args, fit=None, **kwargs):
    """The weights after training from the same start, and the history."""
    keras.utils.set_random_seed(5)
    model = make()
    for i, variable in enumerate(model.trainable_variables):
        rng = np.random.default_rng(i)
        variable.assign(rng.normal(0.0, 0.2, variable.shape) + ("gamma" in variable.path))
    model.compile(keras.optimizers.SGD(0.5), run_eagerly=True)
    history = (fit or model.fit)(*args, **kwargs, verbose=0).history
    return [np.asarray(v) for v in model.trainable_variables], history


def assert_same(found, expected):
    for a, b in zip(found[0], expected[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)
    assert found[1].keys() == expected[1].keys()
    for name, values in expected[1].items():
        assert found[1][name] == pytest.approx(values, rel=1e-5)


class Batches(keras.utils.PyDataset):
    """Batches whose order is that of their numbers, unless `fit` shuffles them."""

    def __init__(self, x, y, **kwargs):
        super().__init__(**kwargs)
        self.data = x, y

    def __len__(self):
        return len(self.data[1]) // BATCH

    def __getitem__(self, index):
        part = slice(index * BATCH, (index + 1) * BATCH)
        return keras.tree.map_structure(lambda a: a[part], self.data)


@pytest.mark.parametrize("make", [causal, permutation])
def test_arrays_have_the_batch_size_of_the_model_and_their_order(make):
    x, y = rows_of(make, 2 * BATCH)
    expected = trained(make, x, y, batch_size=BATCH, shuffle=False, epochs=2)
    assert_same(trained(make, x, y, None, 2), expected)
    if make is causal:  # What `fit` takes does not depend on the model.
        assert_same(trained(make, x, pd.DataFrame(y), epochs=2), expected)
        tensors = keras.tree.map_structure(keras.ops.convert_to_tensor, (x, y))
        assert_same(trained(make, *tensors, epochs=2), expected)
        assert_same(trained(make, Batches(x, y), epochs=2), expected)
    # The order of the batches matters, because of the memory.
    turned = keras.tree.map_structure(lambda a: a[::-1].copy(), (x, y))
    assert np.abs(trained(make, *turned, epochs=2)[0][0] - expected[0][0]).max() > 1e-5


@pytest.mark.parametrize("make", [causal, permutation])
def test_what_does_not_fit_a_stateful_model_is_refused(make):
    model, (x, y) = make(), rows_of(make, 2 * BATCH + 1)
    full = keras.tree.map_structure(lambda a: a[:-1], (x, y))
    for arguments, message in (
        ({"batch_size": 3}, "`batch_size` must be the one of the .* model, 2. Received: .*=3"),
        ({"validation_batch_size": 1}, "`validation_batch_size` must be the one of .*, 2"),
        ({"shuffle": True}, "`shuffle` must be False for a stateful model"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(*full, **arguments)
    with pytest.raises(ValueError, match="`shuffle` must be False"):
        model.fit(Batches(*full), shuffle=True)
    # Keras would read them in another order on JAX and PyTorch.
    data = Batches(*full, workers=2)
    for method in (model.fit, model.evaluate, model.predict):
        with pytest.raises(ValueError, match="make the `PyDataset` with `workers=1`.*workers=2"):
            method(data)
    with pytest.raises(ValueError, match="workers=1"):
        model.fit(*full, validation_data=data)


@pytest.mark.parametrize("make, weighted", [(causal, False), (permutation, True)])
def test_training_rows_fill_no_batch(make, weighted):
    """The same as with one more row, which has the weight 0."""
    x, y = rows_of(make, 2 * BATCH + 1)
    weights = np.linspace(0.5, 1.5, 2 * BATCH + 1, dtype="float32") if weighted else None
    filled = keras.tree.map_structure(lambda a: np.concatenate([a, a[-1:]]), (x, y))
    expected_weights = np.append(np.ones(2 * BATCH + 1) if weights is None else weights, 0.0)
    found = trained(make, x, y, sample_weight=weights, epochs=2)
    assert_same(found, trained(make, *filled, sample_weight=expected_weights, epochs=2))


@pytest.mark.parametrize("make, weighted", [(causal, True), (permutation, False)])
def test_validation_rows_fill_no_batch(make, weighted):
    x, y = rows_of(make, 2 * BATCH)
    validation = keras.tree.map_structure(lambda a: a[: BATCH + 1], (x, y))
    if weighted:
        weight = np.linspace(0.5, 2.0, BATCH + 1)[:, np.newaxis]
        validation = (*validation, np.tile(weight, (1, y.shape[1])))
    model = make()
    model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    history = model.fit(x, y, validation_data=validation, verbose=0).history
    x, y, *weight = validation
    expected = model.evaluate(x, y, sample_weight=(weight or [None])[0], verbose=0)
    assert history["val_loss"][0] == pytest.approx(np.ravel(expected)[0], rel=1e-5)


@pytest.mark.parametrize("make", [causal, permutation])
def test_validation_split_takes_the_last_rows(make):
    x, y = rows_of(make, 2 * BATCH + 1)
    parts = [
        keras.tree.map_structure(lambda a, part=part: a[part], (x, y))
        for part in (slice(2 * BATCH), slice(2 * BATCH, None))
    ]
    expected = trained(make, *parts[0], validation_data=parts[1])
    assert_same(trained(make, x, y, validation_split=0.2), expected)
    assert "val_loss" in expected[1]


def test_a_validation_split_without_rows_for_training_is_refused():
    with pytest.raises(ValueError, match="must leave rows.* validation_split=0.9 for 4 rows"):
        causal().fit(*rows_of(causal, 2 * BATCH), validation_split=0.9, verbose=0)


def test_models_without_state_are_trained_as_before():
    x, y = rows_of(causal, 5)
    model = causal(stateful=False)
    model.compile(run_eagerly=True)
    history = model.fit(x, y, 3, 1, 0, None, 0.2, shuffle=True).history
    assert "val_loss" in history
