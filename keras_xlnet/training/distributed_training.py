"""Training on several replicas.

Upstream, with a `tf.distribute` strategy of several replicas, `fit` of Keras fails (1) with
`steps_per_execution` above 1, (2) where an input is bool, (3) with several workers.
Reproduction: docs/upstream.md, "Bool inputs fail with several replicas", "`steps_per_execution`
fails with several replicas" and "`fit` fails with several workers".
Delete this file when: all three train.
"""

import keras


class DistributedTraining:
    """Mixin of Keras models: `fit` and `evaluate` under any `tf.distribute` strategy.

    All models of this package have this mixin. In a model of your own, put it before
    `keras.Model`. With one replica, and on other backends, it changes nothing.

    The rules of Keras hold: make the model, and compile it, in `strategy.scope()`; pass a
    `tf.data.Dataset` with global batches of equal size (`drop_remainder=True`). With several
    workers, make the strategy before any other use of TensorFlow; `BackupAndRestore` needs a
    directory for each worker.

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

    def _has_replicas(self):
        if keras.backend.backend() != "tensorflow":
            return False
        return self.distribute_strategy.num_replicas_in_sync > 1

    def _on_all_replicas(self, step):
        """The loop over batches, in the form of TensorFlow's guide for TPUs."""
        import tensorflow as tf

        strategy, num_steps = self.distribute_strategy, self.steps_per_execution
        if not hasattr(super(), "_maybe_symbolic_build"):
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
