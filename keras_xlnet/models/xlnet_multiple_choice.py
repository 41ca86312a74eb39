import dataclasses
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.arguments import check_choice
from keras_xlnet.compat.unknown_arguments import register
from keras_xlnet.models.task_model import (
    JoinChoices,
    SplitChoices,
    check_backbone,
    pooled_logits,
    token_inputs,
)
from keras_xlnet.models.text_task_model import TextTaskModel, check_preprocessor
from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.preprocessing import XLNetMultipleChoicePreprocessor
from keras_xlnet.preprocessing.choices import (
    choice_columns,
    choice_labels,
    given_choices,
    is_choices,
)
from keras_xlnet.preprocessing.labels import as_label_array, check_class_indices
from keras_xlnet.preprocessing.weights import as_weight_array


@dataclasses.dataclass(frozen=True)
class Choice:
    """The choice of a model.

    Args:
        index: Int, its place among the choices.
        text: String.
        score: Float, its probability.
        scores: Tuple of the probabilities of all choices.
    """

    index: int
    text: str
    score: float
    scores: tuple[float, ...]


@register
class XLNetMultipleChoice(TextTaskModel):
    """Chooses one of several texts, such as the one that answers a question.

    Each choice is a text (passage, question and answer). The backbone processes all of them as one
    batch. The pooled sequence of each goes through a dense layer with tanh (the summary of the
    original), dropout, and a dense layer with one output.

    With a preprocessor `fit`, `evaluate` and `predict` take texts with choices:

    - a dict with the columns `text` and `choices`, and optionally `question`. A choice fills all
      blanks of its question, or follows it. A blank is a run of `_` that stands alone: the one in
      `my_var` is not;
    - a tuple of the columns `(texts, choices)` or `(texts, questions, choices)`;
    - a list of rows `(text, choices)` or `(text, question, choices)`.

    Texts may have different numbers of choices.

    It is compiled with AdamW at 5e-5 (for a pretrained backbone), the cross-entropy of the
    index of the right choice, and the accuracy. Call `compile` to change that; what is not
    passed to it stays.

    Args:
        backbone: An `XLNetBackbone`.
        activation: `"softmax"` for probabilities, `"linear"` for logits.
        pooling: Mode of `SequencePooling`. The default `"last"` is `<cls>`, with padding on either
            side. Or `"pair"`: text and choice are compared token by token, by `PairComparison`,
            from which a small model learns more.
        dropout: Float, dropout rate before the last layer.
        preprocessor: An `XLNetMultipleChoicePreprocessor`, for raw text.
        name: Name of the model.

    Inputs, a dict: `token_ids`, `segment_ids`, `padding_mask`, as in `XLNetBackbone`, but of
    shape `(batch, num_choices, length)`, for any number of choices. A choice of padding alone is
    none, and its probability is 0.

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

    _arguments = ("preprocessor", "activation", "pooling", "dropout")
    preprocessor_cls = XLNetMultipleChoicePreprocessor

    def __init__(
        self,
        backbone: XLNetBackbone,
        activation: str = "softmax",
        pooling: str = "last",
        dropout: float = 0.1,
        preprocessor: keras.layers.Layer | None = None,
        name: str = "xlnet_multiple_choice",
        **kwargs: Any,
    ) -> None:
        check_choice("activation", activation, ("softmax", "linear"))
        check_backbone(backbone)
        check_preprocessor(preprocessor, backbone, self.preprocessor_cls)
        inputs = token_inputs(backbone, (None, None))
        texts = {key: JoinChoices(name=f"all_{key}")(value) for key, value in inputs.items()}
        logits, summarize, logits_dense = pooled_logits(backbone, texts, 1, pooling, dropout)
        logits = SplitChoices(name="choices")(logits, inputs["padding_mask"])
        # Half precision is too coarse for probabilities near 0 and 1.
        activate = keras.layers.Activation(activation, dtype="float32", name="probabilities")
        super().__init__(backbone, inputs=inputs, outputs=activate(logits), name=name, **kwargs)

        # PyTorch accepts submodules only after its module is initialized.
        self.sequence_summary = summarize
        self.logits_dense = logits_dense

        # === Config ===
        self.activation = activation
        self.pooling = pooling
        self.dropout = dropout
        self._hold_preprocessor(preprocessor)
        self.compile()

    def _compile_defaults(self):
        return {
            "loss": keras.losses.SparseCategoricalCrossentropy(
                from_logits=self.activation == "linear"
            ),
            "metrics": ["accuracy"],
        }

    # === Text ===

    def choose(
        self, x: Any, batch_size: int | None = None, verbose: str | int = "auto"
    ) -> list[Choice]:
        """Returns the most probable choice for each text.

        Args:
            x: Texts with choices, as in `fit`.
            batch_size, verbose: As in `keras.Model.predict`.

        Returns:
            A list of `Choice`: `index`, `text`, `score` and `scores`.
        """
        outputs = self.predict(choice_columns(x), batch_size=batch_size, verbose=verbose)
        if self.activation == "linear":
            outputs = ops.convert_to_numpy(ops.softmax(outputs))
        return [
            _choice(options, row[: len(options)])
            for options, row in zip(given_choices(x), outputs, strict=True)
        ]

    def _features(self, x, has_labels=False, shorten=True):
        columns = self._columns(x)
        return x if columns is None else self._encode(columns, shorten)

    def _examples(self, x, y=None, sample_weight=None, *, shorten=True):
        columns = self._columns(x)
        if columns is None:
            return x, _checked_indices(x, y), as_weight_array(sample_weight)
        labels = choice_labels(y, columns["choices"])
        weights = as_weight_array(sample_weight, len(labels))
        return self._encode(columns, shorten), labels, weights

    def _columns(self, x):
        """The columns of texts with choices, `None` if `x` are not these."""
        if hasattr(x, "__len__") and not len(x):
            raise ValueError(f"`x` must have at least one text. Received: x={x!r}")
        if self._is_dataset_of_arrays(x) or not is_choices(x):
            return None
        self._required_preprocessor()
        return choice_columns(x)

    def _encode(self, columns, shorten):
        return self._required_preprocessor().encode(**columns, shorten=shorten)


def _checked_indices(x, y):
    """Labels of arrays, of which indices of choices are checked."""
    y = as_label_array(y)
    # Vectors are for a loss of one's own.
    if isinstance(x, dict) and np.shape(y)[1:] in ((), (1,)):
        check_class_indices(y, np.shape(x["token_ids"])[1])
    return y


def _choice(options, scores):
    index = int(np.argmax(scores))
    return Choice(index, options[index], float(scores[index]), tuple(map(float, scores)))
