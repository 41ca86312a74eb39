"""The weight mapping of `TransformerXLLanguageModel`.

Names of the original are TensorFlow variables of kimiyoung/transformer-xl; names of Hugging Face
are the parameters of transformers' `TransfoXLLMHeadModel`. Both have one kernel for query, key and
value, and all heads on one axis.
"""

import keras

from keras_xlnet.models.weight_rows import Row, dense, norm
from keras_xlnet.preset_files.weights import View

_BLOCK = "block_{layer}"
_ORIGINAL = "transformer"
_ORIGINAL_LAYER = "transformer/layer_{layer}"
_HUGGINGFACE_LAYER = "transformer.layers.{layer}"
_BIASES = {"content_bias": "r_w_bias", "position_bias": "r_r_bias"}


def transformer_xl_rows(model: keras.Model) -> list[Row]:
    """Returns the rows of the weight mapping of a `TransformerXLLanguageModel`."""
    return [
        *_embedding_rows(model),
        *_softmax_rows(model),
        *_bias_rows(),
        *_attention_rows(model),
        *norm(
            f"{_BLOCK}/attention_norm",
            f"{_ORIGINAL_LAYER}/rel_attn/LayerNorm",
            f"{_HUGGINGFACE_LAYER}.dec_attn.layer_norm",
        ),
        *dense(
            f"{_BLOCK}/feed_forward/intermediate",
            f"{_ORIGINAL_LAYER}/ff/layer_1",
            f"{_HUGGINGFACE_LAYER}.pos_ff.CoreNet.0",
        ),
        *dense(
            f"{_BLOCK}/feed_forward/output",
            f"{_ORIGINAL_LAYER}/ff/layer_2",
            f"{_HUGGINGFACE_LAYER}.pos_ff.CoreNet.3",
        ),
        *norm(
            f"{_BLOCK}/feed_forward_norm",
            f"{_ORIGINAL_LAYER}/ff/LayerNorm",
            f"{_HUGGINGFACE_LAYER}.pos_ff.layer_norm",
        ),
    ]


def _bias_rows():
    for ours, theirs in _BIASES.items():
        # A model has the biases of one of these two lines.
        yield Row(f"attention_biases/{ours}", f"{_ORIGINAL}/{theirs}", f"transformer.{theirs}")
        yield Row(
            f"{_BLOCK}/attention/{ours}",
            f"{_ORIGINAL}/{theirs}",
            f"{_HUGGINGFACE_LAYER}.dec_attn.{theirs}",
        )


def _attention_rows(model):
    hidden, heads, size = model.hidden_dim, model.num_heads, model.head_dim
    width = heads * size
    for part, name in enumerate(("query", "key", "value")):
        yield Row(
            f"{_BLOCK}/attention/{name}/kernel",
            f"{_ORIGINAL_LAYER}/rel_attn/qkv/kernel",
            f"{_HUGGINGFACE_LAYER}.dec_attn.qkv_net.weight",
            original_view=View((hidden, 3 * width), (hidden, 3, heads, size), (slice(None), part)),
            huggingface_view=View((3 * width, hidden), (3, heads, size, hidden), (part,)),
            huggingface_axes=(2, 0, 1),
        )
    yield Row(
        f"{_BLOCK}/attention/position/kernel",
        f"{_ORIGINAL_LAYER}/rel_attn/r/kernel",
        f"{_HUGGINGFACE_LAYER}.dec_attn.r_net.weight",
        original_view=View((hidden, width), (hidden, heads, size)),
        huggingface_view=View((width, hidden), (heads, size, hidden)),
        huggingface_axes=(2, 0, 1),
    )
    yield Row(
        f"{_BLOCK}/attention/output/kernel",
        f"{_ORIGINAL_LAYER}/rel_attn/o/kernel",
        f"{_HUGGINGFACE_LAYER}.dec_attn.o_net.weight",
        original_view=View((width, hidden), (heads, size, hidden)),
        huggingface_view=View((hidden, width), (hidden, heads, size)),
        huggingface_axes=(1, 2, 0),
    )


def _embedding_rows(model):
    for i in range(model.softmax.num_clusters):
        is_single = model.div_val == 1
        original = f"{_ORIGINAL}/adaptive_embed" + ("" if is_single else f"/cutoff_{i}")
        yield Row(
            f"token_embedding/table_{i}",
            f"{original}/lookup_table",
            f"transformer.word_emb.emb_layers.{i}.weight",
        )
        yield Row(
            f"token_embedding/projection_{i}",
            f"{original}/proj_W",
            f"transformer.word_emb.emb_projs.{i}",
            huggingface_axes=(1, 0),
        )


def _softmax_rows(model):
    scope = f"{_ORIGINAL}/adaptive_softmax"
    for i, (low, high) in enumerate(model.softmax.clusters):
        # With one table, Hugging Face has the biases of all clusters in one array.
        size = (model.vocabulary_size,)
        part = View(size, size, (slice(low, high),))
        has_one = model.div_val == 1
        original = f"{scope}/cutoff_{i}" if model.cutoffs else scope
        yield Row(
            f"softmax/bias_{i}",
            f"{original}/{'b' if model.cutoffs else 'bias'}",
            f"crit.out_layers.{0 if has_one else i}.bias",
            huggingface_view=part if has_one else None,
        )
        # The original shares its tables, always.
        yield Row(f"softmax/table_{i}", None, f"crit.out_layers.{i}.weight")
        yield Row(
            f"softmax/projection_{i}",
            f"{original}/proj",
            f"crit.out_projs.{i}",
            huggingface_axes=(1, 0),
        )
    yield Row("softmax/tail_table", f"{scope}/cutoff_0/cluster_W", "crit.cluster_weight")
    yield Row("softmax/tail_bias", f"{scope}/cutoff_0/cluster_b", "crit.cluster_bias")
