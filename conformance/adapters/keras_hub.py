"""KerasHub, with the GELU of the original."""

import functools
import re

import keras
import keras_hub
import numpy as np

VERSIONS = f"keras_hub {keras_hub.__version__}, keras {keras.__version__}"
# The weights of a layer: KerasHub's name, and the original's.
LAYER = {
    "rel_attn/query/kernel": "rel_attn/q/kernel",
    "rel_attn/key/kernel": "rel_attn/k/kernel",
    "rel_attn/value/kernel": "rel_attn/v/kernel",
    "rel_attn/attention_output/kernel": "rel_attn/o/kernel",
    "rel_attn/encoding/kernel": "rel_attn/r/kernel",
    "layer_norm_rel_attn/": "rel_attn/LayerNorm/",
    "layer_norm_ff/": "ff/LayerNorm/",
    "feedforward_intermediate_dense/": "ff/layer_1/",
    "feedforward_output_dense/": "ff/layer_2/",
}
STACKED = {
    "content_attention_bias": "r_w_bias",
    "positional_attention_bias": "r_r_bias",
    "segment_attention_bias": "r_s_bias",
    "segment_encoding": "seg_embed",
}


def value_of(path, weights):
    if path.endswith("word_embedding/embeddings"):
        return weights["model/transformer/word_embedding/lookup_table"]
    if path.endswith("mask_emb"):
        return weights["model/transformer/mask_emb/mask_emb"]
    layer, name = re.search(r"xlnet_encoder_(\d+)/(.+)", path).groups()
    if name in STACKED:
        return weights[f"model/transformer/{STACKED[name]}"][int(layer)]
    ours = next(name.replace(k, v) for k, v in LAYER.items() if name.startswith(k))
    return weights[f"model/transformer/layer_{layer}/{ours}"]


def encode(config, weights, token_ids, segment_ids=None, padding_mask=None):
    if segment_ids is None:
        raise NotImplementedError("the model needs segment ids")
    model = keras_hub.models.XLNetBackbone(
        vocabulary_size=config["vocabulary_size"],
        num_layers=config["num_layers"],
        num_heads=config["num_heads"],
        hidden_dim=config["hidden_dim"],
        intermediate_dim=config["intermediate_dim"],
        activation=functools.partial(keras.activations.gelu, approximate=True),
        dropout=0.0,
    )
    for variable in model.weights:
        variable.assign(value_of(variable.path, weights))
    mask = np.ones_like(token_ids) if padding_mask is None else padding_mask.astype("int32")
    inputs = {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": mask}
    return keras.ops.convert_to_numpy(model(inputs, training=False))
