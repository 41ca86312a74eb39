"""The files of a BERT or RoBERTa of transformers: configuration, weights, BERT's vocabulary.

Nothing is unpickled or executed.
"""

import dataclasses
import pathlib
from typing import Any

import numpy as np

from keras_xlnet.checkpoints.huggingface import open_files
from keras_xlnet.checkpoints.huggingface_config import (
    ACTIVATIONS,
    check_only,
    check_required,
    choose,
)
from keras_xlnet.checkpoints.huggingface_tokenizer import (
    FAST,
    FAST_CLASSES,
    TOKENIZER_CONFIG,
    TOKENIZER_FILES,
    check_settings,
    check_tokens,
    read_if_there,
)
from keras_xlnet.preset_files import file_in
from keras_xlnet.preset_files.files import CONFIG, quoted, read_json
from keras_xlnet.preset_files.weights import FLOATS, check_matches
from keras_xlnet.tokenizers import WordPieceVocabulary
from keras_xlnet.tokenizers.wordpiece import SPECIAL_TOKENS

MODEL_TYPE = "bert"
_VOCABULARY = "vocab.txt"
WEIGHTS = ("*.safetensors", "model.safetensors.index.json")
OPTIONAL = (*WEIGHTS, _VOCABULARY, *TOKENIZER_FILES)
_SIZES = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"),
    *("intermediate_size", "max_position_embeddings", "type_vocab_size"),
)
# Parts of a BERT without a counterpart in an XLNet.
_REFUSED = {"is_decoder": False, "add_cross_attention": False}
# The largest number of extra rows that pad a vocabulary to a round number.
_MOST_PADDING = 1024
_LAYERS = "encoder.layer."
_POSITIONS = "embeddings.position_embeddings.weight"
# The names of older releases.
_OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}


# Classes of transformers that follow `tokenizer_config.json`.
_BERT_CLASSES = (None, "BertTokenizer", "BertTokenizerFast")
# Flags: our names, those of `tokenizer_config.json` and `tokenizer.json`, and the defaults.
_FLAGS = (
    ("lowercase", "do_lower_case", "lowercase", True),
    ("strip_accents", "strip_accents", "strip_accents", None),
    ("split_ideographs", "tokenize_chinese_chars", "handle_chinese_chars", True),
)
# Allowed values of other settings, the default first.
_OF_CONFIG: dict[str, Any] = {
    "do_basic_tokenize": (True, None),
    "never_split": (None, []),
    "auto_map": (None,),
}
_OF_NORMALIZER = {"type": ("BertNormalizer",), "clean_text": (True,)}
_OF_MODEL = {
    "unk_token": ("[UNK]",),
    "continuing_subword_prefix": ("##",),
    "max_input_chars_per_word": (100,),
}
_TOKENS = {f"{token[1:-1].lower()}_token": token for token in SPECIAL_TOKENS}
_ROW = ["[CLS]", "A", "[SEP]"]


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """`config.json` of a BERT.

    Args:
        file: Path of the file.
        sizes: Dict of ints by the names in the file.
        activation: Name of the activation, as `XLNetBackbone` has it.
        layer_norm_epsilon, dropout, attention_dropout: Floats.
        model_type: The `model_type` in the file.
        first_position: Int, the row of the position embeddings for the first token of a text.
    """

    file: pathlib.Path
    sizes: dict[str, int]
    activation: str
    layer_norm_epsilon: float
    dropout: float
    attention_dropout: float
    model_type: str = MODEL_TYPE
    first_position: int = 0

    @property
    def num_positions(self) -> int:
        """The largest number of tokens of a text, with the special ones."""
        return max(0, self.sizes["max_position_embeddings"] - self.first_position)


