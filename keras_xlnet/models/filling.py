"""Fills blanks of texts with a permutation language model: jointly, and each on its own.

    p(x[a], x[b] | rest) = p(x[a] | rest) p(x[b] | x[a], rest)      joint
    p(x[a] | rest) p(x[b] | rest)                                   independent, as BERT

Source: Yang et al. 2019 (XLNet), sections 2.1 and 2.6, the example "New York is a city".
"""

import dataclasses
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.models.scoring import check_orders, new_inputs, predict, special_ids, visible
from keras_xlnet.preprocessing.scores import ordered_features
from keras_xlnet.preprocessing.token_lists import as_token_lists
from keras_xlnet.results import Result, table, titled
from keras_xlnet.types import Tokenizer

MASK = "<mask>"
_MASK_ID = 6


@dataclasses.dataclass(frozen=True, repr=False)
class Filling(Result):
    """One way to fill the blanks of a text.

    Args:
        token_ids: Int array `(blanks,)`, the tokens in the blanks.
        log_prob: Float, the joint log-probability of these tokens given the rest of the text.
        independent_log_prob: Float, the sum of their log-probabilities if each blank is predicted
            without the others.
        text: String, the whole text; `None` for token ids without a tokenizer.

    Example:

    >>> from keras_xlnet.models import Filling
    >>> Filling(np.array([11, 12]), -0.5, -2.3)
    Filling(token_ids=[11, 12], log_prob=-0.5, independent_log_prob=-2.3)
    """

    token_ids: np.ndarray
    log_prob: float
    independent_log_prob: float
    text: str | None = None


@dataclasses.dataclass(frozen=True, repr=False)
class Fillings(Result):
    """The best ways to fill the blanks of a text.

    Args:
        joint: List of `Filling`s, the most probable together first.
        independent: List of `Filling`s, the most probable if each blank is predicted without the
            others first.

    Example:

    >>> from keras_xlnet.models import Filling, Fillings
    >>> york = Filling(np.array([11, 12]), -0.5, -2.3, "New York is a city")
    >>> angeles = Filling(np.array([13, 14]), -1.6, -2.5, "Los Angeles is a city")
    >>> mixed = Filling(np.array([11, 14]), -9.0, -2.4, "New Angeles is a city")
    >>> Fillings([york, angeles], [york, mixed])
    Fillings, together
      probability  each alone  text
           0.6065      0.1003  'New York is a city'
           0.2019     0.08208  'Los Angeles is a city'
    Fillings, each alone
      probability  each alone  text
           0.6065      0.1003  'New York is a city'
        0.0001234     0.09072  'New Angeles is a city'
    """

    joint: list[Filling]
    independent: list[Filling]

    def __repr__(self) -> str:
        tables = {"together": self.joint, "each alone": self.independent}
        return "\n".join(
            titled(f"Fillings, {name}", _table(found)) for name, found in tables.items()
        )


def _table(fillings):
    columns = {
        "probability": np.exp([filling.log_prob for filling in fillings]),
        "each alone": np.exp([filling.independent_log_prob for filling in fillings]),
        "text": [f.token_ids if f.text is None else f.text for f in fillings],
    }
    return table(columns, most_rows=5)


def fill_blanks(
    model: keras.Model,
    texts: Any,
    tokenizer: Tokenizer | None = None,
    num_results: int = 5,
    beam_size: int = 20,
) -> Any:
    """Fills blanks as `XLNetPermutationLM.fill` describes."""
    check_orders(model)
    check_positive_int("num_results", num_results)
    beam_size = max(num_results, check_positive_int("beam_size", beam_size))
    if isinstance(texts, (str, bytes)):
        return fill_blanks(model, [texts], tokenizer, num_results, beam_size)[0]
    rows = [_row_with_blanks(i, text, model, tokenizer) for i, text in enumerate(texts)]
    return [
        _fill_row(model, row, blanks, tokenizer, num_results, beam_size) for row, blanks in rows
    ]


def _row_with_blanks(place, text, model, tokenizer):
    """Token ids, and the positions of the blanks among them."""
    if isinstance(text, bytes):
        text = text.decode()
    if isinstance(text, str):
        ids, blanks = _tokenize(text, tokenizer)
        (row,) = as_token_lists([ids], model.backbone.vocabulary_size)
    else:
        (row,) = as_token_lists([text], model.backbone.vocabulary_size)
        blanks = np.flatnonzero(row == _MASK_ID)
    if not len(blanks):
        raise ValueError(f"`texts` must have blanks, {MASK!r}. Received in row {place}: {text!r}")
    return row, blanks


