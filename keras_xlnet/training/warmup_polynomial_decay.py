import keras
from keras import ops

from keras_xlnet.layers.arguments import check_positive_int
from keras_xlnet.training.arguments import check_number


@keras.saving.register_keras_serializable(package="keras_xlnet")
class WarmupPolynomialDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate that rises from 0 in a line, then falls as a polynomial; constant at the end.

    The first step, step 0, has rate 0. The other schedule of the original, warmup and cosine, is
    `keras.optimizers.schedules.CosineDecay(0.0, decay_steps=train_steps - warmup_steps,
    alpha=min_ratio, warmup_target=learning_rate, warmup_steps=warmup_steps)`.

    Keras counts batches: with `gradient_accumulation_steps=k`, both `train_steps` and
    `warmup_steps` are k times the number of updates.

    Args:
        learning_rate: Float, the rate after the warmup, which is the highest.
        train_steps: Int, steps until the lowest rate is reached, the warmup included.
        warmup_steps: Int, 0 for no warmup, less than `train_steps`.
        min_ratio: Float from 0 to 1, the lowest rate as a part of `learning_rate`. The original
            has 0.001 in pretraining, 0 in fine-tuning.
        power: Float, of the polynomial; 1 is a line.

    Raises:
        ValueError: If an argument is not as above.

    Example:

    >>> schedule = keras_xlnet.training.WarmupPolynomialDecay(0.1, train_steps=6, warmup_steps=2)
    >>> [round(float(schedule(step)), 4) for step in range(8)]
    [0.0, 0.05, 0.1, 0.075, 0.05, 0.025, 0.0, 0.0]

    Source: `get_train_op` in `model_utils.py` of zihangdai/xlnet.
    """

    def __init__(self, learning_rate, train_steps, warmup_steps=0, min_ratio=0.0, power=1.0):
        super().__init__()
        self.learning_rate = check_number("learning_rate", learning_rate)
        self.train_steps = check_positive_int("train_steps", train_steps)
        self.warmup_steps = _check_warmup(warmup_steps, train_steps)
        self.min_ratio = check_number("min_ratio", min_ratio, high=1)
        self.power = check_number("power", power)

    def __call__(self, step):
        # In float32 whatever the policy: half precision cannot count steps.
        step = ops.cast(step, "float32")
        decay_steps = self.train_steps - self.warmup_steps
        left = ops.clip((self.train_steps - step) / decay_steps, 0.0, 1.0)
        end = self.learning_rate * self.min_ratio
        rate = (self.learning_rate - end) * ops.power(left, self.power) + end
        if not self.warmup_steps:
            return rate
        rising = self.learning_rate * (step / self.warmup_steps)
        return ops.where(step < self.warmup_steps, rising, rate)

    def get_config(self):
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
