from collections.abc import Sequence
from typing import Any, ClassVar

import keras

from keras_xlnet.arguments import check_choice, check_number
from keras_xlnet.models.head_fitting import (
    check_has_arrays,
    check_has_float_head,
    read,
    scale_last_layer,
)
from keras_xlnet.models.long_documents import DOCUMENT_ARGUMENTS, check_long_document
from keras_xlnet.models.task import Task, check_preprocessor
from keras_xlnet.models.task_graph import (
    SUMMARY_ROWS,
    check_backbone,
    check_classes,
    pooled_logits,
    token_inputs,
)
from keras_xlnet.models.weight_rows import dense
from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.ops.calibration import THRESHOLD_METRICS
from keras_xlnet.preprocessing import Preprocessor
from keras_xlnet.preprocessing.labels import (
    DEFAULT_THRESHOLD,
    Classes,
    check_has_threshold,
    check_threshold,
)
from keras_xlnet.preprocessing.text_classifier_preprocessor import (
    XLNetTextClassifierPreprocessor,
    classifications,
)
from keras_xlnet.preprocessing.texts import one_row
from keras_xlnet.registration import register
from keras_xlnet.training.calibration import Calibration, fit_temperature_of, with_measured

_LOSSES = {
    "softmax": keras.losses.SparseCategoricalCrossentropy,
    "sigmoid": keras.losses.BinaryCrossentropy,
    "linear": keras.losses.MeanSquaredError,
}
_METRICS = {
    # Keras chooses by the labels: a custom loss may take one-hot labels.
    "softmax": lambda: "accuracy",
    "sigmoid": lambda: keras.metrics.BinaryAccuracy(name="accuracy"),
    "linear": lambda: keras.metrics.MeanAbsoluteError(name="mean_absolute_error"),
}


