"""Fine-tunes a preset, and trains the same model from scratch, for results.py."""

import dataclasses
import hashlib
import json
import math
import pathlib
import tempfile

import keras
import numpy as np
import tensorflow as tf
from fine_tuning import new_head, untrained

from keras_xlnet.models import XLNetTextClassifier, XLNetTextRegressor
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor, batch_by_length

TEST_BATCH = 64


@dataclasses.dataclass(frozen=True)
class Kind:
    """What tells the models of tasks apart.

    Args:
        is_classes: Whether classes are predicted, and not numbers.
        is_pair: Whether pairs of texts are compared, and not single texts pooled.
    """

    is_classes: bool
    is_pair: bool


class Trainer:
    """Trains models of one task after the other, each from fresh weights.

    A model of each kind is compiled once, and given new weights for each run: compiling takes
    longer than many of the runs.

    Args:
        preset: Name or location of the preset.
        dtype: String, the dtype policy of the models.
    """

    def __init__(self, preset, dtype="float32"):
        self.preset = preset
        self.dtype = dtype
        self.compiled = {}
        classifier = self._fresh(Kind(is_classes=True, is_pair=False), 0, 0.1, from_scratch=False)
        self.tokenizer = classifier.preprocessor.tokenizer
        self.architecture = _digest_architecture(classifier.backbone, self.tokenizer)
        self.weights = _digest(
            *(np.asarray(w).tobytes() for w in classifier.backbone.get_weights())
        )

    def identity(self, from_scratch):
        """Returns what tells the models of presets apart: a model from scratch has no weights."""
        return self.architecture if from_scratch else f"{self.architecture}-{self.weights}"

    def train(self, examples, recipe, seed, from_scratch):
        """Trains a model and returns a function from texts to predictions.

        Args:
            examples: `results_tasks.Examples`.
            recipe: `results_tasks.Recipe`.
            seed: Int, the seed of the weights, of the order and of the dropout.
            from_scratch: If `True`, training starts from random weights.

        Returns:
            A function from an array of texts to an array of classes, or of numbers. It is valid
            until the next training.
        """
        keras.utils.set_random_seed(seed)
        kind = Kind(examples.is_classes, examples.texts.ndim == 2)
        model = self._fresh(kind, seed, recipe.dropout, from_scratch)
        model = self._recompile(model, kind, recipe)
        preprocessor = XLNetTextClassifierPreprocessor(self.tokenizer, recipe.sequence_length)
        labels, mean, scale = examples.labels, 0.0, 1.0
        if not examples.is_classes:
            mean, scale = float(np.mean(labels)), float(np.std(labels)) or 1.0
            labels = ((labels - mean) / scale).astype("float32")
        steps = recipe.steps(len(examples), from_scratch)
        features = preprocessor.encode(_columns(examples.texts), shorten=False).features
        rows = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(len(labels)).repeat()
        model.fit(
            rows.apply(batch_by_length(recipe.batch_size)).take(steps),
            shuffle=False,
            callbacks=[WarmupCosine(recipe.learning_rate, steps)],
            verbose=0,
        )

        def predict(texts):
            encoded = preprocessor.encode(_columns(texts))
            outputs = model.predict(encoded, batch_size=TEST_BATCH, verbose=0)
            return outputs.argmax(1) if examples.is_classes else outputs[:, 0] * scale + mean

        return predict

    def _fresh(self, kind, seed, dropout, from_scratch):
        """A model as it is before training."""
        model_class = XLNetTextClassifier if kind.is_classes else XLNetTextRegressor
        arguments = {"pooling": "pair" if kind.is_pair else "mean", "dropout": dropout}
        arguments |= {"num_classes": 2} if kind.is_classes else {}
        model = model_class.from_preset(
            self.preset,
            **arguments,
            backbone_dropout=dropout,
            attention_dropout=dropout,
            dtype=self.dtype,
            seed=seed,
        )
        if not from_scratch:
            return model
        return new_head(model, untrained(model.backbone))

    def _recompile(self, model, kind, recipe):
        """Returns a compiled model of the same kind, with the weights and seeds of `model`."""
        key = kind, recipe.dropout, recipe.weight_decay
        if key not in self.compiled:
            model.compile(
                keras.optimizers.AdamW(0.0, weight_decay=recipe.weight_decay, global_clipnorm=1.0)
            )
            model.optimizer.build(model.trainable_variables)
            self.compiled[key] = model
            return model
        compiled = self.compiled[key]
        for variable, new in zip(compiled.variables, model.variables, strict=True):
            variable.assign(new)
        for variable in compiled.optimizer.variables:
            variable.assign(keras.ops.zeros_like(variable))
        return compiled


class WarmupCosine(keras.callbacks.Callback):
    """Sets the learning rate of each step: up to the peak in a tenth of the steps, then to 0.

    Args:
        peak: Float, the highest learning rate.
        steps: Int, the number of steps.
    """

    def __init__(self, peak, steps):
        super().__init__()
        self.peak = peak
        self.steps = steps
        self.warmup = max(1, steps // 10)

    def on_train_batch_begin(self, batch, logs=None):
        self.model.optimizer.learning_rate = self.rate(batch)

    def rate(self, step):
        """Returns the learning rate of a step."""
        if step < self.warmup:
            return self.peak * (step + 1) / self.warmup
        progress = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.peak * 0.5 * (1 + math.cos(math.pi * progress))


def _digest_architecture(backbone, tokenizer):
    config = {**backbone.get_config(), "dtype": None, "seed": None}
    config = keras.saving.serialize_keras_object(config)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_assets(folder)
        (vocabulary,) = pathlib.Path(folder).iterdir()
        return _digest(json.dumps(config, sort_keys=True).encode(), vocabulary.read_bytes())


def _digest(*parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:16]


def _columns(texts):
    """Texts, or a tuple of texts and pairs, of an array `(examples,)` or `(examples, 2)`."""
    return texts if texts.ndim == 1 else (texts[:, 0], texts[:, 1])
