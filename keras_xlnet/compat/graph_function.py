"""A `tf.function` of each object, without warnings about the objects before it.

Upstream: TensorFlow warns of a function that is traced again and again, and counts together all
functions with the same Python code. So it warns when five objects of a class have each traced a
method once, as the preprocessors of five models do.
Reproduction: docs/upstream.md, "Retracing is counted by code".
Delete this file when: TensorFlow counts the traces of each `tf.function` by itself.
"""

import functools
from collections.abc import Callable
from typing import Any


def graph_function(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Returns a `tf.function` whose traces are counted by themselves.

    Args:
        function: Takes and returns (nested) tensors. No Python control flow depends on tensors.
        **options: Other arguments of `tf.function`, such as `input_signature`.
    """
    import tensorflow as tf

    # TensorFlow counts by the attribute `__code__`, and a partial has none. AutoGraph takes longer
    # than tracing.
    return tf.function(functools.partial(function), autograph=False, **options)
