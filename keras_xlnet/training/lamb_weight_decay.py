from typing import Any

from keras import ops

from keras_xlnet.registration import register
from keras_xlnet.training.weight_decay_optimizer import WeightDecayOptimizer
from keras_xlnet.types import Tensor


@register
class LambWeightDecay(WeightDecayOptimizer):
    """LAMB with weight decay inside the trust ratio, as in the paper and in tensorflow-addons.

    The update is `w -= learning_rate * norm(w) / norm(u) * u`, where `u` is the update of Adam
    plus `weight_decay * w`. `keras.optimizers.Lamb` adds the weight decay outside of the trust
    ratio; without weight decay the two are equal. Variables that are excluded from weight decay
    are also updated without the trust ratio, as in tensorflow-addons.

    Args:
        learning_rate: Float, or a `keras.optimizers.schedules.LearningRateSchedule`.
        beta_1: Float, decay rate of the moving average of the gradients.
        beta_2: Float, decay rate of the moving average of the squared gradients.
        epsilon: Float, added to the square root of the second moving average.
        weight_decay: Float, 0 or above.
        weight_decay_exclusions: List of regular expressions. A variable is neither decayed nor
            scaled by the trust ratio if one of them is found in its `path`. The default excludes
            the scales and offsets of normalization, the biases except the attention biases
            (`content_bias`, `position_bias`, `segment_bias`), and the query of attention pooling.
            `exclude_from_weight_decay()` of Keras excludes more variables. It looks for `var_names`
            in their `name`, such as `"kernel"`, not in the path with the names of layers.
        layer_decay: Float from 0 to 1. The learning rate of the last layer is `learning_rate`, and
            each other layer has `layer_decay` times the rate of the layer above it. Embeddings and
            task heads keep `learning_rate`.
        layer_decay_of: `"learning_rate"`, or `"gradient"` as in the original: that multiplies the
            clipped gradients instead, which Adam and LAMB nearly undo. The attention biases and
            segment embeddings then count as embeddings.
        **kwargs: Other arguments of `keras.optimizers.Optimizer`, such as `global_clipnorm`,
            `gradient_accumulation_steps`, `use_ema` and `name`.

    Raises:
        ValueError: If an argument is invalid.

    Example:

    >>> optimizer = keras_xlnet.training.LambWeightDecay(learning_rate=0.1)
    >>> kernel = keras.Variable([3.0, 4.0], name="kernel")
    >>> optimizer.apply([np.array([1.0, -1.0])], [kernel])
    >>> before = np.array([3.0, 4.0])
    >>> step = before - keras.ops.convert_to_numpy(kernel)
    >>> round(float(np.linalg.norm(step)), 4)  # learning_rate * norm(kernel) = 0.1 * 5
    0.5

    Source: You et al. 2019, "Large Batch Optimization for Deep Learning", algorithm 2.
    """

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        m, v = self._update_moments(gradient, variable)
        step = ops.cast(self.iterations + 1, variable.dtype)
        m = ops.divide(m, _correction(self.beta_1, step))
        v = ops.divide(v, _correction(self.beta_2, step))
        update = ops.divide(m, ops.add(ops.sqrt(v), self.epsilon))
        update = self._add_decay(update, variable)
        rate = self._rate(learning_rate, variable)
        if self._is_decayed(variable):
            rate = ops.multiply(rate, _trust_ratio(variable, update))
        self.assign_sub(variable, ops.multiply(rate, update))


def _correction(beta, step):
    """Returns the divisor that corrects the bias of a moving average that starts at zero."""
    return ops.subtract(1.0, ops.power(ops.cast(beta, step.dtype), step))


def _trust_ratio(variable, update):
    variable_norm, update_norm = (ops.sqrt(ops.sum(ops.square(x))) for x in (variable, update))
    ratio = ops.divide_no_nan(variable_norm, update_norm)
    is_positive = ops.logical_and(variable_norm > 0, update_norm > 0)
    return ops.where(is_positive, ratio, ops.ones_like(ratio))
