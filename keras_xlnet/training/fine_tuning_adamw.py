from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_number
from keras_xlnet.compat.unknown_arguments import RefusesUnknownArguments, register
from keras_xlnet.types import Tensor


@register
class FineTuningAdamW(RefusesUnknownArguments, keras.optimizers.AdamW):
    """AdamW whose learning rate warms up and decays to 0 in each call of `fit`.

    `fit` counts its steps, so their number need not be known in advance. Task models use this
    optimizer by default. In `train_on_batch`, and in `fit` on data of unknown length, the learning
    rate is constant.

    As with any schedule in Keras, the learning rate cannot be set, by callbacks either. For
    `ReduceLROnPlateau` compile with `keras.optimizers.AdamW(learning_rate)`.

    Args:
        learning_rate: Float, the highest learning rate. 5e-5 is for models of width 768.
        warmup_ratio: Float from 0 to 1, the part of the steps in which the learning rate rises.
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

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "learning_rate": self.schedule.highest,
            "warmup_ratio": self.schedule.warmup_ratio,
        }


class ScheduleOfFit(keras.callbacks.Callback):
    """Tells a `FineTuningAdamW` how many steps a call of `fit` has. `Task.fit` adds it.

    Args:
        initial_epoch: Int, as in `fit`.
    """

    def __init__(self, initial_epoch: int = 0) -> None:
        super().__init__()
        self._initial_epoch = initial_epoch

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        optimizer: Any = self.model.optimizer
        steps = self.params["steps"]
        if steps is not None:
            steps *= self.params["epochs"] - self._initial_epoch
        optimizer.schedule.begin(int(ops.convert_to_numpy(optimizer.iterations)), steps)
        # The schedule is a constant of a function that was compiled before.
        self.model.make_train_function(force=True)


@register
class _WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A linear rise and a linear fall to 0 over a number of steps that is told later."""

    def __init__(self, highest, warmup_ratio):
        super().__init__()
        self.highest, self.warmup_ratio = highest, warmup_ratio
        self._first, self._steps = 0, None

    def begin(self, first: int, steps: int | None) -> None:
        """Sets the step that the schedule begins with, and its steps, `None` if unknown."""
        self._first, self._steps = first, steps

    def __call__(self, step: Any) -> Tensor:
        if not self._steps:
            return ops.convert_to_tensor(self.highest, "float32")
        done = ops.cast(step, "float32") - self._first
        rise = (done + 1) / max(1.0, self.warmup_ratio * self._steps)
        fall = (self._steps - done) / max(1.0, (1 - self.warmup_ratio) * self._steps)
        part = ops.clip(ops.minimum(rise, fall), 0.0, 1.0)
        # `train_on_batch` after `fit` has no schedule.
        return self.highest * ops.where(done < self._steps, part, 1.0)

    def get_config(self):
        return {"highest": self.highest, "warmup_ratio": self.warmup_ratio}
