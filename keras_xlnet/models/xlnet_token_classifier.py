from collections.abc import Sequence
from typing import Any

import keras

from keras_xlnet.compat.unknown_arguments import register
from keras_xlnet.layers import HashDropout
from keras_xlnet.layers.arguments import check_choice, check_rate
from keras_xlnet.layers.initializers import spawn_seeds
from keras_xlnet.models.task_model import (
    TaskModel,
    check_backbone,
    check_classes,
    new_logits,
    token_inputs,
)
from keras_xlnet.models.xlnet_backbone import XLNetBackbone


@register
class XLNetTokenClassifier(TaskModel):
    """Classifies each token of a text, for example to recognize names.

    The output of the backbone goes through dropout and a dense layer with one output a class.

    It is compiled with AdamW at 5e-5 (for a pretrained backbone), the cross-entropy of class
    indices and their accuracy. Both are means over the tokens by their sample weights
    `(batch, length)`: give padding, special tokens and all but the first piece of a word a weight
    of 0. Without sample weights every token counts, padding too. Call `compile` to change that;
    what is not passed to it stays.

    Args:
        backbone: An `XLNetBackbone`.
        num_classes: Int, number of outputs.
        activation: `"softmax"` for probabilities, `"linear"` for logits.
        dropout: Float, dropout rate before the last layer.
        class_names: Optional list of `num_classes` strings, for reports.
        name: Name of the model.

    Inputs, a dict: `token_ids`, `segment_ids`, `padding_mask`, as in `XLNetBackbone`.

    Outputs: Tensor `(batch, length, num_classes)`, float32.

    Raises:
        ValueError: If an argument is not as above.

    Example:

    >>> classifier = keras_xlnet.models.XLNetTokenClassifier(
    ...     keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32), num_classes=3
    ... )
    >>> token_ids = np.random.default_rng(0).integers(9, 40, (4, 6))
    >>> history = classifier.fit(
    ...     {"token_ids": token_ids}, token_ids % 3, sample_weight=token_ids > 12, verbose=0
    ... )
    >>> classifier.predict({"token_ids": token_ids}, verbose=0).shape
    (4, 6, 3)
    """

    _arguments = ("num_classes", "activation", "dropout", "class_names")

    def __init__(
        self,
        backbone: XLNetBackbone,
        num_classes: int,
        activation: str = "softmax",
        dropout: float = 0.1,
        class_names: Sequence[str] | None = None,
        name: str = "xlnet_token_classifier",
        **kwargs: Any,
    ) -> None:
        check_choice("activation", activation, ("softmax", "linear"))
        check_classes(num_classes, activation, class_names)
        check_rate("dropout", dropout)
        check_backbone(backbone)
        (dropout_seed,) = spawn_seeds(backbone.seed, 1, "XLNetTokenClassifier")
        drop = HashDropout(dropout, seed=dropout_seed, dtype=backbone.dtype_policy, name="dropout")
        logits_dense = new_logits(backbone, num_classes)
        # Half precision is too coarse for probabilities near 0 and 1.
        activate = keras.layers.Activation(activation, dtype="float32", name="probabilities")
        inputs = token_inputs(backbone)
        logits = logits_dense(drop(backbone(inputs)["sequence_output"]))
        super().__init__(inputs=inputs, outputs=activate(logits), name=name, **kwargs)

        # PyTorch accepts submodules only after its module is initialized.
        self.backbone = backbone
        self.dropout_layer = drop
        self.logits_dense = logits_dense

        # === Config ===
        self.num_classes = num_classes
        self.activation = activation
        self.dropout = dropout
        self.class_names = None if class_names is None else list(class_names)
        self.compile()

    def _compile_defaults(self):
        return {
            # The mean over the tokens that count: not over all, nor over texts first.
            "loss": keras.losses.SparseCategoricalCrossentropy(
                from_logits=self.activation == "linear", reduction="mean_with_sample_weight"
            ),
            "weighted_metrics": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        }
