"""Log-probabilities of texts: the arrays that a language model reads, and its outputs as scores.

Exported directories contain this file (`serving/portable/`), so it does not import Keras.

Source: Yang et al. 2019 (XLNet), section 2.2.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_xlnet.arguments import check_choice, check_positive_int, check_token_id
from keras_xlnet.preprocessing.packing import rounded
from keras_xlnet.preprocessing.token_lists import pad_rows
from keras_xlnet.results import Result, table, titled

# `<sep>` and `<cls>`, and their segments: a text ends with them in pretraining, `[A, SEP, CLS]`.
SPECIALS, SPECIAL_SEGMENTS = (4, 3), (0, 2)
_ORDERS = ("left_to_right", "right_to_left", "random")


@dataclasses.dataclass(frozen=True, repr=False)
class Scores(Result):
    """Log-probabilities of texts, in nats.

    Args:
        token_ids: List of int arrays, the tokens of each text.
        log_probs: List of float arrays, the log-probability of each token: the mean over the
            orders. NaN for a token that was given.
        totals: Array `(texts,)`, the log-probability of each text: the sum of `log_probs`.
        standard_errors: Array `(texts,)`, the standard error of `totals` as a mean over random
            orders. NaN for a single order.

    Example:

    >>> from keras_xlnet.models import Scores
    >>> token_ids = [np.array([5, 17, 8]), np.array([6, 7])]
    >>> log_probs = [np.array([-2.0, -0.5, -1.0]), np.array([np.nan, -3.0])]
    >>> Scores(token_ids, log_probs, np.array([-3.5, -3.0]), np.array([np.nan, np.nan]))
    Scores
      total  tokens  perplexity  bits per token
       -3.5       3       3.211           1.683
       -3.0       1       20.09           4.328
    """

    token_ids: list[np.ndarray]
    log_probs: list[np.ndarray]
    totals: np.ndarray
    standard_errors: np.ndarray

    def __repr__(self) -> str:
        perplexities = self.perplexities
        columns = {
            "total": self.totals,
            "tokens": self._num_scored,
            "perplexity": perplexities,
            "bits per token": np.log2(perplexities),
        }
        if not np.isnan(self.standard_errors).all():
            columns["standard error"] = self.standard_errors
        return titled("Scores", table(columns))

    @property
    def perplexities(self) -> np.ndarray:
        """Array `(texts,)`, `exp(-total / tokens)`. NaN for texts without a scored token."""
        count = np.where(self._num_scored, self._num_scored, np.nan)
        return np.exp(-self.totals / count)

    @property
    def _num_scored(self):
        return np.array([(~np.isnan(row)).sum() for row in self.log_probs])


def score_orders(
    run: Callable[[dict[str, np.ndarray]], np.ndarray],
    rows: Sequence[np.ndarray],
    order: str | Sequence[Any] = "left_to_right",
    num_orders: int = 1,
    batch_size: int = 16,
    seed: int = 0,
    special_ids: tuple[int, int] = SPECIALS,
) -> Scores:
    """Scores texts as `XLNetPermutationLM.score` describes.

    Args:
        run: Function of `ordered_features` to log-probabilities `(rows, length)`.
        rows: List of int arrays, the tokens.
        order, num_orders, batch_size, seed: As in that method.
        special_ids: As in `ordered_features`.
    """
    ranks = _ranks_of(rows, order, check_positive_int("num_orders", num_orders), seed)
    num_orders = len(ranks[0])
    repeated = [row for row in rows for _ in range(num_orders)]
    flat = [order for orders in ranks for order in orders]
    found = []
    for i in range(0, len(flat), batch_size):
        batch = repeated[i : i + batch_size]
        log_probs = run(ordered_features(batch, flat[i : i + batch_size], special_ids))
        found += [values[: len(row)] for values, row in zip(log_probs, batch, strict=True)]
    by_order = [np.stack(found[i * num_orders : (i + 1) * num_orders]) for i in range(len(rows))]
    return _scores(rows, by_order)


def ordered_features(
    rows: Sequence[np.ndarray],
    ranks: Sequence[np.ndarray],
    special_ids: tuple[int, int] = SPECIALS,
) -> dict[str, np.ndarray]:
    """Returns the inputs of a model in which a token sees the tokens of lower rank.

    The tokens of a text are followed by `<sep>` and `<cls>`, as in pretraining. They come before
    all others in the order: the first token of the order sees only them.

    Args:
        rows: List of int arrays, the tokens.
        ranks: List of int arrays, the rank of each token, from 0. Tokens of rank -1 are given:
            they see each other, and all tokens see them.
        special_ids: The ids of `<sep>` and `<cls>`.

    Returns:
        A dict of arrays `(rows, length)`.
    """

    def padded(values, of_specials):
        return pad_rows([np.append(v, of_specials).astype("int32") for v in values])

    return {
        "token_ids": padded(rows, special_ids),
        "segment_ids": padded([np.zeros_like(row) for row in rows], SPECIAL_SEGMENTS),
        "padding_mask": padded([np.ones_like(row) for row in rows], (1, 1)).astype(bool),
        "ranks": padded(ranks, (-1, -1)),
    }


def _ranks_of(rows, order, num_orders, seed):
    """A list of rank arrays for each row."""
    if not isinstance(order, str):
        return _given_ranks(rows, order)
    check_choice("order", order, _ORDERS)
    if order != "random" and num_orders > 1:
        raise ValueError(
            f"`num_orders` is for `order='random'`. Received: order={order!r}, "
            f"num_orders={num_orders}"
        )
    if order == "left_to_right":
        return [[np.arange(len(row))] for row in rows]
    if order == "right_to_left":
        return [[np.arange(len(row))[::-1]] for row in rows]
    # A generator for each text and order, so that the other texts make no difference.
    return [
        [np.random.default_rng((seed, i, k)).permutation(len(row)) for k in range(num_orders)]
        for i, row in enumerate(rows)
    ]


def _given_ranks(rows, order):
    if len(order) != len(rows):
        raise ValueError(
            f"`order` must have the ranks of each of the {len(rows)} texts. Received: {len(order)}"
        )
    for i, (row, ranks) in enumerate(zip(rows, order, strict=True)):
        if sorted(np.asarray(ranks).tolist()) != list(range(len(row))):
            raise ValueError(
                f"`order` must have each rank from 0 to {len(row) - 1} once in row {i}, which has "
                f"{len(row)} tokens. Received: {ranks!r}"
            )
    return [[np.asarray(ranks)] for ranks in order]


def _scores(rows, by_order):
    """`Scores` of arrays `(orders, length)`, one per text."""
    totals = [np.nansum(found.astype("float64"), axis=1) for found in by_order]
    count = len(totals[0])
    return Scores(
        token_ids=rows,
        log_probs=[found.mean(axis=0) for found in by_order],
        totals=np.array([total.mean() for total in totals]),
        standard_errors=np.array(
            [t.std(ddof=1) / np.sqrt(count) if count > 1 else np.nan for t in totals]
        ),
    )


def score_segments(
    run: Callable[[dict[str, Any]], dict[str, np.ndarray]],
    rows: Sequence[np.ndarray],
    empty_memory: Callable[[int], dict[str, Any]],
    vocabulary_size: int,
    start_token_id: int | None = None,
    segment_length: int = 512,
    batch_size: int = 16,
) -> Scores:
    """Scores texts as `TransformerXLLanguageModel.score` describes.

    Args:
        run: Function of `token_ids`, `padding_mask` and `labels` `(rows, length)`, and of memory,
            to `log_probs` `(rows, length)` and the next memory.
        rows: List of int arrays, the tokens.
        empty_memory: Function of the number of rows to the memory of a first segment; an empty
            dict for a model without memory.
        vocabulary_size: Int, the number of ids of the model.
        start_token_id, segment_length, batch_size: As in that method.
    """
    check_positive_int("segment_length", segment_length)
    if start_token_id is not None:
        start_token_id = check_token_id("start_token_id", start_token_id, vocabulary_size)
    found = []
    for i in range(0, len(rows), batch_size):
        batch = rows[i : i + batch_size]
        found += score_segments_of_batch(
            run, batch, empty_memory(len(batch)), start_token_id, segment_length
        )["log_probs"]
    return _scores(rows, [row[None] for row in found])


def score_segments_of_batch(
    run: Callable[[dict[str, Any]], dict[str, np.ndarray]],
    rows: Sequence[np.ndarray],
    memory: dict[str, Any],
    start_token_id: int | None,
    segment_length: int,
) -> dict[str, list[np.ndarray]]:
    """Scores a batch of texts; the arguments are as in `score_segments`.

    Args:
        memory: The memory of a first segment.

    Returns:
        A dict of lists with an array for each text: `log_probs`, and `is_best` if `run` returns
        it. Without a `start_token_id` the first token is given, and has NaN.
    """
    start = [] if start_token_id is None else [start_token_id]
    texts = [np.concatenate([np.asarray(start, "int32"), row]) for row in rows]
    longest = max(1, max(len(text) for text in texts) - 1)
    # Without memory, a text is one segment.
    step = segment_length if memory and longest > segment_length else rounded(longest)
    num_segments = max(1, -(-longest // step))
    token_ids = pad_rows([text[:-1] for text in texts], num_segments * step)
    labels = pad_rows([text[1:] for text in texts], num_segments * step)
    mask = np.arange(token_ids.shape[1]) < np.array([[len(text) - 1] for text in texts])
    arrays = {"token_ids": token_ids, "padding_mask": mask, "labels": labels}
    segments = []
    for first in range(0, token_ids.shape[1], step):
        segment = {name: array[:, first : first + step] for name, array in arrays.items()}
        outputs = dict(run({**segment, **memory}))
        memory = {name: outputs.pop(name) for name in memory}
        segments.append(outputs)
    given = np.full(1 - len(start), np.nan, "float32")
    return {
        name: [
            np.concatenate([given, row[: len(text) - 1]])
            for row, text in zip(
                np.concatenate([outputs[name] for outputs in segments], axis=1), texts, strict=True
            )
        ]
        for name in segments[0]
    }
