"""The formulas, as pure functions of tensors in `keras.ops`: no variables, no layers.

Each module opens with the equation that it computes. Use them to write layers of your own.
"""

from keras_xlnet.ops.long_attention import (
    scanned_relative_attention,
    unrolled_relative_attention,
)
from keras_xlnet.ops.permutation import (
    factorization_ranks,
    first_targets,
    permutation_visibility,
    reachable,
)
from keras_xlnet.ops.random import hash_dropout, random_bits
from keras_xlnet.ops.ranking import list_softmax_loss, pairwise_hinge_loss
from keras_xlnet.ops.relative_attention import (
    attention_weights,
    content_scores,
    gather_distances,
    masked_softmax,
    position_scores,
    relative_attention_terms,
    relative_multi_head_attention,
    relative_shift,
    segment_scores,
)
from keras_xlnet.ops.similarity import pair_similarity
from keras_xlnet.ops.spans import fill_targets, max_spans, span_targets
from keras_xlnet.ops.vector_quantization import quantize_embeddings

__all__ = [
    "attention_weights",
    "content_scores",
    "factorization_ranks",
    "fill_targets",
    "first_targets",
    "gather_distances",
    "hash_dropout",
    "list_softmax_loss",
    "masked_softmax",
    "max_spans",
    "pair_similarity",
    "pairwise_hinge_loss",
    "permutation_visibility",
    "position_scores",
    "quantize_embeddings",
    "random_bits",
    "reachable",
    "relative_attention_terms",
    "relative_multi_head_attention",
    "relative_shift",
    "scanned_relative_attention",
    "segment_scores",
    "span_targets",
    "unrolled_relative_attention",
]
