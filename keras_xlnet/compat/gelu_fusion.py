"""The name scope in which TensorFlow fuses a dense layer with its GELU.

Upstream: TensorFlow's graph optimizer replaces a product of matrices, the addition of a bias and
the operations of GELU by one operation of oneDNN, but only if the names of GELU's operations come
after those of the product in alphabetical order.
Reproduction: docs/upstream.md, "Names decide whether GELU is fused".
Delete this file when: both are fused.
"""

from contextlib import AbstractContextManager
from typing import Any

import keras


def fusible_scope(dense: keras.layers.Layer) -> AbstractContextManager[Any]:
    """Returns a name scope for the activation that follows `dense`, a `keras.layers.Dense`."""
    return keras.name_scope(f"{dense.name}_output")
