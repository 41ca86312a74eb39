from typing import Any, ClassVar

import keras
import numpy as np

from keras_xlnet.arguments import check_positive_int
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
from keras_xlnet.preprocessing.labels import Classes
from keras_xlnet.preprocessing.text_regressor_preprocessor import numbers_of
from keras_xlnet.registration import register


@register
class XLNetTextRegressor(Task):
    """Predicts numbers for texts, or pairs of texts, such as the similarity of two sentences.

    The pooled sequence goes through a dense layer with tanh (the summary of the original), dropout,
    and a dense layer with `num_outputs` outputs.

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
        num_outputs: Int, how many numbers a text has. Labels of several are lists, an array or a
            table `(texts, num_outputs)`, without missing numbers: `MultiTask` with a regressor for
            each number takes these.
        name: Name of the model.

    Inputs, a dict: `token_ids`, `segment_ids`, `padding_mask`, as in `XLNetBackbone`.

    Outputs: Tensor `(batch, num_outputs)`, float32.

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
        "config": ("summary", "numbers"),
    }
    preprocessor_cls = XLNetTextRegressorPreprocessor
    _arguments = ("preprocessor", "pooling", "dropout", *DOCUMENT_ARGUMENTS, "num_outputs")

    def __init__(
        self,
        backbone: XLNetBackbone,
        preprocessor: Preprocessor | None = None,
        pooling: str = "last",
        dropout: float = 0.1,
        long_document: str = "truncate",
        segment_length: int = 512,
        gradient_segments: int | None = 1,
        num_outputs: int = 1,
        name: str = "xlnet_text_regressor",
        **kwargs: Any,
    ) -> None:
        check_positive_int("num_outputs", num_outputs)
        check_backbone(backbone)
        check_preprocessor(preprocessor, backbone, self.preprocessor_cls)
        document = long_document, segment_length, gradient_segments
        check_long_document(backbone, pooling, *document)
        inputs = token_inputs(backbone)
        logits, summarize, logits_dense = pooled_logits(
            backbone, inputs, num_outputs, pooling, dropout, *document
        )
        # Half precision is too coarse for squared errors.
        to_float32 = keras.layers.Activation("linear", dtype="float32", name="values")
        super().__init__(backbone, inputs=inputs, outputs=to_float32(logits), name=name, **kwargs)

        # PyTorch accepts submodules only after its module is initialized.
        self.sequence_summary = summarize
        self.logits_dense = logits_dense
        self.activation_layer = to_float32

        # === Config ===
        self.pooling = pooling
        self.dropout = dropout
        self.long_document = long_document
        self.segment_length = segment_length
        self.gradient_segments = gradient_segments
        self.num_outputs = num_outputs
        self._hold(preprocessor)
        self.compile()

    @property
    def _kind_of_head(self) -> str:
        return "linear"

    def _labels_for(self, loss: Any) -> Classes:
        return Classes(self.num_outputs, activation="linear")

    @property
    def label_names(self) -> list[str]:
        """The name of the output, `"value"`, or the names of several, `"value_0"` and so on."""
        if self.num_outputs == 1:
            return ["value"]
        return [f"value_{i}" for i in range(self.num_outputs)]

    @property
    def csv_columns(self) -> list[str]:
        """The columns of `csv_rows`."""
        return self.label_names

    def csv_rows(self, texts: Any) -> list[Any]:
        """Returns a row of values for each text: see `Task`."""
        return self._csv_rows_of(self.predict(texts, verbose=0))

    def _csv_rows_of(self, found):
        return np.reshape(found, (-1, self.num_outputs)).tolist()

    def _results_of(self, outputs):
        return numbers_of(outputs)

    def _compile_defaults(self):
        return {
            "loss": keras.losses.MeanSquaredError(),
            "metrics": [keras.metrics.MeanAbsoluteError(name="mean_absolute_error")],
        }
