import keras
from keras import ops

from keras_xlnet.training.weight_decay_optimizer import WeightDecayOptimizer


@keras.saving.register_keras_serializable(package="keras_xlnet")
class AdamWeightDecay(WeightDecayOptimizer):
    """The optimizer that XLNet and BERT were pretrained with: Adam without bias correction.

    A step is `w -= learning_rate * (m / (sqrt(v) + epsilon) + weight_decay * w)`, where `m` and
    `v` are the running means of the gradient and of its square. `keras.optimizers.AdamW` corrects
    them for their start at zero, which makes its early steps smaller, the 12th by a factor of 6.6.
    With `weight_decay=0` the original uses another optimizer, which is `keras.optimizers.Adam`.

    Args:
        learning_rate: Float, or a `keras.optimizers.schedules.LearningRateSchedule` such as
            `keras_xlnet.training.WarmupPolynomialDecay`.
        beta_1: Float, decay of the mean of the gradients.
        beta_2: Float, decay of the mean of their squares.
        epsilon: Float, added to the root of the second mean. 1e-8 in the original's pretraining.
        weight_decay: Float, 0 or above; multiplied by the learning rate.
        weight_decay_exclusions: List of regular expressions, searched for in `variable.path`:
            variables that are not decayed. Scales and offsets of normalization and biases, by
            default, but not the biases of attention, which the original does decay.
            `exclude_from_weight_decay()` of Keras excludes more.
        **kwargs: `global_clipnorm` (1.0 in the original), `gradient_accumulation_steps`,
            `use_ema`, `name` and what else `keras.optimizers.Optimizer` takes.

    Raises:
        ValueError: If `weight_decay` or `weight_decay_exclusions` are not as above.

    Example:

    >>> optimizer = keras_xlnet.training.AdamWeightDecay(learning_rate=0.1, weight_decay=0.5)
    >>> kernel = keras.Variable([2.0], name="kernel")
    >>> bias = keras.Variable([2.0], name="bias")
    >>> optimizer.apply([np.array([0.0]), np.array([0.0])], [kernel, bias])
    >>> [round(float(variable[0]), 4) for variable in (kernel, bias)]
    [1.9, 2.0]

    Source: `AdamWeightDecayOptimizer` in `model_utils.py` of zihangdai/xlnet; Yang et al. 2019,
        appendix A.4.
    """

    def update_step(self, gradient, variable, learning_rate):
        m, v = self._update_moments(gradient, variable)
        update = ops.divide(m, ops.add(ops.sqrt(v), self.epsilon))
        rate = ops.cast(learning_rate, variable.dtype)
        self.assign_sub(variable, ops.multiply(rate, self._add_decay(update, variable)))
