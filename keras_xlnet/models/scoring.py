"""Log-probabilities of texts under a language model.

    log p(x) = sum over t of log p(x[z[t]] | x[z[1]], ..., x[z[t-1]])    for an order z

A permutation language model has such a factorization for every order z of the tokens; a causal one
for the order of the text.

Source: Yang et al. 2019 (XLNet), section 2.2.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.arguments import check_choice, check_positive_int, check_token_id
from keras_xlnet.models.task_graph import check_backbone
from keras_xlnet.preprocessing.token_lists import as_token_lists, pad_rows, predict, rounded
from keras_xlnet.results import Result, table, titled
from keras_xlnet.types import Tensor

_ORDERS = ("left_to_right", "right_to_left", "random")
# `<sep>` and `<cls>`, and their segments: a text ends with them in pretraining, `[A, SEP, CLS]`.
_SPECIALS, _SPECIAL_SEGMENTS = (4, 3), (0, 2)


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


def score_permutations(
    model: keras.Model,
    texts: Any,
    tokenizer: Callable[..., Any] | None = None,
    order: str | Sequence[Any] = "left_to_right",
    num_orders: int = 1,
    batch_size: int = 16,
    seed: int = 0,
) -> Scores:
    """Scores texts as `XLNetPermutationLM.score` describes."""
    check_orders(model)
    rows = as_token_lists(texts, model.backbone, tokenizer)
    ranks = _ranks_of(rows, order, check_positive_int("num_orders", num_orders), seed)
    num_orders = len(ranks[0])
    repeated = [row for row in rows for _ in range(num_orders)]
    flat = [order for orders in ranks for order in orders]
    found = []
    for i in range(0, len(flat), batch_size):
        batch = slice(i, i + batch_size)
        found += score_with_ranks(model, repeated[batch], flat[batch])["log_probs"]
    by_order = [np.stack(found[i * num_orders : (i + 1) * num_orders]) for i in range(len(rows))]
    return _scores(rows, by_order)


def score_with_ranks(
    model: keras.Model, rows: Sequence[np.ndarray], ranks: Sequence[np.ndarray]
) -> dict[str, list[np.ndarray]]:
    """Scores a batch of texts with a permutation language model.

    Args:
        model: The model.
        rows, ranks: As in `ordered_features`.

    Returns:
        A dict of lists with an array for each text: `log_probs` of its tokens, and `is_best`,
        whether each of them is the most probable one. The values of given tokens mean nothing.
    """
    outputs = predict(permutation_scorer(model), ordered_features(rows, ranks))
    return {
        key: [found[: len(row)] for found, row in zip(values, rows, strict=True)]
        for key, values in outputs.items()
    }


def ordered_features(
    rows: Sequence[np.ndarray], ranks: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Returns the inputs of a model in which a token sees the tokens of lower rank.

    The tokens of a text are followed by `<sep>` and `<cls>`, as in pretraining. They come before
    all others in the order: the first token of the order sees only them.

    Args:
        rows: List of int arrays, the tokens.
        ranks: List of int arrays, the rank of each token, from 0. Tokens of rank -1 are given:
            they see each other, and all tokens see them.

    Returns:
        A dict of arrays `(rows, length)`.
    """

    def padded(values, of_specials):
        return pad_rows([np.append(v, of_specials).astype("int32") for v in values])

    return {
        "token_ids": padded(rows, _SPECIALS),
        "segment_ids": padded([np.zeros_like(row) for row in rows], _SPECIAL_SEGMENTS),
        "padding_mask": padded([np.ones_like(row) for row in rows], (1, 1)).astype(bool),
        "ranks": padded(ranks, (-1, -1)),
    }


