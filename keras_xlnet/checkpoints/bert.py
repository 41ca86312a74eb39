"""Loads BERT encoders as XLNets."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_xlnet.checkpoints import bert_files
from keras_xlnet.checkpoints.bert_encoder import BertEncoder
from keras_xlnet.checkpoints.bert_positions import fit_positions
from keras_xlnet.checkpoints.bert_weights import find_shift, xlnet_weights
from keras_xlnet.checkpoints.family import Family
from keras_xlnet.checkpoints.huggingface import CONFIG
from keras_xlnet.checkpoints.huggingface_tokenizer import read_if_there
from keras_xlnet.checkpoints.opening import build
from keras_xlnet.checkpoints.tasks import get_task
from keras_xlnet.models import XLNetBackbone
from keras_xlnet.preprocessing.packing import SEGMENT_PADDING, Layout, as_rows, pack_texts
from keras_xlnet.preset_files import file_in, local_directory
from keras_xlnet.preset_files.files import quoted
from keras_xlnet.preset_files.weights import assign_in_blocks, model_weights
from keras_xlnet.tokenizers import WordPieceVocabulary, XLNetTokenizer
from keras_xlnet.tokenizers.sentencepiece_model import SPECIAL_TOKENS
from keras_xlnet.types import PathLike

# XLNet's special tokens and BERT's. BERT has one token for every kind of end.
_COUNTERPARTS = {"<unk>": "[UNK]", "<cls>": "[CLS]", "<pad>": "[PAD]", "<mask>": "[MASK]"}
_END = "[SEP]"
_CLS, _SEP, _PAD = map(SPECIAL_TOKENS.index, ("<cls>", "<sep>", "<pad>"))
RIDGE = 1e-3
# Sample texts: how many are made, and the most tokens of one.
_NUM_TEXTS, _MOST_TOKENS = 100, 126
_BATCH_SIZE = 32


@dataclasses.dataclass(frozen=True)
class BertConversion:
    """A BERT as an XLNet, with measures of the difference.

    Args:
        backbone: The `XLNetBackbone`.
        tokenizer: The `XLNetTokenizer` for it, or `None` if it has none.
        position_residuals: Tuple of floats, for each layer the difference between XLNet's sinusoids
            and the function of the distance that stands for BERT's positions: root mean square,
            relative to the function's.
        shift_lengths: Tuple of floats, for each layer the length of the vector added to its input.
        cosine: Float, the cosine between BERT's and the XLNet's mean states of the last layer,
            averaged over the sample texts.
        tokens_that_differ: Float, the fraction of BERT's tokens in the sample texts that the
            tokenizer splits differently. `None` if no texts were given.
        num_texts: Int, the number of sample texts.
    """

    backbone: XLNetBackbone
    tokenizer: XLNetTokenizer | None
    position_residuals: tuple[float, ...]
    shift_lengths: tuple[float, ...]
    cosine: float
    tokens_that_differ: float | None
    num_texts: int

    def __str__(self) -> str:
        """Returns the report, a table with a row for each layer and two lines."""
        lines = ["layer  length of the shift  residual of the positions"]
        rows = zip(self.shift_lengths, self.position_residuals, strict=True)
        lines += [f"{layer:5}{a:21.2f}{b:27.3f}" for layer, (a, b) in enumerate(rows)]
        are_given = self.tokens_that_differ is not None
        kind = "sample texts" if are_given else "texts of random words"
        lines.append(f"cosine to BERT, mean of {self.num_texts} {kind}: {self.cosine:.4f}")
        if are_given:
            lines.append(f"tokens that differ: {self.tokens_that_differ:.2%}")
        return "\n".join(lines)


def load_bert(
    directory: PathLike,
    task: str | None = None,
    *,
    sample_texts: Iterable[str] | None = None,
    keep: Collection[str] | Callable[[str], bool] | None = None,
    ridge: float = RIDGE,
    **overrides: Any,
) -> XLNetBackbone:
    """Loads a BERT encoder that transformers saved, as an XLNet.

    Without positions, a BERT is the content stream of an XLNet: with the position embeddings 0 and
    `ridge=0` the outputs are equal. The effect of the absolute positions is fitted by XLNet's
    relative terms, so the outputs are close, not equal; `convert_bert` measures the difference. The
    XLNet supports texts of any length, memory and permutations.

    Rows have the layout of XLNet: text, `<sep>`, `<cls>`. All tokens have BERT's token type 0. The
    pooler and the heads of BERT are not loaded.

    Args:
        directory: Directory with `config.json`, `model.safetensors` (or its shards) and `vocab.txt`
            (or `tokenizer.json`), or `hf://owner/name`, which needs `huggingface_hub`.
        task: Only `None`, for the encoder.
        sample_texts: A few hundred texts of the kind that the model is for, to fit the
            positions on. `None` for texts of random words of the vocabulary.
        keep: Tokens of `vocab.txt` to keep, or a function from a token to a bool, as in
            `WordPieceVocabulary`.
        ridge: Float of at least 0. Larger values make the XLNet's numbers smaller and its
            difference to BERT larger.
        **overrides: Arguments of `XLNetBackbone` that the files do not fix, such as `dropout`,
            `memory_length` or `dtype`.

    Returns:
        An `XLNetBackbone` for the ids of `load_tokenizer(directory, "bert")`.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the files are damaged, contradict each other, are pickles or of another
            model, or an argument is invalid. The message names the file and the weight.

    Example:

    >>> import tempfile
    >>> keras_xlnet.checkpoints.load_bert(tempfile.mkdtemp())
    Traceback (most recent call last):
    FileNotFoundError: ...config.json is missing

    Source: Devlin et al. 2019, "BERT"; transformers, `models/bert`. docs/checkpoints.md derives it.
    """
    return open_bert(
        directory, task, sample_texts=sample_texts, keep=keep, ridge=ridge, **overrides
    ).load()


def open_bert(
    directory: PathLike,
    task: str | None = None,
    *,
    sample_texts: Iterable[str] | None = None,
    keep: Collection[str] | Callable[[str], bool] | None = None,
    ridge: float = RIDGE,
    **overrides: Any,
) -> OpenBert:
    """Builds the model of `load_bert`, and returns it as an `OpenBert`."""
    get_task(task, BERT)
    opened, _ = _open(directory, sample_texts, keep, ridge, overrides)
    return opened


def _open(directory, sample_texts, keep, ridge, overrides):
    """Returns the `OpenBert` and its `WordPieceVocabulary`."""
    directory = local_directory(directory, [CONFIG], bert_files.OPTIONAL)
    config = bert_files.read_config(file_in(directory, CONFIG))
    files = bert_files.BertFiles(directory, config)
    vocabulary = bert_files.read_vocabulary(directory, config.sizes["vocab_size"], keep)
    texts = random_texts(vocabulary) if sample_texts is None else _checked_texts(sample_texts)
    rows = [vocabulary.encode(text) for text in texts]
    ids = TokenIds(bert_ids(vocabulary), _CLS, _SEP, _PAD)
    return OpenBert(config, files, ids, rows, ridge, overrides), vocabulary


def convert_bert(
    directory: PathLike,
    sample_texts: Iterable[str] | None = None,
    keep: Collection[str] | Callable[[str], bool] | None = None,
    ridge: float = RIDGE,
    **overrides: Any,
) -> BertConversion:
    """Loads a BERT encoder as an XLNet, with its tokenizer and a report.

    Args:
        directory, sample_texts, keep, ridge: As in `load_bert`.
        **overrides: As in `load_bert`.

    Returns:
        A `BertConversion`. Printed, it is the report.

    Raises:
        FileNotFoundError, ValueError: As `load_bert`.

    Example:

    >>> import tempfile
    >>> keras_xlnet.checkpoints.convert_bert(tempfile.mkdtemp())
    Traceback (most recent call last):
    FileNotFoundError: ...config.json is missing

    Source: As of `load_bert`.
    """
    if sample_texts is not None:
        sample_texts = _checked_texts(sample_texts)
    opened, vocabulary = _open(directory, sample_texts, keep, ridge, overrides)
    # The words of the sample texts are split rightly above all.
    tokenizer = XLNetTokenizer(vocabulary.to_sentencepiece(sample_texts or ()))
    differ = None
    if sample_texts is not None:
        differ = tokens_that_differ(tokenizer, vocabulary, sample_texts)
    return opened.convert(tokenizer, differ)


def tokens_that_differ(
    tokenizer: XLNetTokenizer, vocabulary: WordPieceVocabulary, texts: list[str]
) -> float:
    """Returns the fraction of BERT's tokens of texts that a tokenizer does not find.

    Args:
        tokenizer: An `XLNetTokenizer` that `vocabulary` was converted to.
        vocabulary: A `WordPieceVocabulary`.
        texts: List of strings.
    """
    token_ids = bert_ids(vocabulary)
    missing = total = 0
    for text, found in zip(texts, tokenizer.encode(texts), strict=True):
        expected = vocabulary.encode(text)
        total += len(expected)
        counts = np.bincount(expected, minlength=len(vocabulary.tokens))
        counts -= np.bincount(token_ids[found], minlength=len(vocabulary.tokens))
        missing += int(np.maximum(counts, 0).sum())
    return missing / max(total, 1)


def bert_ids(vocabulary: WordPieceVocabulary) -> np.ndarray:
    """Returns an int array `(vocabulary_size,)`, BERT's id of each id of the XLNet."""
    special = [vocabulary.id_of(_COUNTERPARTS.get(token, _END)) for token in SPECIAL_TOKENS]
    return np.array([*special, *vocabulary.pieces.values()])


