"""Loads BERT encoders as XLNets."""

import pathlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from keras_xlnet.checkpoints import bert_files
from keras_xlnet.checkpoints.family import Family, loads
from keras_xlnet.checkpoints.huggingface_tokenizer import read_if_there
from keras_xlnet.checkpoints.opening import build
from keras_xlnet.checkpoints.tasks import get_task
from keras_xlnet.conversion.bert_encoder import BertEncoder
from keras_xlnet.conversion.bert_to_xlnet import BertConversion, TokenIds, convert_encoder
from keras_xlnet.conversion.bert_vocabulary import bert_ids, random_texts, tokens_that_differ
from keras_xlnet.models import XLNetBackbone
from keras_xlnet.preset_files import file_in, local_directory
from keras_xlnet.preset_files.files import CONFIG, quoted
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.tokenizers.sentencepiece_model import SPECIAL_TOKENS
from keras_xlnet.types import PathLike

_CLS, _SEP, _PAD = map(SPECIAL_TOKENS.index, ("<cls>", "<sep>", "<pad>"))
RIDGE = 1e-3
_MOST_TOKENS = 126  # Of a sample text.


@loads
def load_bert(
    directory: PathLike,
    task: str | None = None,
    *,
    sample_texts: Iterable[str] | None = None,
    keep: Collection[str] | Callable[[str], bool] | None = None,
    ridge: float = RIDGE,
    **overrides: Any,
) -> Any:
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
    get_task(task, BERT)
    given = None if sample_texts is None else _checked_texts(sample_texts)
    directory = local_directory(directory, [CONFIG], bert_files.OPTIONAL)
    config = bert_files.read_config(file_in(directory, CONFIG))
    files = bert_files.BertFiles(directory, config)
    vocabulary = bert_files.read_vocabulary(directory, config.sizes["vocab_size"], keep)
    texts = random_texts(vocabulary) if given is None else given
    rows = [vocabulary.encode(text) for text in texts]

    def tokenize():
        # The tokenizer is fitted to the words of the sample texts above all.
        tokenizer = XLNetTokenizer(vocabulary.to_sentencepiece(given or ()))
        return tokenizer, given and tokens_that_differ(tokenizer, vocabulary, given)

    ids = TokenIds(bert_ids(vocabulary), _CLS, _SEP, _PAD)
    return OpenBert(config, files, ids, rows, ridge, overrides, tokenize)


def convert_bert(
    directory: PathLike, sample_texts: Iterable[str] | None = None, **options: Any
) -> BertConversion:
    """Loads a BERT encoder as an XLNet, with its tokenizer and a report.

    Args:
        directory, sample_texts: As in `load_bert`.
        **options: `keep`, `ridge` and overrides, as in `load_bert`.

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
    return BERT.open(directory, sample_texts=sample_texts, **options).convert()


class OpenBert:
    """The files of a BERT, and the `XLNetBackbone` that they are converted to.

    Args:
        config: A `BertConfig`.
        files: The `BertFiles`.
        ids: A `TokenIds`.
        sample_rows: Lists of BERT's ids of the tokens of texts, without special tokens.
        ridge: As in `load_bert`.
        overrides: Dict of arguments of `XLNetBackbone`.
        tokenize: Function that returns the `tokenizer` and `tokens_that_differ` of the
            `BertConversion`.

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
        tokenize: Callable[[], tuple[XLNetTokenizer | None, float | None]],
    ) -> None:
        _check_ridge(ridge)
        most = min(_MOST_TOKENS, max(0, config.num_positions - 2))
        self._rows = [np.array(row[:most]) for row in sample_rows if len(row[:most])]
        self._config, self._files, self._ids = config, files, ids
        self._ridge, self._tokenize = ridge, tokenize
        self.unused = files.unused
        self.missing_of_encoder = files.missing
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

    def missing_of_head(self) -> list[str]:
        """Returns an empty list: there is no head."""
        return []

    def load(self) -> XLNetBackbone:
        """Returns the model with the weights that are computed from the files."""
        return self._convert(None, None).backbone

    def convert(self) -> BertConversion:
        """Returns the model as `load` does, with its tokenizer and a report."""
        return self._convert(*self._tokenize())

    def _convert(self, tokenizer, tokens_that_differ):
        if not self._rows:
            raise ValueError("`sample_texts` must have at least one text with a token")
        self._files.check()
        config = self._config
        encoder = BertEncoder(
            self._files.read(), self.model.num_heads, config.layer_norm_epsilon, config.activation
        )
        return convert_encoder(
            encoder, self.model, self._ids, self._rows, self._ridge, tokenizer, tokens_that_differ
        )


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
    tokenizer=_read_tokenizer,
    convert=convert_bert,
    flags={"sample_texts": _lines_of},
)
