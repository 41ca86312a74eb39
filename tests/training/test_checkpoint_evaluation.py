import keras
import numpy as np
import pytest

from keras_xlnet.training import evaluate_checkpoints

X, Y = np.ones((4, 1)), np.full((4, 1), 2.0)


@pytest.fixture
def model():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    model.compile(keras.optimizers.SGD(0.5), "mse", metrics=["mae"])
    model.set_weights([np.full((1, 1), 7.0)])
    return model


def write(model, folder, values, name="epoch_{}.weights.h5"):
    before = model.get_weights()
    for epoch, value in values.items():
        model.set_weights([np.full((1, 1), value)])
        save = model.save if name.endswith(".keras") else model.save_weights
        save(folder / name.format(epoch))
    model.set_weights(before)


def test_in_the_order_of_epochs(model, tmp_path, capsys):
    write(model, tmp_path, {10: 2.0, 9: 3.0, 2: 5.0})
    (tmp_path / "notes.txt").write_text("not a checkpoint")
    found = evaluate_checkpoints(model, tmp_path, X, Y)
    assert [*found] == [f"epoch_{epoch}.weights.h5" for epoch in (2, 9, 10)]
    assert [one["loss"] for one in found.values()] == [9.0, 1.0, 0.0]
    assert [one["mae"] for one in found.values()] == [3.0, 1.0, 0.0]
    assert "3/3" in capsys.readouterr().out
    assert model.get_weights()[0] == 7.0


def test_checkpoints_of_fit(model, tmp_path):
    """The loss of each epoch on the training data is that before its last update."""
    path = str(tmp_path / "{epoch}.keras")
    callback = keras.callbacks.ModelCheckpoint(path)
    history = model.fit(X, Y, epochs=3, batch_size=4, verbose=0, callbacks=[callback]).history
    found = evaluate_checkpoints(model, tmp_path, X, Y, batch_size=2, verbose=0)
    losses = [one["loss"] for one in found.values()]
    np.testing.assert_allclose(losses[:-1], history["loss"][1:], atol=1e-6)


def test_a_list_in_its_order(model, tmp_path):
    write(model, tmp_path, {0: 1.0, 1: 4.0}, "{}.keras")
    files = [tmp_path / "1.keras", str(tmp_path / "0.keras")]
    found = evaluate_checkpoints(model, files, X, Y, verbose=0)
    assert {name: one["loss"] for name, one in found.items()} == {"1.keras": 4.0, "0.keras": 1.0}


def test_a_file_of_another_model_loses_nothing(model, tmp_path):
    write(model, tmp_path, {0: 1.0})
    other = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    other.save_weights(tmp_path / "epoch_1.weights.h5")
    with pytest.raises(ValueError):
        evaluate_checkpoints(model, tmp_path, X, Y, verbose=0)
    assert model.get_weights()[0] == 7.0


@pytest.mark.parametrize("make", [lambda p: p, lambda p: [], lambda p: str(p / "none.keras")])
def test_no_checkpoints(model, tmp_path, make):
    with pytest.raises(ValueError, match="`paths` must"):
        evaluate_checkpoints(model, make(tmp_path), X, Y)


def test_two_of_one_name(model, tmp_path):
    with pytest.raises(ValueError, match=r"different names.*a\.keras"):
        evaluate_checkpoints(model, ["1/a.keras", "2/a.keras"], X, Y)


def variables_of(model):
    variables = [*model.variables, *model.metrics_variables, *model.optimizer.variables]
    return [keras.ops.convert_to_numpy(variable).copy() for variable in variables]


def test_training_goes_on_as_if_nothing_was_evaluated(tmp_path):
    """The optimizer, its iterations and the scale of the loss, metrics, and other state."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(16, 1)), rng.normal(size=(16, 1))
    layers = [keras.Input((1,)), keras.layers.Dropout(0.5, seed=1), keras.layers.Dense(1)]
    model = keras.Sequential([*layers, keras.layers.BatchNormalization()])
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.01), initial_scale=8.0)
    model.compile(optimizer, "mse", metrics=["mae"])
    for epoch in range(2):
        model.fit(x, y, batch_size=4, verbose=0)
        model.save_weights(tmp_path / f"{epoch}.weights.h5")
    model.save(tmp_path / "2.keras")
    optimizer.learning_rate = 0.5
    model.fit(x, y, epochs=3, batch_size=4, verbose=0)
    before, function = variables_of(model), model.train_function
    assert len(evaluate_checkpoints(model, tmp_path, x, y, verbose=0)) == 3
    for a, b in zip(before, variables_of(model), strict=True):
        np.testing.assert_array_equal(a, b)
    assert model.optimizer is optimizer and model.train_function is function
