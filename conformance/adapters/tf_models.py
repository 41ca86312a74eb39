"""TensorFlow Model Garden (tf-models-official), with the GELU of the original.

Masks are 1 where a token may attend: what its code computes, whatever its comments say.
"""

import importlib.metadata
import re

import tensorflow as tf
import tf_keras
from official.nlp.modeling.networks import XLNetBase

VERSIONS = ", ".join(
    f"{name} {importlib.metadata.version(name)}" for name in ("tf-models-official", "tensorflow")
)
# The weights of the model, and the original's.
GLOBAL = {
    "word_embedding/embeddings": "word_embedding/lookup_table",
    "mask_emb/mask_emb": "mask_emb/mask_emb",
    "seg_embed": "seg_embed",
    "content_attention_bias": "r_w_bias",
    "positional_attention_bias": "r_r_bias",
    "segment_attention_bias": "r_s_bias",
}
LAYER = {
    "rel_attn/query/kernel": "rel_attn/q/kernel",
    "rel_attn/key/kernel": "rel_attn/k/kernel",
    "rel_attn/value/kernel": "rel_attn/v/kernel",
    "rel_attn/attention_output/kernel": "rel_attn/o/kernel",
    "rel_attn/encoding/kernel": "rel_attn/r/kernel",
    "self_attention_layer_norm/": "rel_attn/LayerNorm/",
    "output_layer_norm/": "ff/LayerNorm/",
    "inner/": "ff/layer_1/",
    "output/": "ff/layer_2/",
}


def original_name(variable):
    name = variable.name.removesuffix(":0").removeprefix("xl_net_base/")
    layer = re.search(r"layer_(\d+)/(.+)", name)
    if layer is None:
        return "model/transformer/" + GLOBAL[name]
    ours = next(layer[2].replace(k, v) for k, v in LAYER.items() if layer[2].startswith(k))
    return f"model/transformer/layer_{layer[1]}/{ours}"


def load(config, weights, inputs, two_stream=False, is_causal=False, **settings):
    tf_keras.backend.reset_uids()
    network = XLNetBase(
        vocab_size=config["vocabulary_size"],
        num_layers=config["num_layers"],
        hidden_size=config["hidden_dim"],
        num_attention_heads=config["num_heads"],
        head_size=config["head_dim"],
        inner_size=config["intermediate_dim"],
        dropout_rate=0.0,
        attention_dropout_rate=0.0,
        attention_type="uni" if is_causal else "bi",
        bi_data=settings.get("bidirectional_data", False),
        memory_length=settings.get("memory_length"),
        reuse_length=settings.get("reuse_length") or 0,
        clamp_length=settings.get("clamp_length") or -1,
        initializer="glorot_normal",
        two_stream=two_stream,
        tie_attention_biases=False,
        inner_activation=lambda x: tf.nn.gelu(x, approximate=True),
    )
    network(**inputs)
    for variable in network.weights:
        value = weights[original_name(variable)]
        # The output kernel has its axes in another order.
        moved = variable.shape != value.shape
        variable.assign(tf.transpose(value, (1, 2, 0)) if moved else value)
    return network


def inputs_of(token_ids, segment_ids=None, padding_mask=None, **more):
    mask = None if padding_mask is None else tf.constant(padding_mask, tf.float32)
    return {"input_ids": token_ids, "segment_ids": segment_ids, "input_mask": mask, **more}


def encode(config, weights, **inputs):
    inputs = inputs_of(**inputs)
    return load(config, weights, inputs)(**inputs)[0]


def encode_segments(config, weights, token_ids, segment_ids, begins_with_zeros, **settings):
    shape = len(token_ids[0]), settings["memory_length"], config["hidden_dim"]
    state = [tf.zeros(shape)] * config["num_layers"] if begins_with_zeros else None
    network = load(config, weights, inputs_of(token_ids[0], segment_ids[0]), **settings)
    for ids, segments in zip(token_ids, segment_ids, strict=True):
        output, state = network(**inputs_of(ids, segments), state=state)
    return output


def predict_targets(
    config, weights, token_ids, segment_ids, may_attend, target_positions, memory=None, **settings
):
    length = may_attend.shape[1]
    mapping = tf.one_hot(target_positions, length)
    inputs = inputs_of(
        token_ids, segment_ids, permutation_mask=tf.cast(may_attend, tf.float32),
        target_mapping=mapping, masked_tokens=tf.reduce_sum(mapping, 1),
    )  # fmt: skip
    network = load(config, weights, inputs, two_stream=True, **settings)
    state = None if memory is None else [tf.constant(layer) for layer in memory]
    output, _ = network(**inputs, state=state)
    embeddings = weights["model/transformer/word_embedding/lookup_table"]
    return tf.matmul(output, embeddings, transpose_b=True) + weights["model/lm_loss/bias"]
