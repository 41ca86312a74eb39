from typing import Any, ClassVar

import keras

from keras_xlnet.arguments import check_choice
from keras_xlnet.models.task import Task, check_preprocessor
from keras_xlnet.models.task_graph import (
    SUMMARY_ROWS,
    SplitChoices,
    check_backbone,
    join_choices,
    pooled_logits,
    token_inputs,
)
from keras_xlnet.models.weight_rows import dense
from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.preprocessing import Preprocessor, XLNetMultipleChoicePreprocessor
from keras_xlnet.registration import register


@register
class XLNetMultipleChoice(Task):
    """Chooses one of several texts, such as the one that answers a question.

    Each choice is a text (passage, question and answer). The backbone processes all of them as one
    batch. The pooled sequence of each goes through a dense layer with tanh (the summary of the
    original), dropout, and a dense layer with one output.

    With a preprocessor `fit`, `evaluate` and `predict` take texts with choices:

    - a dict with the columns `text` and `choices`, and optionally `question`. A choice fills all
      blanks of its question, or follows it. A blank is a run of `_` outside of words, unlike
      in `my_var`;
    - a tuple of the columns `(texts, choices)` or `(texts, questions, choices)`;
    - a list of rows `(text, choices)` or `(text, question, choices)`.

    Texts may have different numbers of choices.

    It is compiled with `FineTuningAdamW` (for a pretrained backbone), the cross-entropy of the
    index of the right choice, and the accuracy. Call `compile` to change that; arguments
    you leave out keep these defaults.

    Args:
        backbone: An `XLNetBackbone`.
        preprocessor: An `XLNetMultipleChoicePreprocessor`, for raw text.
        activation: `"softmax"` for probabilities, `"linear"` for logits.
        pooling: Mode of `SequencePooling`. The default `"last"` is `<cls>`, with padding on either
            side. Or `"pair"`: `PairComparison` compares text and choice token by token, which
            suits small models better.
        dropout: Float, dropout rate before the last layer.
        name: Name of the model.

    Inputs, a dict: `token_ids`, `segment_ids`, `padding_mask`, as in `XLNetBackbone`, but of
    shape `(batch, num_choices, length)`, for any number of choices. A choice that is only padding
    is ignored, and its probability is 0.

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

    task = "multiple_choice"
    signatures = "choices"
    checkpoint: ClassVar = {
        "weights": [*SUMMARY_ROWS, *dense("logits", "logits/dense", "logits_proj")],
        "sign": "logits/dense/kernel",
        "architectures": ("XLNetForMultipleChoice",),
        "config": ("summary",),
    }
    _arguments = ("preprocessor", "activation", "pooling", "dropout")
    preprocessor_cls = XLNetMultipleChoicePreprocessor

    def __init__(
        self,
        backbone: XLNetBackbone,
        preprocessor: Preprocessor | None = None,
        activation: str = "softmax",
        pooling: str = "last",
        dropout: float = 0.1,
        name: str = "xlnet_multiple_choice",
        **kwargs: Any,
    ) -> None:
        check_choice("activation", activation, ("softmax", "linear"))
        check_backbone(backbone)
        check_preprocessor(preprocessor, backbone, self.preprocessor_cls)
        inputs = token_inputs(backbone, (None, None))
        texts = join_choices(inputs)
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
        self._hold(preprocessor)
        self.compile()

    def _compile_defaults(self):
        return {
            "loss": keras.losses.SparseCategoricalCrossentropy(
                from_logits=self.activation == "linear"
            ),
            "metrics": ["accuracy"],
        }

    def choose(
        self,
        x: Any,
        choices: Any = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
    ) -> Any:
        """Returns the most probable choice for each text.

        Args:
            x: Texts with choices, as in `fit`. Or texts, if `choices` are given.
            choices: Optional column of lists of choices. `choose(text, choices)` chooses for one
                text, a string.
            batch_size, verbose: As in `keras.Model.predict`.

        Returns:
            A list of `Choice`: `index`, `text`, `score` and `scores`. For one text that is a string
            only its `Choice`.
        """
        return self._results(x, batch_size, verbose, choices)
