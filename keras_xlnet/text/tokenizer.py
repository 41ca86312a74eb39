"""XLNet's tokenizer: SentencePiece pieces with the original's rules around them."""

import json
import os
import pathlib

import keras
import sentencepiece
import tensorflow as tf
import tensorflow_text
from sentencepiece import sentencepiece_model_pb2

from keras_xlnet.presets import file_in, local_directory
from keras_xlnet.presets.trusted_config import read_config, trusted
from keras_xlnet.text.digit_comma import digit_comma_table
from keras_xlnet.text.normalization import preprocess_text
from keras_xlnet.text.sentencepiece_training import train_proto
from keras_xlnet.text.string_inputs import as_strings, require_string_dtype

_SPECIAL_TOKENS = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")
_ASSET = "spiece.model"
_PRESET_CONFIG, _PRESET_ASSET = "tokenizer.json", f"assets/{_ASSET}"


@keras.saving.register_keras_serializable(package="keras_xlnet")
class XLNetTokenizer(keras.layers.Layer):
    """Turns strings into XLNet's token ids, in the TensorFlow graph.

    Gives the ids that the original's `encode_ids(sp, preprocess_text(text, ...))` gives. No Python
    runs in the graph, so the layer works in `tf.data`, inside a functional model and in a
    SavedModel, whose reader needs `tensorflow` and `tensorflow_text` only. Under the JAX and torch
    backends it works eagerly and in `tf.data`, and still takes and gives TensorFlow tensors.

    The original's fine-tuning scripts remove accents, from cased models too: for ids equal to
    theirs pass `remove_accents=True`, and `lowercase=True` for an uncased model.

    `str.lower`, `str.split` and `unicodedata` of the Python that builds the layer define lower
    case, white space and accents. Bytes that are not UTF-8 are read as U+FFFD, as
    `bytes.decode("utf-8", "replace")` reads them; a NUL is a character like any other. An empty
    text has no ids.

    Where two splits of a text have the same pieces in another order ("!!!!!!!!!" as
    "!!!! !!!! !" or "! !!!! !!!!"), their scores have the same sum, and the rounding of float32
    decides. There tensorflow_text and sentencepiece can decide differently: with the released
    model they did for 1 of 5,574 lower-cased SMS, and for none of 47,536 cased texts.

    The ids at a digit and a comma assume that the vocabulary has the piece ",", as a vocabulary
    trained on any text with commas has.

    Args:
        proto: a SentencePiece unigram model with XLNet's special pieces at ids 0 to 8: a path or
            the bytes. None makes a tokenizer that cannot be used before `load_assets`.
        lowercase: bool, whether to lower the case of the text.
        remove_accents: bool, whether to decompose the text (NFKD) and drop combining characters.
        remove_space: bool, whether to make every run of white space one space.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        inputs: a str, a (nested) list of str, a numpy array or a TensorFlow tensor of strings, of
            shape `(...)`, dense or ragged.

    Returns:
        An int32 `tf.RaggedTensor` of ids `(..., None)` with int64 row splits; for one string a
        `tf.Tensor` `(num_tokens,)`.

    Raises:
        FileNotFoundError: there is no file at `proto`.
        ValueError: `proto` is no SentencePiece unigram model, or one without XLNet's special
            pieces; `inputs` are no strings; the tokenizer has no model yet.

    Example:

    >>> from keras_xlnet.text import XLNetTokenizer
    >>> texts = ["the cat sat on the mat", "the dog sat on the cat"] * 20
    >>> tokenizer = XLNetTokenizer.train(iter(texts), vocabulary_size=30)
    >>> ids = tokenizer(["the cat", ""])
    >>> ids.shape
    TensorShape([2, None])
    >>> tokenizer.detokenize(ids).numpy().tolist()
    [b'the cat', b'']

    Source: Yang et al. 2019, "XLNet", and `prepro_utils.py` of its release; Kudo 2018, "Subword
    Regularization", for the unigram model.
    """

    def __init__(self, proto, lowercase=False, remove_accents=False, remove_space=True, **kwargs):
        super().__init__(**kwargs)
        self.lowercase = lowercase
        self.remove_accents = remove_accents
        self.remove_space = remove_space
        # As in Keras' own string layers: strings cannot become tensors of every backend, and XLA
        # has no strings.
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self.supports_jit = False
        self.built = True
        self._proto = None
        if proto is not None:
            self._set_proto(_read(proto))

    @classmethod
    def train(
        cls,
        files,
        vocabulary_size,
        proto_path=None,
        lowercase=False,
        remove_accents=False,
        remove_space=True,
        user_defined_symbols=(".", "(", ")", '"', "-", "–", "£", "€"),
        character_coverage=0.99995,
        input_sentence_size=10_000_000,
        **kwargs,
    ):
        """Trains a tokenizer with the flags of the released models.

        The corpus goes through the same cleaning as the texts later. One corpus always gives the
        same model. A line of more than 4192 bytes is left out, as SentencePiece does by default.

        Args:
            files: a path or glob pattern of text files with one sentence a line, or a list of
                them, also `.gz`; or any other iterable of str (a generator, `iter(texts)`): the
                sentences themselves.
            vocabulary_size: int, number of pieces, the special ones counted.
            proto_path: where to write the SentencePiece model, if anywhere.
            lowercase: see `XLNetTokenizer`.
            remove_accents: see `XLNetTokenizer`.
            remove_space: see `XLNetTokenizer`.
            user_defined_symbols: strings that are always one piece, at the ids from 9.
            character_coverage: float, the share of the corpus' characters that get a piece.
            input_sentence_size: int above 100, how many sentences to sample from a larger corpus.
            **kwargs: passed to `XLNetTokenizer`.

        Returns:
            An `XLNetTokenizer`.

        Raises:
            FileNotFoundError: a file does not exist.
            ValueError: the corpus is empty, or cannot make a vocabulary of this size; the message
                then tells the largest or smallest size that it can make.

        Example:

        >>> from keras_xlnet.text import XLNetTokenizer
        >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
        >>> tokenizer.vocabulary_size(), tokenizer.id_to_token(9)
        (24, '.')

        Source: "Custom Usage of XLNet" in the original's README, `spm_train`.
        """
        proto = train_proto(
            files,
            vocabulary_size,
            lowercase,
            remove_space,
            remove_accents,
            user_defined_symbols,
            character_coverage,
            input_sentence_size,
        )
        if proto_path is not None:
            _write(proto_path, proto)
        return cls(
            proto,
            lowercase=lowercase,
            remove_accents=remove_accents,
            remove_space=remove_space,
            **kwargs,
        )

    def __call__(self, inputs, **kwargs):
        # As one tensor: Keras would ask of each string in a list what it is.
        if isinstance(inputs, list):
            inputs = as_strings(inputs)
        return super().__call__(inputs, **kwargs)

    def call(self, inputs):
        # Strings have kernels on the CPU only, and a vocabulary on an accelerator would be copied
        # back at every call.
        with tf.device("CPU:0"):
            return _map_flat(self._tokenize, as_strings(inputs))

    def preprocess(self, inputs):
        """Cleans texts as the call does, without cutting them into pieces.

        Args:
            inputs: strings as in the call, shape `(...)`.

        Returns:
            A string tensor of the same shape: the original's `preprocess_text`.

        Example:

        >>> from keras_xlnet.text import XLNetTokenizer
        >>> tokenizer = XLNetTokenizer(None, lowercase=True, remove_accents=True)
        >>> tokenizer.preprocess("  Caf\\u00e9  NOIR ").numpy()
        b'cafe noir'
        """
        with tf.device("CPU:0"):
            return _map_flat(self._preprocess, as_strings(inputs))

    def detokenize(self, inputs):
        """Turns ids back into text, in the graph.

        The nine special ids (0 to 8) are left out, and so padding is, whichever id it has and on
        whichever side it stands. Cleaning is not undone.

        Args:
            inputs: integer ids `(num_tokens,)` or `(batch, num_tokens)`, dense or ragged.

        Returns:
            A string tensor, scalar or `(batch,)`.

        Raises:
            ValueError: `inputs` are no integers of rank 1 or 2.
            tf.errors.InvalidArgumentError: an id is negative or not in the vocabulary.
        """
        self._require_proto()
        ids = inputs if isinstance(inputs, tf.RaggedTensor) else tf.convert_to_tensor(inputs)
        if not ids.dtype.is_integer or ids.shape.rank not in (1, 2):
            raise ValueError(
                "inputs must be integer ids of rank 1 or 2. "
                f"Received: dtype {ids.dtype.name}, shape {ids.shape}"
            )
        with tf.device("CPU:0"):
            if ids.shape.rank == 1:
                return self._detokenize(tf.RaggedTensor.from_tensor(ids[tf.newaxis]))[0]
            if not isinstance(ids, tf.RaggedTensor):
                ids = tf.RaggedTensor.from_tensor(ids)
            return self._detokenize(ids)

    @property
    def has_vocabulary(self):
        """Whether there is a SentencePiece model yet: a config alone does not bring one."""
        return self._proto is not None

    def vocabulary_size(self):
        """The number of pieces, special ones counted."""
        return self._require_proto().vocab_size()

    def id_to_token(self, index):
        """The piece of an id.

        Raises:
            ValueError: the id is not in the vocabulary.
        """
        if not 0 <= index < self.vocabulary_size():
            raise ValueError(f"index must be in [0, {self.vocabulary_size()}). Received: {index}")
        return self._processor.id_to_piece(int(index))

    def token_to_id(self, token):
        """The id of a piece; `unk_token_id` if it is none."""
        return self._require_proto().piece_to_id(token)

    @property
    def unk_token_id(self):
        """The id of unknown pieces, 0."""
        return _SPECIAL_TOKENS.index("<unk>")

    @property
    def cls_token_id(self):
        """The id of `<cls>`, 3."""
        return _SPECIAL_TOKENS.index("<cls>")

    @property
    def sep_token_id(self):
        """The id of `<sep>`, 4."""
        return _SPECIAL_TOKENS.index("<sep>")

    @property
    def pad_token_id(self):
        """The id of `<pad>`, 5."""
        return _SPECIAL_TOKENS.index("<pad>")

    @property
    def mask_token_id(self):
        """The id of `<mask>`, 6."""
        return _SPECIAL_TOKENS.index("<mask>")

    @property
    def eod_token_id(self):
        """The id of `<eod>`, the end of a document, 7."""
        return _SPECIAL_TOKENS.index("<eod>")

    @property
    def eop_token_id(self):
        """The id of `<eop>`, the end of a paragraph, 8."""
        return _SPECIAL_TOKENS.index("<eop>")

    def compute_output_shape(self, input_shape):
        return (*input_shape, None)

    def compute_output_spec(self, inputs):
        require_string_dtype(inputs)
        shape = self.compute_output_shape(inputs.shape)
        return keras.KerasTensor(shape, dtype="int32", ragged=True)

    def get_config(self):
        # The model is an asset beside the config, so that the config stays small and readable.
        return {
            **super().get_config(),
            "proto": None,
            "lowercase": self.lowercase,
            "remove_accents": self.remove_accents,
            "remove_space": self.remove_space,
        }

    @classmethod
    def from_config(cls, config):
        # A config may come from anywhere, and would read any file.
        if config.get("proto") is not None:
            raise ValueError(
                "A config holds no SentencePiece model: proto must be None. Received: "
                f"proto={config['proto']!r}"
            )
        return super().from_config(config)

    @classmethod
    def from_preset(cls, location):
        """Loads the tokenizer of a preset, with the cleaning of texts that it was saved with.

        Args:
            location: Where the preset is: a directory, `"hf://owner/name"` or a URL, as for
                `XLNetBackbone.from_preset`.

        Returns:
            An `XLNetTokenizer`.

        Raises:
            FileNotFoundError: `location` has no `tokenizer.json` or no `assets/spiece.model`.
            ConnectionError: `location` does not answer.
            ValueError: a file is damaged.

        Example:

        >>> import tempfile
        >>> from keras_xlnet.text import XLNetTokenizer
        >>> tokenizer = XLNetTokenizer.train(
        ...     iter(["a rose is a rose"] * 9), vocabulary_size=24, lowercase=True)
        >>> directory = tempfile.mkdtemp()
        >>> tokenizer.save_to_preset(directory)
        >>> XLNetTokenizer.from_preset(directory).lowercase
        True
        """
        directory = local_directory(location, (_PRESET_CONFIG, _PRESET_ASSET))
        config = read_config(file_in(directory, _PRESET_CONFIG), cls)
        asset = file_in(directory, _PRESET_ASSET)
        try:
            tokenizer = keras.saving.deserialize_keras_object(config)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{directory / _PRESET_CONFIG}: {error}") from error
        try:
            tokenizer.load_assets(str(asset.parent))
        except ValueError as error:
            raise ValueError(f"{asset}: {error}") from error
        return tokenizer

    def save_to_preset(self, directory):
        """Writes `tokenizer.json` and `assets/spiece.model` to a directory.

        A model writes its tokenizer itself: `model.save_to_preset(directory, tokenizer)`.

        Args:
            directory: Path of the preset, made if it does not exist.
        """
        directory = pathlib.Path(directory)
        (directory / _PRESET_ASSET).parent.mkdir(parents=True, exist_ok=True)
        self.save_assets(str(directory / "assets"))
        config = trusted(keras.saving.serialize_keras_object(self), _PRESET_CONFIG)
        text = json.dumps(config, indent=2) + "\n"
        (directory / _PRESET_CONFIG).write_text(text, encoding="utf-8")

    def save_assets(self, dir_path):
        """Writes the SentencePiece model to `spiece.model` in a directory. Keras calls this."""
        self._require_proto()
        _write(os.path.join(dir_path, _ASSET), self._proto)

    def load_assets(self, dir_path):
        """Reads the SentencePiece model from `spiece.model` in a directory. Keras calls this."""
        # Keras saves a tokenizer that several layers share with the first of them, and has None
        # for the others; those layers hold the model themselves.
        if dir_path is not None:
            self._set_proto(_read(os.path.join(dir_path, _ASSET)))

    def _set_proto(self, proto):
        self._processor = _checked_processor(proto)
        self._proto = proto
        # The layer may be made while a graph is traced, but has to outlive it.
        with tf.init_scope(), tf.device("CPU:0"):
            # Not SentencepieceTokenizer: that one loses its model at keras.utils.set_random_seed,
            # and breaks ties between equally good splits in another way than sentencepiece.
            self._pieces = tensorflow_text.FastSentencepieceTokenizer(proto)
            self._digit_comma_table = digit_comma_table(self._processor)
            self._compiled_tokenize = tf.function(
                self._tokenize_in_graph,
                input_signature=[tf.TensorSpec([None], tf.string)],
                autograph=False,
            )

    def _require_proto(self):
        if self._proto is None:
            raise ValueError(
                "This XLNetTokenizer has no SentencePiece model: a config does not hold it. Pass "
                "proto to the constructor, or call load_assets(directory)."
            )
        return self._processor

    def _preprocess(self, texts):
        return preprocess_text(texts, self.lowercase, self.remove_space, self.remove_accents)

    def _tokenize(self, texts):
        self._require_proto()
        # Eagerly, a hundred operations take longer to start than one text takes to be cut.
        if tf.executing_eagerly():
            return self._compiled_tokenize(texts)
        return self._tokenize_in_graph(texts)

    def _tokenize_in_graph(self, texts):
        ids = self._pieces.tokenize(self._preprocess(texts)).with_row_splits_dtype(tf.int64)
        split = tf.gather(self._digit_comma_table, ids.values)
        return ids.with_values(split).merge_dims(1, 2)

    def _detokenize(self, ids):
        values = ids.flat_values
        last = tf.cast(self.vocabulary_size() - 1, values.dtype)
        checks = [
            tf.debugging.assert_non_negative(values, "inputs must be ids, none negative"),
            tf.debugging.assert_less_equal(values, last, "inputs must be ids of the vocabulary"),
        ]
        with tf.control_dependencies([check for check in checks if check is not None]):
            ids = tf.cast(ids, tf.int32)
        ids = tf.ragged.boolean_mask(ids, ids >= len(_SPECIAL_TOKENS))
        texts = self._pieces.detokenize(ids.with_row_splits_dtype(tf.int32))
        # Where ids were left out of the front, more than one word start can come first;
        # sentencepiece drops them all.
        return tf.strings.regex_replace(texts, "^ +", "")


