"""Which tokens to predict: spans, drawn from uniform random numbers.

    p(n) = (1 / n) / (1 + 1/2 + ... + 1/G)          the length n of a span, 1 to G words
    a span of n words is drawn uniformly in a window of n * alpha / beta tokens

Spans are drawn from the start of the text to its end; single tokens fill the remaining count.

The functions run on tensors of any Keras backend (`xp=keras.ops`) and on arrays (`xp=numpy`).
Axis letters: B batch, L length, G the longest span in words.

Source: Yang et al. 2019 (XLNet), section 2.6 and appendix A.4; zihangdai/xlnet, `data_utils.py`,
`_sample_mask`.
"""

from types import ModuleType

import numpy as np
from keras import ops

from keras_xlnet.types import Tensor


def max_spans(length: int, alpha: int, beta: int) -> int:
    """Returns the largest number of spans in a text of `length` tokens.

    A span of `n` tokens occupies at least `n + n * alpha // beta` tokens.
    """
    return -(-length // (1 + alpha // beta))


def span_targets(
    word_starts: Tensor,
    candidates: Tensor,
    draws: Tensor,
    goal: int,
    max_gram: int,
    alpha: int,
    beta: int,
    unit: str,
    xp: ModuleType = ops,
) -> Tensor:
    """Draws spans from left to right until `goal` tokens are chosen or the text ends.

    Args:
        word_starts: `(B, L)` bool, `True` where a token begins a word.
        candidates: `(B, L)` bool. Other tokens are never chosen and do not count.
        draws: `(B, 2 * max_spans)` uniform random numbers.
        goal: Int, the largest number of tokens to choose.
        max_gram, alpha, beta, unit: As in `keras_xlnet.layers.SpanMaskSampler`.
        xp: `keras.ops` or `numpy`.

    Returns:
        `(B, L)` bool.
    """
    length = word_starts.shape[1]
    positions = xp.arange(length, dtype="int32")
    words_before, starts = _words(xp, word_starts, positions, max_gram)
    chosen_before = _exclusive_cumsum(xp, candidates)
    find_end = _end_by_pieces if unit == "piece" else _end_by_words
    thresholds = xp.array(_gram_thresholds(max_gram))

    def is_unfinished(k, position, remaining, chosen):
        return xp.any(xp.logical_and(position < length, remaining > 0))

    def add_span(k, position, remaining, chosen):
        gram = 1 + _count(xp, xp.take(draws, 2 * k, axis=1)[:, None] >= thresholds)
        if unit == "piece":
            gram = xp.maximum(xp.minimum(gram, remaining), 1)
        window = gram * alpha // beta
        left = xp.take(draws, 2 * k + 1, axis=1) * xp.array(window, dtype="float32")
        left = xp.minimum(xp.array(left, dtype="int32"), window - 1)
        word = _at(xp, words_before, xp.minimum(position + left, length))
        begin = _at(xp, starts, word)
        end, after = find_end(xp, begin, gram, word, starts, chosen_before, remaining)
        inside = xp.logical_and(positions >= begin[:, None], positions < end[:, None])
        inside = xp.logical_and(inside, (remaining > 0)[:, None])
        inside = xp.logical_and(inside, candidates)
        right = xp.maximum((after - begin) * alpha // beta - left, 0)
        return (
            k + 1,
            xp.minimum(after + right, length),
            remaining - _count(xp, inside),
            xp.logical_or(chosen, inside),
        )

    zeros = xp.zeros_like(words_before[:, 0])
    state = (0, zeros, zeros + goal, xp.zeros_like(candidates))
    return _while_loop(xp, is_unfinished, add_span, state, draws.shape[1] // 2)[-1]


def _end_by_pieces(xp, begin, gram, word, starts, chosen_before, remaining):
    """Where a span of `gram` tokens ends. A span that reaches the end of the text is dropped.

    Returns:
        Two `(B,)` int32: the end of the span, and the position from which drawing continues,
        which is the end of the text after a span that was dropped.
    """
    length = chosen_before.shape[1] - 1
    end = begin + gram
    fits = end < length
    return xp.where(fits, end, begin), xp.where(fits, end, length)


def _end_by_words(xp, begin, gram, word, starts, chosen_before, remaining):
    """The end of a span of `gram` words, or of fewer if they do not fit. Returns as above."""
    length = chosen_before.shape[1] - 1
    grams = xp.arange(1, starts.shape[1] - length, dtype="int32")[None]
    ends = xp.take_along_axis(starts, word[:, None] + grams, axis=1)
    sizes = xp.take_along_axis(chosen_before, ends, axis=1)
    sizes = sizes - _at(xp, chosen_before, begin)[:, None]
    fits = xp.logical_and(grams <= gram[:, None], ends < length)
    fits = xp.logical_and(fits, sizes <= remaining[:, None])
    num_words = _count(xp, fits)
    end = _at(xp, starts, word + num_words)
    # A first word that does not fit is skipped.
    return end, xp.where(num_words > 0, end, ends[:, 0])


def _gram_thresholds(max_gram):
    """A uniform number that is at least `k` of these thresholds draws a span of `k + 1` words."""
    probabilities = 1 / np.arange(1, max_gram + 1)
    return (np.cumsum(probabilities) / probabilities.sum())[:-1].astype("float32")


def fill_targets(
    chosen: Tensor, candidates: Tensor, draws: Tensor, goal: int, xp: ModuleType = ops
) -> Tensor:
    """Chooses single tokens, all candidates with equal probability, until `goal` are chosen.

    Args:
        chosen, candidates: `(B, L)` bool.
        draws: `(B, L)` uniform random numbers.
        goal: Int.
        xp: `keras.ops` or `numpy`.

    Returns:
        `(B, L)` bool, `goal` of them `True` in each row with that many candidates.
    """
    score = xp.where(chosen, 2.0, xp.where(candidates, draws, -1.0))
    rank = xp.argsort(xp.argsort(-score, axis=1), axis=1)
    return xp.logical_and(rank < goal, candidates)


def _words(xp, word_starts, positions, max_gram):
    """How many words start before each position, and where the words start.

    Returns:
        `(B, L + 1)` counts, and `(B, L + G + 1)` ascending positions, `L` beyond the last word.
    """
    length = positions.shape[0]
    starts = xp.sort(xp.where(word_starts, positions, length), axis=1)
    beyond = xp.tile(xp.zeros_like(starts[:, :1]) + length, (1, max_gram + 1))
    return _exclusive_cumsum(xp, word_starts), xp.concatenate([starts, beyond], axis=1)


def _exclusive_cumsum(xp, mask):
    """`(B, L)` bool -> `(B, L + 1)` int32."""
    counts = xp.cumsum(xp.array(mask, dtype="int32"), axis=1, dtype="int32")
    return xp.concatenate([xp.zeros_like(counts[:, :1]), counts], axis=1)


def _count(xp, mask):
    """`(B, N)` bool -> `(B,)` int32."""
    return xp.array(xp.sum(xp.array(mask, dtype="int32"), axis=1), dtype="int32")


def _at(xp, table, index):
    """`(B, N)`, `(B,)` -> `(B,)`."""
    return xp.take_along_axis(table, index[:, None], axis=1)[:, 0]


def _while_loop(xp, condition, body, state, max_iterations):
    if xp is ops:
        return ops.while_loop(condition, body, state, maximum_iterations=max_iterations)
    for _ in range(max_iterations):
        if not condition(*state):
            break
        state = body(*state)
    return state
