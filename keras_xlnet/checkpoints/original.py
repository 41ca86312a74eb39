"""Checkpoints of the original TensorFlow 1 implementation."""

import inspect
import json
import pathlib

import numpy as np

from keras_xlnet.layers.arguments import check_choice
from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM

_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu"}


def load_original(path, task=None, **overrides):
    """Loads a checkpoint of the original XLNet.

    Args:
        path: Directory with `xlnet_config.json` and `xlnet_model.ckpt.*`, as released.
        task: `None` for the encoder, `"permutation_lm"` for the whole pretraining model.
        **overrides: Arguments of `XLNetBackbone`, and of the model of the task, that a checkpoint
            does not fix, such as `dropout`, `memory_length`, `dtype` or `stateful`.

    Returns:
        An `XLNetBackbone`, or an `XLNetPermutationLM`, with the weights of the checkpoint.
        Variables of the checkpoint that the model has no place for (optimizer slots, heads) are
        left alone.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the checkpoint lacks a variable, or one has another shape than the
            configuration says.

    Source: zihangdai/xlnet, `xlnet.py` and `modeling.py`.
    """
    check_choice("task", task, (None, "permutation_lm"))
    directory = pathlib.Path(path)
    config = _read_config(directory / "xlnet_config.json")
    reader = _open_checkpoint(directory / "xlnet_model.ckpt")
    task_arguments = inspect.signature(XLNetPermutationLM).parameters if task else ()
    of_task = {key: overrides.pop(key) for key in list(overrides) if key in task_arguments}
    backbone = model = XLNetBackbone(**{**config, **overrides})
    places = list(_variables(backbone))
    if task is not None:
        model = XLNetPermutationLM(backbone, **of_task)
        places += _permutation_lm_variables(model)
    values = [
        _read(reader, name, layer, transform, variable.shape, backbone.num_layers, directory)
        for variable, name, layer, transform in places
    ]
    for (variable, *_), value in zip(places, values, strict=True):
        variable.assign(value)
    return model


def _read_config(file):
    if not file.is_file():
        raise FileNotFoundError(f"`path` is not an original checkpoint: {file} is missing")
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
        return {
            "vocabulary_size": config["n_token"],
            "num_layers": config["n_layer"],
            "num_heads": config["n_head"],
            "head_dim": config["d_head"],
            "hidden_dim": config["d_model"],
            "intermediate_dim": config["d_inner"],
            "activation": _ACTIVATIONS[config["ff_activation"]],
            "tie_attention_biases": not config["untie_r"],
        }
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{file} is not JSON: {error}") from error
    except KeyError as error:
        raise ValueError(f"{file} has no or no known value for {error}") from error


def _open_checkpoint(prefix):
    import tensorflow as tf  # The reader of TF checkpoints; nothing else here needs TensorFlow.

    if not prefix.with_name(prefix.name + ".index").is_file():
        raise FileNotFoundError(f"`path` is not an original checkpoint: {prefix}.index is missing")
    try:
        return tf.train.load_checkpoint(str(prefix))
    except (tf.errors.OpError, ValueError) as error:
        raise ValueError(f"{prefix}.index cannot be read as a checkpoint: {error}") from error


def _variables(backbone):
    """Yields (our variable, original name, layer to slice or `None`, transform or `None`)."""
    root = "model/transformer"
    yield (
        backbone.token_embedding.embeddings,
        f"{root}/word_embedding/lookup_table",
        None,
        None,
    )
    if backbone.attention_biases is not None:
        yield from _biases(backbone.attention_biases, root, None)
    for i, block in enumerate(backbone.blocks):
        yield from _block_variables(block, root, i)


def _permutation_lm_variables(model):
    yield model.logit_bias.bias, "model/lm_loss/bias", None, None
    mask_embedding = "model/transformer/mask_emb/mask_emb"
    yield model.mask_embedding.embedding, mask_embedding, None, None


def _block_variables(block, root, i):
    attention, feed_forward = block.attention, block.feed_forward
    scope = f"{root}/layer_{i}"
    for name, dense in (
        ("q", attention.query_dense),
        ("k", attention.key_dense),
        ("v", attention.value_dense),
        ("r", attention.position_dense),
    ):
        yield dense.kernel, f"{scope}/rel_attn/{name}/kernel", None, None
    # The original keeps the output kernel as (hidden, heads, head_dim) like the others.
    yield attention.output_dense.kernel, f"{scope}/rel_attn/o/kernel", None, _heads_first
    yield attention.segment_embeddings, f"{root}/seg_embed", i, None
    if hasattr(attention, "content_bias"):
        yield from _biases(attention, root, i)
    for name, dense in (
        ("layer_1", feed_forward.intermediate_dense),
        ("layer_2", feed_forward.output_dense),
    ):
        yield dense.kernel, f"{scope}/ff/{name}/kernel", None, None
        yield dense.bias, f"{scope}/ff/{name}/bias", None, None
    for name, norm in (("rel_attn", block.attention_norm), ("ff", block.feed_forward_norm)):
        yield norm.gamma, f"{scope}/{name}/LayerNorm/gamma", None, None
        yield norm.beta, f"{scope}/{name}/LayerNorm/beta", None, None


def _biases(layer, root, i):
    yield layer.content_bias, f"{root}/r_w_bias", i, None
    yield layer.position_bias, f"{root}/r_r_bias", i, None
    yield layer.segment_bias, f"{root}/r_s_bias", i, None


def _heads_first(kernel):
    return np.transpose(kernel, (1, 2, 0))


def _read(reader, name, layer, transform, shape, num_layers, directory):
    where = f"of the checkpoint in {directory}"
    if not reader.has_tensor(name):
        raise ValueError(f"The checkpoint in {directory} has no variable {name!r}")
    try:
        value = reader.get_tensor(name)
    except Exception as error:  # the reader raises IndexError, RuntimeError and others
        raise ValueError(f"Variable {name!r} {where} cannot be read: {error}") from error
    if layer is not None:
        if len(value) != num_layers:
            raise ValueError(
                f"Variable {name!r} {where} is of {len(value)} layers, but xlnet_config.json says "
                f"n_layer={num_layers}"
            )
        value = value[layer]
    if transform is not None:
        value = transform(value)
    if value.shape != tuple(shape):
        raise ValueError(
            f"Variable {name!r} {where} has shape {value.shape}, but xlnet_config.json makes it "
            f"{tuple(shape)}"
        )
    return value
