"""Reads the `.keras` file and the preset with this package and another release of Keras."""

from reading import DIRECTORY, LISTS, difference, report


def read_file():
    import keras

    import keras_xlnet  # noqa: F401  Registers its classes.

    model = keras.saving.load_model(DIRECTORY / "model.keras")
    return difference(model.predict(LISTS["texts"], verbose=0), "probabilities")


def read_preset():
    from keras_xlnet.models import XLNetTextClassifier

    model = XLNetTextClassifier.from_preset(str(DIRECTORY / "preset"))
    return difference(model.predict(LISTS["texts"], verbose=0), "probabilities")


report(["keras", "tensorflow", "numpy"], keras_file=read_file, preset=read_preset)
