"""TensorFlow Model Garden (tf-models-official), on Keras 2."""

import importlib.metadata
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
import tf_keras
from official.nlp.modeling.models import XLNetClassifier, XLNetPretrainer
from official.nlp.modeling.networks import XLNetBase

from benchmarks.comparison import workloads
from benchmarks.comparison.loops import calling, fitting

LIBRARIES = ("tf-models-official", "tensorflow", "tf_keras")
VERSIONS = {name: importlib.metadata.version(name) for name in LIBRARIES}


def encode(workload):
    network = _network(workload)
    inputs = {key: tf.constant(value) for key, value in _inputs(workload).items()}

    @tf.function
    def forward(inputs):
        mask = tf.cast(inputs["input_mask"], "float32")
        ids = (inputs["input_word_ids"], inputs["input_type_ids"])
        return network(*ids, mask, training=False)[0]

    forward(inputs)
    return calling(lambda: forward(inputs).numpy(), **_facts(network))


def finetune(workload):
    model = XLNetClassifier(_network(workload), 2, dropout_rate=workloads.DROPOUT)
    return _fit(model, _inputs(workload), workloads.token_batch(workload)["labels"])


def pretrain(workload):
    batch = workloads.pretraining_batch(workload)
    one_hot = np.eye(workload.length, dtype="float32")[batch["target_positions"]]
    inputs = {
        "input_word_ids": batch["token_ids"],
        "input_type_ids": batch["segment_ids"],
        "masked_tokens": one_hot.sum(1),
        "permutation_mask": batch["permutation_mask"].astype("float32"),
        "target_mapping": one_hot,
    }
    return _fit(_Pretraining(workload), inputs, batch["labels"])


class _Pretraining(tf_keras.Model):
    """An `XLNetPretrainer` that returns only logits, and keeps its memory from step to step."""

    def __init__(self, workload):
        super().__init__()
        memory_length = workload.memory_length or None
        self.pretrainer = XLNetPretrainer(
            _network(workload, two_stream=True, memory_length=memory_length, reuse_length=0)
        )
        shape = workload.batch_size, workload.memory_length, workload.dim
        layers = range(workload.num_layers if memory_length else 0)
        self.memory = [tf.Variable(tf.zeros(shape), trainable=False) for _ in layers]

    def call(self, inputs):
        state = {"state": [memory.value() for memory in self.memory]} if self.memory else {}
        logits, new_state = self.pretrainer({**inputs, **state})
        for memory, new in zip(self.memory, new_state, strict=False):
            memory.assign(new)
        return logits


def _network(workload, **more):
    return XLNetBase(
        vocab_size=workloads.VOCABULARY_SIZE,
        num_layers=workload.num_layers,
        hidden_size=workload.dim,
        num_attention_heads=workload.num_heads,
        head_size=workload.dim // workload.num_heads,
        inner_size=workload.intermediate_dim,
        dropout_rate=workloads.DROPOUT,
        attention_dropout_rate=workloads.DROPOUT,
        attention_type="bi",
        bi_data=False,
        initializer=tf_keras.initializers.RandomNormal(stddev=0.02),
        tie_attention_biases=False,
        inner_activation="gelu",
        **more,
    )


def _inputs(workload):
    batch = workloads.token_batch(workload)
    return {
        "input_word_ids": batch["token_ids"],
        "input_type_ids": batch["segment_ids"],
        "input_mask": batch["padding_mask"].astype("int32"),
    }


def _fit(model, x, y):
    model.compile(
        tf_keras.optimizers.AdamW(1e-4),
        tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    data = tf.data.Dataset.from_tensors((x, y)).repeat()

    def endless_fit(callbacks):
        model.fit(data, steps_per_epoch=10**6, verbose=0, callbacks=callbacks)

    model(x)  # Creates the variables, which `_facts` counts.
    return fitting(endless_fit, tf_keras.callbacks.Callback, **_facts(model))


def _facts(model):
    parameters = sum(int(np.prod(variable.shape)) for variable in model.trainable_variables)
    return {"versions": VERSIONS, "parameters": parameters}