def _tokenize(text, tokenizer):
    if tokenizer is None:
        raise ValueError("`texts` contains strings: pass `tokenizer=` or token ids")
    if hasattr(tokenizer, "split_at_blanks"):
        parts = tokenizer.split_at_blanks(text, MASK)
    else:
        parts = [np.asarray(tokenizer(part)) if part.strip() else [] for part in text.split(MASK)]
    ids, blanks = [*parts[0]], []
    for part in parts[1:]:
        blanks.append(len(ids))
        ids += [_MASK_ID, *part]  # No other token sees a blank.
    return np.asarray(ids, "int32"), np.array(blanks, "int32")


def _fill_row(model, row, blanks, tokenizer, num_results, beam_size):
    marginals = _log_probs_of_blanks(model, row[None], blanks, np.zeros(len(blanks), "int32"))[0]
    joint = _search(
        len(blanks), beam_size, lambda known: _next_log_probs(model, row, blanks, known)
    )
    alone = _search(len(blanks), beam_size, lambda known: marginals[known.shape[1]][None])

    def finished(candidates):
        tokens = np.array([tokens for tokens, _ in candidates[:num_results]])
        together = _joint_log_probs(model, row, blanks, tokens)
        apart = marginals[np.arange(len(blanks)), tokens].sum(axis=1)
        return [
            Filling(t, float(j), float(i), _text(row, blanks, t, tokenizer))
            for t, j, i in zip(tokens, together, apart, strict=True)
        ]

    return Fillings(finished(joint), finished(alone))


def _search(num_blanks, beam_size, next_log_probs):
    """The most probable tokens, `[(tokens, log-probability)]`, by beam search."""
    known, totals = np.zeros((1, 0), "int32"), np.zeros(1)
    for _ in range(num_blanks):
        candidates = totals[:, None] + next_log_probs(known)
        best = np.argsort(-candidates, axis=None, kind="stable")[:beam_size]
        beams, tokens = np.unravel_index(best, candidates.shape)
        known = np.concatenate([known[beams], tokens[:, None].astype("int32")], axis=1)
        totals = candidates[beams, tokens]
    return list(zip(known, totals, strict=True))


def _next_log_probs(model, row, blanks, known):
    """`(beams, vocabulary_size)`: log-probabilities for the blank after the known ones."""
    step = known.shape[1]
    rows = np.repeat(row[None], len(known), axis=0)
    rows[:, blanks[:step]] = known
    # Filled blanks are given, like the rest of the text.
    ranks = np.where(np.arange(len(blanks)) < step, -1, 0)
    return _log_probs_of_blanks(model, rows, blanks, ranks, blanks[step : step + 1])[:, 0]


def _joint_log_probs(model, row, blanks, tokens):
    """The joint log-probability of each way to fill the blanks, from left to right."""
    total = np.zeros(len(tokens))
    for step in range(len(blanks)):
        found = _next_log_probs(model, row, blanks, tokens[:, :step])
        total += found[np.arange(len(tokens)), tokens[:, step]]
    return total


def _log_probs_of_blanks(model, rows, blanks, ranks_of_blanks, positions=None):
    """`(rows, positions, vocabulary_size)`: log-probabilities for some of the blanks."""
    positions = blanks if positions is None else positions
    ranks = np.full(rows.shape[1], -1)
    ranks[blanks] = ranks_of_blanks
    features = ordered_features(list(rows), [ranks] * len(rows), special_ids(model))
    features["target_positions"] = np.tile(positions, (len(rows), 1)).astype("int32")
    return predict(_predictor(model), features).astype("float64")


def _predictor(model):
    """A functional model from the features of rows to log-probabilities at target positions."""
    if "predictor" not in model.derived:
        inputs = new_inputs()
        inputs["target_positions"] = keras.Input((None,), dtype="int32", name="target_positions")
        others = {key: value for key, value in inputs.items() if key != "ranks"}
        logits = model({**others, "permutation_mask": visible(inputs["ranks"])})["logits"]
        model.derived["predictor"] = keras.Model(inputs, ops.log_softmax(logits))
    return model.derived["predictor"]


def _text(row, blanks, tokens, tokenizer):
    if tokenizer is None:
        return None
    filled = row.copy()
    filled[blanks] = tokens
    return tokenizer.decode(filled)