@dataclasses.dataclass(frozen=True)
class _Weight:
    """A required weight of a BERT, in the form that `check_matches` compares."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"


def read_config(file: pathlib.Path, model_type: str = MODEL_TYPE) -> BertConfig:
    """Reads the configuration of a model with a `model_type`.

    Raises:
        ValueError: If it does not describe a BERT encoder, or an entry is of another type.
    """
    config = read_json(file)
    if config.get("model_type") != model_type:
        raise ValueError(
            f"{file} has the `model_type` {quoted(config.get('model_type'))}, not {model_type!r}"
        )
    for key, expected in _REFUSED.items():
        if config.get(key, expected) not in (expected, None):
            raise ValueError(
                f"{file} has `{key}` {quoted(config[key])}: only an encoder can become an XLNet"
            )
    if config.get("position_embedding_type") is not None:
        check_only(config, {"position_embedding_type": "absolute"}, file)
    check_required(config, _SIZES, file)
    config.setdefault("type_vocab_size", 2)
    sizes = {key: _positive_int(config, key, file) for key in _SIZES}
    if sizes["hidden_size"] % sizes["num_attention_heads"] or sizes["hidden_size"] % 2:
        raise ValueError(
            f"{file} has `hidden_size` {sizes['hidden_size']}, expected an even multiple of "
            f"`num_attention_heads` {sizes['num_attention_heads']}"
        )
    return BertConfig(
        file,
        sizes,
        choose(config, "hidden_act", "gelu", ACTIVATIONS, file),
        layer_norm_epsilon=_fraction(config, "layer_norm_eps", 1e-12, file),
        dropout=_fraction(config, "hidden_dropout_prob", 0.1, file),
        attention_dropout=_fraction(config, "attention_probs_dropout_prob", 0.1, file),
        model_type=model_type,
    )


def _positive_int(config, key, file):
    value = config[key]
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{file} has `{key}` {quoted(value)}, expected a positive integer")
    return value


def _fraction(config, key, default, file):
    value = config.get(key, default)
    if not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise ValueError(f"{file} has `{key}` {quoted(value)}, expected a number from 0 to 1")
    return float(value)


class BertFiles:
    """The weights of a BERT encoder, by the names that a `BertModel` has.

    Args:
        directory: Path of the directory.
        config: A `BertConfig`.

    Attributes:
        shapes: Dict of shapes by the names in the files.

    Raises:
        FileNotFoundError: If there are no weights.
        ValueError: If a file is damaged or a pickle.
    """

    def __init__(self, directory: pathlib.Path, config: BertConfig) -> None:
        self._files = open_files(directory, {}, f"{config.model_type.title()}Model")
        self._config = config
        self.shapes = self._files.shapes
        prefix = f"{config.model_type}."
        has_prefix = any(name.startswith(prefix) for name in self.shapes)
        self._prefix = prefix if has_prefix else ""

    def __str__(self) -> str:
        return str(self._files)

    def check(self) -> None:
        """Compares the headers of the files with the configuration.

        Raises:
            ValueError: If a weight is missing, has another shape or is not floating-point, or
                belongs to a layer that the configuration does not describe.
        """
        weights = self._weights()
        known = {weight.name for weight in weights}
        layers = self._prefix + _LAYERS
        others = [name for name in self.unused() if name.startswith(layers) and name not in known]
        check_matches(weights, self._files, FLOATS, unexpected=others)

    def missing(self) -> list[str]:
        """Returns the names of weights that are not in the files."""
        return [weight.name for weight in self._weights() if weight.name not in self.shapes]

    def unused(self) -> list[str]:
        """Returns the names of all arrays in the files that are not weights of the encoder."""
        return sorted(set(self.shapes) - {weight.name for weight in self._weights()})

    def read(self) -> dict[str, np.ndarray]:
        """Returns the weights as float64 arrays, by names without a prefix.

        The position embeddings begin with those of the first token.
        """
        names = (weight.name for weight in self._weights())
        weights = {
            _new_name(name.removeprefix(self._prefix)): np.asarray(
                self._files.read(name)[...], "float64"
            )
            for name in names
        }
        weights[_POSITIONS] = weights[_POSITIONS][self._config.first_position :]
        return weights

    def _weights(self):
        return [
            dataclasses.replace(weight, name=self._name_in_file(weight.name))
            for weight in _encoder_weights(self._config.sizes)
        ]

    def _name_in_file(self, name):
        name = self._prefix + name
        for old, new in _OLD_NAMES.items():
            older = name.removesuffix(new) + old
            if name.endswith(f"LayerNorm{new}") and older in self.shapes:
                return older
        return name


def _new_name(name):
    for old, new in _OLD_NAMES.items():
        if name.endswith(f"LayerNorm{old}"):
            return name.removesuffix(old) + new
    return name


def _encoder_weights(sizes):
    """Yields the weights of a `BertModel` without its pooler."""
    hidden, inner = sizes["hidden_size"], sizes["intermediate_size"]
    rows = {
        "word": sizes["vocab_size"],
        "position": sizes["max_position_embeddings"],
        "token_type": sizes["type_vocab_size"],
    }
    for name, count in rows.items():
        yield _Weight(f"embeddings.{name}_embeddings.weight", (count, hidden))
    yield from _norm("embeddings.LayerNorm", hidden)
    for layer in range(sizes["num_hidden_layers"]):
        prefix = f"{_LAYERS}{layer}"
        for name in ("query", "key", "value"):
            yield from _dense(f"{prefix}.attention.self.{name}", hidden, hidden)
        yield from _dense(f"{prefix}.attention.output.dense", hidden, hidden)
        yield from _norm(f"{prefix}.attention.output.LayerNorm", hidden)
        yield from _dense(f"{prefix}.intermediate.dense", hidden, inner)
        yield from _dense(f"{prefix}.output.dense", inner, hidden)
        yield from _norm(f"{prefix}.output.LayerNorm", hidden)


def _dense(name, num_inputs, num_outputs):
    yield _Weight(f"{name}.weight", (num_outputs, num_inputs))
    yield _Weight(f"{name}.bias", (num_outputs,))


def _norm(name, size):
    yield _Weight(f"{name}.weight", (size,))
    yield _Weight(f"{name}.bias", (size,))


# === The vocabulary ===


def read_vocabulary(
    directory: pathlib.Path, vocabulary_size: int | None = None, keep: Any = None
) -> WordPieceVocabulary:
    """Reads `tokenizer.json`, or `vocab.txt`, as the `AutoTokenizer` of transformers 5 does.

    Args:
        directory: Path of the directory.
        vocabulary_size: Int, the number of rows of the embeddings; `None` to not compare it.
        keep: As of `WordPieceVocabulary`.

    Raises:
        FileNotFoundError: If there is neither.
        ValueError: If a file is damaged, is not of a WordPiece vocabulary, does not fit the
            embeddings, or has a setting with which a `WordPieceVocabulary` does not split texts.
    """
    fast, config = (read_if_there(directory, name) for name in (FAST, TOKENIZER_CONFIG))
    file = file_in(directory, FAST if fast else _VOCABULARY)
    tokens = _tokens_of_json(fast, file) if fast else _lines(file)
    if vocabulary_size is not None:
        _check_size(tokens, vocabulary_size, file)
    # transformers asks the configuration of the model last.
    of_model = read_if_there(directory, CONFIG).get("tokenizer_class")
    config["tokenizer_class"] = config.get("tokenizer_class") or of_model
    try:
        flags = _read_settings(directory, config, fast)
        check_tokens(directory, config, fast, _TOKENS, SPECIAL_TOKENS)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"{directory} has a damaged tokenizer: {error!r}") from error
    try:
        return WordPieceVocabulary(tokens, keep=keep, **flags)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def _lines(file):
    try:
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not UTF-8: {error}") from error
    if text.startswith("\ufeff"):
        raise ValueError(
            f"{file} begins with a byte order mark, which transformers takes for a part of the "
            "first token: remove it"
        )
    # Not `splitlines`: a token may be another line separator.
    return [line.rstrip() for line in text.removesuffix("\n").split("\n")]


def _tokens_of_json(content, file):
    model = content.get("model")
    ids = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(ids, dict) or model.get("type", "WordPiece") != "WordPiece":
        raise ValueError(f"{file} is not the tokenizer of a BERT: it has no WordPiece model")
    if sorted(map(str, ids.values())) != sorted(map(str, range(len(ids)))):
        raise ValueError(f"{file} does not number its tokens from 0 to {len(ids) - 1}")
    return sorted(ids, key=ids.__getitem__)


def _check_size(tokens, vocabulary_size, file):
    if not vocabulary_size - _MOST_PADDING < len(tokens) <= vocabulary_size:
        raise ValueError(
            f"{file} has {len(tokens):,} tokens, but the embeddings have {vocabulary_size:,} rows "
            "(`vocab_size` of config.json)"
        )


# === The settings of the tokenizer ===


def _read_settings(directory, config, fast):
    """Returns the flags of `WordPieceVocabulary`. `ValueError` for other settings."""
    of_bert = config["tokenizer_class"] in _BERT_CLASSES
    classes = _BERT_CLASSES + (FAST_CLASSES if fast else ())
    file, part, place = directory / TOKENIZER_CONFIG, "", config
    check_settings(file, part, config, {"tokenizer_class": classes, **_OF_CONFIG})
    if fast:
        file = directory / FAST
        # BERT's classes fill in missing parts; the general ones do not.
        missing: Any = {} if of_bert else None
        normalizer = fast.get("normalizer", missing)
        check_settings(file, "normalizer", normalizer, _OF_NORMALIZER)
        pre_tokenizer = fast.get("pre_tokenizer", missing)
        check_settings(file, "pre_tokenizer", pre_tokenizer, {"type": ("BertPreTokenizer",)})
        check_settings(file, "model", fast["model"], _OF_MODEL)
        row = _row_of(fast.get("post_processor"))
        rows = (_ROW, None) if of_bert else (_ROW,)
        check_settings(file, "", {"post_processor": row}, {"post_processor": rows})
    if of_bert:
        file = directory / TOKENIZER_CONFIG
    else:
        part, place = "normalizer", normalizer
    flags = {}
    for ours, *names, default in _FLAGS:
        key = names[not of_bert]
        check_settings(file, part, place, {key: tuple({default: 0, True: 0, False: 0})})
        flags[ours] = place.get(key, default)
    return flags


def _row_of(processor):
    """Returns the row that a `post_processor` makes of a text, or its type."""
    kind = processor.get("type") if isinstance(processor, dict) else processor
    if kind == "BertProcessing":
        return [processor["cls"][0], "A", processor["sep"][0]]
    if kind == "TemplateProcessing":
        return [entry["id"] for step in processor["single"] for entry in step.values()]
    return kind
