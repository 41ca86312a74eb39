"""Training on several replicas.

Upstream: with a `tf.distribute` strategy of several replicas, `fit` of Keras fails (1) with
`steps_per_execution` above 1, (2) if an input is bool, (3) with several workers. (4) Each row of a
smaller replica contributes more to the gradient than other rows.
Reproduction: docs/upstream.md, "Bool inputs fail with several replicas", "`steps_per_execution`
fails with several replicas", "`fit` fails with several workers" and "Rows of a smaller replica have
a larger weight".
Delete this file when: all four are fixed, and `divisible_batches.py` is deleted.
"""

from typing import Any

import keras
from keras import ops

from keras_xlnet.lazy_modules import tf
from keras_xlnet.training.divisible_batches import (
    divisible_arguments,
    filled_arguments,
    num_shards,
    without_added_rows,
)


class DistributedTraining:
    """Mixin of Keras models: `fit`, `evaluate` and `predict` on several devices.

    It works with any `tf.distribute` strategy, and with `keras.distribution` on JAX, also if the
    rows of a batch cannot be divided equally between the devices.

    All models of this package have this mixin. In a model of your own, put it before
    `keras.Model`. With one device it changes nothing.

    The rules of Keras for `tf.distribute` hold: make the model, and compile it, in
    `strategy.scope()`; pass a `tf.data.Dataset` with global batches. With several workers, make the
    strategy before any other use of TensorFlow; `BackupAndRestore` needs a directory for each
    worker.

    Raises:
        RuntimeError: In `fit` and `evaluate`, if this version of Keras is not supported.

    Example:

    >>> import tensorflow as tf
    >>> class Classifier(keras_xlnet.training.DistributedTraining, keras.Sequential):
    ...     pass
    >>> strategy = tf.distribute.get_strategy()  # or MirroredStrategy, TPUStrategy, ...
    >>> with strategy.scope():
    ...     model = Classifier([keras.layers.Dense(1)])
    ...     model.compile(loss="mean_squared_error", steps_per_execution=2)
    >>> batches = tf.data.Dataset.from_tensors((np.ones((4, 3)), np.ones(4))).repeat(4)
    >>> history = model.fit(batches, verbose=0)
    """

    # === JAX: batches that devices cannot divide ===

    def fit(self, *args: Any, **kwargs: Any) -> keras.callbacks.History:
        """Trains as `keras.Model.fit` does."""
        if num_shards() > 1:
            args, kwargs = (), divisible_arguments(super().fit, args, kwargs)
        return super().fit(*args, **kwargs)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluates as `keras.Model.evaluate` does."""
        if num_shards() > 1:
            args, kwargs = (), divisible_arguments(super().evaluate, args, kwargs)
        return super().evaluate(*args, **kwargs)

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        """Predicts as `keras.Model.predict` does."""
        if num_shards() > 1:
            args, kwargs = (), divisible_arguments(super().predict, args, kwargs)
        return super().predict(*args, **kwargs)

    def train_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """Trains as `keras.Model.train_on_batch` does."""
        if num_shards() > 1:
            args, kwargs = (), filled_arguments(super().train_on_batch, args, kwargs)
        return super().train_on_batch(*args, **kwargs)

    def test_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluates as `keras.Model.test_on_batch` does."""
        if num_shards() > 1:
            args, kwargs = (), filled_arguments(super().test_on_batch, args, kwargs)
        return super().test_on_batch(*args, **kwargs)

    def train_step(self, *args: Any) -> Any:
        """Computes a train step as `keras.Model` does."""
        return super().train_step(*args[:-1], without_added_rows(args[-1]))

    def test_step(self, *args: Any) -> Any:
        """Computes a test step as `keras.Model` does."""
        return super().test_step(*args[:-1], without_added_rows(args[-1]))

    def predict_step(self, *args: Any) -> Any:
        """Computes a predict step as `keras.Model` does."""
        return super().predict_step(*args[:-1], without_added_rows(args[-1]))

    def _symbolic_build(self, iterator=None, data_batch=None):
        if iterator is not None and num_shards() > 1:
            iterator = ((*step, map(without_added_rows, it)) for *step, it in iterator)
        return super()._symbolic_build(iterator, without_added_rows(data_batch))

    # === TensorFlow: replicas ===

    def make_train_function(self, force: bool = False) -> None:
        """Creates the function that `fit` calls for every `steps_per_execution` batches."""
        if not self._has_replicas() or self.run_eagerly:
            return super().make_train_function(force)
        if self.train_function is None or force:
            self.train_function = self._on_all_replicas(self.train_step)

    def make_test_function(self, force: bool = False) -> None:
        """Creates the function that `evaluate` calls for every `steps_per_execution` batches."""
        if not self._has_replicas() or self.run_eagerly:
            return super().make_test_function(force)
        if self.test_function is None or force:
            self.test_function = self._on_all_replicas(self.test_step)

    def _compute_loss(self, x=None, y=None, *args, **kwargs):
        loss = super()._compute_loss(x, y, *args, **kwargs)
        if not self._has_replicas():
            return loss
        context = tf.distribute.get_replica_context()
        if context is None:
            return loss
        # Keras averages the losses of the replicas, so each row of a replica with fewer rows would
        # contribute more to the gradient. The value does not change, because Keras reports it.
        # Labels come first: the rows of `packing` are not those of the batch.
        first = next(leaf for leaf in keras.tree.flatten((y, x)) if leaf is not None)
        rows = ops.cast(ops.shape(first)[0], loss.dtype)
        mean = context.all_reduce(tf.distribute.ReduceOp.MEAN, rows)
        scaled = loss * (rows / mean)
        return scaled + ops.stop_gradient(loss - scaled)

    def _has_replicas(self):
        if keras.backend.backend() != "tensorflow":
            return False
        return self.distribute_strategy.num_replicas_in_sync > 1

    def _on_all_replicas(self, step):
        """Returns the loop over batches, as in TensorFlow's guide for TPUs."""
        strategy, num_steps = self.distribute_strategy, self.steps_per_execution
        if not (hasattr(super(), "_maybe_symbolic_build") and hasattr(super(), "_compute_loss")):
            raise RuntimeError(
                f"Unsupported Keras version {keras.__version__}: training on several replicas was "
                "tested with 3.12 to 3.15"
            )

        def step_with_data(batch):
            # Otherwise operations that use no data, such as counters, run again at the end of the
            # data.
            with tf.control_dependencies(tf.nest.flatten(batch)):
                return step(batch)

        def one_batch(iterator):
            logs = strategy.run(step_with_data, args=(next(iterator),))
            return {key: strategy.reduce("MEAN", value, axis=None) for key, value in logs.items()}

        @tf.function
        def several_batches(iterator):
            for _ in tf.range(num_steps - 1):
                one_batch(iterator)
            return one_batch(iterator)

        def function(iterator):
            try:
                return several_batches(iterator)
            except tf.errors.OutOfRangeError:
                raise StopIteration from None

        return function

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # Keras averages the batches of the replicas, which fails for bools and several workers.
        # Only shapes are needed, so the batch of one replica is enough.
        if iterator is not None and self._has_replicas():
            local = self.distribute_strategy.experimental_local_results
            for _, _, batches in iterator:
                data_batch = keras.tree.map_structure(lambda x: local(x)[0], next(batches))
                break
            iterator = None
        return super()._maybe_symbolic_build(iterator=iterator, data_batch=data_batch)
