import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.arguments import check_choice, check_rate
from keras_xlnet.compat.unknown_arguments import register
from keras_xlnet.layers import HashDropout
from keras_xlnet.layers.initializers import spawn_seeds
from keras_xlnet.models.task_model import (
    check_backbone,
    check_classes,
    new_logits,
    token_inputs,
)
from keras_xlnet.models.text_task_model import TextTaskModel, check_preprocessor
from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.preprocessing import XLNetTokenClassifierPreprocessor
from keras_xlnet.preprocessing.labels import as_label_array, check_class_indices
from keras_xlnet.preprocessing.tags import decode_tags, detect_scheme, split_tag, tag_spans
from keras_xlnet.preprocessing.weights import as_weight_array, weights_of_classes, weights_of_labels
from keras_xlnet.preprocessing.words import (
    NO_LABEL,
    is_first_piece,
    is_words,
    sentence_words,
    tag_indices,
    token_labels,
    token_weights,
)
from keras_xlnet.types import Tensor


@dataclasses.dataclass(frozen=True)
class Entity:
    """A part of a sentence that a model found to be of a type.

    Args:
        type: String, such as `"person"` of the tags `"B-person"` and `"I-person"`.
        text: String. The words of a list are joined by spaces.
        start: Int, the first character of a string, the first word of a list.
        end: Int, the character or the word after the last one.
        score: Float, the mean probability of the tags of its words.
    """

    type: str
    text: str
    start: int
    end: int
    score: float


