#!/usr/bin/env bash
# One would guess: `optimizer.exclude_from_weight_decay(var_names=["layer_norm"])` excludes the same weights on each backend.
# A list of layer_norm and bias is usual for transformers.
# What happens: on TensorFlow, the weights of layers called "layer_norm" are excluded. On JAX and PyTorch the pattern
# matches nothing, all weights are decayed, and nothing warns: so the same program trains another model. "bias" and
# "gamma" work everywhere.
# Where: `BaseOptimizer._use_weight_decay` searches in `variable.name`. On TensorFlow it receives a `tf.Variable`, whose
# name contains the layer; on other backends it receives a `keras.Variable`, whose name is only "gamma" or "beta". Its
# `path` contains the layer.
# Since when: not known. Seen in Keras 3.15.1 with TensorFlow 2.21.0 and JAX 0.10.2. No issue found.
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 tensorflow==2.21.0 jax==0.10.2 numpy==2.4.6

cat > "$folder/decay.py" <<'PYTHON'
import importlib.metadata

import keras
import numpy as np
from keras import layers

backend = keras.backend.backend()
print(*(f"{name} {importlib.metadata.version(name)}" for name in ("keras", backend)))
model = keras.Sequential([layers.Input((4,)), layers.Dense(4, name="dense"), layers.LayerNormalization(name="layer_norm")])
layer_norm = ["gamma", "beta"] if backend == "tensorflow" else []
for name, expected in (("layer_norm", layer_norm), ("bias", ["bias"]), ("gamma", ["gamma"])):
    # A weight of 1 without a gradient changes only by its decay.
    model.set_weights([np.ones(weight.shape) for weight in model.get_weights()])
    optimizer = keras.optimizers.AdamW(learning_rate=0.5, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=[name])
    zeros = [keras.ops.zeros(weight.shape) for weight in model.get_weights()]
    optimizer.apply(zeros, model.trainable_variables)
    kept = [v.name for v, weight in zip(model.trainable_variables, model.get_weights()) if weight.ravel()[0] == 1]
    print(f"    excluded by {name!r}: {', '.join(kept) or 'nothing'}")
    assert kept == expected
PYTHON

export TF_CPP_MIN_LOG_LEVEL=3
for backend in tensorflow jax; do
    KERAS_BACKEND=$backend "$folder/venv/bin/python" "$folder/decay.py" 2> "$folder/errors" || { cat "$folder/errors"; exit 1; }
done
