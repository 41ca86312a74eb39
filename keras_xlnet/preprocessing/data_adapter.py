"""Converts the arguments of `fit`, `evaluate` and `predict` for Keras."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import keras
import numpy as np

from keras_xlnet.compat.prefetched import prefetched
from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.labels import Classes, check_number_of_rows
from keras_xlnet.preprocessing.length_batches import LengthBatches
from keras_xlnet.preprocessing.preprocessor import Encoded, Preprocessor
from keras_xlnet.preprocessing.texts import (
    check_container,
    is_dataset,
    is_raw,
    is_text,
    split_spec,
)
from keras_xlnet.preprocessing.weights import as_weight_array
from keras_xlnet.tokenizers.string_inputs import is_table, plain_columns, plain_texts


class DataAdapter:
    """Converts raw text, labels and weights to the arrays of a model.

    Columns (see `plain_columns`) are converted at once, and a `tf.data.Dataset`, a
    `keras.utils.PyDataset`, a generator or a `DataLoader` of PyTorch batch by batch. Inputs that
    are not text are passed on.

    Args:
        preprocessor_cls: The class of preprocessors that the model takes.
        preprocessor: An object of this class, or `None`. Raw text needs one.
        classes: The `Classes` of the model, or `None` if its labels are not classes.
        model_name: String, for errors.
        compares_pairs: Bool, whether single texts are refused.
        warned: Set of the kinds of `Preprocessor.losses` that were warned of; more are added.
    """

    def __init__(
        self,
        preprocessor_cls: type[Preprocessor],
        preprocessor: Any = None,
        classes: Classes | None = None,
        model_name: str = "model",
        compares_pairs: bool = False,
        warned: set[str] | None = None,
    ) -> None:
        self.preprocessor_cls = preprocessor_cls
        self.classes = classes
        self._preprocessor = preprocessor
        self._model_name = model_name
        self._compares_pairs = compares_pairs
        self._warned = set() if warned is None else warned

    @property
    def preprocessor(self) -> Any:
        """The preprocessor. Raises `ValueError` if the model has none."""
        if self._preprocessor is None:
            raise ValueError(
                f"`x` is raw text, but this {self._model_name} has no `preprocessor`. Pass one "
                "to its constructor, or pass the features of one as `x`."
            )
        return self._preprocessor

    def encode(self, x: Any, shorten: bool = True) -> Encoded | None:
        """Returns what the preprocessor makes of raw text, `None` if `x` is something else.

        Args:
            x: What a user passed. `Encoded` is returned as it is.
            shorten: As in `Preprocessor.encode`.

        Raises:
            ValueError: If `x` is empty, or raw text that the preprocessor does not take.
        """
        if not isinstance(x, Encoded):
            if _is_python_batches(x):
                return None
            x = plain_columns(x)
            check_container(x, self.preprocessor_cls.row_name)
            if is_dataset(x) or not is_raw(x):
                return None
            x = self.preprocessor.encode(x, shorten=shorten)
        if len(x.columns) == 1:
            self._check_single_texts()
        losses = {} if self._preprocessor is None else self._preprocessor.losses(x)
        for kind, message in losses.items():
            if kind not in self._warned:
                self._warned.add(kind)
                warnings.warn(message, stacklevel=4)
        return x

    def _check_single_texts(self):
        if self._compares_pairs:
            raise ValueError(
                "`x` must be pairs of texts, such as a tuple of two columns: this "
                f"{self._model_name} compares two texts (pooling='pair'). Received: single texts"
            )

    def features(self, x: Any, shorten: bool = True) -> Any:
        """Returns the inputs of the model: a dict of arrays, or batches of them.

        Args:
            x, shorten: As in `encode`.
        """
        encoded = self.encode(x, shorten)
        if encoded is not None:
            return encoded.features
        if _is_python_batches(x):
            return _map_batches(x, self._inputs_of_batch)
        return self._map(x) if is_dataset(x) else x

    def examples(
        self, x: Any, y: Any = None, sample_weight: Any = None, shorten: bool = True
    ) -> tuple[Any, Any, Any]:
        """Returns inputs, labels and weights of the model. Batches hold all three.

        Args:
            x, shorten: As in `encode`.
            y, sample_weight: As in `keras.Model.fit`.

        Raises:
            ValueError: If a label or weight is missing or not as the model expects. The message
                names the row.
        """
        encoded = self.encode(x, shorten)
        y = plain_texts(y)
        if encoded is not None:
            if y is not None:
                y = self.preprocessor.encode_labels(y, encoded, self.classes)
            weights = self.preprocessor.encode_weights(sample_weight, encoded)
            return encoded.features, y, weights
        if _is_python_batches(x):
            return _map_batches(x, self._examples_of_batch), y, sample_weight
        if is_dataset(x):
            return self._map(x, has_labels=True), y, sample_weight
        y = self.preprocessor_cls.check_labels(y, x, self.classes)
        if isinstance(x, dict) and x.get("token_ids") is not None:
            check_number_of_rows(y, len(x["token_ids"]))
        rows = len(y) if isinstance(y, np.ndarray) else None
        return x, y, as_weight_array(sample_weight, rows)

    def by_length(
        self, rows: Any, batch_size: int, shuffle: bool = False, group: bool = True
    ) -> LengthBatches:
        """Returns arrays as batches of rows of similar length.

        Args:
            rows: The inputs, labels and weights that `examples` made of raw text.
            batch_size, shuffle, group: As in `LengthBatches`.
        """
        features, labels, weights = rows
        return LengthBatches(
            features,
            labels,
            weights,
            batch_size=batch_size,
            shuffle=shuffle,
            padding_side=self.preprocessor.padding_side if group else "left",
            has_token_labels=self.preprocessor_cls.has_token_labels,
            group=group,
        )

    def _examples_of_batch(self, batch):
        """A batch of Python, with the inputs, labels and weights that it has."""
        # Keras infers the shapes of all batches from the first ones, so none is shortened.
        if not isinstance(batch, tuple) or len(batch) == 1:
            return self._inputs_of_batch(batch)
        x, y, weights = (*batch, None)[:3]
        return self.examples(x, y, weights, shorten=False)[: len(batch)]

    def _inputs_of_batch(self, batch):
        """A batch of Python as a batch without labels."""
        x = batch[0] if isinstance(batch, tuple) else batch
        return (self.features(x, shorten=False),)

    def _map(self, dataset, has_labels=False):
        """A dataset with the features of its texts and, if needed, the numbers of its labels."""
        inputs, others = split_spec(dataset.element_spec)
        if not has_labels and others:
            dataset = dataset.map(lambda x, *_: (x,), tf.data.AUTOTUNE)
            others = ()
        encode_labels = None
        if others:
            encode_labels = self.preprocessor_cls.label_mapper(others[0], self.classes)
        encode_inputs = self.preprocessor if self._is_raw(inputs) else None
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

    def _is_raw(self, spec):
        """Whether the inputs of a dataset are raw text. `ValueError` if they cannot be."""
        parts = [*spec.values()] if isinstance(spec, dict) else [spec]
        if not any(map(is_text, parts)):
            return False
        if len(parts) == 1 and not isinstance(spec, tuple):
            self._check_single_texts()
        if not self.preprocessor_cls.takes_datasets:
            raise ValueError(
                f"`x` is a dataset of raw text, which {self._model_name} takes from lists, "
                "`keras.utils.PyDataset` and generators. Pass one of these, or a dataset of the "
                "features of the preprocessor"
            )
        return True


def is_batches(x: Any) -> bool:
    """Whether `x` is batches: a `tf.data.Dataset`, or what Python makes."""
    return is_dataset(x) or _is_python_batches(x)


def _is_python_batches(x):
    """Whether `x` is a `PyDataset`, a generator, or a loader of batches with text."""
    return isinstance(x, (keras.utils.PyDataset, Iterator)) or _is_loader(x)


def _is_loader(x):
    """Whether `x` can be iterated again and again, for batches with text, as a `DataLoader`."""
    is_column = isinstance(x, Collection) or hasattr(x, "dtype")
    if is_column or is_table(x) or is_dataset(x) or not isinstance(x, Iterable):
        return False
    # An example of a `DataLoader`, which would start processes for its first batch.
    first = next(iter(getattr(x, "dataset", x)), None)
    return any(
        isinstance(part, (str, bytes)) or is_text(part) for part in keras.tree.flatten(first)
    )


def _map_batches(batches, function):
    """The same batches, each changed by a function when it is needed."""
    if isinstance(batches, keras.utils.PyDataset):
        return _MappedBatches(batches, function)
    if _num_batches(batches) is None:
        return (function(_plain_batch(batch, batches)) for batch in batches)
    return _LoadedBatches(batches, function)


def _num_batches(loader):
    try:
        return len(loader)
    except TypeError:  # Of a generator, or of an `IterableDataset` of PyTorch.
        return None


def _plain_batch(batch, loader):
    """A batch with arrays for tensors, and tuples for the lists that PyTorch makes of tuples."""
    is_collated = getattr(getattr(loader, "collate_fn", None), "__name__", "") == "default_collate"

    def plain(part):
        if isinstance(part, dict):
            return {name: plain(value) for name, value in part.items()}
        if (
            is_collated
            and isinstance(part, (list, tuple))
            and not isinstance(part[0], (str, bytes))
        ):
            return tuple(map(plain, part))
        return np.asarray(part) if hasattr(part, "detach") else part

    return tuple(map(plain, batch)) if isinstance(batch, tuple) else plain(batch)


class _MappedBatches(keras.utils.PyDataset):
    """The batches of another `PyDataset`, which threads make and change, not processes."""

    def __init__(self, batches, function):
        super().__init__(workers=batches.workers, max_queue_size=batches.max_queue_size)
        self.batches = batches
        self.function = function

    @property
    def num_batches(self):
        return self.batches.num_batches

    def __getitem__(self, index):
        return self.function(self.batches[index])

    def on_epoch_begin(self):
        self.batches.on_epoch_begin()

    def on_epoch_end(self):
        self.batches.on_epoch_end()


class _LoadedBatches(keras.utils.PyDataset):
    """The batches of a loader in the order in which it gives them, from the start in each epoch."""

    def __init__(self, batches, function):
        super().__init__()
        self.batches = batches
        self.function = function
        self._iterator = iter(())

    @property
    def num_batches(self):
        return len(self.batches)

    def __getitem__(self, index):
        batch = next(self._iterator, None)
        if batch is None:
            self._iterator = iter(self.batches)
            batch = next(self._iterator)
        return self.function(_plain_batch(batch, self.batches))

    def on_epoch_begin(self):
        self._iterator = iter(())
