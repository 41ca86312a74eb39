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
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    model_class = XLNetTextClassifier if examples.is_classes else XLNetTextRegressor
    arguments = {"num_classes": 2} if examples.is_classes else {}
    if examples.is_pairs:
        arguments["pooling"] = "pair"
    arguments |= {"sequence_length": recipe.sequence_length, "dtype": dtype}
    model = model_class.from_preset(preset, **arguments)
    labels, mean, scale = examples.labels, 0.0, 1.0
    if not examples.is_classes:
        # Scaled, so that numbers of any range are learned at the same rate.
        mean, scale = np.mean(labels), np.std(labels)
        labels = (labels - mean) / scale
    count = len(labels)
    options = {"epochs": recipe.epochs_of(count), "head_first": recipe.head_first(count)}
    model.fit(_columns(examples.texts), labels, **options, verbose=0)

    def predict(texts):
        outputs = model.predict(_columns(texts), verbose=0)
        return outputs.argmax(axis=1) if examples.is_classes else outputs[:, 0] * scale + mean

    return predict


def digest_of(preset):
    """Returns a string that differs between presets with different weights."""
    digest = hashlib.sha256()
    for weight in XLNetBackbone.from_preset(preset).get_weights():
        digest.update(weight.tobytes())
    return digest.hexdigest()[:16]


def _columns(texts):
    """Texts, or a tuple of texts and pairs, from an array `(examples,)` or `(examples, 2)`."""
    return texts.tolist() if texts.ndim == 1 else (texts[:, 0].tolist(), texts[:, 1].tolist())
