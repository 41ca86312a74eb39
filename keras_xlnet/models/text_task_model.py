import types

import numpy as np

from keras_xlnet.models.task_model import TaskModel
from keras_xlnet.models.vocabulary import check_vocabulary

_TOKENIZING_BATCH = 256
_PREDICTED_BATCH = 32  # The `batch_size` of Keras.


class TextTaskModel(TaskModel):
    """Base class of task models whose `fit`, `evaluate` and `predict` also take raw text.

    The preprocessor runs in `tf.data`, not in the train step. Inputs that are not text, such as
    the `token_ids` of a preprocessor, are passed to Keras.

    Raw text is a list, an array or a string tensor of texts. Pairs of texts are a tuple of two of
    these, or a dict with the keys `text` and `pair`. They are tokenized once, before the first
    step. For text that does not fit in memory, pass a batched `tf.data.Dataset` of any of these,
    alone or with labels and sample weights, which is tokenized batch by batch.
    """

    @property
    def preprocessor(self):
        """The `XLNetPreprocessor`, or `None`."""
        return self._untracked.preprocessor

    def _hold_preprocessor(self, preprocessor):
        # Not a sublayer: it uses strings, which XLA does not support, and Keras would not compile
        # the model. Saving finds it through the property.
        self._untracked = types.SimpleNamespace(preprocessor=preprocessor, compiled={})

    def fit(self, x=None, y=None, *args, validation_data=None, **kwargs):
        """Trains as `keras.Model.fit` does, also on raw text."""
        if _is_dataset(validation_data):
            validation_data = self._features(validation_data)
        elif validation_data is not None:
            features, *others = validation_data
            validation_data = (self._features(features), *map(_as_array, others))
        return super().fit(
            self._features(x), _as_array(y), *args, validation_data=validation_data, **kwargs
        )

    def evaluate(self, x=None, y=None, *args, **kwargs):
        """Evaluates as `keras.Model.evaluate` does, also on raw text."""
        return super().evaluate(self._features(x), _as_array(y), *args, **kwargs)

    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        """Predicts as `keras.Model.predict` does, also for raw text.

        A single batch of raw text is predicted at once, without a dataset and a progress bar, which
        take much longer than the model.
        """
        features = self._features(x)
        if (
            features is not x
            and not steps
            and not callbacks
            and self._is_one_batch(features, batch_size)
        ):
            return self.predict_on_batch(features)
        return super().predict(
            features, batch_size=batch_size, verbose=verbose, steps=steps, callbacks=callbacks
        )

    def _is_one_batch(self, features, batch_size):
        strategy = getattr(self, "distribute_strategy", None)
        if _is_dataset(features) or (strategy is not None and strategy.num_replicas_in_sync > 1):
            return False
        return len(features["token_ids"]) <= (batch_size or _PREDICTED_BATCH)

    def __call__(self, inputs, *args, **kwargs):
        """Computes the outputs as `keras.Model` does, also for raw text."""
        return super().__call__(self._features(inputs), *args, **kwargs)

    def predict_on_batch(self, x):
        """Predicts as `keras.Model.predict_on_batch` does, also for raw text."""
        return super().predict_on_batch(self._features(x))

    def train_on_batch(self, x, y=None, *args, **kwargs):
        """Trains as `keras.Model.train_on_batch` does, also on raw text."""
        return super().train_on_batch(self._features(x), _as_array(y), *args, **kwargs)

    def test_on_batch(self, x, y=None, *args, **kwargs):
        """Evaluates as `keras.Model.test_on_batch` does, also on raw text."""
        return super().test_on_batch(self._features(x), _as_array(y), *args, **kwargs)

    def inspect(self, inputs):
        """Inspects as `BaseModel.inspect` does, also for raw text."""
        return super().inspect(self._features(inputs))

    def clone(self):
        """Returns a model of the same class with the same arguments and new weights."""
        clone = super().clone()
        # That of the config has no vocabulary.
        clone._hold_preprocessor(self.preprocessor)
        return clone

    def _features(self, x):
        """The inputs of the model for raw text: a dict of arrays, or a dataset. Else `x` itself."""
        if isinstance(x, (list, tuple)) and not len(x):
            raise ValueError(f"`x` must have at least one text. Received: x={x!r}")
        if not _is_text(x.element_spec if _is_dataset(x) else x):
            return x
        if self.preprocessor is None:
            raise ValueError(
                f"`x` is raw text, but this {type(self).__name__} has no `preprocessor`. Pass one "
                "to its constructor, or pass the outputs of one as `x`."
            )
        if _is_dataset(x):
            return self._map(x)
        x = _as_texts(x)
        if len(x["text"]) <= _TOKENIZING_BATCH:
            return self._preprocess(x)
        import tensorflow as tf  # tf.data, on every backend.

        batches = self._map(tf.data.Dataset.from_tensor_slices(x).batch(_TOKENIZING_BATCH))
        batches = list(batches.as_numpy_iterator())
        return {key: np.concatenate([batch[key] for batch in batches]) for key in batches[0]}

    def _preprocess(self, texts):
        """The features of few texts: a dataset would be traced anew in each call."""
        import tensorflow as tf

        compiled, key = self._untracked.compiled, tuple(texts)
        if key not in compiled:
            signature = {name: tf.TensorSpec([None], tf.string) for name in texts}
            compiled[key] = tf.function(
                self.preprocessor.__call__, input_signature=[signature], autograph=False
            )
        features = compiled[key]({name: tf.constant(part) for name, part in texts.items()})
        return {name: feature.numpy() for name, feature in features.items()}

    def _map(self, dataset):
        import tensorflow as tf

        spec = dataset.element_spec
        if isinstance(spec, tuple) and not _is_pair(spec):

            def preprocess(x, *others):
                return self.preprocessor(x), *others
        else:

            def preprocess(*x):
                return self.preprocessor(x if len(x) > 1 else x[0])

        return dataset.map(preprocess, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def check_preprocessor(preprocessor, backbone):
    """Raises `ValueError` if a preprocessor has ids beyond the vocabulary of `backbone`."""
    # A preprocessor made from a config has no vocabulary until its assets are loaded.
    if preprocessor is not None and preprocessor.tokenizer.has_vocabulary:
        check_vocabulary(preprocessor.tokenizer, backbone, owner="backbone")


def _is_dataset(x):
    return hasattr(x, "element_spec")


def _is_text(x):
    """Whether `x` (or the specification of a dataset) is text, or a tuple that starts with it."""
    if isinstance(x, dict):
        return _is_text(x.get("text"))
    if isinstance(x, (tuple, list)) and x:
        return _is_text(x[0])
    dtype = getattr(x, "dtype", None)
    is_text_array = isinstance(dtype, np.dtype) and dtype.kind in "OSUT"
    return isinstance(x, (str, bytes)) or is_text_array or str(dtype) in _TEXT_DTYPES


# The names that TensorFlow and pandas give their text types.
_TEXT_DTYPES = ("<dtype: 'string'>", "string", "str", "object")


def _is_pair(spec):
    return len(spec) == 2 and _is_text(spec[0]) and _is_text(spec[1])


def _as_texts(x):
    """Arrays of equal length, from any form of raw text."""
    if isinstance(x, dict):
        parts = {key: _as_column(value) for key, value in x.items()}
    elif isinstance(x, tuple):
        parts = dict(zip(("text", "pair"), map(_as_column, x), strict=True))
    else:
        parts = {"text": _as_column(x)}
    lengths = {key: len(part) for key, part in parts.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"`text` and `pair` must have equal lengths. Received: {lengths}")
    return parts


def _as_column(texts):
    if isinstance(texts, (str, bytes)):
        raise ValueError(f"`x` must be a batch of texts: pass a list. Received: x={texts!r}")
    texts = np.asarray(texts, dtype=object)
    for row, text in enumerate(texts):
        if not isinstance(text, (str, bytes)):
            raise ValueError(f"`x` must be strings. Received in row {row}: {text!r}")
    return texts


def _as_array(y):
    return np.asarray(y) if isinstance(y, (list, tuple)) else y
