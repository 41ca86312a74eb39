from typing import Any

from keras import ops

from keras_xlnet.registration import register
from keras_xlnet.training.weight_decay_optimizer import WeightDecayOptimizer
from keras_xlnet.types import Tensor


@register
class AdamWeightDecay(WeightDecayOptimizer):
    """Adam with weight decay and without bias correction, as XLNet and BERT were pretrained.

    The update is `w -= learning_rate * (m / (sqrt(v) + epsilon) + weight_decay * w)`, where `m`
    and `v` are the moving averages of the gradient and of its square. They start at zero.
    `keras.optimizers.AdamW` corrects the bias that this causes, so its early updates are smaller:
    for a constant gradient and the default betas, by a factor of 3.2 in the first step and of 6.6
    in the 12th. With `weight_decay=0` the original uses plain Adam: use `keras.optimizers.Adam`.

    Args:
        learning_rate: Float, or a `keras.optimizers.schedules.LearningRateSchedule` such as
            `keras_xlnet.training.WarmupPolynomialDecay`.
        beta_1: Float, decay rate of the moving average of the gradients.
        beta_2: Float, decay rate of the moving average of the squared gradients.
        epsilon: Float, added to the square root of `v`. The original pretrains with 1e-8.
        weight_decay: Float, 0 or above. It is multiplied by the learning rate.
        weight_decay_exclusions: List of regular expressions. A variable is not decayed if one of
            them is found in its `path`. The default excludes the same variables as the original:
            the scales and offsets of normalization, the biases except the attention biases
            (`content_bias`, `position_bias`, `segment_bias`), and the query of attention pooling.
            `exclude_from_weight_decay()` of Keras excludes more variables. It looks for `var_names`
            in their `name`, such as `"kernel"`, not in the path with the names of layers.
        layer_decay: Float from 0 to 1. The learning rate of the last layer is `learning_rate`, and
            each other layer has `layer_decay` times the rate of the layer above it. Embeddings and
            task heads keep `learning_rate`.
        layer_decay_of: `"learning_rate"`, or `"gradient"` as in the original: that multiplies the
            clipped gradients instead, which Adam and LAMB nearly undo. The attention biases and
            segment embeddings then count as embeddings: the original keeps them in one array of
            all layers.
        **kwargs: Other arguments of `keras.optimizers.Optimizer`, such as `global_clipnorm` (1.0
            in the original), `gradient_accumulation_steps`, `use_ema` and `name`.

    Raises:
        ValueError: If an argument is invalid.

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

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        m, v = self._update_moments(gradient, variable)
        update = ops.divide(m, ops.add(ops.sqrt(v), self.epsilon))
        rate = self._rate(learning_rate, variable)
        self.assign_sub(variable, ops.multiply(rate, self._add_decay(update, variable)))
