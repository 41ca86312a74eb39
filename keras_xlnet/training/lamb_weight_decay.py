import keras
from keras import ops

from keras_xlnet.training.weight_decay_optimizer import WeightDecayOptimizer


@keras.saving.register_keras_serializable(package="keras_xlnet")
class LambWeightDecay(WeightDecayOptimizer):
    """LAMB with the decay inside the trust ratio, as its paper and tensorflow-addons have it.

    `keras.optimizers.Lamb` decays outside of the ratio; without decay the two are equal, and that
    one is enough. A step is `w -= learning_rate * norm(w) / norm(u) * u`, where `u` is the update
    of Adam plus `weight_decay * w`. Variables that are excluded from decay are updated without the
    ratio too, as in tensorflow-addons.

    Args:
        learning_rate: Float, or a `keras.optimizers.schedules.LearningRateSchedule`.
        beta_1: Float, decay of the mean of the gradients.
        beta_2: Float, decay of the mean of their squares.
        epsilon: Float, added to the root of the second mean.
        weight_decay: Float, 0 or above.
        weight_decay_exclusions: List of regular expressions, searched for in `variable.path`:
            variables that are neither decayed nor scaled by the ratio. Scales and offsets of
            normalization and biases, by default, but not the biases of attention.
            `exclude_from_weight_decay()` of Keras excludes more.
        **kwargs: `global_clipnorm`, `gradient_accumulation_steps`, `use_ema`, `name` and what else
            `keras.optimizers.Optimizer` takes.

    Raises:
        ValueError: If `weight_decay` or `weight_decay_exclusions` are not as above.

    Example:

    >>> optimizer = keras_xlnet.training.LambWeightDecay(learning_rate=0.1)
    >>> kernel = keras.Variable([3.0, 4.0], name="kernel")
    >>> optimizer.apply([np.array([1.0, -1.0])], [kernel])
    >>> before = np.array([3.0, 4.0])
    >>> step = before - keras.ops.convert_to_numpy(kernel)
    >>> round(float(np.linalg.norm(step)), 4)  # a tenth of the norm of the kernel, which is 5
    0.5

    Source: You et al. 2019, "Large Batch Optimization for Deep Learning", algorithm 2.
    """

    def update_step(self, gradient, variable, learning_rate):
        m, v = self._update_moments(gradient, variable)
        step = ops.cast(self.iterations + 1, variable.dtype)
        mean = ops.divide(m, _correction(self.beta_1, step))
        root = ops.sqrt(ops.divide(v, _correction(self.beta_2, step)))
        update = self._add_decay(ops.divide(mean, ops.add(root, self.epsilon)), variable)
        rate = ops.cast(learning_rate, variable.dtype)
        if self._is_decayed(variable):
            rate = ops.multiply(rate, _trust_ratio(variable, update))
        self.assign_sub(variable, ops.multiply(rate, update))


def _correction(beta, step):
    return ops.subtract(1.0, ops.power(ops.cast(beta, step.dtype), step))


def _trust_ratio(variable, update):
    of_variable, of_update = (ops.sqrt(ops.sum(ops.square(x))) for x in (variable, update))
    both = ops.logical_and(of_variable > 0, of_update > 0)
    return ops.where(both, ops.divide_no_nan(of_variable, of_update), ops.ones_like(of_update))
