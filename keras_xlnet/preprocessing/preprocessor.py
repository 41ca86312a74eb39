"""What all preprocessors have in common: the way from what users have to arrays, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_xlnet.preprocessing.labels import Classes, as_label_array, check_finite
from keras_xlnet.preprocessing.packing_layer import PackingLayer
from keras_xlnet.preprocessing.weights import as_weight_array


@dataclasses.dataclass(frozen=True)
class Encoded:
    """What a preprocessor makes of texts: the inputs of a model, and the way back to the texts.

    `fit`, `evaluate` and `predict` take it in the place of the texts, which are then not tokenized
    again.

    Args:
        features: Dict of NumPy arrays, the inputs of the model.
        columns: Dict of lists, what was given, such as `text` and `pair`.
        row: Int array with a number for each row of `features`: the row of `columns` that it is
            from. `None` if they are the same.
    """

    features: dict[str, np.ndarray]
    columns: dict[str, Any]
    row: np.ndarray | None = None

    def __len__(self) -> int:
        """The number of rows of `features`."""
        return len(self.features["token_ids"])

    @property
    def num_given(self) -> int:
        """The number of rows of `columns`."""
        return len(next(iter(self.columns.values())))


class Preprocessor(PackingLayer):
    """Base class of preprocessors: a subclass for each form of input.

    `encode`, `encode_labels` and `encode_weights` convert what users pass to `fit` to arrays on the
    host, with SentencePiece and NumPy. `decode` converts the outputs of a model to results. The
    call makes the same features in the TensorFlow graph, for `tf.data` and SavedModels.

    Args:
        tokenizer, sequence_length, padding_side, padding_token_id: See
            `XLNetTextClassifierPreprocessor`.
        **kwargs: Other arguments of `keras.layers.Layer`.
    """

    # What a row is called in errors.
    row_name = "text"
    # Whether the call takes the elements of a `tf.data.Dataset` of raw text.
    takes_datasets = False

    @classmethod
    def takes(cls, x: Any) -> bool:
        """Whether `x` has the form that `encode` takes. Arrays of numbers do not."""
        raise NotImplementedError

    def encode(self, x: Any, shorten: bool = True) -> Encoded:
        """Converts texts to arrays on the host.

        Args:
            x: Texts in one of the forms that the class describes.
            shorten: Bool, whether the arrays are as long as the longest row needs, or
                `sequence_length`.

        Raises:
            ValueError: If something is not text. The message names the row.
        """
        raise NotImplementedError

    def encode_labels(self, y: Any, encoded: Encoded, classes: Classes | None = None) -> Any:
        """Converts the labels of texts to arrays for the rows of `encoded.features`.

        Args:
            y: The labels of what was given to `encode`.
            encoded: What `encode` returned.
            classes: The `Classes` of the model, if its labels are classes.

        Raises:
            ValueError: If a label is missing or not as expected. The message names the row.
        """
        raise NotImplementedError

    def encode_weights(self, weights: Any, encoded: Encoded) -> Any:
        """Converts the weights of what was given to weights of the rows of `encoded.features`.

        Raises:
            ValueError: If a weight is missing or not a finite number. The message names the row.
        """
        weights = as_weight_array(weights, encoded.num_given)
        return weights if weights is None or encoded.row is None else weights[encoded.row]

    def decode(self, outputs: Any, encoded: Encoded, **options: Any) -> list[Any]:
        """Converts the outputs of a model for `encoded.features` to one result for each text."""
        raise NotImplementedError

    # === Labels of arrays and of datasets, which need no text ===

    @classmethod
    def check_labels(cls, y: Any, features: Any, classes: Classes | None = None) -> Any:
        """Returns the labels of arrays that somebody else made, checked, as a NumPy array."""
        y = as_label_array(y)
        check_finite(y)
        return y

    @classmethod
    def learn_class_names(cls, y: Any, num_classes: int) -> list[str] | None:
        """Returns the names of classes in labels that are strings, otherwise `None`."""
        return None

    @classmethod
    def label_mapper(cls, spec: Any, classes: Classes | None = None) -> Callable[[Any], Any] | None:
        """Returns a function of batches of labels in a dataset, `None` if they stay as they are.

        Args:
            spec: The `tf.TypeSpec` of the labels.
            classes: As in `encode_labels`.
        """
        return None
