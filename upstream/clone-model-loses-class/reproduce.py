"""`keras.models.clone_model` makes a plain `Functional` of a functional subclass."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras


@keras.saving.register_keras_serializable("reproduce")
class Doubled(keras.Model):
    def __init__(self, units, **kwargs):
        inputs = keras.Input((3,))
        super().__init__(inputs, keras.layers.Dense(units)(inputs), **kwargs)
        self.units = units

    def get_config(self):
        return {"units": self.units}

    def describe(self):
        return f"{self.units} units"


model = Doubled(4)
assert type(Doubled.from_config(model.get_config())) is Doubled
clone = keras.models.clone_model(model)
print("Keras", keras.__version__)
print("expected: Doubled, with the method `describe`")
print("happens: ", type(clone).__name__, "" if hasattr(clone, "describe") else "without it")
raise SystemExit(type(clone) is not Doubled)
