import dataclasses
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.arguments import check_choice, check_number
from keras_xlnet.compat.unknown_arguments import register
from keras_xlnet.models.long_documents import DOCUMENT_ARGUMENTS, check_long_document
from keras_xlnet.models.task_model import (
    check_backbone,
    check_classes,
    pooled_logits,
    token_inputs,
)
from keras_xlnet.models.text_task_model import TextTaskModel, check_preprocessor
from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.preprocessing.labels import (
    as_class_labels,
    as_columns,
    as_label_array,
    check_zeros_and_ones,
    encode_names,
    is_names,
    learn_class_names,
)
from keras_xlnet.preprocessing.texts import is_text
from keras_xlnet.preprocessing.weights import weights_of_classes
from keras_xlnet.types import Tensor

_LOSSES = {
    "softmax": keras.losses.SparseCategoricalCrossentropy,
    "sigmoid": keras.losses.BinaryCrossentropy,
    "linear": keras.losses.MeanSquaredError,
}
_METRICS = {
    # Keras chooses by the labels: a loss of one's own may take one-hot labels.
    "softmax": lambda: "accuracy",
    "sigmoid": lambda: keras.metrics.BinaryAccuracy(name="accuracy"),
    "linear": lambda: keras.metrics.MeanAbsoluteError(name="mean_absolute_error"),
}


@dataclasses.dataclass(frozen=True)
class Classification:
    """The class of a text.

    Args:
        label: The name of the class, or its index as a string if the model has no `class_names`.
            With `activation="sigmoid"` a tuple of the names of all classes that the text has.
        score: Float, the probability of the class; with `"sigmoid"` a tuple of these.
        scores: Dict of the probabilities of all classes by name.
    """

    label: str | tuple[str, ...]
    score: float | tuple[float, ...]
    scores: dict[str, float]


