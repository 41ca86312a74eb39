"""Variables that a step creates while it is traced, created outside of its graph.

Upstream: TensorFlow traces a `tf.function` again if it created variables when it was first traced.
Keras creates the variables of the optimizer and of metrics in the first step, so that `fit` and
`evaluate` trace a model twice before they begin.
Without it: `python -m benchmarks.workarounds eager_variables` (the first `fit`, 6 layers of width
256) takes 30 to 33 s of a processor instead of 23 to 24. Later steps are the same.
Reproduction: docs/upstream.md, "The train step is traced twice".
Delete this file when: `fit` of a compiled model calls its `train_step` once.
"""

import concurrent.futures
import contextlib
from typing import Any

import keras

from keras_xlnet.lazy_modules import tf


def eager_variables() -> contextlib.AbstractContextManager[None]:
    """Returns a context in which functions that TensorFlow traces create variables eagerly.

    In eager mode, under a `tf.distribute` strategy, whose scope creates the variables, and on
    other backends it does nothing.
    """
    is_tensorflow = keras.backend.backend() == "tensorflow"
    if not is_tensorflow or tf.executing_eagerly() or tf.distribute.has_strategy():
        return contextlib.nullcontext()
    return tf.variable_creator_scope(_create_eagerly)


def _create_eagerly(next_creator: Any, **arguments: Any) -> Any:
    if tf.is_symbolic_tensor(arguments["initial_value"]):  # Known only in the graph.
        return next_creator(**arguments)
    # Graphs and their scopes belong to a thread. `tf.init_scope` leaves the graph, but not the
    # scopes in which `tf.function` records variables.
    with concurrent.futures.ThreadPoolExecutor(1) as other_thread:
        return other_thread.submit(tf.Variable, **arguments).result()
