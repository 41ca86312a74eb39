import keras
import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.training import AdamWeightDecay, GradualUnfreezing

X = {"token_ids": np.random.default_rng(0).integers(0, 40, (8, 5))}
Y = np.arange(8) % 2


def make(optimizer=None, num_layers=3, run_eagerly=False):
    keras.utils.set_random_seed(1)
    backbone = XLNetBackbone(40, num_layers, 2, 8, 16, dropout=0.0, attention_dropout=0.0)
    model = XLNetTextClassifier(backbone, 2, dropout=0.0)
    optimizer = optimizer or keras.optimizers.Adam(0.01)
    model.compile(optimizer, run_eagerly=run_eagerly, jit_compile=False)
    return model


class Changes(keras.callbacks.Callback):
    """Which parts of a model each epoch changes."""

    def __init__(self):
        super().__init__()
        self.epochs = []

    def on_epoch_begin(self, epoch, logs=None):
        self.before = {w.path: keras.ops.convert_to_numpy(w) for w in self.model.weights}

    def on_epoch_end(self, epoch, logs=None):
        changed = [w for w in self.model.weights if np.abs(self.before[w.path] - w).max() > 0]
        backbone = self.model.backbone
        parts = {f"block_{i}": block for i, block in enumerate(backbone.blocks)}
        parts |= {"embedding": backbone.token_embedding, "head": self.model.logits_dense}
        found = {
            name for name, part in parts.items() if {*map(id, part.weights)} & {*map(id, changed)}
        }
        self.epochs.append(found)


@pytest.mark.parametrize("make_optimizer", [
    lambda: keras.optimizers.Adam(0.01),
    lambda: AdamWeightDecay(0.01, weight_decay=0.1, layer_decay=0.9),
])  # fmt: skip
def test_trains_from_the_top(make_optimizer):
    model, changes = make(make_optimizer(), run_eagerly=True), Changes()
    model.fit(X, Y, epochs=6, verbose=0, callbacks=[GradualUnfreezing(), changes])
    order = ["head", "block_2", "block_1", "block_0", "embedding"]
    assert changes.epochs == [set(order[: i + 1]) for i in range(5)] + [set(order)]


def test_epochs_per_block_and_what_follows():
    # In a graph, which is traced anew when something is frozen or trained. This takes seconds.
    model, changes = make(num_layers=2), Changes()
    model.fit(X, Y, epochs=3, verbose=0, callbacks=[GradualUnfreezing(2), changes])
    assert changes.epochs == [{"head"}, {"head"}, {"head", "block_1"}]
    after = Changes()
    model.fit(X, Y, verbose=0, callbacks=[after])
    assert len(after.epochs[0]) == 4


def test_continues_at_an_epoch():
    model, changes = make(run_eagerly=True), Changes()
    model.fit(X, Y, initial_epoch=2, epochs=3, verbose=0, callbacks=[GradualUnfreezing(), changes])
    assert changes.epochs == [{"head", "block_2", "block_1"}]


def test_what_was_frozen_stays_frozen():
    model, changes = make(), Changes()
    model.backbone.token_embedding.trainable = False
    model.enable_lora(2)
    model.compile(keras.optimizers.Adam(0.01), run_eagerly=True)
    trainable = [w.path for w in model.trainable_variables]
    model.fit(X, Y, epochs=5, verbose=0, callbacks=[GradualUnfreezing(), changes])
    assert all("embedding" not in found for found in changes.epochs)
    assert [w.path for w in model.trainable_variables] == trainable


def test_refuses():
    with pytest.raises(ValueError, match="`epochs_per_block` must be"):
        GradualUnfreezing(0)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="needs a task model.*Sequential"):
        model.fit(np.zeros((2, 2)), np.zeros((2, 1)), verbose=0, callbacks=[GradualUnfreezing()])
