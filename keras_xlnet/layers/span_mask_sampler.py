from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.arguments import check_choice, check_positive_int
from keras_xlnet.compat.replica_seed_generator import ReplicaSeedGenerator
from keras_xlnet.layers.configured_layer import ConfiguredLayer
from keras_xlnet.ops.spans import fill_targets, max_spans, span_targets
from keras_xlnet.registration import register
from keras_xlnet.types import Tensor


@register
class SpanMaskSampler(ConfiguredLayer):
    """A random choice of the tokens to predict: spans of words, then single tokens.

    A span has `n` words, `n` from 1 to `max_gram` with a probability proportional to `1 / n`, and
    is placed at random in a window of `n * alpha / beta` tokens. Spans are drawn from the start of
    the sequence to its end. Single tokens are added until each row has exactly `num_predictions`
    targets.

    Args:
        num_predictions: Int, the number of tokens to choose in each row. `None` for all tokens of
            the spans that fit into the sequence, a different number in each row.
        max_gram: Int, the length of the longest span.
        alpha: Int. About `beta` of `alpha` tokens are chosen.
        beta: Int, at most `alpha`.
        unit: The unit of the length of a span. `"word"`: whole words, as in the paper; words that
            do not fit at the end are skipped. `"piece"`: a span starts at a word and has `n`
            sub-words, as in the training of the released models. `"token"`: no spans, only single
            tokens.
        seed: Optional int that fixes the choice. Every replica of a strategy draws its own.

    Call arguments:
        word_starts: Bool tensor `(batch, length)`, `True` where a token begins a word.
        candidates: Optional bool tensor `(batch, length)`, `True` where a token may be chosen,
            `False` for padding, `<sep>` and `<cls>`. By default all may.
        reverse: Optional bool tensor `(batch,)`, `True` for rows of text in reverse (the backward
            half of bidirectional data).
        draws: Optional float tensor `(batch, num_draws(length))`, uniform random numbers in
            [0, 1). Drawn by default.

    Returns:
        Bool tensor `(batch, length)`, `True` for targets.

    Raises:
        ValueError: If there are fewer than `num_predictions` tokens to choose from. In a graph,
            where only the length is known, all candidates of such a row are chosen.

    Example:

    >>> sampler = keras_xlnet.layers.SpanMaskSampler(num_predictions=2, seed=0)
    >>> word_starts = np.array([[True, False, True, True, False, True, True, False]])
    >>> targets = sampler(word_starts)
    >>> int(keras.ops.sum(targets))
    2

    Source: Yang et al. 2019 (XLNet), appendix A.4; zihangdai/xlnet, `_sample_mask`, which counts
    pieces instead of words.
    """

    def __init__(
        self,
        num_predictions: int | None,
        max_gram: int = 5,
        alpha: int = 6,
        beta: int = 1,
        unit: str = "word",
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"autocast": False, **kwargs})
        if num_predictions is not None:
            check_positive_int("num_predictions", num_predictions)
        elif unit == "token":
            raise ValueError("`unit='token'` needs a number. Received: num_predictions=None")
        self.num_predictions = num_predictions
        self.max_gram = check_positive_int("max_gram", max_gram)
        self.alpha = check_positive_int("alpha", alpha)
        self.beta = check_positive_int("beta", beta)
        if beta > alpha:
            raise ValueError(
                "`beta` targets cannot be chosen in `alpha` tokens if `beta > alpha`. "
                f"Received: alpha={alpha}, beta={beta}"
            )
        self.unit = check_choice("unit", unit, ("word", "piece", "token"))
        self.seed = seed
        self.seed_generator = ReplicaSeedGenerator(seed)

    def num_draws(self, length: int) -> int:
        """Returns the number of random numbers that a row of `length` tokens needs."""
        spans = 0 if self.unit == "token" else max_spans(length, self.alpha, self.beta)
        return length + 2 * spans

    def call(
        self,
        word_starts: Tensor,
        candidates: Tensor | None = None,
        reverse: Tensor | None = None,
        draws: Tensor | None = None,
    ) -> Tensor:
        batch_size, length = ops.shape(word_starts)
        self._check_length(length)
        word_starts = ops.cast(word_starts, "bool")
        if candidates is not None and _is_concrete(candidates):
            self._check_candidates(ops.convert_to_numpy(candidates))
        if draws is None:
            shape = (batch_size, self.num_draws(length))
            draws = keras.random.uniform(shape, dtype="float32", seed=self.seed_generator)
        return self._targets(ops, word_starts, candidates, reverse, ops.cast(draws, "float32"))

    def sample(
        self,
        word_starts: np.ndarray,
        candidates: np.ndarray | None = None,
        reverse: np.ndarray | None = None,
        draws: np.ndarray | np.random.Generator | None = None,
    ) -> np.ndarray:
        """Computes what a call does on NumPy arrays: the NumPy implementation.

        Args:
            word_starts, candidates, reverse: Arrays as in the call.
            draws: Random numbers as in the call, or a `numpy.random.Generator`.

        Returns:
            Bool array `(batch, length)`.

        Raises:
            ValueError: If there are fewer than `num_predictions` tokens to choose from.
        """
        word_starts = np.asarray(word_starts, "bool")
        self._check_length(word_starts.shape[1])
        if candidates is not None:
            candidates = np.asarray(candidates, "bool")
            self._check_candidates(candidates)
        if draws is None or isinstance(draws, np.random.Generator):
            rng = np.random.default_rng(self.seed) if draws is None else draws
            draws = rng.random((len(word_starts), self.num_draws(word_starts.shape[1])), "float32")
        return self._targets(np, word_starts, candidates, reverse, draws)

    def _targets(self, xp, word_starts, candidates, reverse, draws):
        if candidates is None:
            candidates = xp.ones_like(word_starts)
        candidates = xp.array(candidates, dtype="bool")
        if reverse is not None:
            reverse = xp.array(reverse, dtype="bool")[:, None]
            word_starts, candidates = (
                xp.where(reverse, xp.flip(x, axis=1), x) for x in (word_starts, candidates)
            )
        length = word_starts.shape[1]
        targets = xp.zeros_like(candidates)
        if self.unit != "token":
            targets = span_targets(
                word_starts,
                candidates,
                draws[:, length:],
                goal=length if self.num_predictions is None else self.num_predictions,
                max_gram=self.max_gram,
                alpha=self.alpha,
                beta=self.beta,
                unit=self.unit,
                xp=xp,
            )
        if self.num_predictions is not None:
            fill = draws[:, :length]
            targets = fill_targets(targets, candidates, fill, self.num_predictions, xp)
        if reverse is not None:
            targets = xp.where(reverse, xp.flip(targets, axis=1), targets)
        return targets

    def _check_length(self, length):
        if not isinstance(length, int):
            raise ValueError(
                "`word_starts` must have a static length, as the draws have a static shape. "
                f"Received: length={length}"
            )
        if length < (self.num_predictions or 0):
            raise ValueError(
                f"`num_predictions={self.num_predictions}` exceeds the length of `word_starts`, "
                f"{length}"
            )

    def _check_candidates(self, candidates):
        counts = candidates.astype("bool").sum(axis=1)
        if len(counts) and counts.min() < (self.num_predictions or 0):
            row = int(counts.argmin())
            raise ValueError(
                f"`num_predictions={self.num_predictions}` exceeds the number of `candidates`, "
                f"{counts[row]}, in row {row}"
            )

    def compute_output_spec(self, word_starts: Tensor, **kwargs: Any) -> keras.KerasTensor:
        return keras.KerasTensor(word_starts.shape, dtype="bool")


def _is_concrete(x):
    """Whether `x` has values, and is not a tensor of a graph."""
    if isinstance(x, np.ndarray):
        return True
    try:
        ops.convert_to_numpy(x)
    except Exception:  # Each backend raises an error of its own for a symbolic tensor.
        return False
    return True
