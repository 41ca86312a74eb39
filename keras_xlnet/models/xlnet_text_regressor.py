from typing import Any, ClassVar

import keras

from keras_xlnet.models.long_documents import DOCUMENT_ARGUMENTS, check_long_document
from keras_xlnet.models.task import Task, check_preprocessor
from keras_xlnet.models.task_graph import (
    SUMMARY_ROWS,
    check_backbone,
    pooled_logits,
    token_inputs,
)
from keras_xlnet.models.weight_rows import dense
from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.preprocessing import Preprocessor, XLNetTextRegressorPreprocessor
from keras_xlnet.registration import register


@register
class XLNetTextRegressor(Task):
    """Predicts a number for texts, or pairs of texts, such as the similarity of two sentences.

    The pooled sequence goes through a dense layer with tanh (the summary of the original), dropout,
    and a dense layer with one output.

    It is compiled with `FineTuningAdamW` (for a pretrained backbone), mean squared error, and
    the mean absolute error as a metric. Call `compile` to change that; arguments you
    leave out keep these defaults.

    Args:
        backbone: An `XLNetBackbone`.
        preprocessor: An `XLNetTextRegressorPreprocessor`. With one, `fit`, `evaluate` and `predict`
            take raw strings.
        pooling: Mode of `SequencePooling`. The default `"last"` is `<cls>`, with padding on either
            side. Or `"pair"`: pairs of texts are compared token by token, by `PairComparison`.
        dropout: Float, dropout rate before the last layer.
        long_document, segment_length, gradient_segments: As in `XLNetTextClassifier`.
        name: Name of the model.

    Inputs, a dict: `token_ids`, `segment_ids`, `padding_mask`, as in `XLNetBackbone`.

    Outputs: Tensor `(batch, 1)`, float32.

    Raises:
        ValueError: If an argument is not as above, or raw text comes without a preprocessor.

    Example:

    >>> from keras_xlnet.preprocessing import XLNetTextRegressorPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> texts = ["it was great", "it was good", "it was dull", "it was bad, so bad"]
    >>> tokenizer = XLNetTokenizer.train(iter(texts * 20), vocabulary_size=32)
    >>> regressor = keras_xlnet.models.XLNetTextRegressor(
    ...     keras_xlnet.models.XLNetBackbone(32, 1, 2, 16, 32),
    ...     preprocessor=XLNetTextRegressorPreprocessor(tokenizer, sequence_length=16),
    ... )
    >>> history = regressor.fit(texts, [5.0, 4.0, 2.0, 0.5], epochs=1, verbose=0)
    >>> regressor.predict(["it was so good"], verbose=0).shape
    (1, 1)

    Source: the original's `regression_loss` and `summarize_sequence`.
    """

    task = "text_regressor"
    signatures = "texts"
    checkpoint: ClassVar = {
        "weights": [
            *SUMMARY_ROWS,
            *dense("logits", "model/regression_{task_name}/logit", "logits_proj"),
        ],
        "sign": "model/regression_{task_name}/logit/kernel",
        "architectures": ("XLNetForSequenceClassification",),
        "num_labels": 1,
        "config": ("summary", "one_label"),
    }
    preprocessor_cls = XLNetTextRegressorPreprocessor
    _arguments = ("preprocessor", "pooling", "dropout", *DOCUMENT_ARGUMENTS)
    csv_columns = ("value",)

    def __init__(
        self,
        backbone: XLNetBackbone,
        preprocessor: Preprocessor | None = None,
        pooling: str = "last",
        dropout: float = 0.1,
        long_document: str = "truncate",
        segment_length: int = 512,
        gradient_segments: int | None = 1,
        name: str = "xlnet_text_regressor",
        **kwargs: Any,
    ) -> None:
        check_backbone(backbone)
        check_preprocessor(preprocessor, backbone, self.preprocessor_cls)
        document = long_document, segment_length, gradient_segments
        check_long_document(backbone, pooling, *document)
        inputs = token_inputs(backbone)
        logits, summarize, logits_dense = pooled_logits(
            backbone, inputs, 1, pooling, dropout, *document
        )
        # Half precision is too coarse for squared errors.
        to_float32 = keras.layers.Activation("linear", dtype="float32", name="values")
        super().__init__(backbone, inputs=inputs, outputs=to_float32(logits), name=name, **kwargs)

        # PyTorch accepts submodules only after its module is initialized.
        self.sequence_summary = summarize
        self.logits_dense = logits_dense

        # === Config ===
        self.pooling = pooling
        self.dropout = dropout
        self.long_document = long_document
        self.segment_length = segment_length
        self.gradient_segments = gradient_segments
        self._hold(preprocessor)
        self.compile()

    @property
    def _kind_of_head(self) -> str:
        return "linear"

    def csv_rows(self, texts: Any) -> list[Any]:
        """Returns a row of values for each text: see `Task`."""
        return self.predict(texts, verbose=0).tolist()

    def _compile_defaults(self):
        return {
            "loss": keras.losses.MeanSquaredError(),
            "metrics": [keras.metrics.MeanAbsoluteError(name="mean_absolute_error")],
        }