class TokenIds(NamedTuple):
    """The ids of an XLNet that is made from a BERT.

    Args:
        theirs: Int array `(vocabulary_size,)`, BERT's id of each id of the XLNet.
        cls, sep, pad: Ints, the XLNet's ids of these special tokens.
    """

    theirs: np.ndarray
    cls: int
    sep: int
    pad: int


class OpenBert:
    """The files of a BERT, and the `XLNetBackbone` that they are converted to.

    Args:
        config: A `BertConfig`.
        files: The `BertFiles`.
        ids: A `TokenIds`.
        sample_rows: Lists of BERT's ids of the tokens of texts, without special tokens.
        ridge: As in `load_bert`.
        overrides: Dict of arguments of `XLNetBackbone`.

    Attributes:
        model: The `XLNetBackbone`, with initial weights until `load`.
    """

    def __init__(
        self,
        config: bert_files.BertConfig,
        files: bert_files.BertFiles,
        ids: TokenIds,
        sample_rows: Iterable[Sequence[int]],
        ridge: float,
        overrides: dict[str, Any],
    ) -> None:
        _check_ridge(ridge)
        most = min(_MOST_TOKENS, max(0, config.num_positions - 2))
        self._rows = [np.array(row[:most]) for row in sample_rows if len(row[:most])]
        self._config, self._files, self._ids, self._ridge = config, files, ids, ridge
        sizes = config.sizes
        fixed = {
            "vocabulary_size": len(ids.theirs),
            "num_layers": sizes["num_hidden_layers"],
            "num_heads": sizes["num_attention_heads"],
            "hidden_dim": sizes["hidden_size"],
            "intermediate_dim": sizes["intermediate_size"],
            "head_dim": sizes["hidden_size"] // sizes["num_attention_heads"],
            "activation": config.activation,
            "layer_norm_epsilon": config.layer_norm_epsilon,
            "tie_attention_biases": False,
        }
        defaults = {"dropout": config.dropout, "attention_dropout": config.attention_dropout}
        self.model = build(
            None, fixed, overrides, {}, defaults, config_file=config.file, files=files
        )

    def missing_of_encoder(self) -> list[str]:
        """Returns the names of weights that are missing from the files."""
        return self._files.missing()

    def missing_of_head(self) -> list[str]:
        """Returns an empty list: there is no head."""
        return []

    def unused(self) -> list[str]:
        """Returns the names of arrays that only the files have."""
        return self._files.unused()

    def load(self) -> XLNetBackbone:
        """Returns the model with the weights that are computed from the files."""
        return self.convert().backbone

    def convert(
        self, tokenizer: XLNetTokenizer | None = None, tokens_that_differ: float | None = None
    ) -> BertConversion:
        """Computes and assigns the weights. Arguments as of `BertConversion`."""
        if not self._rows:
            raise ValueError("`sample_texts` must have at least one text with a token")
        self._files.check()
        config, (theirs, cls, sep, _) = self._config, self._ids
        encoder = BertEncoder(
            self._files.read(), self.model.num_heads, config.layer_norm_epsilon, config.activation
        )
        shifts = np.array([find_shift(encoder, i, self._ridge) for i in range(encoder.num_layers)])
        positions, states = fit_positions(encoder, self._rows, theirs[cls], theirs[sep])
        values = xlnet_weights(encoder, theirs, cls, shifts, positions)
        for path, weight in model_weights(self.model).items():
            assign_in_blocks(weight, values[path])
        return BertConversion(
            self.model,
            tokenizer,
            positions.residuals,
            tuple(float(length) for length in np.linalg.norm(shifts, axis=1)),
            self._cosine(states),
            tokens_that_differ,
            len(self._rows),
        )

    def _cosine(self, states):
        """The mean cosine between the means of the last states of BERT, and of the model."""
        theirs, cls, sep, pad = self._ids
        # Of several ids of the XLNet with one id of BERT, the first.
        ours = {index: place for place, index in reversed([*enumerate(theirs.tolist())])}
        layout = Layout(_MOST_TOKENS + 2, "left", pad, SEGMENT_PADDING, sep, cls)
        rows = [np.array([ours[index] for index in row.tolist()], "int32") for row in self._rows]
        cosines = []
        for start in range(0, len(rows), _BATCH_SIZE):
            batch = rows[start : start + _BATCH_SIZE]
            features, _ = pack_texts(as_rows(batch), None, layout, np, shorten=True)
            outputs = self.model(features, training=False)["sequence_output"]
            outputs = keras.ops.convert_to_numpy(outputs).astype("float64")
            mask = features["padding_mask"]
            means = [row[is_real].mean(axis=0) for row, is_real in zip(outputs, mask, strict=True)]
            for mean, state in zip(means, states[start : start + _BATCH_SIZE], strict=True):
                expected = state.mean(axis=0)
                norms = np.linalg.norm(mean) * np.linalg.norm(expected)
                cosines.append(mean @ expected / norms)
        return float(np.mean(cosines))


