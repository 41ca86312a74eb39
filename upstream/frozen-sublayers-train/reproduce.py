"""Layers in a layer or a model that is not trainable are trained as part of another model."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras

inputs = keras.Input((4, 8))
part = keras.Model(inputs, keras.layers.Dense(8)(inputs), trainable=False)
of_model = keras.Model(inputs, part(inputs)).trainable_variables

layer = keras.layers.MultiHeadAttention(num_heads=2, key_dim=4, trainable=False)
of_layer = keras.Model(inputs, layer(inputs, inputs)).trainable_variables

layer = keras.layers.MultiHeadAttention(num_heads=2, key_dim=4)
model = keras.Model(inputs, layer(inputs, inputs))
layer.query_dense.trainable = False
copy = type(model).from_config(model.get_config())
of_sublayer = len(copy.trainable_variables) - len(model.trainable_variables)

model = keras.Sequential([inputs, keras.layers.Dense(8), keras.layers.Dense(8)])
model.trainable = False
model.layers[0].trainable = True
model.trainable = False
of_assignment = keras.Model(inputs, model(inputs)).trainable_variables

print("Keras", keras.__version__)
print("expected: no weight is trained in any of the four cases")
print("happens: ", len(of_model), "of a model made with `trainable=False`,", len(of_layer), "of a")
print("          layer made with it,", of_sublayer, "of a frozen sublayer after `from_config`,")
print("         ", len(of_assignment), "after `trainable = False` was assigned a second time")
raise SystemExit(bool(of_model or of_layer or of_sublayer or of_assignment))
