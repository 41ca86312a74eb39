"""The weight mapping of the XLNet encoder.

Names of the original are TensorFlow variables of zihangdai/xlnet; names of Hugging Face are the
parameters of transformers' `XLNetForX`. An `XLNetModel` has them without `transformer.`.
"""

from keras_xlnet.models.weight_rows import Row, dense, norm

_BLOCK = "block_{layer}"
_ORIGINAL = "model/transformer"
_ORIGINAL_LAYER = "model/transformer/layer_{layer}"
_HUGGINGFACE_LAYER = "transformer.layer.{layer}"
# Kernels (hidden, heads, head_dim) of the others into ours (heads, head_dim, hidden).
_OUTPUT_AXES = {"original_axes": (1, 2, 0), "huggingface_axes": (1, 2, 0)}
_BIASES = {"content_bias": "r_w_bias", "position_bias": "r_r_bias", "segment_bias": "r_s_bias"}


def _attention_kernel(ours, theirs, **axes):
    return Row(
        f"{_BLOCK}/attention/{ours}/kernel",
        f"{_ORIGINAL_LAYER}/rel_attn/{theirs}/kernel",
        f"{_HUGGINGFACE_LAYER}.rel_attn.{theirs}",
        **axes,
    )


def _bias(path, theirs):
    return Row(path, f"{_ORIGINAL}/{theirs}", f"{_HUGGINGFACE_LAYER}.rel_attn.{theirs}")


ENCODER = [
    Row(
        "token_embedding/embeddings",
        f"{_ORIGINAL}/word_embedding/lookup_table",
        "transformer.word_embedding.weight",
    ),
    # A model has the biases of one of these two lines.
    *(_bias(f"attention_biases/{ours}", theirs) for ours, theirs in _BIASES.items()),
    *(_bias(f"{_BLOCK}/attention/{ours}", theirs) for ours, theirs in _BIASES.items()),
    _bias(f"{_BLOCK}/attention/segment_embeddings", "seg_embed"),
    _attention_kernel("query", "q"),
    _attention_kernel("key", "k"),
    _attention_kernel("value", "v"),
    _attention_kernel("position", "r"),
    _attention_kernel("output", "o", **_OUTPUT_AXES),
    *norm(
        f"{_BLOCK}/attention_add_and_norm/norm",
        f"{_ORIGINAL_LAYER}/rel_attn/LayerNorm",
        f"{_HUGGINGFACE_LAYER}.rel_attn.layer_norm",
    ),
    *dense(
        f"{_BLOCK}/feed_forward/intermediate",
        f"{_ORIGINAL_LAYER}/ff/layer_1",
        f"{_HUGGINGFACE_LAYER}.ff.layer_1",
    ),
    *dense(
        f"{_BLOCK}/feed_forward/output",
        f"{_ORIGINAL_LAYER}/ff/layer_2",
        f"{_HUGGINGFACE_LAYER}.ff.layer_2",
    ),
    *norm(
        f"{_BLOCK}/feed_forward_add_and_norm/norm",
        f"{_ORIGINAL_LAYER}/ff/LayerNorm",
        f"{_HUGGINGFACE_LAYER}.ff.layer_norm",
    ),
]

MASK_EMBEDDING = Row(
    "mask_embedding/embedding", f"{_ORIGINAL}/mask_emb/mask_emb", "transformer.mask_emb"
)
