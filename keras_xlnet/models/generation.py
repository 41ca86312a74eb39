"""Continues prompts with a language model: greedy, by sampling, or by beam search."""

import dataclasses
import typing
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from keras_xlnet.arguments import (
    check_choice,
    check_number,
    check_positive_int,
    check_token_ids,
)
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.models.vocabulary import check_vocabulary
from keras_xlnet.preprocessing.token_lists import as_token_lists
from keras_xlnet.results import Result, first, short, titled
from keras_xlnet.types import Tokenizer

_METHODS = ("greedy", "sample", "beam")
# `callback` gets this instead of a token for a continuation that has ended.
_ENDED = -1
# Texts are the result, so they are not abbreviated as other strings are.
_MOST_CHARACTERS = 1000


@dataclasses.dataclass(frozen=True, repr=False)
class Continuations(Result):
    """Continuations of prompts.

    Args:
        token_ids: List of int arrays, the new tokens of each prompt. The last is the stop token
            that ended the continuation, if one did.
        log_probs: List of float arrays, the log-probability of each new token.
        texts: List of strings, prompts with their continuations; `None` without a tokenizer.

    Example:

    >>> from keras_xlnet.models import Continuations
    >>> token_ids, log_probs = [np.array([11, 12, 13])], [np.array([-0.1, -0.5, -0.2])]
    >>> Continuations(token_ids, log_probs, ["a rose is a rose"])
    Continuations
      'a rose is a rose'
    """

    token_ids: list[np.ndarray]
    log_probs: list[np.ndarray]
    texts: list[str] | None = None

    def __repr__(self) -> str:
        found: Sequence[Any] = self.token_ids if self.texts is None else self.texts
        lines = (short(x, _MOST_CHARACTERS) for x in found)
        return titled("Continuations", first(lines, len(found)))


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How the next token is sampled.

    Args:
        temperature: Float, the divisor of log-probabilities.
        top_k: Int, sample from the `top_k` most probable tokens. `None`: from all tokens.
        top_p: Float, sample from the most probable tokens whose probabilities add up to this.
            `None`: from all.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if check_number("temperature", self.temperature) == 0:
            raise ValueError("`temperature` must be above 0. For 0 use `method='greedy'`")
        if self.top_k is not None:
            check_positive_int("top_k", self.top_k)
        if self.top_p is not None and check_number("top_p", self.top_p, 0, 1) == 0:
            raise ValueError("`top_p` must be above 0. Received: top_p=0")

    def draw(self, log_probs: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Returns a token for each row `(batch, vocabulary_size)`, with a generator for each."""
        tokens = [self._draw_row(row, rng) for row, rng in zip(log_probs, rngs, strict=True)]
        return np.array(tokens, "int32")

    def _draw_row(self, log_probs, rng):
        order = np.argsort(-log_probs, kind="stable")
        order = order[: self.top_k]
        scaled = log_probs[order].astype("float64") / self.temperature
        probs = np.exp(scaled - scaled.max())
        probs /= probs.sum()
        if self.top_p is not None:
            # The token that reaches the sum is among them.
            count = 1 + np.searchsorted(np.cumsum(probs), self.top_p)
            order, probs = order[:count], probs[:count] / probs[:count].sum()
        return order[min(np.searchsorted(np.cumsum(probs), rng.random()), len(order) - 1)]


class GeneratesText:
    """Mixin of language models: holds a tokenizer, and continues prompts.

    A model returns from `_decoder` a decoder of `keras_xlnet/models/decoding.py`, or raises
    `ValueError` if it cannot continue prompts.
    """

    _text_argument = "tokenizer"

    @property
    def tokenizer(self) -> Any:
        """The tokenizer for strings, or `None`. It can be replaced by another one for the model."""
        return self._untracked.text_layer

    @tokenizer.setter
    def tokenizer(self, tokenizer: Any) -> None:
        # A tokenizer made from a config has no vocabulary until its assets are loaded.
        if getattr(tokenizer, "has_vocabulary", False):
            check_vocabulary(tokenizer, self)
        self._hold(tokenizer)

    def _tokenizer_or(self, given):
        """The tokenizer that was passed to a method, or the model's."""
        return self.tokenizer if given is None else given

    def generate(
        self,
        prompts: Sequence[Any],
        tokenizer: Tokenizer | None = None,
        max_new_tokens: int = 50,
        method: str = "greedy",
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        beam_size: int = 4,
        stop_token_ids: Collection[int] = (),
        seed: int = 0,
        callback: Callable[[int, np.ndarray], Any] | None = None,
    ) -> Continuations:
        """Continues prompts from left to right.

        Keys and values are cached, and nothing is computed twice.

        - A `TransformerXLLanguageModel` reads a prompt of any length as one segment, and
          then one token at a time, with memory: the results equal the model's for
          the same segments.
        - In an `XLNetPermutationLM` the tokens of a prompt see each other. A new token sees the
          prompt and the new tokens before it: the factorization order in which the prompt comes
          first. No memory is used.

        Args:
            prompts: List of strings, or of sequences of token ids, of any lengths. An
                `XLNetTokenizer` drops the white space at the end of a prompt: the first piece of
                the next word includes it. The pieces of a prompt do not change: a prompt that ends
                within a word, such as "New Yo", can have other pieces than the whole word.
            tokenizer: A callable from strings to token ids with `decode`, such as an
                `XLNetTokenizer`. `None` for the tokenizer of the model. The `end_token` of a
                `VocabularyTokenizer` is not added to prompts.
            max_new_tokens: Int, the largest number of new tokens.
            method: `"greedy"`: always the most probable token. `"sample"`: random tokens.
                `"beam"`: the most probable continuation that beam search finds.
            temperature: Float, the divisor of log-probabilities before sampling.
            top_k: Int, sample from the `top_k` most probable tokens. `None`: from all tokens.
            top_p: Float, sample from the most probable tokens whose probabilities add up to this.
            beam_size: Int, the number of continuations that beam search follows.
            stop_token_ids: Ids of tokens that end a continuation, such as
                `[tokenizer.token_to_id(".")]`.
            seed: Int, the seed for sampling. The tokens of a prompt depend on its place
                in `prompts`, not on the other prompts.
            callback: Function called after each step with its number, from 0, and its tokens, an
                int array `(prompts,)`, for example to print them. The token of
                a prompt is -1 after its continuation has ended with a stop token.

        Returns:
            `Continuations`: `token_ids` and `log_probs` of the new tokens of each prompt, and, with
            a tokenizer, `texts`.

        Raises:
            ValueError: If a prompt is empty or has other ids, an argument is not as above, such as
                a string in place of an id, or the model is stateful.

        Example:

        >>> model = keras_xlnet.models.TransformerXLLanguageModel(50, 2, 2, 16, 32, memory_length=8)
        >>> found = model.generate([[5, 17, 8], [6]], max_new_tokens=4)
        >>> [len(token_ids) for token_ids in found.token_ids]
        [4, 4]

        Source: Dai et al. 2019, section 4.5; Holtzman et al. 2020 for `top_p`.
        """
        check_choice("method", method, _METHODS)
        check_positive_int("max_new_tokens", max_new_tokens)
        check_positive_int("beam_size", beam_size)
        sampling = Sampling(temperature, top_k, top_p)
        if method != "sample" and sampling != Sampling():
            raise ValueError(
                "`temperature`, `top_k` and `top_p` are for `method='sample'`. "
                f"Received: method={method!r}"
            )
        if method == "beam" and callback is not None:
            raise ValueError("`callback` cannot be used with `method='beam'`: beams change")
        tokenizer, backbone = self._tokenizer_or(tokenizer), backbone_of(self)
        stops = check_token_ids("stop_token_ids", stop_token_ids, backbone.vocabulary_size)
        decoder = self._decoder()
        rows = as_token_lists(
            prompts, backbone.vocabulary_size, _of_prompts(tokenizer), name="prompts"
        )
        decoder.reserve(max(map(len, rows)), max_new_tokens)
        if method == "beam":
            token_ids, log_probs = _search(decoder, rows, max_new_tokens, beam_size, stops)
        else:
            choose = _chooser(method, sampling, len(rows), seed)
            token_ids, log_probs = _follow(decoder, rows, max_new_tokens, choose, stops, callback)
        texts = None
        if tokenizer is not None:
            pairs = zip(rows, token_ids, strict=True)
            texts = [tokenizer.decode(np.concatenate(pair)) for pair in pairs]
        return Continuations(token_ids, log_probs, texts)


def _of_prompts(tokenizer):
    """A tokenizer that adds no end token to prompts, which are continued."""
    if getattr(tokenizer, "end_token", None) is None:
        return tokenizer
    return lambda texts: [row[:-1] for row in tokenizer.encode(texts)]


def _chooser(method, sampling, num_rows, seed):
    """A function from log-probabilities to tokens."""
    if method == "greedy":
        return lambda log_probs: log_probs.argmax(axis=1).astype("int32")
    # A generator for each row, so that the other prompts make no difference.
    rngs = [np.random.default_rng((seed, row)) for row in range(num_rows)]
    return lambda log_probs: sampling.draw(log_probs, rngs)


def _follow(decoder, rows, max_new_tokens, choose, stop_token_ids, callback):
    """Chooses one token after the other. Returns tokens and log-probabilities of each row."""
    token_ids: list[list[int]] = [[] for _ in rows]
    log_probs: list[list[float]] = [[] for _ in rows]
    is_open = np.ones(len(rows), bool)
    next_log_probs, state = decoder.start(rows)
    for number in range(max_new_tokens):
        tokens = choose(next_log_probs)
        shown = np.where(is_open, tokens, _ENDED)
        for i in np.flatnonzero(is_open):
            token_ids[i].append(tokens[i])
            log_probs[i].append(next_log_probs[i, tokens[i]])
            is_open[i] = int(tokens[i]) not in stop_token_ids
        if callback is not None:
            callback(number, shown)
        if not is_open.any() or number + 1 == max_new_tokens:
            break
        next_log_probs, state = decoder.step(tokens, state)
    return (
        [np.array(row, "int32") for row in token_ids],
        [np.array(row, "float32") for row in log_probs],
    )


def _search(decoder, rows, max_new_tokens, beam_size, stop_token_ids):
    """Beam search. Returns the tokens and log-probabilities of the best beam of each row."""
    searches = [BeamSearch(beam_size, stop_token_ids) for _ in rows]
    log_probs, state = decoder.start([row for row in rows for _ in range(beam_size)])
    for number in range(max_new_tokens):
        is_last = number + 1 == max_new_tokens
        by_row = np.split(log_probs, len(rows))
        steps = [s.extend(found, is_last) for s, found in zip(searches, by_row, strict=True)]
        if is_last or all(search.is_done for search in searches):
            break
        origins = np.concatenate([i * beam_size + origin for i, (origin, _) in enumerate(steps)])
        state = decoder.reorder(state, origins)
        log_probs, state = decoder.step(np.concatenate([tokens for _, tokens in steps]), state)
    return (
        [np.array(search.best.token_ids, "int32") for search in searches],
        [np.array(search.best.log_probs, "float32") for search in searches],
    )


# === Beam search ===


class Beam(typing.NamedTuple):
    """A continuation.

    Args:
        total: Float, the sum of `log_probs`.
        token_ids: Tuple of ints.
        log_probs: Tuple of floats, the log-probability of each token.
    """

    total: float
    token_ids: tuple[int, ...]
    log_probs: tuple[float, ...]


class BeamSearch:
    """The open continuations of a sequence, and the best one that has ended.

    Args:
        size: Int, the number of open continuations that are followed.
        stop_token_ids: Set of ints, the tokens that end a continuation.
    """

    def __init__(self, size: int, stop_token_ids: Collection[int]) -> None:
        self.size = size
        self.stop_token_ids = stop_token_ids
        # All beams start equal, so only one counts.
        self.beams = [Beam(0.0, (), ())] + [Beam(-np.inf, (), ())] * (size - 1)
        self.best = Beam(-np.inf, (), ())

    @property
    def is_done(self) -> bool:
        """Whether no open continuation can become better than the best one that has ended."""
        return self.best.total >= max(beam.total for beam in self.beams)

    def extend(self, log_probs: np.ndarray, is_last: bool) -> tuple[np.ndarray, np.ndarray]:
        """Appends one token to the continuations.

        Args:
            log_probs: Array `(size, vocabulary_size)`, the log-probabilities of the next token of
                each open continuation.
            is_last: Whether all continuations end with this token.

        Returns:
            Two int arrays `(size,)`: the continuation that each new one extends, and its
            token.
        """
        totals = np.array([beam.total for beam in self.beams])[:, None] + log_probs
        # Enough that `size` are left even if they include all stop tokens of all continuations.
        count = self.size * (1 + len(self.stop_token_ids))
        best = np.argsort(-totals, axis=None, kind="stable")[:count]
        opened: list[Beam] = []
        origins: list[int] = []
        for origin, token in zip(*np.unravel_index(best, totals.shape), strict=True):
            beam = self.beams[origin]
            extended = Beam(
                totals[origin, token],
                (*beam.token_ids, int(token)),
                (*beam.log_probs, log_probs[origin, token]),
            )
            if is_last or token in self.stop_token_ids:
                self.best = max(self.best, extended, key=lambda beam: beam.total)
            elif len(opened) < self.size:
                opened.append(extended)
                origins.append(origin)
        while len(opened) < self.size:  # Everything has ended: these do not count.
            opened.append(Beam(-np.inf, (0,), (0.0,)))
            origins.append(0)
        self.beams = opened
        return np.array(origins, "int32"), np.array([b.token_ids[-1] for b in opened], "int32")
