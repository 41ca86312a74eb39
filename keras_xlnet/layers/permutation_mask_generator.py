from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.compat.replica_seed_generator import ReplicaSeedGenerator
from keras_xlnet.layers.configured_layer import ConfiguredLayer
from keras_xlnet.ops.permutation import (
    factorization_ranks,
    first_targets,
    permutation_visibility,
    reachable,
)
from keras_xlnet.registration import register
from keras_xlnet.types import Tensor


@register
class PermutationMaskGenerator(ConfiguredLayer):
    """A random factorization order, and the masks, targets and labels that follow from it.

    Tokens that are not predicted come first in the order, so all tokens see them. Targets follow
    in a random order. Each sees the targets before it, but not itself. Functional tokens (`<sep>`,
    `<cls>`) have a random rank too, and are seen by the tokens of higher rank. They are never
    targets.

    Args:
        num_predictions: Int, the number of columns of `target_positions`. Further targets are
            treated as ordinary tokens. `None` for outputs of full length, with `target_mask` in
            place of `target_positions`.
        permutation_length: Int, the number of tokens that a permutation orders. A longer sequence
            (or half of it) is divided into such blocks, which keep their order. `None` for one
            block.
        reuse_length: Int, the position where the second half of the sequence starts. The first
            half, which is kept in memory, sees nothing of the second; the second sees all of the
            first. `None` for no halves.
        special_token_ids: Ints, the functional tokens; `<cls>` 3 and `<sep>` 4 by default.
        seed: Optional int that fixes the orders. Every replica of a strategy draws its own.

    Call arguments:
        token_ids: Int tensor `(batch, length)`.
        target_mask: Bool tensor `(batch, length)`, `True` for tokens to predict, such as
            `SpanMaskSampler` draws them.
        padding_mask: Optional bool tensor `(batch, length)`, `True` for real tokens. Others are
            neither predicted nor seen.
        permutations: Optional int tensor `(batch, halves, permutation_length)`: the order, as the
            rank of each position inside its block. Drawn by default.
        draws: Optional float tensor `(batch, num_draws(length))`, uniform random numbers from
            which the order is made. Drawn by default.

    Returns:
        A dict:

        - `permutation_mask`: bool `(batch, length, length)`, `[b, i, j]` is `True` where `i` may
          see `j`. No target sees itself; the content stream adds the diagonal.
        - `target_positions`: int32 `(batch, num_predictions)`, ascending, then 0 where a row has
          fewer targets; or `target_mask`: bool `(batch, length)`.
        - `labels`: int32 `(batch, num_predictions)`, or `(batch, length)`: the tokens.
        - `sample_weight`: float32 of the shape of `labels`, 0 where there is no target, and for a
          target that may see nothing: it would attend to all tokens, itself included.

    Raises:
        ValueError: If an argument is not as above, or a length does not fit the arguments.

    Example:

    >>> generator = keras_xlnet.layers.PermutationMaskGenerator(num_predictions=2, seed=0)
    >>> features = generator(np.array([[9, 8, 7, 6]]), np.array([[True, False, True, False]]))
    >>> print(keras.ops.convert_to_numpy(features["target_positions"]))
    [[0 2]]
    >>> print(keras.ops.convert_to_numpy(features["labels"]))
    [[9 7]]
    >>> generator.verify(features["permutation_mask"], features["target_positions"])
    0

    Source: Yang et al. 2019 (XLNet), sections 2.2 and 2.3; zihangdai/xlnet, `_local_perm`.
    """

    def __init__(
        self,
        num_predictions: int | None = None,
        permutation_length: int | None = None,
        reuse_length: int | None = None,
        special_token_ids: Sequence[int] = (3, 4),
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"autocast": False, **kwargs})
        for name, value in (
            ("num_predictions", num_predictions),
            ("permutation_length", permutation_length),
            ("reuse_length", reuse_length),
        ):
            if value is not None:
                check_positive_int(name, value)
        self.num_predictions = num_predictions
        self.permutation_length = permutation_length
        self.reuse_length = reuse_length
        self.special_token_ids = tuple(int(i) for i in special_token_ids)
        self.seed = seed
        self.seed_generator = ReplicaSeedGenerator(seed)

    def num_draws(self, length: int) -> int:
        """Returns the number of random numbers that a row of `length` tokens needs."""
        halves, permutation_length = self._block_lengths(length)
        return len(halves) * permutation_length

    def call(
        self,
        token_ids: Tensor,
        target_mask: Tensor,
        padding_mask: Tensor | None = None,
        permutations: Tensor | None = None,
        draws: Tensor | None = None,
    ) -> dict[str, Tensor]:
        batch_size, length = ops.shape(token_ids)
        halves, permutation_length = self._block_lengths(length)
        if permutations is None:
            shape = (batch_size, len(halves) * permutation_length)
            if draws is None:
                draws = keras.random.uniform(shape, dtype="float32", seed=self.seed_generator)
            shape = (batch_size, len(halves), permutation_length)
            permutations = ops.argsort(ops.reshape(draws, shape), axis=-1)
        return self._features(ops, token_ids, target_mask, padding_mask, permutations, halves)

    def generate(
        self,
        token_ids: np.ndarray,
        target_mask: np.ndarray,
        padding_mask: np.ndarray | None = None,
        permutations: np.ndarray | None = None,
        draws: np.ndarray | np.random.Generator | None = None,
    ) -> dict[str, np.ndarray]:
        """Computes what a call does on NumPy arrays: the NumPy implementation.

        Args:
            token_ids, target_mask, padding_mask, permutations: Arrays as in the call.
            draws: Random numbers as in the call, or a `numpy.random.Generator`.

        Returns:
            A dict of arrays as in the call.
        """
        token_ids = np.asarray(token_ids)
        halves, permutation_length = self._block_lengths(token_ids.shape[1])
        shape = (len(token_ids), len(halves), permutation_length)
        if permutations is None:
            if draws is None or isinstance(draws, np.random.Generator):
                rng = np.random.default_rng(self.seed) if draws is None else draws
                draws = rng.random(shape, "float32")
            permutations = np.argsort(np.reshape(draws, shape), axis=-1)
        permutations = np.broadcast_to(permutations, shape)
        return self._features(np, token_ids, target_mask, padding_mask, permutations, halves)

    def _features(self, xp, token_ids, target_mask, padding_mask, permutations, halves):
        token_ids = xp.array(token_ids, dtype="int32")
        targets = xp.array(target_mask, dtype="bool")
        special = xp.array(self.special_token_ids, dtype="int32")
        functional = xp.any(token_ids[:, :, None] == special, axis=2)
        targets = xp.logical_and(targets, xp.logical_not(functional))
        if padding_mask is not None:
            padding_mask = xp.array(padding_mask, dtype="bool")
            targets = xp.logical_and(targets, padding_mask)
        if self.num_predictions is not None:
            count = xp.cumsum(xp.array(targets, dtype="int32"), axis=1)
            targets = xp.logical_and(targets, count <= self.num_predictions)
        ranks = factorization_ranks(xp.array(permutations, dtype="int32"), halves, xp)
        mask = permutation_visibility(ranks, targets, functional, halves, xp)
        if padding_mask is not None:
            mask = xp.logical_and(mask, padding_mask[:, None, :])
        seen = xp.logical_and(targets, xp.any(mask, axis=2))
        if self.num_predictions is None:
            rows = {"target_mask": targets, "labels": token_ids}
        else:
            positions, is_target = first_targets(targets, self.num_predictions, xp)
            labels = xp.take_along_axis(token_ids, positions, axis=1)
            rows = {"target_positions": positions, "labels": xp.where(is_target, labels, 0)}
            seen = xp.logical_and(is_target, xp.take_along_axis(seen, positions, axis=1))
        return {
            "permutation_mask": mask,
            **rows,
            "sample_weight": xp.array(seen, dtype="float32"),
        }

    def _block_lengths(self, length):
        """The lengths of the halves, and the length of a permutation."""
        if not isinstance(length, int):
            raise ValueError(f"`token_ids` must have a known length. Received: length={length}")
        halves = [length]
        if self.reuse_length is not None:
            if self.reuse_length >= length:
                raise ValueError(
                    "`reuse_length` must be less than the length of `token_ids`. Received: "
                    f"reuse_length={self.reuse_length}, length {length}"
                )
            halves = [self.reuse_length, length - self.reuse_length]
        if self.num_predictions is not None and self.num_predictions > length:
            raise ValueError(
                "`num_predictions` must not exceed the length of `token_ids`. Received: "
                f"num_predictions={self.num_predictions}, length {length}"
            )
        permutation_length = self.permutation_length or min(halves)
        if any(half % permutation_length for half in halves):
            raise ValueError(
                "`permutation_length` must divide the length of (each half of) `token_ids`. "
                f"Received: permutation_length={permutation_length}, lengths {halves}"
            )
        return halves, permutation_length

    @staticmethod
    def verify(
        permutation_mask: Tensor,
        target_positions: Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> int:
        """Counts the targets whose own content reaches them, through any number of layers.

        A query row that may see nothing attends to all tokens, so it counts as seeing all.

        Args:
            permutation_mask: `(batch, length, length)`, `True` where `i` may see `j`.
            target_positions: `(batch, num_predictions)` ints. `None` for all positions.
            sample_weight: Optional `(batch, num_predictions)`: targets of weight 0 are not counted.

        Returns:
            Int, the number of leaks. 0 proves that nothing leaks.
        """
        mask = ops.convert_to_numpy(permutation_mask).astype("bool")
        reach = reachable(mask)
        seen = np.where(mask.any(axis=2, keepdims=True), mask, True)
        # A query row sees a token together with everything that reaches that token.
        sees_itself = np.any(np.logical_and(seen, np.swapaxes(reach, 1, 2)), axis=2)
        if target_positions is not None:
            positions = ops.convert_to_numpy(target_positions)
            sees_itself = np.take_along_axis(sees_itself, positions, axis=1)
        if sample_weight is not None:
            weight = ops.convert_to_numpy(sample_weight)
            sees_itself = np.logical_and(sees_itself, weight > 0)
        return int(np.sum(sees_itself))

    def compute_output_spec(
        self, token_ids: Tensor, target_mask: Tensor, **kwargs: Any
    ) -> dict[str, keras.KerasTensor]:
        batch_size, length = token_ids.shape
        name, columns, dtype = "target_positions", self.num_predictions, "int32"
        if columns is None:
            name, columns, dtype = "target_mask", length, "bool"
        return {
            "permutation_mask": keras.KerasTensor((batch_size, length, length), dtype="bool"),
            name: keras.KerasTensor((batch_size, columns), dtype=dtype),
            "labels": keras.KerasTensor((batch_size, columns), dtype="int32"),
            "sample_weight": keras.KerasTensor((batch_size, columns), dtype="float32"),
        }
