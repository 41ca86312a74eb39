#!/usr/bin/env bash
# One would guess: `predict` returns one row for each row of the data, in the order of the data, on each backend and with any
# number of workers of a `PyDataset`.
# What happens: on JAX, the first `predict` of a model that is not built (a subclass around a trained model) begins with the
# second batch and ends with the first one, if the `PyDataset` has two or more workers. The number of rows is right, and so
# is the order of the second call and of one worker. Nothing warns. `fit` begins with the second batch too, in each epoch,
# on JAX and on PyTorch, also if the model is built. With `steps_per_epoch` or `steps`, that changes which rows are used.
# Where: to build the model or its metrics, Keras reads a batch from the iterator and makes another iterator. With workers,
# the iterators share a queue, and the batch is gone.
# Since when: not known. Seen in Keras 3.15.1 with JAX 0.10.2. keras#20394 (closed) was the same for other data.
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 jax==0.10.2 numpy==2.4.6

cat > "$folder/order.py" <<'PYTHON'
import importlib.metadata

import keras
import numpy as np


class Batches(keras.utils.PyDataset):
    """Five batches of two rows: 0 0, 1 1, 2 2, ..."""

    def __len__(self):
        return 5

    def __getitem__(self, index):
        return np.full((2, 1), index, "float32"), np.zeros((2, 1))


class Wrapper(keras.Model):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def call(self, inputs):
        return self.inner(inputs)


class Weights(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        weights.append(self.model.get_weights()[0].item())


def identity():
    return keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")])


print(keras.backend.backend(), *(f"{name} {importlib.metadata.version(name)}" for name in ("keras", "jax")))
trained, right = identity(), np.repeat(np.arange(5), 2)
for workers in (1, 2):
    model = Wrapper(trained)
    first, second = (model.predict(Batches(workers=workers), verbose=0)[:, 0].astype(int) for _ in range(2))
    print(f"{workers} workers: first predict", *first, "- second predict", *second)
    assert np.array_equal(second, right)
    assert np.array_equal(first, right if workers == 1 else np.roll(right, -2))

    # The gradient of the weight is the input, so the steps of the weight show the order of the batches.
    weights, model = [1.0], identity()
    model.compile(keras.optimizers.SGD(1.0), loss=lambda y_true, y_pred: keras.ops.mean(y_pred))
    model.fit(Batches(workers=workers), epochs=2, shuffle=False, verbose=0, callbacks=[Weights()])
    batches = [round(before - after) for before, after in zip(weights, weights[1:])]
    print(f"{workers} workers: fit", *batches)
    assert batches == ([0, 1, 2, 3, 4] * 2 if workers == 1 else [1, 2, 3, 4, 0] * 2)
PYTHON
KERAS_BACKEND=jax "$folder/venv/bin/python" "$folder/order.py"
