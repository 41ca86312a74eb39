"""The base class of preprocessors: from the data of users to arrays, and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_xlnet.arguments import check_int
from keras_xlnet.preprocessing.encoded import Encoded
from keras_xlnet.preprocessing.labels import Classes, as_label_array, check_finite
from keras_xlnet.preprocessing.packing import SEGMENT_PADDING, Layout
from keras_xlnet.preprocessing.weights import as_weight_array
from keras_xlnet.preset_files import preset_directory
from keras_xlnet.preset_files.files import CONFIG, TOKENIZER, VOCABULARY, read_json
from keras_xlnet.registration import refuse_unknown_arguments
from keras_xlnet.tokenizers.string_inputs import StringLayer
from keras_xlnet.tokenizers.xlnet_tokenizer import XLNetTokenizer
from keras_xlnet.types import PathLike

# One token, <sep> and <cls>.
_MIN_LENGTH = 3
# What `fit` and the other methods warn of: a share of unknown pieces, if they are this many; and a
# share of texts that are cut, or of tokens that are lost by it.
_UNKNOWN, _FEWEST_UNKNOWN, _CUT = 0.2, 3, 0.1


@refuse_unknown_arguments
class Preprocessor(StringLayer):
    """Base class of preprocessors: a subclass for each form of input.

    `encode`, `encode_labels` and `encode_weights` convert what users pass to `fit` to arrays on the
    host, with SentencePiece and NumPy. `decode` converts the outputs of a model to results. The
    call makes the same features in the TensorFlow graph, for `tf.data` and SavedModels.

    Args:
        tokenizer, sequence_length, padding_side, padding_token_id: See
            `XLNetTextClassifierPreprocessor`.
        **kwargs: Other arguments of `keras.layers.Layer`.
    """

    # Whether there is a label, and an output of the model, for each token.
    has_token_labels = False
    # Whether nothing can be learned from texts without labels.
    needs_labels = True
    # The name of a row in errors.
    row_name = "text"
    # Whether the call takes the elements of a `tf.data.Dataset` of raw text.
    takes_datasets = False
    _padding_segment = SEGMENT_PADDING
    # The argument that says which texts are cut.
    _cut_by = "sequence_length"

    def __init__(
        self,
        tokenizer: XLNetTokenizer,
        sequence_length: int,
        padding_side: str,
        padding_token_id: int,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not isinstance(tokenizer, XLNetTokenizer):
            raise ValueError(
                f"`tokenizer` must be an XLNetTokenizer. Received: tokenizer={tokenizer!r}"
            )
        special = ", for one token, <sep> and <cls>"
        check_int("sequence_length", sequence_length, _MIN_LENGTH, special)
        check_int("padding_token_id", padding_token_id, 0)
        if padding_side not in ("left", "right"):
            raise ValueError(
                f"`padding_side` must be 'left' or 'right'. Received: padding_side={padding_side!r}"
            )
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.padding_side = padding_side
        self.padding_token_id = padding_token_id

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "tokenizer": keras.saving.serialize_keras_object(self.tokenizer),
            "sequence_length": self.sequence_length,
            "padding_side": self.padding_side,
            "padding_token_id": self.padding_token_id,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Preprocessor:
        tokenizer = keras.saving.deserialize_keras_object(config["tokenizer"])
        return cls(**{**config, "tokenizer": tokenizer})

    @classmethod
    def from_preset(cls, location: PathLike, **arguments: Any) -> Preprocessor:
        """Loads the preprocessor of a preset, or makes one for the tokenizer of a preset.

        Args:
            location: As in `XLNetBackbone.from_preset`.
            **arguments: Arguments of the class, such as `sequence_length`, instead of those
                in the preset.

        Raises:
            FileNotFoundError: If `location` has no tokenizer.
            ConnectionError: If `location` cannot be reached.
            ValueError: If a file is damaged.

        Example:

        >>> from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
        >>> preprocessor = XLNetTextClassifierPreprocessor.from_preset(
        ...     "xlnet_small_en", sequence_length=32)
        >>> preprocessor.encode(["a text"]).features["token_ids"].shape
        (1, 16)
        """
        directory = preset_directory(location, (TOKENIZER, VOCABULARY), (CONFIG,))
        tokenizer = XLNetTokenizer.from_preset(directory)
        return cls(tokenizer, **{**cls._arguments_in(directory / CONFIG), **arguments})

    @classmethod
    def _arguments_in(cls, config_file):
        """The arguments of the preprocessor of a preset, if it is of this class."""
        if not config_file.exists():
            return {}
        entry = read_json(config_file).get("config", {}).get("preprocessor")
        if not entry or entry["registered_name"] != keras.saving.get_registered_name(cls):
            return {}
        names = inspect.signature(cls).parameters.keys() - {"tokenizer", "kwargs"}
        return {name: value for name, value in entry["config"].items() if name in names}

    def save_assets(self, dir_path: PathLike) -> None:
        """Writes the SentencePiece model of the tokenizer to a directory. Called by Keras.

        Keras also saves the assets of the tokenizer, but only once if several preprocessors share
        it. Each loaded preprocessor has its own tokenizer, which needs the model.
        """
        self.tokenizer.save_assets(dir_path)

    def load_assets(self, dir_path: PathLike) -> None:
        """Reads the SentencePiece model of the tokenizer from a directory. Called by Keras."""
        self.tokenizer.load_assets(dir_path)

    @classmethod
    def accepts(cls, other: type) -> bool:
        """Whether a preprocessor of another class can be converted to this one."""
        return issubclass(other, cls)

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

    def losses(self, encoded: Encoded) -> dict[str, str]:
        """Returns warnings of what a model does not see of texts, by the kind of the loss.

        Args:
            encoded: What `encode` returned.

        Returns:
            A dict with the keys `unknown`, if 20 % or more of the pieces, and at least 3, are not
            in the vocabulary; and `cut`, if 10 % or more of the texts, or of their tokens, are cut.
            With `truncation="middle"` texts are cut because the user asked for it: no warning.
        """
        found = {}
        ids = encoded.features["token_ids"][encoded.features["padding_mask"]]
        specials = np.isin(ids, [self.tokenizer.sep_token_id, self.tokenizer.cls_token_id])
        num_tokens = len(ids) - int(specials.sum())
        unknown = int((ids == self.tokenizer.unk_token_id).sum())
        if unknown >= max(_FEWEST_UNKNOWN, _UNKNOWN * num_tokens):
            found["unknown"] = (
                f"{unknown / num_tokens:.0%} of the pieces of the texts are unknown to the "
                "vocabulary: the model reads all of them as the same `<unk>`. If the texts are in "
                "another language than the model's, docs/guides/pretrain_your_language.md says "
                "how to train a model of that language"
            )
        num_cut = encoded.num_cut
        if num_cut is None or getattr(self, "truncation", "end") == "middle":
            return found
        texts, lost = int((num_cut > 0).sum()), int(num_cut.sum())
        share = lost / (num_tokens + lost) if lost else 0.0
        if texts and max(texts / len(num_cut), share) >= _CUT:
            found["cut"] = (
                f"{texts} of {len(num_cut)} texts are longer than the preprocessor takes, and are "
                f"cut: they lose {lost / texts:.0f} tokens on average, at most {num_cut.max()}, "
                f"which are {share:.0%} of all tokens. Make the preprocessor with a larger "
                f"`{self._cut_by}` than {getattr(self, self._cut_by)}, or see "
                "docs/long_sequences.md"
            )
        return found

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

    # === Packing, on the host and in the TensorFlow graph ===

    @property
    def layout(self) -> Layout:
        """The `Layout` of packed rows."""
        return Layout(
            self.sequence_length,
            self.padding_side,
            self.padding_token_id,
            self._padding_segment,
            self.tokenizer.sep_token_id,
            self.tokenizer.cls_token_id,
            getattr(self, "truncation", "end"),
        )