@register
class XLNetTokenClassifier(TextTaskModel):
    """Classifies each token of a text, for example to recognize names.

    The output of the backbone goes through dropout and a dense layer with one output a class.

    With a preprocessor `fit` and `evaluate` take lists of words with a tag each, `predict` gives
    entities, and `tag` gives tags. These are valid in their scheme, BIO, BIOES or IO. Strings are
    divided into words as in `tag`.

    It is compiled with AdamW at 5e-5 (for a pretrained backbone), the cross-entropy of class
    indices and their accuracy. Both are means over the tokens that have a label, by their sample
    weights: a weight for each text, `(batch,)`, counts for all of its tokens; `(batch, length)`
    gives each token a weight, and a list for each sentence gives each word one. The label -100 says
    that a token does not count; of words the first tokens count. Call `compile` to change that;
    arguments you leave out keep these defaults.

    Args:
        backbone: An `XLNetBackbone`.
        num_classes: Int, number of outputs.
        activation: `"softmax"` for probabilities, `"linear"` for logits.
        dropout: Float, dropout rate before the last layer.
        class_names: Optional list of `num_classes` strings, the tags. `fit` learns them from tags
            that are strings.
        preprocessor: An `XLNetTokenClassifierPreprocessor`, for words and strings.
        label_all_pieces: Bool, whether all tokens of a word are trained to have its tag, or the
            first one alone. Predictions are those of the first one.
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

    _arguments = (
        "preprocessor",
        "num_classes",
        "activation",
        "dropout",
        "class_names",
        "label_all_pieces",
    )
    preprocessor_cls = XLNetTokenClassifierPreprocessor
    _label_rank = 2

    def __init__(
        self,
        backbone: XLNetBackbone,
        num_classes: int,
        activation: str = "softmax",
        dropout: float = 0.1,
        class_names: Sequence[str] | None = None,
        preprocessor: keras.layers.Layer | None = None,
        label_all_pieces: bool = False,
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
        self.label_all_pieces = label_all_pieces
        self._hold_preprocessor(preprocessor)
        self.compile()

    def _compile_defaults(self):
        return {
            # The mean over the tokens that count: not over all, nor over texts first.
            "loss": keras.losses.SparseCategoricalCrossentropy(
                from_logits=self.activation == "linear", reduction="mean_with_sample_weight"
            ),
            "weighted_metrics": ["accuracy"],
        }

    # === Labels: -100 is none ===

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
        """Computes the metrics as `keras.Model` does, over the tokens that have a label."""
        y, sample_weight = _without_missing(y, sample_weight)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    # === Words ===

    def fit(self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Trains as `keras.Model.fit` does, also on words with tags.

        A model without `class_names` learns them from tags that are strings, sorted. They are saved
        with the model.

        Raises:
            ValueError: If the tags of a sentence are not as many as its words, or one is no class.
                The message names the row and the word.
        """
        self._learn_tags(x, y)
        return super().fit(x, y, *args, **kwargs)

    def train_on_batch(self, x: Any, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Trains as `keras.Model.train_on_batch` does, on what `fit` takes."""
        self._learn_tags(x, y)
        return super().train_on_batch(x, y, *args, **kwargs)

    def _learn_tags(self, x, y):
        if self.class_names is None and y is not None and self._is_text(x):
            self.class_names = _learn_names(y, self.num_classes)

    def _weights_of_classes(self, class_weight):
        return weights_of_classes(class_weight, self.label_names, self.num_classes)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        """Predicts as `keras.Model.predict` does; for words and strings it returns entities.

        Returns:
            Probabilities `(batch, length, num_classes)` for token ids. For words or strings a list
            with a list of `Entity` for each sentence, in the order of the text.

        Raises:
            ValueError: If the names of classes are no tags of entities: use `tag` then.
        """
        if not self._is_text(x):
            x = self._array_batches(x)
            return super(TextTaskModel, self).predict(x, batch_size, verbose, steps, callbacks)
        if any(split_tag(name) is None for name in self.label_names):
            raise ValueError(
                "`predict` finds entities for tags such as O, B-person and I-person; use `tag` for "
                f"others. Received: class_names={self.class_names}"
            )
        x = list(x)
        sentences, places = sentence_words(x)
        texts = [text.decode() if isinstance(text, bytes) else text for text in x]
        decoded = self._decode(sentences, batch_size, verbose, steps, callbacks)
        scheme = detect_scheme(self.label_names)
        rows = []
        for row, (words, (tags, probabilities)) in enumerate(zip(sentences, decoded, strict=True)):
            spans = tag_spans(tags, scheme)
            if places is None:
                rows.append(_entities_of_words(spans, probabilities, words))
            else:
                rows.append(_entities_of_text(spans, probabilities, texts[row], places[row]))
        return rows

    def tag(
        self, x: Any, batch_size: int | None = None, verbose: str | int = "auto"
    ) -> list[list[str]]:
        """Returns the tags of words: the most probable sequence that is valid in their scheme.

        Args:
            x: List of lists of words, or of strings, which are divided into words: runs of letters
                and digits with their marks, such as "don't", "a@b.org" and "हिन्दी", and each other
                character. A run of letters in a language without spaces, such as Chinese, Japanese
                or Thai, is one word: pass lists of its words or characters instead.
            batch_size, verbose: As in `predict`.

        Returns:
            A list with a list of strings for each sentence, one a word.
        """
        sentences, _ = sentence_words(x)
        decoded = self._decode(sentences, batch_size, verbose)
        return [tags for tags, _ in decoded]

    @property
    def label_names(self) -> list[str]:
        """List of the names of the classes, or their indices as strings if they have no names."""
        return self.class_names or [str(i) for i in range(self.num_classes)]

    def _decode(self, sentences, batch_size, verbose, steps=None, callbacks=None):
        """Tags and their probabilities of each sentence."""
        names = self.label_names
        scheme = detect_scheme(names)
        features = self._word_features(sentences)
        index = features.pop("word_index")
        probabilities = super(TextTaskModel, self).predict(
            features, batch_size, verbose, steps, callbacks
        )
        if self.activation == "linear":
            probabilities = ops.convert_to_numpy(ops.softmax(probabilities))
        first = is_first_piece(index)
        rows = []
        for row, words in enumerate(sentences):
            log_probs = np.log(np.maximum(probabilities[row, first[row]], 1e-30))
            chosen, _ = decode_tags(log_probs, names, scheme)
            scores = np.exp(log_probs)[np.arange(len(chosen)), chosen]
            missing = len(words) - len(chosen)
            tags = [names[i] for i in chosen] + [_default_tag(names)] * missing
            rows.append((tags, np.concatenate([scores, np.zeros(missing)])))
        return rows

    def _is_text(self, x):
        if self._is_dataset_of_arrays(x) or not is_words(x):
            return False
        self._required_preprocessor()
        return True

    def _features(self, x, has_labels=False, shorten=True):
        if not self._is_text(x):
            return x
        sentences, _ = sentence_words(x)
        features = self._word_features(sentences, shorten)
        del features["word_index"]
        return features

    def _examples(self, x, y=None, sample_weight=None, *, shorten=True):
        if not self._is_text(x):
            y = as_label_array(y)
            if np.ndim(y) == 2:  # Vectors are for a loss of one's own.
                check_class_indices(y, self.num_classes, NO_LABEL)
            return x, y, as_weight_array(sample_weight)
        sentences, _ = sentence_words(x)
        tags = tag_indices(y, sentences, self.class_names, self.num_classes)
        features = self._word_features(sentences, shorten)
        index = features.pop("word_index")
        weights = token_weights(sample_weight, sentences, index)
        return features, token_labels(tags, index, self.label_all_pieces), weights

    def _word_features(self, sentences, shorten=True):
        preprocessor = self._required_preprocessor()
        features = preprocessor.encode(sentences, shorten)
        cut = np.flatnonzero(
            features["word_index"].max(axis=1) + 1 < [len(words) for words in sentences]
        )
        if len(cut):
            warnings.warn(
                f"{len(cut)} sentences are longer than sequence_length="
                f"{preprocessor.sequence_length}, the first one in row {cut[0]}. Their last "
                "words are not read",
                stacklevel=4,
            )
        return features


def _without_missing(y, sample_weight):
    """Labels and weights in which tokens without a label weigh nothing."""
    if y is None:
        return y, sample_weight
    if len(y.shape) > 2:  # Vectors, for a loss of one's own.
        if sample_weight is not None:
            sample_weight = weights_of_labels(sample_weight, y[:, :, 0])
        return y, sample_weight
    counts = ops.cast(ops.not_equal(y, NO_LABEL), "float32")
    if sample_weight is not None:
        counts = counts * weights_of_labels(sample_weight, counts)
    return ops.where(ops.equal(y, NO_LABEL), ops.zeros_like(y), y), counts


def _learn_names(tags, num_classes):
    names = sorted({tag for row in tags for tag in row if isinstance(tag, str)})
    if not names:
        return None
    if len(names) != num_classes:
        raise ValueError(
            "`y` must have `num_classes` different tags, or the model needs `class_names`. "
            f"Received: {len(names)} tags, {names[:10]}, and num_classes={num_classes}"
        )
    return names


def _default_tag(names):
    return "O" if "O" in names else names[0]


def _entities_of_words(spans, probabilities, words):
    """Entities with their places in words."""
    return [
        Entity(kind, " ".join(words[start:end]), start, end, float(probabilities[start:end].mean()))
        for kind, start, end in spans
    ]


def _entities_of_text(spans, probabilities, text, places):
    """Entities with their places in characters."""
    found = []
    for kind, start, end in spans:
        first, last = places[start][0], places[end - 1][1]
        score = float(probabilities[start:end].mean())
        found.append(Entity(kind, text[first:last], first, last, score))
    return found
