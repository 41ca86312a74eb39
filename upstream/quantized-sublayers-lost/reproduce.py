"""A model with a quantized `MultiHeadAttention` is saved, and cannot be loaded."""

import os
import tempfile

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras

inputs = keras.Input((4, 8))
outputs = keras.layers.MultiHeadAttention(num_heads=2, key_dim=4)(inputs, inputs)
model = keras.Model(inputs, outputs)
attention = model.layers[-1]
attention.query_dense.quantize("int8")
print("Keras", keras.__version__)
print("expected: a saved model is loaded, with a quantized sublayer")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.keras")
    model.save(path)
    try:
        loaded = keras.models.load_model(path).layers[-1]
        print("happens:  quantization_mode", loaded.query_dense.quantization_mode)
        raise SystemExit(loaded.query_dense.quantization_mode != "int8")
    except ValueError as error:
        print("happens: ", type(error).__name__, str(error)[:300])
        raise SystemExit(1) from None
