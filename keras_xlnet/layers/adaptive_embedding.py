import math

import keras
from keras import ops

from keras_xlnet.compat.unknown_arguments import register
from keras_xlnet.layers.arguments import check_positive_int
from keras_xlnet.layers.initializers import clone_initializer, get_kernel_initializer


@register
class AdaptiveEmbedding(keras.layers.Layer):
    """Token embeddings whose width falls with the frequency of the tokens.

    Token ids are ordered by frequency, 0 the most frequent, and divided into clusters. Cluster `i`
    has embeddings of width `embedding_dim // div_val**i`, which are projected to `hidden_dim` and
    scaled by `sqrt(hidden_dim)`. Without `cutoffs`, or with `div_val=1`, there is one table of all
    tokens, projected only if `embedding_dim` differs from `hidden_dim`.

    Args:
        vocabulary_size: Int, number of token ids.
        hidden_dim: Int, width of the output.
        cutoffs: Increasing ints, the first ids of the second, third, ... cluster.
        div_val: Int, the quotient of the widths of a cluster and the next.
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

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        cutoffs=(),
        div_val=1,
        embedding_dim=None,
        kernel_initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = check_positive_int("vocabulary_size", vocabulary_size)
        self.hidden_dim = check_positive_int("hidden_dim", hidden_dim)
        self.cutoffs = check_cutoffs(cutoffs, vocabulary_size)
        self.embedding_dim = check_positive_int("embedding_dim", embedding_dim or hidden_dim)
        self.div_val = check_div_val(div_val, self.embedding_dim, self.cutoffs)
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)

    def build(self, token_ids_shape=None):
        shapes = table_shapes(self)
        self.tables = [self._add("table", i, shape) for i, shape in enumerate(shapes)]
        widths = [width for _, width in shapes] if needs_projection(self) else []
        self.projections = [
            self._add("projection", i, (width, self.hidden_dim)) for i, width in enumerate(widths)
        ]

    def _add(self, name, cluster, shape):
        initializer = clone_initializer(self.kernel_initializer)
        return self.add_weight(shape=shape, initializer=initializer, name=f"{name}_{cluster}")

    def call(self, token_ids, return_weights=False):
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
        table = self.tables[cluster]
        rows = token_ids - (0, *self.cutoffs)[cluster]
        is_inside = ops.logical_and(rows >= 0, rows < table.shape[0])
        embedded = ops.take(table, ops.clip(rows, 0, table.shape[0] - 1), axis=0)
        embedded = self._project(embedded, cluster)
        return ops.where(ops.expand_dims(is_inside, -1), embedded, ops.zeros_like(embedded))

    def _project(self, embedded, cluster):
        return ops.matmul(embedded, self.projections[cluster]) if self.projections else embedded

    def compute_output_spec(self, token_ids, return_weights=False):
        embedded = keras.KerasTensor((*token_ids.shape, self.hidden_dim), dtype=self.compute_dtype)
        if not return_weights:
            return embedded
        tables, projections = (
            [keras.KerasTensor(w.shape, dtype=self.compute_dtype) for w in weights]
            for weights in (self.tables, self.projections)
        )
        return embedded, tables, projections

    def compute_output_shape(self, token_ids_shape):
        return (*token_ids_shape, self.hidden_dim)

    def get_config(self):
        return {**super().get_config(), **vocabulary_config(self)}


# === What AdaptiveEmbedding and AdaptiveSoftmax share ===


def table_shapes(layer):
    """Returns the shapes of the tables of a layer: one of a cluster, or a single one."""
    if layer.div_val == 1:
        return [(layer.vocabulary_size, layer.embedding_dim)]
    bounds = (0, *layer.cutoffs, layer.vocabulary_size)
    return [
        (high - low, layer.embedding_dim // layer.div_val**i)
        for i, (low, high) in enumerate(zip(bounds, bounds[1:], strict=False))
    ]


def needs_projection(layer):
    """Returns whether the tables of a layer are projected to the hidden width."""
    return layer.div_val > 1 or layer.embedding_dim != layer.hidden_dim


def vocabulary_config(layer):
    """Returns the arguments that an embedding and its softmax have in common."""
    return {
        "vocabulary_size": layer.vocabulary_size,
        "hidden_dim": layer.hidden_dim,
        "cutoffs": list(layer.cutoffs),
        "div_val": layer.div_val,
        "embedding_dim": layer.embedding_dim,
        "kernel_initializer": keras.initializers.serialize(layer.kernel_initializer),
    }


def check_cutoffs(cutoffs, vocabulary_size):
    """Returns cutoffs as a tuple if they divide the vocabulary, otherwise raises `ValueError`."""
    bounds = (0, *cutoffs, vocabulary_size)
    is_valid = all(isinstance(c, int) and not isinstance(c, bool) for c in cutoffs)
    if not is_valid or any(low >= high for low, high in zip(bounds, bounds[1:], strict=False)):
        raise ValueError(
            "`cutoffs` must be increasing integers above 0 and below `vocabulary_size`. Received: "
            f"cutoffs={cutoffs!r}, vocabulary_size={vocabulary_size}"
        )
    return tuple(cutoffs)


def check_div_val(div_val, embedding_dim, cutoffs):
    """Returns `div_val` if every cluster has a width, otherwise raises `ValueError`."""
    check_positive_int("div_val", div_val)
    if embedding_dim // div_val ** len(cutoffs) < 1:
        raise ValueError(
            f"`div_val` must leave the last of {len(cutoffs) + 1} clusters a width of at least 1. "
            f"Received: div_val={div_val}, embedding_dim={embedding_dim}"
        )
    return div_val