def left_to_right_features(token_ids: Tensor, padding_mask: Tensor) -> dict[str, Tensor]:
    """Returns what `ordered_features` does for the order of the text, of tensors.

    Args:
        token_ids: `(rows, length)` int32, padded on the right.
        padding_mask: `(rows, length)` bool, `True` for real tokens.

    Returns:
        A dict of tensors `(rows, length + 2)`.
    """
    index = ops.arange(ops.shape(token_ids)[1] + len(_SPECIALS), dtype="int32")[None]
    # Below 0 for tokens, 0 for `<sep>`, 1 for `<cls>`, and above for padding.
    place = index - ops.sum(ops.cast(padding_mask, "int32"), axis=1, keepdims=True)
    token_ids = ops.pad(token_ids, ((0, 0), (0, len(_SPECIALS))))
    segment_ids = ops.zeros_like(token_ids)
    for i, (token_id, segment_id) in enumerate(zip(_SPECIALS, _SPECIAL_SEGMENTS, strict=True)):
        token_ids = ops.where(place == i, token_id, token_ids)
        segment_ids = ops.where(place == i, segment_id, segment_ids)
    return {
        "token_ids": token_ids,
        "segment_ids": segment_ids,
        "padding_mask": place < len(_SPECIALS),
        "ranks": ops.where(place < 0, index, -1),
    }


def new_inputs() -> dict[str, keras.KerasTensor]:
    """Returns symbolic inputs for the arrays of `ordered_features`, by name."""
    return {
        key: keras.Input((None,), dtype="bool" if key == "padding_mask" else "int32", name=key)
        for key in ("token_ids", "segment_ids", "padding_mask", "ranks")
    }


def check_orders(model: keras.Model) -> None:
    """Raises `ValueError` if a permutation language model cannot predict in any order."""
    if model.objective != "permutation":
        raise ValueError(
            "Texts are scored with `objective='permutation'`: with 'denoising' a model has no "
            f"factorization. Received: a model with objective={model.objective!r}"
        )
    if model.stateful:
        raise ValueError(
            "Texts are scored without memory: use "
            "`model.with_arguments(stateful=False, batch_size=None)`"
        )
    check_backbone(model.backbone)


def visible(ranks: Tensor) -> Tensor:
    """Returns `(batch, length, length)` bool, `True` where a token may see another.

    Args:
        ranks: `(batch, length)`, as in `ordered_features`.
    """
    ranks_i, ranks_j = ops.expand_dims(ranks, 2), ops.expand_dims(ranks, 1)
    return ops.logical_or(ranks_j < ranks_i, ranks_j < 0)


def permutation_scorer(model: keras.Model) -> keras.Model:
    """A functional model from the features of rows to `log_probs` of their tokens and `is_best`."""
    if "scorer" not in model.derived:
        inputs = new_inputs()
        others = {key: value for key, value in inputs.items() if key != "ranks"}
        positions = ops.cumsum(ops.ones_like(inputs["token_ids"]), axis=1) - 1
        logits = model(
            {
                **others,
                "permutation_mask": visible(inputs["ranks"]),
                "target_positions": positions,
            }
        )["logits"]
        outputs = _with_is_best(ops.log_softmax(logits), inputs["token_ids"])
        model.derived["scorer"] = keras.Model(inputs, outputs)
    return model.derived["scorer"]


def take_tokens(log_probs: Tensor, token_ids: Tensor) -> Tensor:
    """`(batch, length, vocabulary_size)` -> `(batch, length)`, the value of each token."""
    return ops.squeeze(ops.take_along_axis(log_probs, ops.expand_dims(token_ids, -1), axis=-1), -1)


def _with_is_best(log_probs, token_ids):
    """The values of the tokens, and whether no other token has a larger one."""
    of_tokens = take_tokens(log_probs, token_ids)
    return {"log_probs": of_tokens, "is_best": of_tokens >= ops.max(log_probs, axis=-1)}


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


# === Causal ===


def score_causally(
    model: keras.Model,
    texts: Any,
    tokenizer: Callable[..., Any] | None = None,
    start_token_id: int | None = None,
    segment_length: int = 512,
    batch_size: int = 16,
) -> Scores:
    """Scores texts as `TransformerXLLanguageModel.score` describes."""
    rows = as_token_lists(texts, model, tokenizer)
    check_positive_int("segment_length", segment_length)
    if start_token_id is not None:
        start_token_id = check_token_id("start_token_id", start_token_id, model.vocabulary_size)
    found = []
    for i in range(0, len(rows), batch_size):
        found += score_in_segments(model, rows[i : i + batch_size], start_token_id, segment_length)[
            "log_probs"
        ]
    return _scores(rows, [row[None] for row in found])


