"""Sentences with a tag for each word, for models with an output for each token."""

from __future__ import annotations

from typing import Any

import numpy as np

from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.encoded import Encoded
from keras_xlnet.preprocessing.labels import Classes, as_label_array, check_class_indices
from keras_xlnet.preprocessing.preprocessor import Preprocessor
from keras_xlnet.preprocessing.sentences import (
    EncodedWords,
    TaggedSentence,
    encode_sentences,
    pack_sentences,
    pack_windows,
    tag_sentences,
)
from keras_xlnet.preprocessing.weights import token_weights
from keras_xlnet.preprocessing.words import NO_LABEL, learn_tags, tag_indices, token_labels
from keras_xlnet.registration import register
from keras_xlnet.tokenizers.string_inputs import as_strings
from keras_xlnet.tokenizers.xlnet_tokenizer import XLNetTokenizer


@register
class XLNetTokenClassifierPreprocessor(Preprocessor):
    """Converts sentences, and the tags of their words, to the arrays of `XLNetTokenClassifier`.

    A sentence is packed as `[pieces of all words, <sep>, <cls>]`. Each word is tokenized separately
    and has at least one token: `<unk>` if cleaning removes all of it.

    `encode` divides a sentence that does not fit into windows. Each window starts half a window
    after the previous one, and each word is read where it has the most context. The call,
    whose outputs have one row per sentence, leaves out the last words instead; `windows` returns
    the windows in the TensorFlow graph.

    Args:
        tokenizer: An `XLNetTokenizer`.
        sequence_length: Int, length of the outputs, at least 3.
        padding_side: String, `"left"` or `"right"`.
        padding_token_id: Int, as in `XLNetTextClassifierPreprocessor`.
        label_all_pieces: Bool, whether all tokens of a word have its tag as label, or only the
            first. The prediction for a word is the prediction for its first token.
        **kwargs: Other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Lists of words, or a ragged string tensor `(batch, None)`.

    Returns:
        A dict of `token_ids`, `segment_ids`, `padding_mask` and `word_index`
        `(batch, sequence_length)`. `word_index` is the index of a token's word in its
        sentence, int32, -1 for padding, `<sep>` and `<cls>`.

    Raises:
        ValueError: If an argument is not as above.

    Example:

    >>> from keras_xlnet.preprocessing import XLNetTokenClassifierPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
    >>> preprocessor = XLNetTokenClassifierPreprocessor(tokenizer, sequence_length=9)
    >>> preprocessor([["a", "rose"], ["is"]])["word_index"].numpy()[0].tolist()[-4:]
    [1, 1, -1, -1]
    """

    has_token_labels = True
    row_name = "sentence"

    def __init__(
        self,
        tokenizer: XLNetTokenizer,
        sequence_length: int = 128,
        padding_side: str = "left",
        padding_token_id: int = 0,
        label_all_pieces: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(tokenizer, sequence_length, padding_side, padding_token_id, **kwargs)
        self.label_all_pieces = label_all_pieces

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "label_all_pieces": self.label_all_pieces}

    def call(self, inputs: Any) -> dict[str, tf.Tensor]:
        with tf.device("CPU:0"):
            pieces, num_words = self._tokenize(inputs)
            return pack_sentences(pieces, num_words, self.layout, tf)

    def windows(self, inputs: Any) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """Returns the windows of sentences, in the TensorFlow graph.

        Args:
            inputs: As in the call.

        Returns:
            The outputs of the call, with a row for each window, and the sentence of each window,
            int64 `(windows,)`. `word_index` is as in `EncodedWords`.
        """
        with tf.device("CPU:0"):
            pieces, num_words = self._tokenize(inputs)
            return pack_windows(pieces, num_words, self.layout, tf)

    def _tokenize(self, inputs):
        words = as_strings(inputs)
        if not isinstance(words, tf.RaggedTensor):
            words = tf.RaggedTensor.from_tensor(tf.ensure_shape(words, (None, None)))
        words = words.with_row_splits_dtype(tf.int64)
        return self.tokenizer(words.values), words.row_lengths()

    def encode(self, x: Any, shorten: bool = True) -> EncodedWords:
        """Converts sentences to arrays on the host, without TensorFlow.

        Args:
            x: List of lists of words, or of strings, which are divided into words as in
                `XLNetTokenClassifier.tag`.
            shorten: Bool, whether the arrays are as long as the longest row needs, or
                `sequence_length`.

        Returns:
            `EncodedWords`.

        Raises:
            ValueError: If a sentence has no words or a word is not a string. The message names
                them.
        """
        return encode_sentences(x, self.tokenizer, self.layout, shorten)

    def encode_labels(self, y: Any, encoded: Encoded, classes: Classes | None = None) -> np.ndarray:
        assert isinstance(encoded, EncodedWords) and classes is not None
        sentences = encoded.columns["words"]
        tags = tag_indices(y, sentences, classes.class_names, classes.num_classes)
        of_windows = [tags[sentence] for sentence in encoded.sentence]
        return token_labels(of_windows, encoded.word_index, self.label_all_pieces)

    def encode_weights(self, weights: Any, encoded: Encoded) -> Any:
        assert isinstance(encoded, EncodedWords)
        return token_weights(
            weights, encoded.columns["words"], encoded.word_index, encoded.sentence
        )

    def decode(self, outputs: Any, encoded: Encoded, **options: Any) -> list[TaggedSentence]:
        """Returns a `TaggedSentence` for each sentence.

        Args:
            outputs: Probabilities `(windows, length, num_classes)`.
            encoded: What `encode` returned.
            **options: `classes`, the `Classes` of the model.
        """
        assert isinstance(encoded, EncodedWords)
        return tag_sentences(outputs, encoded, options["classes"].names)

    @classmethod
    def check_labels(cls, y: Any, features: Any, classes: Classes | None = None) -> Any:
        y = as_label_array(y)
        # Vectors are for custom losses.
        if classes is not None and np.ndim(y) == 2:
            check_class_indices(y, classes.num_classes, NO_LABEL)
        return y

    @classmethod
    def learn_class_names(cls, y: Any, num_classes: int) -> list[str] | None:
        return learn_tags(y, num_classes)

    def compute_output_spec(self, inputs: Any) -> Any:
        raise ValueError(
            "The numbers of words differ: call the preprocessor in a dataset or on lists of words, "
            "not on symbolic inputs"
        )
