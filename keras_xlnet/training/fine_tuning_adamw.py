import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_number
from keras_xlnet.registration import register
from keras_xlnet.types import Tensor


@register
class FineTuningAdamW(keras.optimizers.AdamW):
    """AdamW whose learning rate warms up and decays to 0 in each call of `fit`.

    `fit` counts its batches, so their number need not be known in advance. Task models use this
    optimizer by default. In `train_on_batch`, and in `fit` on data of unknown length, the learning
    rate is constant. With `gradient_accumulation_steps`, each update has the rate of the batch that
    completes it.

    As with any schedule in Keras, neither you nor a callback can set the learning rate. For
    `ReduceLROnPlateau`, compile with `keras.optimizers.AdamW(learning_rate)`.

    Args:
        learning_rate: Float, the highest learning rate. 5e-5 is for models of width 768.
        warmup_ratio: Float from 0 to 1, the fraction of the steps in which the learning rate rises.
        weight_decay, global_clipnorm: As in `keras.optimizers.AdamW`.
        **kwargs: As in `keras.optimizers.AdamW`.

    Example:

    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
    >>> classifier = keras_xlnet.models.XLNetTextClassifier(backbone, num_classes=2)
    >>> classifier.compile(keras_xlnet.training.FineTuningAdamW(1e-3))
    >>> x, y = {"token_ids": np.arange(12).reshape(4, 3)}, np.array([0, 1, 0, 1])
    >>> history = classifier.fit(x, y, batch_size=1, epochs=5, verbose=0)
    >>> [round(float(classifier.optimizer.schedule(step)), 5) for step in (0, 1, 2, 10, 19)]
    [0.0005, 0.001, 0.001, 0.00056, 6e-05]
    """

    def __init__(
        self,
        learning_rate: float = 5e-5,
        warmup_ratio: float = 0.1,
        weight_decay: float = 0.01,
        global_clipnorm: float | None = 1.0,
        **kwargs: Any,
    ) -> None:
        schedule = _WarmupDecay(
            check_number("learning_rate", learning_rate),
            check_number("warmup_ratio", warmup_ratio, high=1),
        )
        super().__init__(
            schedule, weight_decay=weight_decay, global_clipnorm=global_clipnorm, **kwargs
        )
        self.schedule = schedule

    def build(self, variables: Sequence[keras.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        # A compiled train step reads the position of the schedule from a variable, so that the next
        # `fit` need not compile it again. It belongs to the optimizer because JAX passes only the
        # optimizer's variables to the update.
        self.schedule.span = self.add_variable((2,), dtype="int", name="span_of_schedule")

    def load_own_variables(self, store: Any) -> None:
        """Loads the state without the schedule of the saved `fit`, which may be missing."""
        if self.built:
            last = str(len(self.variables) - 1)
            store = {**{key: store[key] for key in store.keys()}, last: [0, 0]}
        super().load_own_variables(store)

    def begin_schedule(self, batches: int | None, done: int = 0) -> None:
        """Starts a warmup and decay of the learning rate at the next batch.

        Args:
            batches: Int, the number of batches of the schedule; `None` for a constant learning
                rate.
            done: Int, how many of them are already done.
        """
        if self.schedule.span is not None:
            # `self.iterations` would be the number of updates.
            first = int(ops.convert_to_numpy(self._iterations)) - done if batches else 0
            self.schedule.span.assign([first, batches or 0])

    def end_schedule(self) -> None:
        """Keeps the learning rate at its highest value from the next batch on."""
        if self.schedule.span is not None:
            first, batches = map(int, ops.convert_to_numpy(self.schedule.span))
            done = int(ops.convert_to_numpy(self._iterations)) - first
            self.schedule.span.assign([first, min(batches, done)])

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "learning_rate": self.schedule.highest,
            "warmup_ratio": self.schedule.warmup_ratio,
        }


@contextlib.contextmanager
def schedule_of_fit(
    optimizer: keras.optimizers.Optimizer | None, callbacks: Any, initial_epoch: int
) -> Iterator[Any]:
    """A context for a call of `fit` that tells a `FineTuningAdamW` its number of steps.

    Args:
        optimizer: Any optimizer, or `None`. An optimizer that scales the loss contains another one.
        callbacks, initial_epoch: As in `fit`.

    Yields:
        The `callbacks` to pass to `fit`.
    """
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    if not isinstance(optimizer, FineTuningAdamW):
        yield callbacks
        return
    schedule = _ScheduleOfFit(optimizer, initial_epoch)
    if isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks.append(schedule)
    else:
        given = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
        callbacks = [schedule, *(each for each in given if each is not None)]
    try:
        yield callbacks
    except BaseException:  # Also if a user interrupts `fit`.
        optimizer.begin_schedule(None)
        raise
    optimizer.end_schedule()


class _ScheduleOfFit(keras.callbacks.Callback):
    def __init__(self, optimizer, initial_epoch):
        super().__init__()
        self._optimizer, self._initial_epoch = optimizer, initial_epoch
        self._has_begun = False

    def on_train_begin(self, logs=None):
        # Otherwise TensorFlow builds it in the first step.
        if not self.model.optimizer.built and self.model.trainable_variables:
            self.model.optimizer.build(self.model.trainable_variables)

    def on_epoch_begin(self, epoch, logs=None):
        # Other callbacks may have restored the state of a `fit` that was interrupted.
        batches = self.params.get("steps")
        if not self._has_begun and batches is not None:
            epochs, done = (n - self._initial_epoch for n in (self.params["epochs"], epoch))
            self._optimizer.begin_schedule(epochs * batches, done * batches)
        self._has_begun = True


@register
class _WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A linear warmup and a linear decay to 0, over the steps that a variable holds."""

    def __init__(self, highest, warmup_ratio):
        super().__init__()
        self.highest, self.warmup_ratio = highest, warmup_ratio
        # Int variable `(2,)`: the first step and the number of steps, 0 for a constant rate.
        self.span: keras.Variable | None = None

    def __call__(self, step: Any) -> Tensor:
        if self.span is None:
            return ops.convert_to_tensor(self.highest, "float32")
        done = ops.cast(ops.subtract(step, self.span[0]), "float32")
        steps = ops.cast(self.span[1], "float32")
        rise = (done + 1) / ops.maximum(1.0, self.warmup_ratio * steps)
        fall = (steps - done) / ops.maximum(1.0, (1 - self.warmup_ratio) * steps)
        part = ops.clip(ops.minimum(rise, fall), 0.0, 1.0)
        return self.highest * ops.where(done < steps, part, 1.0)

    def get_config(self):
        return {"highest": self.highest, "warmup_ratio": self.warmup_ratio}
