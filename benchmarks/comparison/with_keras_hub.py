"""KerasHub, which has the encoder.

Its numbers are wrong for batches of more than one row; the amount of work is the same.
"""

import keras
import keras_hub

from benchmarks.comparison import workloads
from benchmarks.comparison.keras_paths import fit, forward, jit_argument


def encode(workload, jit=None):
    return forward(_backbone(workload), _inputs(workload), jit)


def finetune(workload, jit=None):
    """Adds the head of the original, which KerasHub lacks: dense, tanh, dropout, dense."""
    backbone = _backbone(workload)
    inputs = backbone.input
    summary = keras.layers.Dense(workload.dim, activation="tanh")(backbone(inputs)[:, -1])
    summary = keras.layers.Dropout(workloads.DROPOUT)(summary)
    model = keras.Model(inputs, keras.layers.Dense(2)(summary))
    model.compile(
        keras.optimizers.AdamW(1e-4),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        **jit_argument(jit),
    )
    return fit(model, _inputs(workload), workloads.token_batch(workload)["labels"])


def _backbone(workload):
    return keras_hub.models.XLNetBackbone(
        vocabulary_size=workloads.VOCABULARY_SIZE,
        num_layers=workload.num_layers,
        num_heads=workload.num_heads,
        hidden_dim=workload.dim,
        intermediate_dim=workload.intermediate_dim,
        dropout=workloads.DROPOUT,
    )


def _inputs(workload):
    batch = workloads.token_batch(workload)
    return {
        "token_ids": batch["token_ids"],
        "segment_ids": batch["segment_ids"],
        "padding_mask": batch["padding_mask"].astype("int32"),
    }
