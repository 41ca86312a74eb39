import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_number
from keras_xlnet.layers.adaptive_embedding import ClusteredVocabulary
from keras_xlnet.registration import register
from keras_xlnet.types import Initializer, Shape, Tensor


@register
class AdaptiveSoftmax(ClusteredVocabulary):
    """A softmax over a large vocabulary, in clusters of tokens of similar frequency.

    Token ids are ordered by frequency, 0 the most frequent. The first cluster, the shortlist, is
    predicted together with one more class for each of the other clusters, the tails:

        log p(token) = log p_head(token)                              in the shortlist
        log p(token) = log p_head(tail i) + log p_i(token)            in tail i

    The loss computes a tail only for the tokens that are in it. Without `cutoffs` this is the
    usual softmax.

    Args:
        vocabulary_size: Int, number of token ids.
        hidden_dim: Int, width of the input.
        cutoffs: Increasing ints, the first ids of the second, third, ... cluster.
        div_val: Int, by which the width is divided from each cluster to the next.
        embedding_dim: Int, width that the input is projected to for the shortlist, and for all
            clusters with `div_val=1`. `None` for `hidden_dim`.
        tail_share: Float, the largest share of a batch's targets that a tail is computed for by
            itself. If more targets are in the tail, it is computed for all, with the same numbers.
        kernel_initializer: Initializer of all weights except biases. `None` for normal(0, 0.02).

    Call arguments:
        inputs: Tensor `(..., hidden_dim)`.
        targets: Optional int tensor `(...)`, token ids.
        tables, projections: Optional lists of the tensors that `AdaptiveEmbedding` returns with
            `return_weights=True`: the weights are shared. `projections` may hold `None` for
            clusters that have their own. By default the layer has its own.

    Returns:
        Log-probabilities in float32: `(..., vocabulary_size)` in the order of the token ids, or
        with `targets` the log-probabilities of the targets, `(...)`.

    Raises:
        ValueError: If an argument is not as above.

    Example:

    >>> softmax = keras_xlnet.layers.AdaptiveSoftmax(
    ...     vocabulary_size=1000, hidden_dim=16, cutoffs=(100, 400), div_val=4)
    >>> hidden = np.random.default_rng(0).normal(size=(2, 5, 16)).astype("float32")
    >>> log_probs = softmax(hidden)
    >>> log_probs.shape, bool(abs(keras.ops.logsumexp(log_probs[0, 0])) < 1e-5)
    (TensorShape([2, 5, 1000]), True)
    >>> loss = -keras.ops.mean(softmax(hidden, targets=np.zeros((2, 5), "int32")))

    Source: Grave et al. 2017, "Efficient softmax approximation for GPUs"; kimiyoung/transformer-xl,
    `ProjectedAdaptiveLogSoftmax`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        cutoffs: Sequence[int] = (),
        div_val: int = 1,
        embedding_dim: int | None = None,
        tail_share: float = 0.25,
        kernel_initializer: Initializer | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            vocabulary_size,
            hidden_dim,
            cutoffs,
            div_val,
            embedding_dim,
            kernel_initializer,
            **kwargs,
        )
        self.supports_masking = True
        self.tail_share = check_number("tail_share", tail_share, 0, 1)

    def build(
        self,
        inputs_shape: Shape,
        tables_shape: Any = None,
        projections_shape: Any = None,
        **shapes: Any,
    ) -> None:
        self.tables: Any = None
        self.projections: Any = None
        if tables_shape is None:
            self.tables = [
                self.add_kernel(f"table_{i}", shape) for i, shape in enumerate(self.table_shapes)
            ]
        if self.is_projected:
            shared = projections_shape or [None] * self.num_clusters
            self.projections = [
                self.add_kernel(f"projection_{i}", (width, self.hidden_dim))
                if other is None
                else None
                for i, (width, other) in enumerate(zip(self.widths, shared, strict=True))
            ]
        self.biases = [
            self.add_weight(shape=(high - low,), initializer="zeros", name=f"bias_{i}")
            for i, (low, high) in enumerate(self.clusters)
        ]
        if self.cutoffs:
            num_tails = len(self.cutoffs)
            self.tail_table = self.add_kernel("tail_table", (num_tails, self.embedding_dim))
            self.tail_bias = self.add_weight(
                shape=(num_tails,), initializer="zeros", name="tail_bias"
            )
        self.restore_sublayers()

    def call(
        self,
        inputs: Tensor,
        targets: Tensor | None = None,
        tables: Sequence[Tensor] | None = None,
        projections: Sequence[Tensor | None] | None = None,
    ) -> Tensor:
        rows = ops.reshape(inputs, (-1, self.hidden_dim))
        clusters = self._clusters(tables, projections)
        head = ops.log_softmax(self._head_logits(rows, *clusters[0]))
        if targets is None:
            log_probs = self._all_log_probs(rows, head, clusters)
            return ops.reshape(log_probs, (*ops.shape(inputs)[:-1], self.vocabulary_size))
        flat = ops.reshape(ops.cast(targets, "int32"), (-1,))
        log_probs = self._target_log_probs(rows, flat, head, clusters)
        return ops.reshape(log_probs, ops.shape(targets))

    def _clusters(self, tables, projections):
        """The projection (or `None`), table and bias of each cluster."""
        tables = self.tables if tables is None else tables
        own = self.projections or [None] * self.num_clusters
        shared = projections or [None] * self.num_clusters
        projections = [o if s is None else s for o, s in zip(own, shared, strict=True)]
        if self.cutoffs and self.div_val == 1:
            table = ops.convert_to_tensor(tables[0])
            tables = [table[low:high] for low, high in self.clusters]
        return list(zip(projections, tables, self.biases, strict=True))

    def _head_logits(self, rows, projection, table, bias):
        if self.cutoffs:
            table = ops.concatenate([table, self.tail_table], axis=0)
            bias = ops.concatenate([bias, self.tail_bias], axis=0)
        return _logits(rows, projection, table, bias)

    def _all_log_probs(self, rows, head, clusters):
        if not self.cutoffs:
            return head
        shortlist = self.cutoffs[0]
        parts = [head[:, :shortlist]]
        for i, cluster in enumerate(clusters[1:]):
            column = shortlist + i
            parts.append(head[:, column : column + 1] + ops.log_softmax(_logits(rows, *cluster)))
        return ops.concatenate(parts, axis=1)

    def _target_log_probs(self, rows, targets, head, clusters):
        # In the head, a target in a tail is replaced by the token of that tail.
        columns = targets
        for i, low in enumerate(self.cutoffs):
            columns = ops.where(targets >= low, self.cutoffs[0] + i, columns)
        log_probs = _take(head, columns)
        for cluster, (low, high) in zip(clusters[1:], self.clusters[1:], strict=True):
            is_inside = ops.logical_and(targets >= low, targets < high)
            inside = ops.clip(targets - low, 0, high - low - 1)
            log_probs = log_probs + self._tail_log_probs(rows, inside, is_inside, cluster)
        return log_probs

    def _tail_log_probs(self, rows, targets, is_inside, cluster):
        """Log-probabilities within a tail for the rows whose target is in it, 0 for the others."""

        def compute(rows, targets):
            return _take(ops.log_softmax(_logits(rows, *cluster)), targets)

        def compute_all():
            return compute(rows, targets)

        num_rows = ops.shape(rows)[0]
        if not isinstance(num_rows, int):  # Shapes have to be static to compute some of the rows.
            return ops.where(is_inside, compute_all(), 0.0)
        capacity = math.ceil(self.tail_share * num_rows)
        if not 0 < capacity < num_rows:
            return ops.where(is_inside, compute_all(), 0.0)

        def compute_some():
            first = ops.argsort(ops.cast(ops.logical_not(is_inside), "int32"))[:capacity]
            found = compute(ops.take(rows, first, axis=0), ops.take(targets, first, axis=0))
            return ops.scatter(ops.expand_dims(first, 1), found, (num_rows,))

        fits = ops.sum(ops.cast(is_inside, "int32")) <= capacity
        return ops.where(is_inside, ops.cond(fits, compute_some, compute_all), 0.0)

    def compute_output_spec(
        self, inputs: Tensor, targets: Tensor | None = None, **kwargs: Any
    ) -> keras.KerasTensor:
        shape = (*inputs.shape[:-1], self.vocabulary_size) if targets is None else targets.shape
        return keras.KerasTensor(shape, dtype="float32")


def _logits(rows, projection, table, bias):
    """Logits in float32: half precision is too coarse for a large vocabulary."""
    if projection is not None:
        rows = ops.matmul(rows, ops.transpose(projection))
    logits = ops.matmul(rows, ops.transpose(table))
    return ops.cast(logits, "float32") + ops.cast(bias, "float32")


def _take(log_probs, columns):
    """`(rows, columns)` -> `(rows,)`, the value of one column of each row."""
    return ops.squeeze(ops.take_along_axis(log_probs, ops.expand_dims(columns, 1), axis=1), axis=1)
