"""keras_xlnet: this library. It loads the weights as checkpoints."""

import dataclasses
import json
import pathlib
import tempfile

import keras
import numpy as np
import tensorflow as tf
from safetensors.numpy import save_file

import keras_xlnet
from keras_xlnet.checkpoints import load_huggingface, load_original
from keras_xlnet.checkpoints.original import ORIGINAL
from keras_xlnet.checkpoints.original_files import write_checkpoint
from keras_xlnet.checkpoints.tasks import match_model
from keras_xlnet.checkpoints.weight_mapping import values_to_save
from keras_xlnet.tokenizers import XLNetTokenizer

VERSIONS = f"keras_xlnet {keras_xlnet.__version__}, keras {keras.__version__}"
SIZES = {
    "n_token": "vocabulary_size",
    "n_layer": "num_layers",
    "n_head": "num_heads",
    "d_head": "head_dim",
    "d_model": "hidden_dim",
    "d_inner": "intermediate_dim",
}


def load(config, weights, task=None, **settings):
    rates = {"dropout": 0.0, "attention_dropout": 0.0}
    with tempfile.TemporaryDirectory() as folder:
        sizes = {name: config[key] for name, key in SIZES.items()}
        sizes |= {"ff_activation": "gelu", "untie_r": True}
        pathlib.Path(folder, "xlnet_config.json").write_text(json.dumps(sizes))
        write_checkpoint(pathlib.Path(folder, "xlnet_model.ckpt"), weights)
        return load_original(folder, task, **rates, **settings)


def encode(config, weights, **inputs):
    return load(config, weights)(inputs)["sequence_output"]


def encode_segments(
    config, weights, token_ids, segment_ids, is_causal, begins_with_zeros, **settings
):
    model = load(config, weights, attention_type="uni" if is_causal else "bi", **settings)
    shape = len(token_ids[0]), model.num_layers, model.memory_length, model.hidden_dim
    memory = {"memory": np.zeros(shape, "float32")} if begins_with_zeros else {}
    for ids, segments in zip(token_ids, segment_ids, strict=True):
        outputs = model({"token_ids": ids, "segment_ids": segments, **memory})
        memory = memory_of(outputs)
    return outputs["sequence_output"]


def memory_of(outputs):
    return {key: outputs[key] for key in ("memory", "memory_mask") if key in outputs}


def predict_targets(
    config, weights, token_ids, segment_ids, may_attend, target_positions, memory=None, **settings
):
    model = load(config, weights, "permutation_lm", **settings)
    inputs = pretraining_inputs(token_ids, segment_ids, may_attend, target_positions, memory)
    return model(inputs)["logits"]


def pretraining_inputs(token_ids, segment_ids, may_attend, target_positions, memory):
    inputs = {"token_ids": token_ids, "segment_ids": segment_ids, "permutation_mask": may_attend}
    inputs["target_positions"] = target_positions
    return inputs if memory is None else {**inputs, "memory": np.moveaxis(memory, 1, 0)}


def pretraining_loss(*args, **inputs):
    return loss_and_gradients(*args, **inputs)[0]


def pretraining_gradients(*args, **inputs):
    return loss_and_gradients(*args, **inputs)[1]


def loss_and_gradients(config, weights, targets, is_target, **inputs):
    names = ("token_ids", "segment_ids", "may_attend", "target_positions", "memory")
    inputs = [inputs.pop(name) for name in names], inputs
    model = load(config, weights, "permutation_lm", **inputs[1])
    with tf.GradientTape() as tape:
        outputs = model(pretraining_inputs(*inputs[0]), training=True)
        loss = model.compute_loss(None, targets, {"logits": outputs["logits"]}, is_target)
    variables = model.trainable_variables
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    values = dict(zip((v.path for v in variables), gradients, strict=True))
    matches = match_model(model, ORIGINAL)
    named = (dataclasses.replace(m, weight=tf.convert_to_tensor(values[m.path])) for m in matches)
    return loss, values_to_save(named)


def classify(config, weights, **inputs):
    head = {"num_classes": 3, "activation": "linear", "task_name": "tiny"}
    return load(config, weights, "text_classifier", **head)(inputs)


def regress(config, weights, **inputs):
    return load(config, weights, "text_regressor", task_name="tiny")(inputs)[:, 0]


def choose(config, weights, **inputs):
    return load(config, weights, "multiple_choice", activation="linear")(inputs)


def answer(config, weights, is_context, num_starts, num_ends, **inputs):
    beams = {"start_n_top": num_starts, "end_n_top": num_ends}
    model = load(config, weights, "question_answering", **beams)
    return model({**inputs, "paragraph_mask": is_context}, training=False)


def score_segments(config, weights, token_ids):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "config.json").write_text(json.dumps(config))
        save_file(weights, pathlib.Path(folder, "model.safetensors"))
        model = load_huggingface(folder, "language_model")
    memory, found = {}, []
    for ids in token_ids:
        outputs = model({"token_ids": ids, **memory})
        memory = memory_of(outputs)
        found.append(outputs["log_probs"])
    return {"log_probs": found}


def tokenize(vocabulary, texts, lowercase):
    tokenizer = XLNetTokenizer(vocabulary, lowercase=lowercase, remove_accents=True)
    return tokenizer(texts).to_list()