def random_texts(vocabulary: WordPieceVocabulary) -> list[str]:
    """Returns texts of random words of a vocabulary, the same ones each time."""
    words = [t for t in vocabulary.tokens if t.isalpha()] or ["[UNK]"]
    # The characters come first, in the order of Unicode.
    words = [word for word in words if len(word) > 1] or words
    return [" ".join(words[i] for i in row) + "." for row in random_rows(len(words))]


def random_rows(num_words: int) -> list[np.ndarray]:
    """Returns texts as arrays of random numbers below `num_words`, the same ones each time.

    Vocabularies are ordered by frequency, so the words are drawn by Zipf's law.
    """
    rng = np.random.default_rng(0)
    chance = 1 / (10 + np.arange(num_words))
    lengths = rng.integers(8, 64, _NUM_TEXTS)
    drawn = rng.choice(num_words, lengths.sum(), p=chance / chance.sum())
    return np.split(drawn, np.cumsum(lengths)[:-1])


def _checked_texts(texts):
    texts = texts if isinstance(texts, (str, bytes)) else list(texts)
    if isinstance(texts, (str, bytes)) or not all(isinstance(text, str) for text in texts):
        raise ValueError(
            f"`sample_texts` must be a list of strings. Received: sample_texts={quoted(texts)}"
        )
    return texts


def _check_ridge(ridge):
    if not isinstance(ridge, (int, float)) or not 0 <= ridge < float("inf"):
        raise ValueError(f"`ridge` must be a number of at least 0. Received: ridge={ridge!r}")


def _read_tokenizer(directory):
    return XLNetTokenizer(bert_files.read_vocabulary(directory).to_sentencepiece())


def _lines_of(file):
    lines = pathlib.Path(file).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip()]


BERT = Family(
    "bert",
    owner="BERT",
    files="a BERT",
    detect=lambda path: read_if_there(path, CONFIG).get("model_type") == bert_files.MODEL_TYPE,
    load=load_bert,
    open=open_bert,
    tokenizer=_read_tokenizer,
    convert=convert_bert,
    flags={"sample_texts": _lines_of},
)