@register
class XLNetTextClassifier(Task):
    """Classifies texts, or pairs of texts, with an XLNet backbone.

    The pooled sequence goes through a dense layer with tanh (the summary of the original), dropout,
    and a dense layer with one output per class.

    It is compiled with `FineTuningAdamW` (for a pretrained backbone), the loss and the accuracy
    that fit the activation. Call `compile` to change that; arguments you leave out keep these
    defaults.

    Args:
        backbone: An `XLNetBackbone`.
        num_classes: Int, number of outputs.
        preprocessor: An `XLNetTextClassifierPreprocessor`. With one, `fit`, `evaluate` and
            `predict` take raw strings.
        activation: `"softmax"` for exclusive classes (labels are class indices; with
            `compile(loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.1))` one-hot),
            `"sigmoid"` for several labels per text (labels are vectors of 0 and 1), `"linear"` for
            regression.
        pooling: Mode of `SequencePooling`. The default `"last"` is `<cls>`, with padding on either
            side. Or `"pair"`: pairs of texts are compared token by token, by `PairComparison`.
        dropout: Float, dropout rate before the last layer.
        class_names: Optional list of `num_classes` strings, used by exported models and reports.
        threshold: Float from 0 to 1, with which `classify` and exported models decide: of two
            classes, a text has the second if its probability is at least this; with `"sigmoid"` it
            has every class at or above the threshold. `calibrate` finds the best one.
        long_document: How to read texts that are longer than the attention span:
            `"truncate"`, as the preprocessor does; `"head_tail"`: a quarter of the tokens from the
            beginning, the others from the end; `"windows"`: independent windows of
            `segment_length` tokens, whose summaries are averaged; `"memory"`: segments of
            `segment_length` tokens, each with the memory of earlier ones, of which only the
            last is summarized. For the last two the
            `sequence_length` of the preprocessor is the length of the longest document, texts are
            padded on the left, and `pooling` is not `"pair"`; `"memory"` needs a backbone with a
            `memory_length`.
        segment_length: Int, the tokens of a segment or window.
        gradient_segments: Int, the number of segments at the end that are summarized and trained
            on with `"memory"`. Earlier ones are read without dropout and together need memory
            for only one segment. `None` for all of them. Memory carries no gradient.
        name: Name of the model.

    Inputs, a dict: `token_ids`, `segment_ids`, `padding_mask`, as in `XLNetBackbone`.

    Outputs: Tensor `(batch, num_classes)`, float32: probabilities, or values for `"linear"`.

    Raises:
        ValueError: If an argument is not as above, or raw text comes without a preprocessor.

    Example:

    >>> from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> texts = ["win a free prize now", "see you at lunch", "free cash, call now", "ok, at six"]
    >>> tokenizer = XLNetTokenizer.train(iter(texts * 20), vocabulary_size=40)
    >>> classifier = keras_xlnet.models.XLNetTextClassifier(
    ...     keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32),
    ...     num_classes=2,
    ...     preprocessor=XLNetTextClassifierPreprocessor(tokenizer, sequence_length=16),
    ... )
    >>> history = classifier.fit(texts, [1, 0, 1, 0], epochs=1, verbose=0)
    >>> classifier.predict(["a free lunch"], verbose=0).shape
    (1, 2)

    Source: the original's `classification_loss` and `summarize_sequence`.
    """

    task = "text_classifier"
    signatures = "classes"
    checkpoint: ClassVar = {
        "weights": [
            *SUMMARY_ROWS,
            *dense("logits", "model/classification_{task_name}/logit", "logits_proj"),
        ],
        "sign": "model/classification_{task_name}/logit/kernel",
        "sizes": {"num_classes": "logits/kernel"},
        "architectures": ("XLNetForSequenceClassification",),
        "config": ("summary", "classes", "problem_type"),
    }
    preprocessor_cls = XLNetTextClassifierPreprocessor
    _arguments = (
        "preprocessor",
        "num_classes",
        "activation",
        "pooling",
        "dropout",
        "class_names",
        "threshold",
        *DOCUMENT_ARGUMENTS,
    )

    def __init__(
        self,
        backbone: XLNetBackbone,
        num_classes: int,
        preprocessor: Preprocessor | None = None,
        activation: str = "softmax",
        pooling: str = "last",
        dropout: float = 0.1,
        class_names: Sequence[str] | None = None,
        threshold: float = DEFAULT_THRESHOLD,
        long_document: str = "truncate",
        segment_length: int = 512,
        gradient_segments: int | None = 1,
        name: str = "xlnet_text_classifier",
        **kwargs: Any,
    ) -> None:
        check_choice("activation", activation, tuple(_LOSSES))
        check_classes(num_classes, activation, class_names)
        check_threshold(threshold, num_classes, activation)
        check_backbone(backbone)
        check_preprocessor(preprocessor, backbone, self.preprocessor_cls)
        document = long_document, segment_length, gradient_segments
        check_long_document(backbone, pooling, *document)

        inputs = token_inputs(backbone)
        logits, summarize, logits_dense = pooled_logits(
            backbone, inputs, num_classes, pooling, dropout, *document
        )
        # Half precision is too coarse for probabilities near 0 and 1.
        activate = keras.layers.Activation(activation, dtype="float32", name="probabilities")
        super().__init__(backbone, inputs=inputs, outputs=activate(logits), name=name, **kwargs)

        # PyTorch accepts submodules only after its module is initialized.
        self.sequence_summary = summarize
        self.logits_dense = logits_dense
        self.activation_layer = activate

        # === Config ===
        self.num_classes = num_classes
        self.activation = activation
        self.pooling = pooling
        self.dropout = dropout
        self.class_names = None if class_names is None else list(class_names)
        self.threshold = threshold
        self.long_document = long_document
        self.segment_length = segment_length
        self.gradient_segments = gradient_segments
        self._hold(preprocessor)
        self.compile()

    def _compile_defaults(self):
        return {
            "loss": _LOSSES[self.activation](),
            "metrics": [_METRICS[self.activation]()],
        }

    @property
    def _kind_of_head(self) -> str:
        return self.activation

    @property
    def classes(self) -> Classes:
        """The classes of labels."""
        return self._labels_for(self.loss)

    def _labels_for(self, loss: Any) -> Classes:
        return Classes(
            self.num_classes,
            self.class_names,
            self.activation,
            takes_vectors=not _takes_indices(loss),
            ignored=getattr(loss, "ignore_class", None),
        )

    @property
    def label_names(self) -> list[str]:
        """List of the names of the classes, or their indices as strings if they have no names."""
        return self.classes.names

    def classify(
        self,
        x: Any,
        pair: Any = None,
        threshold: float | None = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
    ) -> Any:
        """Returns the classes of texts by name, as the exported model does.

        Args:
            x: Raw text, as in `predict`, a string, or features of a preprocessor. Or the first
                texts of pairs, if `pair` is given.
            pair: Optional column of second texts. `classify(text, pair)` classifies one pair of
                strings.
            threshold: Float from 0 to 1. Of two classes, a text has the second if its probability
                is at least this; with `"sigmoid"` it has every class at or above it. `None`
                for the `threshold` of the model.
            batch_size, verbose: As in `predict`.

        Returns:
            A list of `Classification`: `label`, `score` and `scores`. For a string only its
            `Classification`.

        Raises:
            ValueError: If the model has `activation="linear"`, or an argument is not as above.

        Example:

        >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
        >>> classifier = keras_xlnet.models.XLNetTextClassifier(
        ...     backbone, num_classes=2, class_names=["ham", "spam"])
        >>> token_ids = np.array([[9, 17, 12]])
        >>> found = classifier.classify({"token_ids": token_ids}, threshold=0.0, verbose=0)
        >>> found[0].label, sorted(found[0].scores)
        ('spam', ['ham', 'spam'])
        """
        if threshold is not None:
            check_number("threshold", threshold, high=1)
        if self.activation == "linear":
            raise ValueError("`classify` needs classes. Received: a model with activation='linear'")
        # Without `pair`, a tuple can be a column of texts.
        x, is_one = one_row(x) if pair is None else one_row(x, pair)
        probabilities = self.predict(x, batch_size=batch_size, verbose=verbose)
        found = self._results_of(probabilities, threshold)
        return found[0] if is_one else found

    def _results_of(self, outputs, threshold=None):
        threshold = self.threshold if threshold is None else threshold
        return classifications(outputs, self.classes, threshold)

    # === `xlnet predict` ===

    @property
    def csv_columns(self) -> list[str]:
        """The columns of `csv_rows`."""
        return ["label", "score", *self.label_names]

    def csv_rows(self, texts: Any) -> list[Any]:
        """Returns a row of values for each text: see `Task`."""
        return self._csv_rows_of(self.classify(texts, verbose=0))

    def _csv_rows_of(self, found):
        return [(one.label, one.score, *one.scores.values()) for one in found]

    def calibrate(
        self,
        texts: Any,
        labels: Any,
        metric: str | None = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
    ) -> Calibration:
        """Calibrates the probabilities and chooses the `threshold`.

        The logits are divided by a temperature, by dividing the weights of the last layer. The
        order of classes does not change. `predict`, `classify`, `save`, presets and exports use
        both. If every text is right, or the model is not better than chance, no temperature from
        0.0001 to 10,000 is best: a warning is issued, and it stays 1.

        Args:
            texts: Raw text, as in `predict`, which the model was not trained on. A few hundred
                are enough.
            labels: Their labels, as in `evaluate`.
            metric: `"f1"`, `"accuracy"` or `"mcc"`: the metric that the threshold of two classes
                maximizes, with the second class as the positive one; or, with `"sigmoid"`, the
                threshold of all classes together. `None`: the threshold does not change.
            batch_size, verbose: As in `predict`.

        Returns:
            A `Calibration`.

        Raises:
            ValueError: If the model has `activation="linear"`, its last layer is quantized, the
                labels do not fit the model, or there is no threshold to choose.

        Example:

        >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
        >>> classifier = keras_xlnet.models.XLNetTextClassifier(backbone, num_classes=2)
        >>> token_ids = {"token_ids": np.array([[9, 17, 12], [5, 6, 30], [11, 12, 13], [7, 8, 9]])}
        >>> found = classifier.calibrate(token_ids, [0, 1, 1, 1], metric="f1", verbose=0)
        >>> found.loss_after <= found.loss_before, classifier.threshold == found.threshold
        (True, True)

        Source: Guo et al. 2017, "On Calibration of Modern Neural Networks".
        """
        if self.activation == "linear":
            raise ValueError(
                "`calibrate` needs classes. Received: a model with activation='linear'"
            )
        if metric is not None:
            check_choice("metric", metric, tuple(THRESHOLD_METRICS))
            check_has_threshold("metric", metric, self.num_classes, self.activation)
        check_has_float_head(self, "calibrate")
        examples = self._read(texts, labels, batch_size=batch_size)
        check_has_arrays(examples, "calibrate")
        y = examples.y
        counts = ~self.classes.is_ignored(y)
        if not counts.any():
            raise ValueError("`labels` must have one that is not ignored. Received: none")

        def read_rows():
            tensors = self.logits_dense.output, self.output
            found = read(self, tensors, examples, batch_size, verbose)
            logits, probabilities = (array[counts] for array in found)
            return logits, probabilities.astype("float32")

        logits, probabilities = read_rows()
        found = fit_temperature_of(logits, y[counts], self.activation)
        if found.temperature != 1:
            scale_last_layer(self, 1 / found.temperature)
            # Half precision rounds the weights; thresholds are compared with the rounded outputs.
            logits, probabilities = read_rows()
        found = with_measured(found, logits, probabilities, y[counts], self.activation, metric)
        if found.threshold is not None:
            self.threshold = found.threshold
        return found


def _takes_indices(loss):
    """Whether a loss, an object or its name, takes class indices."""
    if isinstance(loss, keras.losses.SparseCategoricalCrossentropy):
        return True
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", "")
    return name.replace("_", "").lower() == "sparsecategoricalcrossentropy"