@register
class XLNetTextClassifier(TextTaskModel):
    """Classifies texts, or pairs of texts, with an XLNet backbone.

    The pooled sequence goes through a dense layer with tanh (the summary of the original), dropout,
    and a dense layer with one output a class.

    It is compiled with AdamW at 5e-5 (for a pretrained backbone), the loss and the accuracy
    that fit the activation. Call `compile` to change that; what is not passed to it stays.

    Args:
        backbone: An `XLNetBackbone`.
        num_classes: Int, number of outputs.
        preprocessor: An `XLNetTextPreprocessor`. With one, `fit`, `evaluate` and `predict` take raw
            strings.
        activation: `"softmax"` for exclusive classes (labels are class indices; with
            `compile(loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.1))` one-hot),
            `"sigmoid"` for several labels a text (labels are vectors of 0 and 1), `"linear"` for
            regression.
        pooling: Mode of `SequencePooling`. The default `"last"` is `<cls>`, with padding on either
            side. Or `"pair"`: pairs of texts are compared token by token, by `PairComparison`.
        dropout: Float, dropout rate before the last layer.
        class_names: Optional list of `num_classes` strings, used by exported models and reports.
        long_document: How texts are read that are longer than what is to be attended to at once:
            `"truncate"`, as the preprocessor does; `"head_tail"`: its begin and its end, of which
            the preprocessor keeps a quarter and three quarters; `"windows"`: in parts of
            `segment_length` tokens that do not know of each other, of whose summaries the mean is
            taken; `"memory"`: in segments of `segment_length` tokens, each with the memory of
            those before it, of which the last is summarized. For the last two the
            `sequence_length` of the preprocessor is that of the longest document, texts are padded
            on the left, and `pooling` is not `"pair"`; `"memory"` needs a backbone with a
            `memory_length`.
        segment_length: Int, the tokens of a segment or window.
        gradient_segments: Int, the number of segments at the end that are summarized and trained
            on with `"memory"`. Those before are read without dropout, and need memory for one
            segment however many they are. `None` for all of them. Memory carries no gradient.
        name: Name of the model.

    Inputs, a dict: `token_ids`, `segment_ids`, `padding_mask`, as in `XLNetBackbone`.

    Outputs: Tensor `(batch, num_classes)`, float32: probabilities, or values for `"linear"`.

    Raises:
        ValueError: If an argument is not as above, or raw text comes without a preprocessor.

    Example:

    >>> from keras_xlnet.preprocessing import XLNetTextPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> texts = ["win a free prize now", "see you at lunch", "free cash, call now", "ok, at six"]
    >>> tokenizer = XLNetTokenizer.train(iter(texts * 20), vocabulary_size=40)
    >>> classifier = keras_xlnet.models.XLNetTextClassifier(
    ...     keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32),
    ...     num_classes=2,
    ...     preprocessor=XLNetTextPreprocessor(tokenizer, sequence_length=16),
    ... )
    >>> history = classifier.fit(texts, [1, 0, 1, 0], epochs=1, verbose=0)
    >>> classifier.predict(["a free lunch"], verbose=0).shape
    (1, 2)

    Source: the original's `classification_loss` and `summarize_sequence`.
    """

    _arguments = (
        "preprocessor",
        "num_classes",
        "activation",
        "pooling",
        "dropout",
        "class_names",
        *DOCUMENT_ARGUMENTS,
    )

    def __init__(
        self,
        backbone: XLNetBackbone,
        num_classes: int,
        preprocessor: keras.layers.Layer | None = None,
        activation: str = "softmax",
        pooling: str = "last",
        dropout: float = 0.1,
        class_names: Sequence[str] | None = None,
        long_document: str = "truncate",
        segment_length: int = 512,
        gradient_segments: int | None = 1,
        name: str = "xlnet_text_classifier",
        **kwargs: Any,
    ) -> None:
        check_choice("activation", activation, tuple(_LOSSES))
        check_classes(num_classes, activation, class_names)
        check_backbone(backbone)
        check_preprocessor(preprocessor, backbone)
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
        self.long_document = long_document
        self.segment_length = segment_length
        self.gradient_segments = gradient_segments
        self._hold_preprocessor(preprocessor)
        self.compile()

    def _compile_defaults(self):
        return {
            "loss": _LOSSES[self.activation](),
            "metrics": [_METRICS[self.activation]()],
        }

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains as `keras.Model.fit` does, also on raw text, and on labels that are names.

        A model without `class_names` learns them from labels that are strings: in the order of
        the categories of a pandas column, otherwise sorted. They are saved with the model.

        Args:
            class_weight: Optional dict of the weights of classes, by name or index. A class that
                is left out has the weight 1. With `activation="sigmoid"` it is for
                `num_classes=1`, where 0 and 1 are the classes.
            **kwargs: As in `keras.Model.fit`.

        Raises:
            ValueError: If a label is missing, has no class or has another shape than the outputs,
                whatever the loss, or a key of `class_weight` is no class. The message names the
                row. Datasets are not checked.
        """
        self._learn_names(y)
        return super().fit(x, y, *args, **kwargs)

    def train_on_batch(self, x: Any, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Trains as `keras.Model.train_on_batch` does, on what `fit` takes."""
        self._learn_names(y)
        return super().train_on_batch(x, y, *args, **kwargs)

    def _learn_names(self, y):
        if self.class_names is None and is_names(as_label_array(y)):
            self.class_names = learn_class_names(y, self.num_classes)

    def _labels(self, y):
        y = super()._labels(y)
        if is_names(y):
            self._check_takes_names()
            return encode_names(y, self.class_names)  # type: ignore[arg-type]  # Checked.
        if self.activation == "softmax":
            ignored = getattr(self.loss, "ignore_class", None)
            return as_class_labels(y, self.num_classes, not _takes_indices(self.loss), ignored)
        reason = f"activation={self.activation!r}, num_classes={self.num_classes}"
        y = as_columns(y, self.num_classes, reason)
        if self.activation == "sigmoid":
            check_zeros_and_ones(y)
        return y

    def _weights_of_classes(self, class_weight):
        if self.activation == "softmax":
            return weights_of_classes(class_weight, self.label_names, self.num_classes)
        if self.activation == "sigmoid" and self.num_classes == 1:
            names = ["", *(self.class_names or ["1"])]
            return weights_of_classes(class_weight, names, 2)
        raise ValueError(
            "`class_weight` needs exclusive classes. Use `sample_weight`, which gives each text a "
            f"weight. Received: class_weight={class_weight!r} for a model with "
            f"activation={self.activation!r} and num_classes={self.num_classes}"
        )

    def _label_encoder(self, spec):
        if not is_text(spec):
            return None
        self._check_takes_names()
        return keras.layers.StringLookup(vocabulary=self.class_names, num_oov_indices=0)

    def _check_takes_names(self):
        if self.activation != "softmax" or self.class_names is None:
            raise ValueError(
                "`y` are names: that needs `class_names`, or a `fit` on lists or arrays, which "
                "learns them, and activation='softmax'. Received: "
                f"class_names={self.class_names}, activation={self.activation!r}"
            )

    def classify(
        self, texts: Any, threshold: float = 0.5, batch_size: int | None = None
    ) -> list[Classification]:
        """Returns the classes of texts by name, as the exported model does.

        Args:
            texts: Raw text, as in `predict`, or features of a preprocessor.
            threshold: Float from 0 to 1. Of two classes, a text has the second if its probability
                is at least this; with `"sigmoid"` it has all classes of which that is true.
            batch_size: As in `predict`.

        Returns:
            A list of `Classification`: `label`, `score` and `scores`.

        Raises:
            ValueError: If the model has `activation="linear"`, or an argument is not as above.

        Example:

        >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
        >>> classifier = keras_xlnet.models.XLNetTextClassifier(
        ...     backbone, num_classes=2, class_names=["ham", "spam"])
        >>> found = classifier.classify({"token_ids": np.array([[9, 17, 12]])}, threshold=0.0)
        >>> found[0].label, sorted(found[0].scores)
        ('spam', ['ham', 'spam'])
        """
        check_number("threshold", threshold, high=1)
        if self.activation == "linear":
            raise ValueError("`classify` needs classes. Received: a model with activation='linear'")
        probabilities = self.predict(texts, batch_size=batch_size, verbose=0)
        found = ops.convert_to_numpy(self.label_indices(probabilities, threshold))
        pairs = zip(probabilities, found, strict=True)
        return [self._classification(row, index) for row, index in pairs]

    @property
    def label_names(self) -> list[str]:
        """List of the names of the classes, or their indices as strings if they have no names."""
        names = range(self.num_classes) if self.class_names is None else self.class_names
        return [str(name) for name in names]

    def label_indices(self, probabilities: Tensor, threshold: float = 0.5) -> Tensor:
        """Returns the class of each text for its probabilities, by the rule of `classify`.

        Args:
            probabilities: Tensor `(batch, num_classes)`.
            threshold: As in `classify`.

        Returns:
            Int32 tensor `(batch,)`; with `activation="sigmoid"` `(batch, num_classes)`, 1 for each
            class that a text has.
        """
        if self.activation == "sigmoid":
            return ops.cast(probabilities >= threshold, "int32")
        if self.num_classes == 2:
            return ops.cast(probabilities[:, 1] >= threshold, "int32")
        return ops.cast(ops.argmax(probabilities, axis=-1), "int32")

    def _classification(self, probabilities, found):
        names = self.label_names
        scores = {name: float(p) for name, p in zip(names, probabilities, strict=True)}
        if self.activation == "sigmoid":
            labels = tuple(names[i] for i in np.flatnonzero(found))
            return Classification(labels, tuple(scores[name] for name in labels), scores)
        return Classification(names[found], scores[names[found]], scores)


def _takes_indices(loss):
    """Whether a loss, an object or its name, takes class indices."""
    if isinstance(loss, keras.losses.SparseCategoricalCrossentropy):
        return True
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", "")
    return name.replace("_", "").lower() == "sparsecategoricalcrossentropy"
