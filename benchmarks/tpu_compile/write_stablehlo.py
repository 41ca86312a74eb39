"""Writes the StableHLO that TensorFlow emits for one train step of one model.

    python benchmarks/tpu_compile/write_stablehlo.py --size=xlnet_base --workload=classify:128:32 \
        --path=step.mlir

It is the whole `train_step`, as `fit` runs it: forward, backward, optimizer, metrics, and memory
in pretraining. Nothing is trained, and no TPU is needed.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import pathlib

import keras
import tensorflow as tf
from absl import app, flags

from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM, XLNetTextClassifier

FLAGS = flags.FLAGS


def define_flags():
    flags.DEFINE_string("size", "xlnet_base", "Name of the backbone's size.")
    flags.DEFINE_string("workload", "classify:128:32", "classify, pack or pretrain:length:batch.")
    flags.DEFINE_bool("gradient_checkpointing", False, "Keep only the inputs of blocks.")
    flags.DEFINE_string("path", "step.mlir", "Where to write.")


def main(_):
    keras.config.set_dtype_policy("mixed_bfloat16")  # The dtype of products on TPUs.
    task, length, batch = FLAGS.workload.split(":")
    make = {"classify": classifier, "pack": packed_classifier, "pretrain": permutation_lm}[task]
    options = {"gradient_checkpointing": FLAGS.gradient_checkpointing}
    model, data = make(int(length), int(batch), FLAGS.size, **options)
    pathlib.Path(FLAGS.path).write_text(stablehlo_of_train_step(model, data), encoding="utf-8")


def classifier(length, batch, size, **backbone):
    """A model to fine-tune, and a batch of zeros for it."""
    model = XLNetTextClassifier(XLNetBackbone.from_config_name(size, **backbone), num_classes=2)
    return model, (token_inputs(length, batch), tf.zeros(batch, tf.int32))


def packed_classifier(length, batch, size, **backbone):
    """The same for four texts in each of `batch` rows."""
    model, (inputs, labels) = classifier(length, 4 * batch, size, **backbone)
    inputs["packing"] = tf.zeros((batch, length), tf.int32)
    return model, (inputs, labels)


def permutation_lm(length, batch, size, **backbone):
    """A model to pretrain with memory, in the original's proportions, and a batch of zeros.

    For 512 tokens, these are 384 rows of memory and 85 predictions.
    """
    memory = {"memory_length": 3 * length // 4, "reuse_length": length // 2}
    backbone |= {"bidirectional_data": True, **memory}
    backbone = XLNetBackbone.from_config_name(size, **backbone)
    model = XLNetPermutationLM(backbone, stateful=True, batch_size=batch)
    targets = (batch, length // 6)
    inputs = {
        **token_inputs(length, batch),
        "permutation_mask": tf.zeros((batch, length, length), tf.bool),
        "target_positions": tf.zeros(targets, tf.int32),
        "reset_memory": tf.zeros(batch, tf.bool),
    }
    return model, (inputs, tf.zeros(targets, tf.int32), tf.ones(targets))


def token_inputs(length, batch):
    dtypes = {"token_ids": tf.int32, "segment_ids": tf.int32, "padding_mask": tf.bool}
    return {key: tf.zeros((batch, length), dtype) for key, dtype in dtypes.items()}


def stablehlo_of_train_step(model, data):
    """The text of `model.train_step(data)`; every variable is an argument of `@main`."""
    model.jit_compile = True
    model.optimizer.build(model.trainable_variables)
    step = tf.function(model.train_step, jit_compile=True)
    step.get_concrete_function(data)  # The first trace makes the variables of the metrics.
    return step.experimental_get_compiler_ir(data)(stage="stablehlo")


if __name__ == "__main__":
    define_flags()
    app.run(main)
