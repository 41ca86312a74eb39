"""A layer that was called with a tuple is called with a list when the model is loaded."""

import os
import tempfile

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras

received = []


@keras.saving.register_keras_serializable("reproduce")
class Pair(keras.layers.Layer):
    def call(self, pair):
        received.append(type(pair).__name__)
        return pair[0] + pair[1]


a, b = keras.Input((3,)), keras.Input((3,))
model = keras.Model([a, b], Pair()((a, b)))
first = received[-1]
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.keras")
    model.save(path)
    keras.models.load_model(path)
print("Keras", keras.__version__)
print("expected:", first)
print("happens: ", received[-1])
raise SystemExit(received[-1] != first)
