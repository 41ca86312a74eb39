"""Fine-tunes a preset as a user would, for results.py."""

import hashlib

import keras
import numpy as np

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier, XLNetTextRegressor


def fine_tune(preset, examples, recipe, seed, dtype="float32"):
    """Fine-tunes a preset with the default optimizer, and returns a function that predicts.

    Args:
        preset: Name or location of the preset.
        examples: `results_tasks.Examples`.
        recipe: `results_tasks.Recipe`.
        seed: Int, the seed of the head, of the order and of the dropout.
        dtype: String, the dtype policy of the model.

    Returns:
        A function from an array of texts to an array of classes, or of numbers.
    """
    model, labels, decode = make_model(preset, examples, recipe, seed, dtype)
    count = len(labels)
    options = {"epochs": recipe.epochs_of(count), "head_first": recipe.head_first(count)}
    model.fit(columns_of(examples.texts), labels, **options, verbose=0)
    return lambda texts: decode(model.predict(columns_of(texts), verbose=0))


def make_model(preset, examples, recipe, seed, dtype="float32"):
    """Returns a model for examples, its labels for them, and a function that decodes its outputs.

    Args:
        preset, examples, recipe, seed, dtype: As in `fine_tune`.
    """
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    model_class = XLNetTextClassifier if examples.is_classes else XLNetTextRegressor
    arguments = {"num_classes": 2} if examples.is_classes else {}
    if examples.is_pairs:
        arguments["pooling"] = "pair"
    arguments |= {"sequence_length": recipe.sequence_length, "dtype": dtype}
    model = model_class.from_preset(preset, **arguments)
    if examples.is_classes:
        return model, examples.labels, lambda outputs: outputs.argmax(axis=1)
    # Scaled, so that numbers of any range are learned at the same rate.
    mean, scale = np.mean(examples.labels), np.std(examples.labels)
    return model, (examples.labels - mean) / scale, lambda outputs: outputs[:, 0] * scale + mean


def digest_of(preset):
    """Returns a string that differs between presets with different weights."""
    digest = hashlib.sha256()
    for weight in XLNetBackbone.from_preset(preset).get_weights():
        digest.update(weight.tobytes())
    return digest.hexdigest()[:16]


def columns_of(texts):
    """Texts, or a tuple of texts and pairs, from an array `(examples,)` or `(examples, 2)`."""
    return texts.tolist() if texts.ndim == 1 else (texts[:, 0].tolist(), texts[:, 1].tolist())
