"""Texts and pairs of texts, each with a class."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from keras import ops

from keras_xlnet.preprocessing.encoded import Encoded
from keras_xlnet.preprocessing.labels import (
    Classes,
    as_label_array,
    is_lists_of_names,
    is_names,
    learn_class_names,
)
from keras_xlnet.preprocessing.text_preprocessor import XLNetTextPreprocessor
from keras_xlnet.preprocessing.texts import is_text
from keras_xlnet.registration import register
from keras_xlnet.results import Result
from keras_xlnet.tokenizers.text_columns import plain_columns


@dataclasses.dataclass(frozen=True, repr=False)
class Classification(Result):
    """The class of a text.

    Args:
        label: The name of the class, or its index as a string if the model has no `class_names`.
            With `activation="sigmoid"` a tuple of the names of all classes that the text has.
        score: Float, the probability of the class; with `"sigmoid"` a tuple of these.
        scores: Dict of the probabilities of all classes by name.

    Example:

    >>> from keras_xlnet.preprocessing import Classification
    >>> Classification("spam", 0.98765, {"ham": 0.01235, "spam": 0.98765})
    Classification(label='spam', score=0.9877, scores={'ham': 0.01235, 'spam': 0.9877})
    """

    label: str | tuple[str, ...]
    score: float | tuple[float, ...]
    scores: dict[str, float]


@register
class XLNetTextClassifierPreprocessor(XLNetTextPreprocessor):
    """Converts texts, or pairs of texts, and their classes to the arrays of a classifier.

    One text is packed as `[A, <sep>, <cls>]`, a pair as `[A, <sep>, B, <sep>, <cls>]`, as in the
    original's `convert_single_example`. Texts that are too long are truncated. In a pair, the
    longer text is truncated first, and B if both are equally long. A pair whose B has no
    tokens is packed as a single text. Segment ids are 0 for A and 1 for B (each with its `<sep>`),
    2 for `<cls>` and 4 for padding.

    Args:
        tokenizer: An `XLNetTokenizer`.
        sequence_length: Int, length of the outputs, at least 3, and at least 5 for pairs.
        padding_side: String, `"left"` as in the original, so that `<cls>` is last, or `"right"`.
        padding_token_id: Int, the token id of padding. The default is 0 (`<unk>`) as in the
            original, not `<pad>`. Padding is masked, so its id does not change the outputs of a
            model.
        truncation: Where texts that are too long are truncated: at the `"end"`, or in the
            `"middle"`, which keeps a quarter of the tokens from the beginning of the text and
            the others from its end (Sun et al. 2019).
        **kwargs: Other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: A text, a pair as a tuple `(text, pair)`, or a dict with the key `"text"` and
            optionally `"pair"`. Each is a string, a list of strings, a NumPy array, a string
            tensor or a symbolic Keras tensor of shape `()`, `(batch,)` or `(batch, 1)`. A list of
            strings is a batch: `["a", "b"]` are two texts, `("a", "b")` is one pair. A list of two
            tensors with a batch dimension is a pair.
        sampling_alpha: Optional float, see `XLNetTokenizer`. For training, in a dataset:
            `dataset.map(lambda x, y: (preprocessor(x, sampling_alpha=0.1), y))`.

    Returns:
        A dict of `token_ids` and `segment_ids`, int32, and `padding_mask`, bool, `True` for tokens
        that are not padding. Their shape is `(batch, sequence_length)`, or `(sequence_length,)`
        for inputs of shape `()`.

    Raises:
        ValueError: If an argument is invalid.

    Example:

    >>> from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
    >>> preprocessor = XLNetTextClassifierPreprocessor(tokenizer, sequence_length=8)
    >>> features = preprocessor(("rose", "a"))
    >>> features["segment_ids"].shape
    TensorShape([8])
    >>> features["segment_ids"][-3:].numpy().tolist()
    [1, 1, 2]

    Source: `classifier_utils.py` of the original; Yang et al. 2019 (XLNet), section 2.5; Sun et
    al. 2019, "How to fine-tune BERT for text classification?", section 5.3.1 (head and tail).
    """

    def decode(self, outputs: Any, encoded: Encoded | None = None, **options: Any) -> list[Any]:
        """Returns a `Classification` for each text.

        Args:
            outputs: Probabilities `(batch, num_classes)`.
            encoded: Not needed.
            **options: `classes`, and `threshold`, as in `XLNetTextClassifier.classify`.
        """
        return classifications(outputs, **options)

    @classmethod
    def check_labels(cls, y: Any, features: Any, classes: Classes | None = None) -> Any:
        return super().check_labels(y, features) if classes is None else classes.encode(y)

    @classmethod
    def learn_class_names(cls, y: Any, num_classes: int) -> list[str] | None:
        labels = plain_columns(y)
        has_names = is_lists_of_names(labels) or is_names(as_label_array(labels))
        return learn_class_names(y, num_classes) if has_names else None

    @classmethod
    def label_mapper(cls, spec: Any, classes: Classes | None = None) -> Callable[[Any], Any] | None:
        return classes.lookup() if is_text(spec) and classes is not None else None


def classifications(
    probabilities: np.ndarray, classes: Classes, threshold: float = 0.5
) -> list[Classification]:
    """Returns a `Classification` for each row.

    Args:
        probabilities: Float array `(batch, num_classes)`.
        classes: The `Classes` of the model.
        threshold: As in `XLNetTextClassifier.classify`.
    """
    found = ops.convert_to_numpy(classes.indices(probabilities, threshold))
    pairs = zip(probabilities, found, strict=True)
    return [_classification(row, index, classes) for row, index in pairs]


def _classification(probabilities, found, classes):
    names = classes.names
    scores = {name: float(p) for name, p in zip(names, probabilities, strict=True)}
    if classes.activation == "sigmoid":
        labels = tuple(names[i] for i in np.flatnonzero(found))
        return Classification(labels, tuple(scores[name] for name in labels), scores)
    return Classification(names[found], scores[names[found]], scores)
