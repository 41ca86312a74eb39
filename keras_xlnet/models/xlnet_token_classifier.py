from collections.abc import Sequence
from typing import Any, ClassVar

import keras
from keras import ops

from keras_xlnet.arguments import check_choice, check_rate
from keras_xlnet.compat.loss_of_all_rows import with_mask
from keras_xlnet.layers import HashDropout
from keras_xlnet.layers.initializers import spawn_seeds
from keras_xlnet.models.task import Task, check_preprocessor
from keras_xlnet.models.task_graph import (
    check_backbone,
    check_classes,
    new_logits,
    token_inputs,
)
from keras_xlnet.models.weight_rows import dense
from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.preprocessing import Preprocessor, XLNetTokenClassifierPreprocessor
from keras_xlnet.preprocessing.labels import Classes
from keras_xlnet.preprocessing.tags import detect_scheme, split_tag
from keras_xlnet.preprocessing.weights import weights_of_labels
from keras_xlnet.preprocessing.words import NO_LABEL
from keras_xlnet.registration import register
from keras_xlnet.types import Tensor


@register
class XLNetTokenClassifier(Task):
    """Classifies each token of a text, for example to recognize names.

    The output of the backbone goes through dropout and a dense layer with one output per class.

    With a preprocessor `fit` and `evaluate` take lists of words with a tag each, `predict` returns
    entities, and `tag` returns tags. These are valid in their scheme, BIO, BIOES or IO. Strings are
    split into words as in `tag`. Sentences that do not fit into `sequence_length` are read
    in windows, and each word is read in the window where it has the most context.

    It is compiled with `FineTuningAdamW` (for a pretrained backbone), the cross-entropy of class
    indices and their accuracy. Both are means over the tokens that have a label, by their sample
    weights: a weight for each text, `(batch,)`, applies to all of its tokens; `(batch, length)`
    gives each token a weight, and a list for each sentence gives each word one. Tokens with the
    label -100 are ignored; the first token of a word counts. Call `compile` to change that;
    arguments you leave out keep these defaults.

    Args:
        backbone: An `XLNetBackbone`.
        num_classes: Int, number of outputs.
        preprocessor: An `XLNetTokenClassifierPreprocessor`, for words and strings.
        activation: `"softmax"` for probabilities, `"linear"` for logits.
        dropout: Float, dropout rate before the last layer.
        class_names: Optional list of `num_classes` strings, the tags. `fit` learns them from tags
            that are strings.
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

    With words and tags:

    >>> from keras_xlnet.preprocessing import XLNetTokenClassifierPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> sentences = [["Ann", "is", "here"], ["it", "is", "Ann"]]
    >>> tags = [["B-person", "O", "O"], ["O", "O", "B-person"]]
    >>> texts = ["it is Ann", "Ann is here"] * 20
    >>> tokenizer = XLNetTokenizer.train(iter(texts), vocabulary_size=28)
    >>> classifier = keras_xlnet.models.XLNetTokenClassifier(
    ...     keras_xlnet.models.XLNetBackbone(28, 1, 2, 16, 32), num_classes=2,
    ...     preprocessor=XLNetTokenClassifierPreprocessor(tokenizer, sequence_length=16))
    >>> history = classifier.fit(sentences, tags, verbose=0)
    >>> [len(row) for row in classifier.tag(["Ann is here.", "it is"], verbose=0)]
    [4, 2]
    """

    task = "token_classifier"
    signatures = "entities"
    checkpoint: ClassVar = {
        "weights": dense("logits", None, ("classifier", "qa_outputs")),
        "architectures": ("XLNetForTokenClassification", "XLNetForQuestionAnsweringSimple"),
        "config": ("token_classes",),
    }
    _arguments = (
        "preprocessor",
        "num_classes",
        "activation",
        "dropout",
        "class_names",
    )
    preprocessor_cls = XLNetTokenClassifierPreprocessor
    _label_rank = 2
    csv_inputs = ("text",)
    csv_columns = ("entities",)

    def __init__(
        self,
        backbone: XLNetBackbone,
        num_classes: int,
        preprocessor: Preprocessor | None = None,
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
        check_preprocessor(preprocessor, backbone, self.preprocessor_cls)
        (dropout_seed,) = spawn_seeds(backbone.seed, 1, "XLNetTokenClassifier")
        drop = HashDropout(dropout, seed=dropout_seed, dtype=backbone.dtype_policy, name="dropout")
        logits_dense = new_logits(backbone, num_classes)
        # Half precision is too coarse for probabilities near 0 and 1.
        activate = keras.layers.Activation(activation, dtype="float32", name="probabilities")
        inputs = token_inputs(backbone)
        logits = logits_dense(drop(backbone(inputs)["sequence_output"]))
        super().__init__(backbone, inputs=inputs, outputs=activate(logits), name=name, **kwargs)

        # PyTorch accepts submodules only after its module is initialized.
        self.dropout_layer = drop
        self.logits_dense = logits_dense

        # === Config ===
        self.num_classes = num_classes
        self.activation = activation
        self.dropout = dropout
        self.class_names = None if class_names is None else list(class_names)
        self._hold(preprocessor)
        self.compile()

    def _compile_defaults(self):
        return {
            # The mean over the counted tokens, not over all tokens, nor over texts first.
            "loss": keras.losses.SparseCategoricalCrossentropy(
                from_logits=self.activation == "linear", reduction="mean_with_sample_weight"
            ),
            "weighted_metrics": ["accuracy"],
        }

    # === Labels: -100 does not count ===

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Tensor:
        """Computes the loss as `keras.Model` does, over the tokens that have a label."""
        y, sample_weight = _without_missing(y, sample_weight)
        return super().compute_loss(x, y, y_pred, sample_weight, training=training)

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        """Computes the metrics as `keras.Model` does, over the tokens that have a label.

        They get tokens as rows, because means over the tokens of a row would depend on its length.
        """
        if y is not None:
            has_label = ops.not_equal(y, NO_LABEL)
            y, sample_weight = _without_missing(y, sample_weight)
            y, y_pred, sample_weight = map(_as_rows, (y, y_pred, sample_weight))
            if len(has_label.shape) == 2:
                y_pred = with_mask(y_pred, _as_rows(has_label))
        return super().compute_metrics(x, y, y_pred, sample_weight)

    # === Words ===

    @property
    def classes(self) -> Classes:
        """The classes of tags."""
        return Classes(self.num_classes, self.class_names)

    @property
    def label_names(self) -> list[str]:
        """List of the names of the classes, or their indices as strings if they have no names."""
        return self.classes.names

    def tag(self, x: Any, batch_size: int | None = None, verbose: str | int = "auto") -> Any:
        """Returns the tags of words: the most probable sequence that is valid in their scheme.

        Args:
            x: List of lists of words, or of strings, which are split into words: runs of letters
                and digits with their marks, such as "don't", "a@b.org" and "हिन्दी", and each other
                character. A run of letters in a language without spaces, such as Chinese, Japanese
                or Thai, is one word: pass lists of its words or characters instead.
            batch_size, verbose: As in `keras.Model.predict`.

        Returns:
            A list with a list of strings for each sentence, one per word. For a string only its
            list.
        """
        return self._tagged(x, batch_size, verbose, lambda sentence: list(sentence.tags))

    def find_entities(
        self, x: Any, batch_size: int | None = None, verbose: str | int = "auto"
    ) -> Any:
        """Returns the entities in sentences, from the tags of `tag`.

        Args:
            x, batch_size, verbose: As in `tag`.

        Returns:
            A list with a list of `Entity` for each sentence, in the order of the text: `type`,
            `text`, `start` and `end`, in characters of a string or in words of a list, and `score`.
            For a string only its list.

        Raises:
            ValueError: If the class names are not entity tags: use `tag` then.
        """
        if any(split_tag(name) is None for name in self.label_names):
            raise ValueError(
                "`find_entities` needs tags such as O, B-person and I-person; use `tag` for "
                f"others. Received: class_names={self.class_names}"
            )
        scheme = detect_scheme(self.label_names)
        return self._tagged(x, batch_size, verbose, lambda sentence: sentence.entities(scheme))

    def csv_rows(self, texts: Any) -> list[Any]:
        """Returns a row of values for each text: see `Task`."""
        return [
            [[{**vars(entity), "score": round(entity.score, 4)} for entity in entities]]
            for entities in self.find_entities(texts, verbose=0)
        ]

    def _tagged(self, x, batch_size, verbose, convert):
        found = self._results(x, batch_size, verbose, classes=self.classes)
        return [*map(convert, found)] if isinstance(found, list) else convert(found)


def _as_rows(x):
    """`(batch, length, ...)` -> `(batch * length, ...)`."""
    return None if x is None else ops.reshape(x, (-1, *x.shape[2:]))


def _without_missing(y, sample_weight):
    """Labels and weights, with weight 0 for tokens without a label."""
    if y is None:
        return y, sample_weight
    if len(y.shape) > 2:  # Vectors, for custom losses.
        if sample_weight is not None:
            sample_weight = weights_of_labels(sample_weight, y[:, :, 0])
        return y, sample_weight
    counts = ops.cast(ops.not_equal(y, NO_LABEL), "float32")
    if sample_weight is not None:
        counts = counts * weights_of_labels(sample_weight, counts)
    return ops.where(ops.equal(y, NO_LABEL), ops.zeros_like(y), y), counts
