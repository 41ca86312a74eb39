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

from keras_xlnet.compat.prefetched import prefetched
from keras_xlnet.inputs.token_lists import rounded
from keras_xlnet.models import XLNetTextClassifier, XLNetTextRegressor
from keras_xlnet.text import XLNetPreprocessor

# Rows of similar length are brought together within this many batches.
POOL = 8
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
        preprocessor = XLNetPreprocessor(self.tokenizer, recipe.sequence_length)
        labels, mean, scale = examples.labels, 0.0, 1.0
        if not examples.is_classes:
            mean, scale = float(np.mean(labels)), float(np.std(labels)) or 1.0
            labels = ((labels - mean) / scale).astype("float32")
        steps = recipe.steps(len(examples), from_scratch)
        batches = Batches(preprocessor, examples.texts, labels)
        rng = np.random.default_rng(seed)
        model.fit(
            batches.dataset(lambda: batches.shuffled(recipe.batch_size, steps, rng), steps),
            shuffle=False,
            callbacks=[WarmupCosine(recipe.learning_rate, steps)],
            verbose=0,
        )

        def predict(texts):
            outputs = Batches(preprocessor, texts).predict(model)
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


@dataclasses.dataclass
class Batches:
    """Tokenized texts in batches of rows of similar length, without most of the padding.

    Args:
        preprocessor: An `XLNetPreprocessor` that pads on the left.
        texts: Array of str, `(examples,)` or `(examples, 2)`.
        labels: Array `(examples,)`, or `None`.
    """

    preprocessor: XLNetPreprocessor
    texts: np.ndarray
    labels: np.ndarray | None = None

    def __post_init__(self):
        texts = self.texts if self.texts.ndim == 1 else (self.texts[:, 0], self.texts[:, 1])
        features = self.preprocessor(texts)
        self.features = {key: np.asarray(value) for key, value in features.items()}
        self.lengths = self.features["padding_mask"].sum(1)

    def shuffled(self, batch_size, steps, rng):
        """Yields batches, all of `batch_size` rows: pass after pass over the rows."""
        count = batch_size * steps
        passes = -(-count // len(self.lengths))
        order = np.concatenate([rng.permutation(len(self.lengths)) for _ in range(passes)])[:count]
        for start in range(0, count, POOL * batch_size):
            pool = order[start : start + POOL * batch_size]
            pool = pool[np.argsort(self.lengths[pool], kind="stable")]
            for batch in rng.permutation(pool.reshape(-1, batch_size)):
                yield self.rows(batch)

    def by_length(self):
        """Returns a dataset of all rows, from short to long, and their order."""
        order = np.argsort(self.lengths, kind="stable")
        batches = np.array_split(order, -(-len(order) // TEST_BATCH))
        return self.dataset(lambda: map(self.rows, batches), len(batches)), order

    def rows(self, rows):
        """Returns the features of rows, and their labels if there are any."""
        longest = self.preprocessor.sequence_length
        length = min(longest, rounded(int(self.lengths[rows].max())))
        features = {key: value[rows, longest - length :] for key, value in self.features.items()}
        return features if self.labels is None else (features, self.labels[rows])

    def dataset(self, generate, count):
        """Returns a `tf.data.Dataset` of the `count` batches that a function generates."""
        spec = tf.nest.map_structure(
            lambda array: tf.TensorSpec((None,) * array.ndim, array.dtype),
            self.rows(np.arange(1)),
        )
        dataset = tf.data.Dataset.from_generator(generate, output_signature=spec)
        return prefetched(dataset.apply(tf.data.experimental.assert_cardinality(count)))

    def predict(self, model):
        """Returns the outputs of a model for all rows."""
        dataset, order = self.by_length()
        outputs = model.predict(dataset, verbose=0)
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order))
        return outputs[inverse]


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
