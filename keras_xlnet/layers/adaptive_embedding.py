import itertools
import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.compat.sublayers import RestoresSublayers
from keras_xlnet.layers.configured_layer import ConfiguredLayer
from keras_xlnet.layers.initializers import get_kernel_initializer
from keras_xlnet.registration import register
from keras_xlnet.types import Initializer, Shape, Tensor


class ClusteredVocabulary(RestoresSublayers, ConfiguredLayer):
    """Base class of `AdaptiveEmbedding` and `AdaptiveSoftmax`: a vocabulary in clusters.

    Args:
        vocabulary_size, hidden_dim, cutoffs, div_val, embedding_dim, kernel_initializer: As in
            `AdaptiveEmbedding`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        cutoffs: Sequence[int] = (),
        div_val: int = 1,
        embedding_dim: int | None = None,
        kernel_initializer: Initializer | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = check_positive_int("vocabulary_size", vocabulary_size)
        self.hidden_dim = check_positive_int("hidden_dim", hidden_dim)
        self.cutoffs = _checked_cutoffs(cutoffs, vocabulary_size)
        self.embedding_dim = check_positive_int("embedding_dim", embedding_dim or hidden_dim)
        self.div_val = _checked_div_val(div_val, self.embedding_dim, self.cutoffs)
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)

    @property
    def clusters(self) -> list[tuple[int, int]]:
        """List of the first id of each cluster and the id after its last one."""
        return list(itertools.pairwise((0, *self.cutoffs, self.vocabulary_size)))

    @property
    def num_clusters(self) -> int:
        """The number of clusters."""
        return len(self.cutoffs) + 1

    @property
    def widths(self) -> list[int]:
        """List of the widths of the embeddings of each cluster."""
        return [self.embedding_dim // self.div_val**i for i in range(self.num_clusters)]

    @property
    def table_shapes(self) -> list[tuple[int, int]]:
        """List of the shapes of the tables: one per cluster, or a single one."""
        if self.div_val == 1:
            return [(self.vocabulary_size, self.embedding_dim)]
        sizes = [high - low for low, high in self.clusters]
        return list(zip(sizes, self.widths, strict=True))

    @property
    def is_projected(self) -> bool:
        """Whether embeddings are projected to the hidden width, or from it."""
        return self.div_val > 1 or self.embedding_dim != self.hidden_dim


@register
class AdaptiveEmbedding(ClusteredVocabulary):
    """Token embeddings that are narrower for rarer tokens.

    Token ids are ordered by frequency, 0 the most frequent, and divided into clusters. Cluster `i`
    has embeddings of width `embedding_dim // div_val**i`, which are projected to `hidden_dim` and
    scaled by `sqrt(hidden_dim)`. Without `cutoffs`, or with `div_val=1`, there is one table for all
    tokens, projected only if `embedding_dim` differs from `hidden_dim`.

    Args:
        vocabulary_size: Int, number of token ids.
        hidden_dim: Int, width of the output.
        cutoffs: Increasing ints, the first ids of the second, third, ... cluster.
        div_val: Int, by which the width is divided from each cluster to the next.
        embedding_dim: Int, width of the embeddings of the first cluster. `None` for `hidden_dim`.
        kernel_initializer: Initializer of all weights. `None` for normal(0, 0.02).

    Call arguments:
        token_ids: Int tensor of any shape `(...)`.
        return_weights: If `True`, the weights are returned too, for an `AdaptiveSoftmax` that
            shares them.

    Returns:
        Tensor `(..., hidden_dim)`, and with `return_weights` the list of the tables
        `(tokens, width)` and the list of the projections `(width, hidden_dim)`.

    Raises:
        ValueError: If an argument is not as above.

    Example:

    >>> embedding = keras_xlnet.layers.AdaptiveEmbedding(
    ...     vocabulary_size=1000, hidden_dim=16, cutoffs=(100, 400), div_val=4)
    >>> embedding(np.array([[3, 250, 999]])).shape
    TensorShape([1, 3, 16])
    >>> [tuple(table.shape) for table in embedding.tables]
    [(100, 16), (300, 4), (600, 1)]

    Source: Baevski and Auli 2019, section 3.1; kimiyoung/transformer-xl, `AdaptiveEmbedding`.
    """

    def build(self, token_ids_shape: Shape | None = None) -> None:
        self.tables = [
            self.add_kernel(f"table_{i}", shape) for i, shape in enumerate(self.table_shapes)
        ]
        widths = [width for _, width in self.table_shapes] if self.is_projected else []
        self.projections = [
            self.add_kernel(f"projection_{i}", (width, self.hidden_dim))
            for i, width in enumerate(widths)
        ]
        self.restore_sublayers()

    def call(
        self, token_ids: Tensor, return_weights: bool = False
    ) -> Tensor | tuple[Tensor, list[Tensor], list[Tensor]]:
        if len(self.tables) == 1:
            embedded = self._project(ops.take(self.tables[0], token_ids, axis=0), 0)
        else:
            clusters = range(len(self.tables))
            embedded = sum(self._embed_cluster(token_ids, cluster) for cluster in clusters)
        embedded = embedded * math.sqrt(self.hidden_dim)
        if not return_weights:
            return embedded
        tables, projections = (
            [ops.convert_to_tensor(w) for w in weights]
            for weights in (self.tables, self.projections)
        )
        return embedded, tables, projections

    def _embed_cluster(self, token_ids, cluster):
        """The embeddings of the tokens of a cluster, and zeros for others."""
        low, high = self.clusters[cluster]
        is_inside = ops.logical_and(token_ids >= low, token_ids < high)
        rows = ops.clip(token_ids - low, 0, high - low - 1)
        embedded = self._project(ops.take(self.tables[cluster], rows, axis=0), cluster)
        return ops.where(ops.expand_dims(is_inside, -1), embedded, ops.zeros_like(embedded))

    def _project(self, embedded, cluster):
        return ops.matmul(embedded, self.projections[cluster]) if self.projections else embedded

    def compute_output_spec(self, token_ids: Tensor, return_weights: bool = False) -> Any:
        embedded = keras.KerasTensor((*token_ids.shape, self.hidden_dim), dtype=self.compute_dtype)
        if not return_weights:
            return embedded
        tables, projections = (
            [keras.KerasTensor(w.shape, dtype=self.compute_dtype) for w in weights]
            for weights in (self.tables, self.projections)
        )
        return embedded, tables, projections

    def compute_output_shape(self, token_ids_shape: Shape) -> Shape:
        return (*token_ids_shape, self.hidden_dim)


def _checked_cutoffs(cutoffs, vocabulary_size):
    bounds = (0, *cutoffs, vocabulary_size)
    is_valid = all(isinstance(c, int) and not isinstance(c, bool) for c in cutoffs)
    if not is_valid or any(low >= high for low, high in itertools.pairwise(bounds)):
        raise ValueError(
            "`cutoffs` must be increasing integers above 0 and below `vocabulary_size`. Received: "
            f"cutoffs={cutoffs!r}, vocabulary_size={vocabulary_size}"
        )
    return tuple(cutoffs)


def _checked_div_val(div_val, embedding_dim, cutoffs):
    check_positive_int("div_val", div_val)
    if embedding_dim // div_val ** len(cutoffs) < 1:
        raise ValueError(
            f"`div_val` must leave the last of {len(cutoffs) + 1} clusters a width of at least 1. "
            f"Received: div_val={div_val}, embedding_dim={embedding_dim}"
        )
    return div_val
