"""The one way of data into `fit`, `evaluate`, `predict` and the methods that give results."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import warnings
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import keras
import numpy as np

from keras_xlnet.compat.generated_dataset import generated_dataset
from keras_xlnet.compat.prefetched import prefetched
from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.encoded import Encoded
from keras_xlnet.preprocessing.index_labels import index_labels_named
from keras_xlnet.preprocessing.labels import Classes, check_number_of_rows
from keras_xlnet.preprocessing.preprocessor import Preprocessor
from keras_xlnet.preprocessing.text_batches import (
    Passes,
    TextBatches,
    are_arrays,
    first_batches,
    split_rows,
)
from keras_xlnet.preprocessing.texts import (
    check_container,
    is_dataset,
    is_raw,
    is_text,
    split_spec,
)
from keras_xlnet.preprocessing.weights import as_weight_array
from keras_xlnet.tokenizers.text_columns import is_table, plain_texts

BATCH_SIZE = 32  # That of Keras.
# A batch that is a dict of raw text may have its labels under one of these names, as the batches of
# Hugging Face `datasets` do.
_LABELS = ("label", "labels")


@dataclasses.dataclass(frozen=True)
class Examples:
    """What Keras takes: inputs, labels and weights as arrays, or batches that hold all three.

    Args:
        x, y, sample_weight: As in `keras.Model.fit`.
        encoded: The `Encoded` of raw text, `None` for other inputs.
        layout, padding_side, has_token_labels, strategy, window_length: As in `TextBatches`.
    """

    x: Any
    y: Any = None
    sample_weight: Any = None
    encoded: Encoded | None = None
    layout: str = "padded"
    padding_side: str = "left"
    has_token_labels: bool = False
    strategy: Any = None
    window_length: int | None = None

    @property
    def rows(self) -> tuple[Any, Any, Any]:
        """Inputs, labels and weights."""
        return self.x, self.y, self.sample_weight

    def split(self, share: float) -> tuple[Examples, Examples]:
        """Returns the first examples, and the last ones, as `split_rows` does for arrays."""
        first, last = split_rows(self.rows, share)
        return self._with(*first), self._with(*last)

    def _with(self, x, y, sample_weight):
        return dataclasses.replace(self, x=x, y=y, sample_weight=sample_weight, encoded=None)

    def batches(
        self, batch_size: int | None = None, shuffle: bool = False, steps: int | None = None
    ) -> TextBatches:
        """Returns arrays as batches of the `layout`.

        Args:
            batch_size: Int, 32 by default.
            shuffle: As in `TextBatches`.
            steps: Optional int, for the rows of so many batches.
        """
        batch_size = batch_size or BATCH_SIZE
        x, y, sample_weight = first_batches(self.rows, steps, batch_size)
        return TextBatches(
            x,
            y,
            sample_weight,
            batch_size=batch_size,
            shuffle=shuffle,
            padding_side=self.padding_side,
            has_token_labels=self.has_token_labels,
            layout=self.layout,
            strategy=self.strategy,
            window_length=self.window_length,
        )

    def for_evaluate(self, batch_size: int | None, steps: int | None) -> tuple[Any, ...]:
        """Returns what `keras.Model.evaluate` takes.

        Args:
            batch_size, steps: As in `evaluate`.

        Returns:
            Tuple of `x`, `y`, `sample_weight`, `batch_size` and `steps`.
        """
        if self.layout == "padded":
            return *self.rows, batch_size, steps
        batches = self.batches(batch_size, steps=steps)
        return batches.as_keras_input(), None, None, None, batches.steps or steps

    def for_fit(
        self, batch_size: int | None, shuffle: bool, steps: int | None, is_one_device: bool
    ) -> dict[str, Any]:
        """Returns the arguments of `keras.Model.fit` that say what a step is trained on.

        Args:
            batch_size, shuffle: As in `fit`.
            steps: The `steps_per_epoch` of `fit`. An epoch may end within a pass over the examples,
                and the next one goes on with it.
            is_one_device: Bool, whether batches need not be divided.
        """
        if self.layout != "padded" or steps and is_one_device and are_arrays(self.rows):
            batches = self.batches(batch_size, bool(shuffle))
            x, steps = batches.as_keras_input(has_end=not steps), steps or batches.steps
            return {"x": x, "shuffle": False, "steps_per_epoch": steps}
        x, y, sample_weight = self.rows
        if steps and isinstance(x, keras.utils.PyDataset) and x.num_batches:
            x, shuffle = Passes(x, bool(shuffle)), False
        given = {"batch_size": batch_size, "shuffle": shuffle, "steps_per_epoch": steps}
        return {"x": x, "y": y, "sample_weight": sample_weight, **given}


@dataclasses.dataclass(frozen=True)
class ExampleReader:
    """Reads what a user passes to a model: raw text, arrays or batches.

    Columns (see `plain_columns`) are converted at once. A `tf.data.Dataset`, a
    `keras.utils.PyDataset`, a generator, a `DataLoader` of PyTorch, a dataset of grain and a
    streamed dataset of Hugging Face are converted batch by batch. A batch is a tuple as in Keras,
    or a dict of columns, one of which may be `label` or `labels`. Inputs that are not text are
    passed on.

    Args:
        preprocessor_cls: The class of preprocessors that the model takes.
        preprocessor: An object of this class, or `None`. Raw text needs one.
        classes: The `Classes` of the model, or `None` if its labels are not classes.
        model_name: String, for errors.
        compares_pairs: Bool, whether single texts are refused.
        warned: Set of the kinds of `Preprocessor.losses` that were warned of; more are added.
    """

    preprocessor_cls: type[Preprocessor]
    preprocessor: Any = None
    classes: Classes | None = None
    model_name: str = "model"
    compares_pairs: bool = False
    warned: set[str] = dataclasses.field(default_factory=set)

    def read(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        has_labels: bool = True,
        shorten: bool = True,
    ) -> Examples:
        """Returns the inputs of the model with their labels and weights.

        Args:
            x: What a user passed, or what `Preprocessor.encode` made of it.
            y, sample_weight: As in `keras.Model.fit`.
            has_labels: Bool. `False` for `predict`: labels in batches are left out.
            shorten: As in `Preprocessor.encode`.

        Raises:
            ValueError: If `x` is empty, or raw text that the preprocessor does not take; or a label
                or weight is missing or not as the model expects. The message names the row, also
                as the index of a pandas column does.
        """
        with index_labels_named(x, y, sample_weight):
            return self._read_all(x, y, sample_weight, has_labels, shorten)

    def _read_all(self, x, y, sample_weight, has_labels, shorten):
        if not isinstance(x, Encoded):
            x = plain_texts(x)
            if _is_python_batches(x):
                read = self._read_batch if has_labels else self._read_inputs
                return Examples(_map_batches(x, read), y, sample_weight)
            check_container(x, self.preprocessor_cls.row_name)
            if is_dataset(x):
                return Examples(self._map(x, has_labels), y, sample_weight)
            self._check_has_labels(y is not None or not has_labels)
            if not is_raw(x):
                labels = self._labels_of_arrays(x, y, sample_weight) if has_labels else ()
                return Examples(x, *labels)
            x = self._preprocessor.encode(x, shorten=shorten)
        self._warn_of_losses(x)
        if has_labels:
            y = plain_texts(y)
            if y is not None:
                y = self._preprocessor.encode_labels(y, x, self.classes)
            sample_weight = self._preprocessor.encode_weights(sample_weight, x)
        return Examples(
            x.features,
            y,
            sample_weight,
            encoded=x,
            padding_side=getattr(self.preprocessor, "padding_side", "left"),
            has_token_labels=self.preprocessor_cls.has_token_labels,
        )

    @property
    def _preprocessor(self):
        """The preprocessor. Raises `ValueError` if the model has none."""
        if self.preprocessor is None:
            raise ValueError(
                f"`x` is raw text, but this {self.model_name} has no `preprocessor`. Pass one "
                "to its constructor, or pass the features of one as `x`."
            )
        return self.preprocessor

    def _check_has_labels(self, has_labels):
        if not has_labels and self.preprocessor_cls.needs_labels:
            raise ValueError(
                f"`y` must be the labels, one for each {self.preprocessor_cls.row_name}; a batch "
                "of a dataset or generator is a tuple (x, y). Received: y=None"
            )

    def _warn_of_losses(self, encoded):
        if len(encoded.columns) == 1:
            self._check_single_texts()
        losses = {} if self.preprocessor is None else self.preprocessor.losses(encoded)
        for kind, message in losses.items():
            if kind not in self.warned:
                self.warned.add(kind)
                warnings.warn(message, stacklevel=5)

    def _check_single_texts(self):
        if self.compares_pairs:
            raise ValueError(
                "`x` must be pairs of texts, such as a tuple of two columns: this "
                f"{self.model_name} compares two texts (pooling='pair'). Received: single texts"
            )

    def _labels_of_arrays(self, x, y, sample_weight):
        y = self.preprocessor_cls.check_labels(plain_texts(y), x, self.classes)
        if isinstance(x, dict) and x.get("token_ids") is not None:
            check_number_of_rows(y, len(x["token_ids"]))
        rows = len(y) if isinstance(y, np.ndarray) else None
        return y, as_weight_array(sample_weight, rows)

    def _read_batch(self, batch):
        """A batch of Python, with the inputs, labels and weights that it has."""
        # Keras infers the shapes of all batches from the first ones, so none is shortened.
        batch = _split_labels(batch)
        if not isinstance(batch, tuple) or len(batch) == 1:
            self._check_has_labels(False)
            return self._read_inputs(batch)
        x, y, sample_weight = (*batch, None)[:3]
        return self.read(x, y, sample_weight, shorten=False).rows[: len(batch)]

    def _read_inputs(self, batch):
        """A batch of Python as a batch without labels."""
        batch = _split_labels(batch)
        x = batch[0] if isinstance(batch, tuple) else batch
        return (self.read(x, has_labels=False, shorten=False).x,)

    def _map(self, dataset, has_labels=False):
        """A dataset with the features of its texts and, if needed, the numbers of its labels."""
        if _label_name(dataset.element_spec):
            dataset = dataset.map(_split_labels, tf.data.AUTOTUNE)
        inputs, others = split_spec(dataset.element_spec)
        if not has_labels and others:
            dataset = dataset.map(lambda x, *_: (x,), tf.data.AUTOTUNE)
            others = ()
        encode_labels = None
        if others:
            encode_labels = self.preprocessor_cls.label_mapper(others[0], self.classes)
        encode_inputs = self.preprocessor if self._is_raw(inputs) else None
        self._check_has_labels(others or not has_labels)
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
                f"`x` is a dataset of raw text, which {self.model_name} takes from lists, "
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
    # A table has a length, a streamed dataset of Hugging Face has none.
    is_column = is_column or is_table(x) and hasattr(x, "__len__")
    if is_column or is_dataset(x) or not isinstance(x, Iterable):
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
    if _num_batches(batches) is not None:
        return _LoadedBatches(batches, function)

    def change(batch):
        return function(_plain_batch(batch, batches))

    if isinstance(batches, Iterator):
        return (change(batch) for batch in batches)
    return _restarted(change, batches)


def _restarted(function, batches):
    """Changed batches of a loader without a length, from the start in each epoch.

    Keras reads a generator once, whatever the number of epochs, so it gets a dataset of a library
    that is installed.
    """

    def generate():
        return map(function, batches)

    if keras.backend.backend() != "torch" and importlib.util.find_spec("tensorflow"):

        def spec(*arrays):
            first, *_ = arrays = [np.asarray(array) for array in arrays]
            sizes = zip(*(array.shape[1:] for array in arrays), strict=True)
            shape = [None, *(size[0] if len({*size}) == 1 else None for size in sizes)]
            return tf.TensorSpec(shape, first.dtype)

        first = itertools.islice(generate(), 2)
        return prefetched(generated_dataset(generate, keras.tree.map_structure(spec, *first)))
    if hasattr(batches, "mp_prefetch"):  # An `IterDataset` of grain.
        return batches.map(function)
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "`x` has batches without a length: `len(x)` fails. To read them in several epochs, "
            "install TensorFlow or PyTorch, or pass a dataset of grain"
        ) from error

    class Batches(torch.utils.data.IterableDataset):
        def __iter__(self):
            return generate()

    return torch.utils.data.DataLoader(Batches(), batch_size=None)


def _label_name(batch):
    """The name of the labels in a batch of raw text that is a dict of columns, or its spec."""
    if not isinstance(batch, dict) or "token_ids" in batch:
        return None
    return next((name for name in _LABELS if name in batch), None)


def _split_labels(batch):
    """A batch that is a dict of columns as inputs and labels. Others are returned unchanged."""
    name = _label_name(batch)
    if name is None:
        return batch
    return {key: value for key, value in batch.items() if key != name}, batch[name]


def _num_batches(loader):
    try:
        return len(loader)
    except TypeError:  # Of a generator, or of an `IterableDataset` of PyTorch.
        return None


def _plain_batch(batch, loader):
    """A batch with arrays for tensors, and tuples for the lists that PyTorch makes of tuples."""
    inputs = batch[0] if isinstance(batch, tuple) and batch else batch
    for part in inputs.values() if isinstance(inputs, dict) else [inputs]:
        if isinstance(part, (str, bytes)):
            raise ValueError(
                "`x` must be batches of texts: call `x.batch(32)`, or pass a `batch_size` to a "
                f"`DataLoader`. Received: an example with the text {part!r}"
            )
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