def _map_flat(function, texts):
    """Applies a function of a `(batch,)` tensor to strings of any rank."""
    if isinstance(texts, tf.RaggedTensor):
        return texts.with_flat_values(_map_flat(function, texts.flat_values))
    flat = function(tf.reshape(texts, [-1]))
    if texts.shape.rank == 0:
        return flat[0]
    if texts.shape.rank == 1:
        return flat
    if isinstance(flat, tf.Tensor):
        return tf.reshape(flat, tf.shape(texts))
    return tf.RaggedTensor.from_tensor(texts, ragged_rank=texts.shape.rank - 1).with_flat_values(
        flat
    )


def _checked_processor(proto):
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
        spec = sentencepiece_model_pb2.ModelProto.FromString(proto).trainer_spec
    except Exception as error:  # sentencepiece and protobuf share no class of errors.
        raise ValueError(
            f"proto must be a SentencePiece model. Received: {len(proto)} bytes that are none"
        ) from error
    # tensorflow_text would take any type and quietly split as if it were unigram.
    if spec.model_type != spec.UNIGRAM:
        name = spec.ModelType.Name(spec.model_type)
        raise ValueError(f"proto must be a unigram model. Received: a model of type {name}")
    size = min(len(_SPECIAL_TOKENS), processor.vocab_size())
    pieces = tuple(processor.id_to_piece(index) for index in range(size))
    if pieces != _SPECIAL_TOKENS:
        raise ValueError(
            f"proto must have XLNet's special pieces {_SPECIAL_TOKENS} at ids 0 to 8. "
            f"Received: {pieces}"
        )
    return processor


def _read(proto):
    if isinstance(proto, bytes):
        return proto
    if not isinstance(proto, (str, os.PathLike)):
        raise ValueError(
            f"proto must be a path, the bytes of a SentencePiece model or None. Received: {proto!r}"
        )
    path = os.fspath(proto)
    if not tf.io.gfile.exists(path):
        raise FileNotFoundError(f"proto: there is no file at {path!r}.")
    with tf.io.gfile.GFile(path, "rb") as file:
        return file.read()


def _write(path, proto):
    with tf.io.gfile.GFile(os.fspath(path), "wb") as file:
        file.write(proto)
