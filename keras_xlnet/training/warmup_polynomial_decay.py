from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_number, check_positive_int
from keras_xlnet.registration import register
from keras_xlnet.types import Tensor


@register
class WarmupPolynomialDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate schedule with linear warmup and polynomial decay.

    The learning rate is 0 in step 0, rises linearly to `learning_rate` in step `warmup_steps`,
    falls to `min_ratio * learning_rate` in step `train_steps`, and then stays constant. The
    other schedule of the original, warmup and cosine decay, is
    `keras.optimizers.schedules.CosineDecay(0.0, decay_steps=train_steps - warmup_steps,
    alpha=min_ratio, warmup_target=learning_rate, warmup_steps=warmup_steps)`.

    Keras counts batches, not updates: with `gradient_accumulation_steps=k`, multiply both
    `train_steps` and `warmup_steps` by k.

    Args:
        learning_rate: Float, the highest learning rate.
        train_steps: Int, number of steps until the lowest learning rate, including the warmup.
        warmup_steps: Int, number of warmup steps, less than `train_steps`. 0 for no warmup.
        min_ratio: Float from 0 to 1, ratio of the lowest learning rate to the highest. The
            original uses 0.001 for pretraining and 0 for fine-tuning.
        power: Float, the power of the polynomial; 1 is linear.

    Raises:
        ValueError: If an argument is invalid.

    Example:

    >>> schedule = keras_xlnet.training.WarmupPolynomialDecay(0.1, train_steps=6, warmup_steps=2)
    >>> [round(float(schedule(step)), 4) for step in range(8)]
    [0.0, 0.05, 0.1, 0.075, 0.05, 0.025, 0.0, 0.0]

    Source: `get_train_op` in `model_utils.py` of zihangdai/xlnet.
    """

    def __init__(
        self,
        learning_rate: float,
        train_steps: int,
        warmup_steps: int = 0,
        min_ratio: float = 0.0,
        power: float = 1.0,
    ) -> None:
        super().__init__()
        self.learning_rate = check_number("learning_rate", learning_rate)
        self.train_steps = check_positive_int("train_steps", train_steps)
        self.warmup_steps = _check_warmup(warmup_steps, train_steps)
        self.min_ratio = check_number("min_ratio", min_ratio, high=1)
        self.power = check_number("power", power)

    def __call__(self, step: int | Tensor) -> Tensor:
        # In float32 under any dtype policy: float16 cannot represent large step numbers.
        step = ops.cast(step, "float32")
        decay_steps = self.train_steps - self.warmup_steps
        remaining = ops.clip((self.train_steps - step) / decay_steps, 0.0, 1.0)
        lowest = self.learning_rate * self.min_ratio
        decayed = (self.learning_rate - lowest) * ops.power(remaining, self.power) + lowest
        if not self.warmup_steps:
            return decayed
        rising = self.learning_rate * (step / self.warmup_steps)
        return ops.where(step < self.warmup_steps, rising, decayed)

    def get_config(self) -> dict[str, Any]:
        return {
            "learning_rate": self.learning_rate,
            "train_steps": self.train_steps,
            "warmup_steps": self.warmup_steps,
            "min_ratio": self.min_ratio,
            "power": self.power,
        }


def _check_warmup(warmup_steps, train_steps):
    is_int = isinstance(warmup_steps, int) and not isinstance(warmup_steps, bool)
    if not is_int or not 0 <= warmup_steps < train_steps:
        raise ValueError(
            "`warmup_steps` must be an integer, 0 or above and less than `train_steps`. "
            f"Received: warmup_steps={warmup_steps!r}, train_steps={train_steps!r}"
        )
    return warmup_steps
