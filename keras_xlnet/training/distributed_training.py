"""Training on several replicas.

Upstream, with a `tf.distribute` strategy of several replicas, `fit` of Keras fails (1) with
`steps_per_execution` above 1, (2) where an input is bool, (3) with several workers. (4) It gives
the rows of a smaller replica a larger part of the gradient.
Reproduction: docs/upstream.md, "Bool inputs fail with several replicas", "`steps_per_execution`
fails with several replicas", "`fit` fails with several workers" and "Rows of a smaller replica have
a larger weight".
Delete this file when: all four are mended, and `divisible_batches.py` is deleted.
"""

from typing import Any

import keras
from keras import ops

from keras_xlnet.training.divisible_batches import (
    divisible_batches,
    fill_batch,
    num_shards,
    without_added_rows,
)
from keras_xlnet.training.full_batches import number_of_rows, split_rows


class DistributedTraining:
    """Mixin of Keras models: `fit`, `evaluate` and `predict` on several devices.

    It is for any `tf.distribute` strategy, and for `keras.distribution` on JAX, where batches may
    have rows that cannot be divided equally between the devices.

    All models of this package have this mixin. In a model of your own, put it before
    `keras.Model`. With one device it changes nothing.

    The rules of Keras for `tf.distribute` hold: make the model, and compile it, in
    `strategy.scope()`; pass a `tf.data.Dataset` with global batches. With several workers, make the
    strategy before any other use of TensorFlow; `BackupAndRestore` needs a directory for each
    worker.

    Raises:
        RuntimeError: By `fit` and `evaluate`, if this version of Keras is not supported.

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

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: str | int = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: Any = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        *,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains as `keras.Model.fit` does."""
        if num_shards() > 1:
            data = (x, y, sample_weight)
            rows = number_of_rows(data)
            if validation_split and validation_data is None and rows is not None:
                data, validation_data = split_rows(data, rows, validation_split)
            if validation_data is not None:
                if not isinstance(validation_data, (tuple, list)):
                    validation_data = (validation_data,)
                size = validation_batch_size or batch_size
                validation_data = divisible_batches(
                    *keras.utils.unpack_x_y_sample_weight(tuple(validation_data)),
                    batch_size=size,
                    steps=validation_steps,
                )
            x = divisible_batches(
                *data, batch_size=batch_size, steps=steps_per_epoch, shuffle=shuffle
            )
            if rows is not None:
                y = sample_weight = batch_size = None
                validation_split, shuffle = 0.0, False
        return super().fit(
            x,
            y,
            batch_size,
            epochs,
            verbose,
            callbacks,
            validation_split,
            validation_data,
            shuffle,
            class_weight,
            sample_weight,
            initial_epoch,
            steps_per_epoch,
            validation_steps,
            validation_batch_size,
            **kwargs,
        )

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        sample_weight: Any = None,
        *,
        steps: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Evaluates as `keras.Model.evaluate` does."""
        if num_shards() > 1:
            is_arrays = number_of_rows((x, y, sample_weight)) is not None
            x = divisible_batches(x, y, sample_weight, batch_size, steps)
            if is_arrays:
                y = sample_weight = batch_size = None
        return super().evaluate(x, y, batch_size, verbose, sample_weight, steps, **kwargs)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        """Predicts as `keras.Model.predict` does."""
        if num_shards() > 1:
            x, batch_size = divisible_batches(x, batch_size=batch_size, steps=steps), None
        return super().predict(x, batch_size, verbose, steps, callbacks)

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Trains as `keras.Model.train_on_batch` does."""
        if num_shards() > 1:
            x, y, sample_weight = fill_batch(x, y, sample_weight)
        return super().train_on_batch(x, y, sample_weight, *args, **kwargs)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Evaluates as `keras.Model.test_on_batch` does."""
        if num_shards() > 1:
            x, y, sample_weight = fill_batch(x, y, sample_weight)
        return super().test_on_batch(x, y, sample_weight, *args, **kwargs)

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

    def _compute_loss(self, x=None, *args, **kwargs):
        loss = super()._compute_loss(x, *args, **kwargs)
        if not self._has_replicas():
            return loss
        import tensorflow as tf

        context = tf.distribute.get_replica_context()
        if context is None:
            return loss
        # Keras takes the mean of the replicas' losses. A replica with fewer rows than others would
        # give each of them a larger part of the gradient. The value is what Keras reports.
        inputs = next(leaf for leaf in keras.tree.flatten(x) if leaf is not None)
        rows = ops.cast(ops.shape(inputs)[0], loss.dtype)
        mean = context.all_reduce(tf.distribute.ReduceOp.MEAN, rows)
        scaled = loss * (rows / mean)
        return scaled + ops.stop_gradient(loss - scaled)

    def _has_replicas(self):
        if keras.backend.backend() != "tensorflow":
            return False
        return self.distribute_strategy.num_replicas_in_sync > 1

    def _on_all_replicas(self, step):
        """The loop over batches, in the form of TensorFlow's guide for TPUs."""
        import tensorflow as tf

        strategy, num_steps = self.distribute_strategy, self.steps_per_execution
        if not (hasattr(super(), "_maybe_symbolic_build") and hasattr(super(), "_compute_loss")):
            raise RuntimeError(
                f"Unsupported Keras version {keras.__version__}: training on several replicas was "
                "tested with 3.12 to 3.15"
            )

        def step_with_data(batch):
            # Otherwise operations that use no data, such as counters, run once more at its end.
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
        # Keras takes the mean of the replicas' batches, which fails for bools and several workers.
        # Only shapes are needed: the batch of one replica has them.
        if iterator is not None and self._has_replicas():
            local = self.distribute_strategy.experimental_local_results
            for _, _, batches in iterator:
                data_batch = keras.tree.map_structure(lambda x: local(x)[0], next(batches))
                break
            iterator = None
        return super()._maybe_symbolic_build(iterator=iterator, data_batch=data_batch)