def score_in_segments(
    model: keras.Model,
    rows: Sequence[np.ndarray],
    start_token_id: int | None,
    segment_length: int,
    find_best: bool = False,
) -> dict[str, list[np.ndarray]]:
    """Scores a batch of texts with a causal language model.

    Args:
        model: A `TransformerXLLanguageModel` that is not stateful.
        rows: List of int arrays, the tokens.
        start_token_id, segment_length: As in `TransformerXLLanguageModel.score`.
        find_best: Bool, whether to find `is_best`, for which an adaptive softmax computes all
            clusters.

    Returns:
        What `score_with_ranks` does, but `is_best` only with `find_best`. Without a
        `start_token_id` the first token is given.
    """
    start = [] if start_token_id is None else [start_token_id]
    texts = [np.concatenate([np.asarray(start, "int32"), row]) for row in rows]
    longest = max(1, max(len(text) for text in texts) - 1)
    # Without memory, a text is one segment.
    step = segment_length if model.memory_length and longest > segment_length else rounded(longest)
    num_segments = max(1, -(-longest // step))
    token_ids = pad_rows([text[:-1] for text in texts], num_segments * step)
    labels = pad_rows([text[1:] for text in texts], num_segments * step)
    mask = np.arange(token_ids.shape[1]) < np.array([[len(text) - 1] for text in texts])
    scorer, memory, segments = causal_scorer(model, find_best), model.empty_memory(len(rows)), []
    for first in range(0, token_ids.shape[1], step):
        part = slice(first, first + step)
        outputs = predict(
            scorer,
            {
                "token_ids": token_ids[:, part],
                "padding_mask": mask[:, part],
                "labels": labels[:, part],
                **memory,
            },
        )
        memory = {key: outputs.pop(key) for key in memory}
        segments.append(outputs)
    given = np.full(1 - len(start), np.nan, "float32")
    return {
        key: [
            np.concatenate([given, row[: len(text) - 1]])
            for row, text in zip(
                np.concatenate([s[key] for s in segments], axis=1), texts, strict=True
            )
        ]
        for key in segments[0]
    }


def causal_scorer(model: keras.Model, find_best: bool = False) -> keras.Model:
    """A functional model from a segment, its labels and memory to `log_probs` of the labels, the
    next memory and, with `find_best`, `is_best`.
    """
    name = "best_scorer" if find_best else "scorer"
    if name not in model.derived:
        inputs = {
            key: keras.Input(spec.shape[1:], dtype=spec.dtype, name=key)
            for key, spec in model.input.items()
        }
        labels = keras.Input((None,), dtype="int32", name="labels")
        outputs = model(inputs)
        if find_best:
            found = _with_is_best(outputs["log_probs"], labels)
        else:
            found = {"log_probs": model.label_log_probs(outputs["sequence_output"], labels)}
        memory = {key: outputs[key] for key in ("memory", "memory_mask") if key in outputs}
        model.derived[name] = keras.Model({**inputs, "labels": labels}, {**found, **memory})
    return model.derived[name]


def last_token_scorer(model: keras.Model) -> keras.Model:
    """Returns a functional model from segments without memory to the log-probabilities of the
    label after the last token, `(batch, 1)`.

    Args:
        model: A `TransformerXLLanguageModel` without memory.
    """
    if "last_token_scorer" not in model.derived:
        inputs = {
            "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
            "padding_mask": keras.Input((None,), dtype="bool", name="padding_mask"),
        }
        labels = keras.Input((1,), dtype="int32", name="labels")
        hidden = model(inputs)["sequence_output"][:, -1:]
        log_probs = model.label_log_probs(hidden, labels)
        model.derived["last_token_scorer"] = keras.Model({**inputs, "labels": labels}, log_probs)
    return model.derived["last_token_scorer"]
