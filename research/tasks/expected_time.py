"""How long a training takes, told before it starts."""

import fast_dtype
import numpy as np

# Products of the forward pass, and of the backward pass for inputs and for weights: each is two
# operations for a token and a weight.
_FORWARD, _INPUTS, _WEIGHTS = 2, 2, 2
# Of the rate of large products, what a training step reaches: rows are padded to the length of
# their batch, and not all is products.
_SHARE = 0.25


def announce(model, encoded, epochs):
    """Prints how many operations a `fit` takes, and about how much time.

    Args:
        model: A task model with a preprocessor.
        encoded: `Encoded` texts, which `fit` will be given.
        epochs: Int.
    """
    mask = encoded.features["padding_mask"]
    operations = epochs * float(mask.sum()) * operations_per_token(model)
    minutes = operations / (_SHARE * rate(model.backbone.compute_dtype)) / 60
    print(
        f"{epochs} epochs of {mask.sum():,} tokens, {operations / 1e12:.1f} TFLOP: about "
        f"{max(1, round(minutes))} min on this machine",
        flush=True,
    )


def operations_per_token(model):
    """Returns the operations that a training step needs for a token, those of the blocks."""
    matrices = [w for block in model.backbone.blocks for w in block.weights if len(w.shape) > 1]
    size = sum(int(np.prod(weight.shape)) for weight in matrices)
    trained = sum(int(np.prod(weight.shape)) for weight in matrices if weight.trainable)
    needs_inputs = size if trained else 0
    return _FORWARD * size + _INPUTS * needs_inputs + _WEIGHTS * trained


def rate(dtype):
    """Returns the operations a second of large products."""
    return 2 * 1024**3 / fast_dtype.product_seconds(dtype)
