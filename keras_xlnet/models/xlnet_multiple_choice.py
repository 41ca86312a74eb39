from typing import Any

import keras
from keras import ops

from keras_xlnet.compat.unknown_arguments import register
from keras_xlnet.layers.arguments import check_choice
from keras_xlnet.models.task_model import TaskModel, check_backbone, pooled_logits, token_inputs
from keras_xlnet.models.xlnet_backbone import XLNetBackbone


@register
class XLNetMultipleChoice(TaskModel):
    """Chooses one of several texts, such as the one that answers a question.

    Each choice is a text (passage, question and answer). The backbone processes all of them as one
    batch. The pooled sequence of each goes through a dense layer with tanh (the summary of the
    original), dropout, and a dense layer with one output.

    It is compiled with AdamW at 5e-5 (for a pretrained backbone), the cross-entropy of the
    index of the right choice, and the accuracy. Call `compile` to change that; what is not
    passed to it stays.

    Args:
        backbone: An `XLNetBackbone`.
        activation: `"softmax"` for probabilities, `"linear"` for logits.
        pooling: Mode of `SequencePooling`. The default `"last"` is `<cls>`, with padding on either
            side.
        dropout: Float, dropout rate before the last layer.
        name: Name of the model.

    Inputs, a dict: `token_ids`, `segment_ids`, `padding_mask`, as in `XLNetBackbone`, but of
    shape `(batch, num_choices, length)`, for any number of choices.

    Outputs: Tensor `(batch, num_choices)`, float32.

    Raises:
        ValueError: If an argument is not as above.

    Example:

    >>> model = keras_xlnet.models.XLNetMultipleChoice(
    ...     keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
    ... )
    >>> token_ids = np.random.default_rng(0).integers(9, 40, (2, 4, 6))
    >>> history = model.fit({"token_ids": token_ids}, np.array([3, 0]), verbose=0)
    >>> model.predict({"token_ids": token_ids}, verbose=0).shape
    (2, 4)

    Source: the original's `get_race_loss`.
    """

    _arguments = ("activation", "pooling", "dropout")

    def __init__(
        self,
        backbone: XLNetBackbone,
        activation: str = "softmax",
        pooling: str = "last",
        dropout: float = 0.1,
        name: str = "xlnet_multiple_choice",
        **kwargs: Any,
    ) -> None:
        check_choice("activation", activation, ("softmax", "linear"))
        check_backbone(backbone)
        inputs = token_inputs(backbone, (None, None))
        texts = {key: _JoinChoices(name=f"all_{key}")(value) for key, value in inputs.items()}
        logits, summarize, logits_dense = pooled_logits(backbone, texts, 1, pooling, dropout)
        logits = _SplitChoices(name="choices")(logits, inputs["token_ids"])
        # Half precision is too coarse for probabilities near 0 and 1.
        activate = keras.layers.Activation(activation, dtype="float32", name="probabilities")
        super().__init__(inputs=inputs, outputs=activate(logits), name=name, **kwargs)

        # PyTorch accepts submodules only after its module is initialized.
        self.backbone = backbone
        self.sequence_summary = summarize
        self.logits_dense = logits_dense

        # === Config ===
        self.activation = activation
        self.pooling = pooling
        self.dropout = dropout
        self.compile()

    def _compile_defaults(self):
        return {
            "loss": keras.losses.SparseCategoricalCrossentropy(
                from_logits=self.activation == "linear"
            ),
            "metrics": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        }


class _JoinChoices(keras.Operation):
    """`(batch, num_choices, length)` -> `(batch * num_choices, length)`, of any static shape."""

    def call(self, x):
        return ops.reshape(x, (-1, ops.shape(x)[2]))

    def compute_output_spec(self, x):
        batch_size, num_choices, length = x.shape
        unknown = batch_size is None or num_choices is None
        shape = (None if unknown else batch_size * num_choices, length)
        return keras.KerasTensor(shape, dtype=x.dtype)


class _SplitChoices(keras.Operation):
    """`(batch * num_choices, 1)` -> `(batch, num_choices)`."""

    def call(self, logits, token_ids):
        return ops.reshape(logits, ops.shape(token_ids)[:2])

    def compute_output_spec(self, logits, token_ids):
        return keras.KerasTensor(token_ids.shape[:2], dtype=logits.dtype)
