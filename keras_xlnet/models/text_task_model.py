import types
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from keras_xlnet.compat.prefetched import prefetched
from keras_xlnet.models.inspection import Inspection
from keras_xlnet.models.long_documents import fitting_preprocessor
from keras_xlnet.models.task_model import TaskModel
from keras_xlnet.models.vocabulary import check_vocabulary
from keras_xlnet.preprocessing import XLNetTextPreprocessor
from keras_xlnet.preprocessing.labels import as_label_array, check_finite
from keras_xlnet.preprocessing.python_batches import is_python_batches, map_python_batches
from keras_xlnet.preprocessing.texts import (
    check_container,
    is_dataset,
    is_text,
    split_spec,
    text_columns,
)
from keras_xlnet.preprocessing.weights import as_weight_array

if TYPE_CHECKING:
    from typing_extensions import Self

_PREDICTED_BATCH = 32  # The `batch_size` of Keras.


class TextTaskModel(TaskModel):
    """Base class of task models whose `fit`, `evaluate` and `predict` also take raw text.

    The preprocessor runs in `tf.data`, not in the train step. Inputs that are not text, such as
    the `token_ids` of a preprocessor, are passed to Keras.

    Raw text is a list, an array or a string tensor of texts. Pairs of texts are a tuple of two of
    these, a list of pairs `(text, pair)`, or a dict with the keys `text` and `pair`. They are
    tokenized once, before the first step, and have the length of the longest of them. For text that
    does not fit in memory, pass a batched `tf.data.Dataset` of any of these, by themselves or with
    labels and sample weights, which is tokenized batch by batch, to the length of the preprocessor;
    or a `keras.utils.PyDataset` or a generator of such batches. As in Keras, the first part of a
    batch that is a tuple is the inputs, and the second one is the labels: pairs in a dataset are a
    dict, or a tuple in this tuple, `((text, pair), label)` or `((text, pair),)`.
    """

    preprocessor_cls: type = XLNetTextPreprocessor
    _untracked = types.SimpleNamespace()
    # Of models with another argument, that.
    long_document = "truncate"

    @property
    def preprocessor(self) -> keras.layers.Layer | None:
        """The `XLNetTextPreprocessor`, or `None`."""
        return self._untracked.preprocessor

    def _hold_preprocessor(self, preprocessor):
        preprocessor = fitting_preprocessor(preprocessor, self.long_document)
        # Not a sublayer: it uses strings, which XLA does not support, and Keras would not compile
        # the model. Saving finds it through the property.
        self._untracked = types.SimpleNamespace(
            **vars(self._untracked) | {"preprocessor": preprocessor}
        )

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        *args: Any,
        validation_data: Any = None,
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains as `keras.Model.fit` does, also on raw text."""
        if isinstance(validation_data, (list, tuple)):
            validation_data = self._examples(*validation_data)[: len(validation_data)]
        elif validation_data is not None:
            validation_data, *_ = self._batches(validation_data)
        x, y, sample_weight = self._batches(x, y, sample_weight)
        return super().fit(
            x,
            y,
            *args,
            validation_data=validation_data,
            sample_weight=sample_weight,
            **kwargs,
        )

    def evaluate(
        self, x: Any = None, y: Any = None, *args: Any, sample_weight: Any = None, **kwargs: Any
    ) -> Any:
        """Evaluates as `keras.Model.evaluate` does, also on raw text."""
        x, y, sample_weight = self._batches(x, y, sample_weight)
        return super().evaluate(x, y, *args, sample_weight=sample_weight, **kwargs)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        """Predicts as `keras.Model.predict` does, also for raw text.

        A single batch of raw text is predicted at once, without a dataset and a progress bar, which
        take much longer than the model.
        """
        if is_python_batches(x):
            features = map_python_batches(x, self._input_batch)
        else:
            features = self._features(x)
        if (
            features is not x
            and not steps
            and not callbacks
            and self._is_one_batch(features, batch_size)
        ):
            self._warn_if_untrained()
            return self.predict_on_batch(features)
        return super().predict(
            features, batch_size=batch_size, verbose=verbose, steps=steps, callbacks=callbacks
        )

    def _attended(self, batch_size, length):
        if self.long_document not in ("windows", "memory"):
            return batch_size, length
        segments = -(-length // self.segment_length)
        if self.long_document == "memory":
            segments = min(segments, self.gradient_segments or segments)
        return batch_size * segments, min(length, self.segment_length)

    def _is_one_batch(self, features, batch_size):
        strategy = getattr(self, "distribute_strategy", None)
        if strategy is not None and strategy.num_replicas_in_sync > 1:
            return False
        if not isinstance(features, dict):
            return False
        return len(features["token_ids"]) <= (batch_size or _PREDICTED_BATCH)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the outputs as `keras.Model` does, also for raw text."""
        return super().__call__(self._features(inputs), *args, **kwargs)

    def predict_on_batch(self, x: Any) -> Any:
        """Predicts as `keras.Model.predict_on_batch` does, also for raw text."""
        return super().predict_on_batch(self._features(x))

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: dict[Any, float] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Trains as `keras.Model.train_on_batch` does, also on raw text."""
        x, y, sample_weight = self._examples(x, y, sample_weight)
        return super().train_on_batch(x, y, sample_weight, class_weight, **kwargs)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, **kwargs: Any) -> Any:
        """Evaluates as `keras.Model.test_on_batch` does, also on raw text."""
        x, y, sample_weight = self._examples(x, y, sample_weight)
        return super().test_on_batch(x, y, sample_weight, **kwargs)

    def inspect(self, inputs: Any) -> Inspection:
        """Inspects as `BaseModel.inspect` does, also for raw text."""
        return super().inspect(self._features(inputs))

    def clone(self) -> "Self":
        """Returns a model of the same class with the same arguments and new weights."""
        clone = super().clone()
        # That of the config has no vocabulary.
        clone._hold_preprocessor(self.preprocessor)
        return clone

    def with_arguments(self, **overrides: Any) -> "Self":
        """Returns a copy with the same weights and other arguments; see `BaseModel`."""
        # That of the config has no vocabulary.
        preprocessor = overrides.pop("preprocessor", self.preprocessor)
        copy = super().with_arguments(**overrides, preprocessor=None)
        check_preprocessor(preprocessor, copy.backbone, self.preprocessor_cls)
        copy._hold_preprocessor(preprocessor)
        return copy

    def _batches(self, x, y=None, sample_weight=None):
        """Inputs, labels and weights of the model for what `fit` takes."""
        if is_python_batches(x):
            return map_python_batches(x, self._batch), y, sample_weight
        return self._examples(x, y, sample_weight)

    def _input_batch(self, batch):
        """The inputs in a batch of a `PyDataset` or a generator, as a batch without labels."""
        x = batch[0] if isinstance(batch, tuple) else batch
        return (self._features(x, shorten=False),)

    def _batch(self, batch):
        """Inputs, labels and weights for a batch of a `PyDataset` or a generator."""
        # Keras infers the shapes of all batches from the first ones, so none is shortened.
        if not isinstance(batch, tuple) or len(batch) == 1:
            return self._input_batch(batch)
        return self._examples(*batch, shorten=False)[: len(batch)]

    def _array_batches(self, x):
        """`x`, whose batches are not of raw text if it is a `PyDataset` or a generator."""
        return map_python_batches(x, self._check_arrays) if is_python_batches(x) else x

    def _check_arrays(self, batch):
        """Returns a batch of a `PyDataset` or a generator. `ValueError` if it is of raw text."""
        inputs = batch[0] if isinstance(batch, tuple) else batch
        if self._features(inputs) is not inputs:
            raise ValueError(
                "`x` gives batches of raw text. What this model finds are parts of the text, so "
                f"that the `predict` of {type(self).__name__} needs all of it at once. Pass all "
                "rows in a list, or call `predict` with each batch"
            )
        return batch

    def _examples(self, x, y=None, sample_weight=None, *, shorten=True):
        """Inputs, labels and weights of the model for raw text and its labels."""
        y = self._labels(y)
        rows = len(y) if isinstance(y, np.ndarray) else None
        weights = as_weight_array(sample_weight, rows)
        return self._features(x, has_labels=True, shorten=shorten), y, weights

    def _features(self, x, has_labels=False, shorten=True):
        """The inputs of the model for raw text: a dict of arrays, or a dataset. Else `x` itself."""
        check_container(x)
        if is_dataset(x):
            return self._map(x, has_labels)
        if not is_text(x):
            return x
        return self._required_preprocessor().encode(**text_columns(x), shorten=shorten)

    def _required_preprocessor(self) -> Any:
        """The preprocessor, for raw text."""
        if self.preprocessor is None:
            raise ValueError(
                f"`x` is raw text, but this {type(self).__name__} has no `preprocessor`. Pass one "
                "to its constructor, or pass the outputs of one as `x`."
            )
        return self.preprocessor

    def _is_dataset_of_arrays(self, x):
        """Whether `x` is a dataset, of the outputs of the preprocessor. `ValueError` if of text."""
        if not is_dataset(x):
            return False
        inputs, _ = split_spec(x.element_spec)
        parts = inputs.values() if isinstance(inputs, dict) else [inputs]
        if any(map(is_text, parts)):
            raise ValueError(
                f"`x` is a dataset of raw text, which {type(self).__name__} takes from lists, "
                "`keras.utils.PyDataset` and generators. Pass one of these, or a dataset of the "
                "outputs of the preprocessor"
            )
        return True

    def _labels(self, y):
        """The labels of arrays, checked, as numbers."""
        y = as_label_array(y)
        check_finite(y)
        return y

    def _label_encoder(self, spec):
        """A function of batches of labels in a dataset, or `None` if they stay as they are."""
        return None

    def _map(self, dataset, has_labels=False):
        """A dataset with the features of its texts, and of its labels, if needed, the numbers."""
        import tensorflow as tf  # tf.data, on every backend.

        inputs, others = split_spec(dataset.element_spec)
        if not has_labels and others:
            dataset = dataset.map(lambda x, *_: (x,), tf.data.AUTOTUNE)
            others = ()
        encode_inputs, encode_labels = None, self._label_encoder(others[0]) if others else None
        if is_text(inputs):
            encode_inputs = self._required_preprocessor()
        if encode_inputs is encode_labels is None:
            return dataset

        def encode(x, *rest):
            rest = list(rest)
            if encode_inputs is not None:
                x = encode_inputs(x)
            if encode_labels is not None:
                rest[0] = encode_labels(rest[0])
            return (x, *rest) if rest else x

        return prefetched(dataset.map(encode, tf.data.AUTOTUNE))


def check_preprocessor(
    preprocessor: Any,
    backbone: keras.Model,
    preprocessor_cls: type = XLNetTextPreprocessor,
) -> None:
    """Raises `ValueError` if a preprocessor is that of another task, or has too many ids.

    Args:
        preprocessor: The preprocessor, or `None`.
        backbone: An `XLNetBackbone`.
        preprocessor_cls: The class that the task needs.
    """
    if preprocessor is None:
        return
    if not isinstance(preprocessor, preprocessor_cls):
        raise ValueError(
            f"`preprocessor` must be a keras_xlnet.preprocessing.{preprocessor_cls.__name__}. "
            f"Received: preprocessor={preprocessor!r}"
        )
    # A preprocessor made from a config has no vocabulary until its assets are loaded.
    if preprocessor.tokenizer.has_vocabulary:
        check_vocabulary(preprocessor.tokenizer, backbone, owner="backbone")
