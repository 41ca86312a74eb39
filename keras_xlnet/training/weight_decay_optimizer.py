"""The base class of `AdamWeightDecay` and `LambWeightDecay`."""

import re
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_choice, check_number

# Scales and offsets of normalization, biases of dense layers, of logits and of an adaptive softmax.
# The attention biases (content_bias, position_bias, segment_bias) are not matched: the original
# decays them. It does not decay the query of attention pooling, which it calls `summary_bias`.
NORMALIZATION_AND_BIASES = (
    r"(^|/)(gamma|beta|bias|bias_\d+|tail_bias)$",
    r"(^|/)sequence_summary/pooling/query$",
)
# The paths of a layer's variables, and of the variables that the original keeps outside of its
# layers, whose gradients it does not scale.
_LAYER = re.compile(r"(?:^|/)block_(\d+)/")
_BESIDE_LAYERS = re.compile(r"(content_bias|position_bias|segment_bias|segment_embeddings)$")


class WeightDecayOptimizer(keras.optimizers.Optimizer):
    """Keeps two moving averages per variable and adds weight decay to updates.

    Subclasses implement `update_step` with `_update_moments` and `_add_decay`.
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        weight_decay: float = 0.01,
        weight_decay_exclusions: Sequence[str] = NORMALIZATION_AND_BIASES,
        layer_decay: float = 1.0,
        layer_decay_of: str = "learning_rate",
        **kwargs: Any,
    ) -> None:
        weight_decay = check_number("weight_decay", weight_decay)
        super().__init__(learning_rate=learning_rate, weight_decay=weight_decay, **kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.weight_decay_exclusions = _check_exclusions(weight_decay_exclusions)
        self.layer_decay = check_number("layer_decay", layer_decay, high=1)
        check_choice("layer_decay_of", layer_decay_of, ("learning_rate", "gradient"))
        self.layer_decay_of = layer_decay_of

    def build(self, variables: Sequence[keras.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._momentums, self._velocities = self.add_optimizer_variables(
            variables, ["momentum", "velocity"]
        )
        # Decided here: `update_step` receives backend variables, which have no path.
        self._decayed = [self._use_weight_decay(variable) for variable in variables]
        paths = [variable.path for variable in variables]
        self._layer_rates = _layer_rates(paths, self.layer_decay, self.layer_decay_of)

    def _use_weight_decay(self, variable):
        # The method of Keras handles `exclude_from_weight_decay()`.
        return super()._use_weight_decay(variable) and not any(
            re.search(pattern, variable.path) for pattern in self.weight_decay_exclusions
        )

    def _apply_weight_decay(self, variables):
        # Keras decays outside of the update; `_add_decay` makes the decay part of the update.
        pass

    def _update_moments(self, gradient, variable):
        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        # The gradient of an embedding is sparse, with one slice for each occurrence of a token.
        # Adding zeros makes it dense and sums the slices of a token before they are squared.
        zeros = ops.zeros(variable.shape, variable.dtype)
        gradient = ops.add(ops.cast(gradient, variable.dtype), zeros)
        if self.layer_decay_of == "gradient":
            gradient = ops.multiply(gradient, self._layer_rate(variable))
        self.assign_add(m, ops.multiply(ops.subtract(gradient, m), 1 - self.beta_1))
        self.assign_add(v, ops.multiply(ops.subtract(ops.square(gradient), v), 1 - self.beta_2))
        return m, v

    def _rate(self, learning_rate, variable):
        """The learning rate of a variable, which is the rate of its layer."""
        rate = ops.cast(learning_rate, variable.dtype)
        if self.layer_decay_of == "learning_rate":
            rate = ops.multiply(rate, self._layer_rate(variable))
        return rate

    def _layer_rate(self, variable):
        return self._layer_rates[self._get_variable_index(variable)]

    def _is_decayed(self, variable):
        return self._decayed[self._get_variable_index(variable)]

    def _add_decay(self, update, variable):
        if not self._is_decayed(variable):
            return update
        return ops.add(update, ops.multiply(variable, self.weight_decay))

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "weight_decay_exclusions": list(self.weight_decay_exclusions),
            "layer_decay": self.layer_decay,
            "layer_decay_of": self.layer_decay_of,
        }


def _layer_rates(paths, layer_decay, layer_decay_of):
    """The factor of each variable: 1 in the last layer and outside of the layers."""
    layers = [_LAYER.search(path) for path in paths]
    if layer_decay_of == "gradient":
        pairs = zip(paths, layers, strict=True)
        layers = [None if _BESIDE_LAYERS.search(path) else layer for path, layer in pairs]
    numbers = [None if layer is None else int(layer[1]) for layer in layers]
    last = max((number for number in numbers if number is not None), default=0)
    return [1.0 if number is None else layer_decay ** (last - number) for number in numbers]


def _check_exclusions(patterns):
    message = (
        "`weight_decay_exclusions` must be a list of regular expressions. "
        f"Received: weight_decay_exclusions={patterns!r}"
    )
    if isinstance(patterns, str) or not all(isinstance(pattern, str) for pattern in patterns):
        raise ValueError(message)
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{message} ({pattern!r}: {error})") from error
    return tuple(patterns)
