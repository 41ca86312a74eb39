"""Variables that a step creates while it is traced, created outside of its graph.

Upstream: TensorFlow traces a `tf.function` anew if it created variables when it was traced first.
Keras creates the variables of the optimizer and of metrics in the first step, so that `fit` and
`evaluate` trace a model twice before they begin.
Without it: `python -m benchmarks.workarounds eager_variables` (6 layers of width 256, 2 steps)
takes 30 to 42 s of a processor instead of 16 to 25; with 2 layers of width 64, 16 to 18 s instead
of 11 to 12. Later steps are the same. Building the optimizer before `fit` is not enough, as metrics
are made in the first step too: 13 to 15 s.
Reproduction: docs/upstream.md, "The train step is traced twice".
Delete this file when: `fit` of a compiled model calls its `train_step` once.
"""

import concurrent.futures
import contextlib
from collections.abc import Iterator
from typing import Any

import keras

from keras_xlnet.lazy_modules import tf


@contextlib.contextmanager
def eager_variables() -> Iterator[None]:
    """A context in which a function that TensorFlow traces creates its variables eagerly.

    In eager mode, under a `tf.distribute` strategy, whose scope creates the variables, and on
    other backends it does nothing.
    """
    if keras.backend.backend() != "tensorflow":
        yield
        return
    if tf.executing_eagerly() or tf.distribute.has_strategy():
        yield
        return
    with tf.variable_creator_scope(_create_eagerly):
        yield


def _create_eagerly(next_creator: Any, **arguments: Any) -> Any:
    if tf.is_symbolic_tensor(arguments["initial_value"]):  # It is only known in the graph.
        return next_creator(**arguments)
    # Graphs and their scopes belong to a thread. `tf.init_scope` leaves the graph, but not the
    # scopes in which `tf.function` takes note of the variables.
    with concurrent.futures.ThreadPoolExecutor(1) as other_thread:
        return other_thread.submit(tf.Variable, **arguments).result()
