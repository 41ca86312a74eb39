"""Batches of texts with little padding: of packed rows, or of rows of similar length."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras
import numpy as np

from keras_xlnet.arguments import check_choice
from keras_xlnet.compat.generated_dataset import generated_dataset
from keras_xlnet.compat.prefetched import prefetched
from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.rows_in_graph import packing_of
from keras_xlnet.preprocessing.rows_of_texts import RowPlan, lengths_of_windows
from keras_xlnet.preprocessing.texts import split_spec

# Rows of similar length are brought together within this many batches at most, and within a quarter
# of them: if length correlates with the label, as in spam, batches sorted over all lengths would
# have one label each.
_POOL = 8
_POOLS = 4
_SHORTEST = 16
LAYOUTS = ("packed", "by_length", "padded")
# `batch_packed` has numbers of rows that are multiples of this share of a batch.
_SHARE = 16
# The shapes of packed rows suit the batches of whole passes, of at least so many batches.
_PLANNED_BATCHES = 300


class Passes(keras.utils.PyDataset):
    """The batches of another `PyDataset` without an end: pass after pass, each batch once in each.

    For `steps_per_epoch`. Keras calls `on_epoch_end` after so many steps, also within a pass; here
    it is called between passes.

    Args:
        batches: A `PyDataset` with a number of batches.
        shuffle: Bool, whether each pass has the batches in another order, drawn from `np.random`.
    """

    def __init__(self, batches: keras.utils.PyDataset, shuffle: bool = False) -> None:
        super().__init__(workers=batches.workers, max_queue_size=batches.max_queue_size)
        self.batches = batches
        self._rng = np.random.default_rng(np.random.randint(2**31)) if shuffle else None
        self._lock = threading.Lock()
        self._begin(0)

    @property
    def num_batches(self) -> None:
        """`None`: there is no end."""
        return None

    def __getitem__(self, index: int) -> Any:
        number, place = divmod(index, len(self._order))
        with self._lock:
            if number != self._pass:
                self.batches.on_epoch_end()
                self._begin(number)
        return self.batches[int(self._order[place])]

    def _begin(self, number):
        self._pass, self._order = number, np.arange(self.batches.num_batches)
        if self._rng is not None:
            self._order = self._rng.permutation(self._order)
        self.batches.on_epoch_begin()


class TextBatches(keras.utils.PyDataset):
    """Arrays of a preprocessor as batches with little padding.

    With `layout="packed"`, batches have the rows in their order, or in any order if `shuffle`, and
    one more feature, `packing`, with which the backbone reads several texts in one row: see
    `PackTexts`. All batches have rows of one length, and one of at most three numbers of rows, so
    that few shapes are compiled. `plan` says which.

    With `layout="by_length"`, for models that cannot read packed rows, rows are sorted by their
    length within pools of 8 batches, or of a quarter of the batches. Each batch is cut to the
    length of its longest row, rounded up to one of few lengths: 16, 32, 48, 64, 96, 128, 192, 256,
    384 and so on.

    Each row is in one batch of an epoch; the last batch may be smaller than the others.

    Args:
        features: Dict of arrays of a preprocessor, with `padding_mask` `(rows, ..., length)`.
        labels: Optional labels of the rows, an array or a dict of arrays.
        weights: Optional weights of rows with labels.
        batch_size: Int, rows of a batch.
        shuffle: Bool, whether rows and batches are shuffled for each epoch, with a seed that is
            drawn from `np.random`. Otherwise `"by_length"` sorts all rows by their length.
        padding_side: `"left"` or `"right"`.
        has_token_labels: Bool, whether each token has a label. Such labels, and weights of their
            shape, are cut with the tokens.
        layout: `"packed"`, `"by_length"`, or `"padded"` for batches of the rows as they are.
        strategy: Optional `tf.distribute.Strategy`. Each batch is divided between its replicas, and
            each part is packed or cut by itself. The parts stand one after another as `batches`.
        window_length: Optional int, for `"packed"`: the `segment_length` of a model that reads
            texts in windows. Windows are packed, and those that are padding are left out.

    Example:

    >>> from keras_xlnet.preprocessing import TextBatches
    >>> mask = np.arange(100) >= np.array([[95], [20], [90]])
    >>> features = {"token_ids": mask * 7, "padding_mask": mask}
    >>> packed = TextBatches(features, batch_size=3, shuffle=False)
    >>> [batch["packing"].shape for (batch,) in packed]
    [(1, 96)]
    >>> grouped = TextBatches(features, batch_size=2, shuffle=False, layout="by_length")
    >>> [batch["token_ids"].shape for (batch,) in grouped]
    [(2, 16), (1, 96)]
    """

    def __init__(
        self,
        features: dict[str, np.ndarray],
        labels: Any = None,
        weights: Any = None,
        batch_size: int = 32,
        shuffle: bool = True,
        padding_side: str = "left",
        has_token_labels: bool = False,
        layout: str = "packed",
        strategy: Any = None,
        window_length: int | None = None,
    ) -> None:
        super().__init__()
        check_choice("layout", layout, LAYOUTS)
        self.features = features
        # As Keras passes them: a batch without labels or weights has no place for them.
        self.others = tuple(part for part in (labels, weights) if part is not None)
        self.batch_size = batch_size
        self.padding_side = padding_side
        self.has_token_labels = has_token_labels
        self.layout = layout
        self.strategy = strategy
        self._full = 0
        if layout != "padded":
            self._full = features["padding_mask"].shape[-1]
            self.text_lengths = _text_lengths(features["padding_mask"])
        if layout == "packed" and window_length is not None:
            of_texts = self.text_lengths[:, 0], self._full, window_length
            self.text_lengths, self._full = lengths_of_windows(*of_texts), window_length
        # Sorting equal lengths keeps the order of rows.
        self.lengths = np.zeros(_number_of_rows(features), int)
        if layout == "by_length":
            self.lengths = self.text_lengths.max(axis=1)
        self._rng = np.random.default_rng(np.random.randint(2**31)) if shuffle else None
        self.plan = self._new_plan() if layout == "packed" else None
        self.batches = self._new_batches()

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return self._take(self.batches[index])

    def on_epoch_end(self) -> None:
        """Shuffles again. Called by Keras."""
        self.batches = self._new_batches()

    @property
    def order(self) -> np.ndarray:
        """Int array, the row of `features` of each row of the batches."""
        return np.concatenate(self.batches)

    def in_order(self, outputs: Any) -> Any:
        """Returns the outputs of a model in the order of the rows of `features`.

        Args:
            outputs: Nested structure of arrays, the outputs of all batches, joined.
        """
        place = np.argsort(self.order)
        return keras.tree.map_structure(lambda array: array[place], outputs)

    def join_tokens(self, outputs: Iterable[np.ndarray]) -> np.ndarray:
        """Returns the outputs for tokens as one array, in the order of the rows of `features`.

        Args:
            outputs: An array `(batch_size, batch_length, ...)` for each batch.

        Returns:
            Array `(rows, length, ...)`, 0 at the padding that batches did not have.
        """
        outputs = list(outputs)
        shape = self.features["padding_mask"].shape + outputs[0].shape[2:]
        joined = np.zeros(shape, outputs[0].dtype)
        for rows, output in zip(self.batches, outputs, strict=True):
            joined[rows, _kept(output.shape[1], shape[1], self.padding_side)] = output
        return joined

    @property
    def steps(self) -> int | None:
        """The `steps_per_epoch` of a pass, which a strategy needs: its datasets have no length."""
        return self.strategy and len(self) // self._num_parts

    @property
    def _num_parts(self):
        return 1 if self.strategy is None else self.strategy.num_replicas_in_sync

    def as_keras_input(self, has_end: bool = True) -> Any:
        """Returns what `fit` takes: on TensorFlow a `tf.data.Dataset` of any shapes.

        Keras makes such a dataset of a `PyDataset` too, but for the shapes of the first batches.

        Args:
            has_end: Bool. `False` for `steps_per_epoch`: pass after pass, each row once in each.
                What a strategy gets has no end.
        """
        if self.strategy is not None:
            return self.strategy.distribute_datasets_from_function(self._of_worker)
        if keras.backend.backend() != "tensorflow":
            return self if has_end else Passes(self)
        dataset = generated_dataset(self._epoch, self._spec(), len(self))
        if has_end:
            dataset = dataset.apply(tf.data.experimental.assert_cardinality(len(self)))
        else:
            dataset = dataset.repeat()
        return prefetched(dataset)

    def _spec(self):
        """The `tf.TensorSpec`s of batches: any number of rows, of any length."""

        def spec(array, cut):
            axes = zip(array.shape[1:], cut.shape[1:], strict=True)
            shape = [None, *(size if size == rest else None for size, rest in axes)]
            return tf.TensorSpec(shape, array.dtype)

        arrays = (self.features, *self.others)
        cut = self._cut_to(0, arrays) if self.layout == "by_length" else arrays
        specs = keras.tree.map_structure(spec, arrays, cut)
        if self.plan is not None:
            specs[0]["packing"] = tf.TensorSpec((None, self.plan.row_length), tf.int32)
        return specs

    def _of_worker(self, context):
        """The parts of the replicas of a worker, pass after pass. A replica takes one, in turn."""
        workers, worker = context.num_input_pipelines, context.input_pipeline_id
        count = self._num_parts // workers
        own = slice(worker * count, (worker + 1) * count)
        parts = generated_dataset(lambda: self._epoch(own), self._spec(), len(self) // workers)
        return prefetched(parts.repeat())

    def _epoch(self, own: slice = slice(None)) -> Iterator[tuple[Any, ...]]:
        """The batches of one epoch, or of each batch its own parts. The next one has others."""
        batches = self.batches
        self.on_epoch_end()
        for i in range(0, len(batches), self._num_parts):
            yield from map(self._take, batches[i : i + self._num_parts][own])

    def _new_plan(self):
        """The shapes of packed rows: the same for all shuffles, so that they are compiled once."""
        rng = self._rng and np.random.default_rng(0)
        batches: list[np.ndarray] = []
        while not batches or (rng is not None and len(batches) < _PLANNED_BATCHES):
            batches += [self.text_lengths[rows].reshape(-1) for rows in self._new_batches(rng)]
        return RowPlan.of_batches(batches, spare_rows=0 if rng is None else 1)

    def _new_batches(self, rng=None):
        """Int arrays, the rows of each batch, or of each of its parts."""
        rng = rng or self._rng
        return [
            part
            for batch in self._whole_batches(rng)
            for part in np.array_split(batch, self._num_parts)
        ]

    def _whole_batches(self, rng):
        if rng is None:
            return self._cut(np.argsort(self.lengths, kind="stable"))
        order = rng.permutation(len(self.lengths))
        pool = min(_POOL, max(1, len(order) // self.batch_size // _POOLS))
        size = pool * self.batch_size
        pools = [order[i : i + size] for i in range(0, len(order), size)]
        batches = [
            batch
            for pool in pools
            for batch in self._cut(pool[np.argsort(self.lengths[pool], kind="stable")])
        ]
        full = [batch for batch in batches if len(batch) == self.batch_size]
        shuffled = [full[i] for i in rng.permutation(len(full))]
        return shuffled + [batch for batch in batches if len(batch) < self.batch_size]

    def _cut(self, rows):
        return [rows[i : i + self.batch_size] for i in range(0, len(rows), self.batch_size)]

    def _take(self, rows):
        arrays = keras.tree.map_structure(lambda x: x[rows], (self.features, *self.others))
        if self.layout == "padded":
            return arrays
        if self.plan is not None:
            lengths = self.text_lengths[rows].reshape(-1)
            packing = self.plan.packing(lengths, self._full, self.padding_side)
            return ({**arrays[0], "packing": packing}, *arrays[1:])
        return self._cut_to(batch_length(int(self.lengths[rows].max()), self._full), arrays)

    def _cut_to(self, length, arrays):
        return _cut(arrays, length, self.padding_side, self.has_token_labels)


def split_rows(data: Any, share: float) -> tuple[Any, Any]:
    """Returns the first rows of arrays, and the last ones, as `validation_split` of Keras does.

    Args:
        data: Nested structure of arrays with equally many rows, and of None.
        share: Float, the share of the last rows.

    Raises:
        ValueError: If one of the two has no rows.
    """
    rows = _number_of_rows(data)
    begin = int(rows * (1.0 - share))
    if not 0 < begin < rows:
        raise ValueError(
            "`validation_split` must leave rows for training and for validation. Received: "
            f"validation_split={share} for {rows} rows"
        )
    return _slice(data, slice(begin)), _slice(data, slice(begin, None))


def are_arrays(data: Any) -> bool:
    """Returns whether all parts of a nested structure that are not None are NumPy arrays."""
    return all(isinstance(x, np.ndarray) for x in keras.tree.flatten(data) if x is not None)


def first_batches(data: Any, steps: int | None, batch_size: int) -> Any:
    """Returns the rows of the first batches, as Keras reads them with `steps`.

    Args:
        data: Nested structure of arrays with equally many rows, and of None.
        steps: Int, or `None` for all rows.
        batch_size: Int.
    """
    return data if steps is None else _slice(data, slice(steps * batch_size))


def _slice(data, rows):
    return keras.tree.map_structure(lambda x: None if x is None else x[rows], data)


def _number_of_rows(data):
    return len(next(x for x in keras.tree.flatten(data) if x is not None))


def lengths_of(padding_mask: np.ndarray) -> np.ndarray:
    """Returns the number of tokens of each row, of its longest choice if it has several.

    Args:
        padding_mask: Bool array `(rows, ..., length)`.
    """
    return _text_lengths(padding_mask).max(axis=1)


def _text_lengths(padding_mask):
    """The numbers of tokens of the texts of each row, `(rows, texts)`."""
    return padding_mask.sum(axis=-1).reshape(len(padding_mask), -1)


def batch_length(longest: int, most: int) -> int:
    """Returns the length of a batch whose longest row has `longest` tokens, at most `most`.

    Lengths are 16, 32, 48 and 64; above, powers of two and the numbers halfway between them.
    """
    length = _SHORTEST
    while length < longest:
        length += max(_SHORTEST, 2 ** (length.bit_length() - 2))
    return min(length, most)


def batch_by_length(
    batch_size: int, padding_side: str = "left", has_token_labels: bool = False
) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
    """Returns a transformation of a `tf.data.Dataset` to batches of rows of similar length.

    It does what `TextBatches` does with `layout="by_length"`, for data that does not fit in memory:
    rows are sorted by their length within pools of 8 batches, the batches of a pool are shuffled,
    and each is cut to the length of its longest row, rounded up to one of few lengths. Shuffle the
    rows before.

    Args:
        batch_size: Int, rows of a batch.
        padding_side: `"left"` or `"right"`, as in the preprocessor.
        has_token_labels: Bool, whether each token has a label.

    Returns:
        A function for `dataset.apply`. The elements of the dataset are rows, not batches: the
        features of a preprocessor, by themselves or in a tuple with labels and weights.

    Example:

    >>> import tensorflow as tf
    >>> from keras_xlnet.preprocessing import batch_by_length
    >>> mask = np.arange(100) >= np.array([[95], [20], [90], [4]])
    >>> rows = tf.data.Dataset.from_tensor_slices({"token_ids": mask * 7, "padding_mask": mask})
    >>> dataset = rows.apply(batch_by_length(2))
    >>> sorted(batch["token_ids"].shape[1] for batch in dataset)
    [16, 96]
    """

    def transform(dataset):
        pools = dataset.batch(_POOL * batch_size)
        batches = pools.flat_map(lambda *pool: _sorted_batches(_as_tuple(pool), batch_size))
        return _mapped(batches, lambda batch: _cut_in_graph(batch, padding_side, has_token_labels))

    return transform


def batch_packed(
    batch_size: int, row_length: int | None = None, drop_remainder: bool = False
) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
    """Returns a transformation of a `tf.data.Dataset` to batches of texts that share rows.

    It does what `TextBatches` does with `layout="packed"`, for data that does not fit in memory:
    batches have the rows in their order and one more feature, `packing`. Its numbers of rows are
    multiples of a sixteenth of `batch_size`, so that few shapes are compiled.

    Args:
        batch_size: Int, rows of a batch.
        row_length: Int, the length of rows that texts share, at least that of the features. `None`
            for that length.
        drop_remainder: Bool, as in `tf.data.Dataset.batch`.

    Returns:
        A function for `dataset.apply`. The elements of the dataset are rows, not batches: the
        features of a preprocessor, by themselves or in a tuple with labels and weights.

    Raises:
        ValueError: If `row_length` is too small, when the function is called.

    Example:

    >>> import tensorflow as tf
    >>> from keras_xlnet.preprocessing import batch_packed
    >>> mask = np.arange(100) >= np.array([[95], [20], [90], [4]])
    >>> rows = tf.data.Dataset.from_tensor_slices({"token_ids": mask * 7, "padding_mask": mask})
    >>> dataset = rows.apply(batch_packed(2))
    >>> [batch["packing"].shape.as_list() for batch in dataset]
    [[1, 100], [2, 100]]

    With a `tf.distribute` strategy, each replica packs its own texts if the transformation is
    applied in the function of `strategy.distribute_datasets_from_function`.
    """

    def transform(dataset):
        full = split_spec(dataset.element_spec)[0]["padding_mask"].shape[-1]
        if row_length is not None and row_length < full:
            raise ValueError(
                f"`row_length` must be at least {full}, the length of the features. Received: "
                f"row_length={row_length}"
            )
        return _mapped(dataset.batch(batch_size, drop_remainder), with_packing)

    def with_packing(batch):
        mask, multiple = batch[0]["padding_mask"], max(1, batch_size // _SHARE)
        packing = packing_of(mask, row_length or mask.shape[-1], multiple)
        return ({**batch[0], "packing": packing}, *batch[1:])

    return transform


def _mapped(batches, function):
    """A dataset with a function applied to each batch, which it gets and returns as a tuple."""

    def apply(*batch):
        batch = function(_as_tuple(batch))
        return batch if len(batch) > 1 else batch[0]

    return prefetched(batches.map(apply, tf.data.AUTOTUNE))


def _as_tuple(element):
    """An element of a dataset as a tuple: the features are its first part."""
    return element[0] if isinstance(element[0], tuple) else element


def _lengths_in_graph(features):
    counts = tf.reduce_sum(tf.cast(features["padding_mask"], tf.int32), axis=-1)
    return tf.reduce_max(tf.reshape(counts, (tf.shape(counts)[0], -1)), axis=1)


def _sorted_batches(pool, batch_size):
    """A dataset of the batches of a pool."""
    order = tf.argsort(_lengths_in_graph(pool[0]), stable=True)
    rows = tf.nest.map_structure(lambda x: tf.gather(x, order), pool)
    return tf.data.Dataset.from_tensor_slices(rows).batch(batch_size).shuffle(_POOL)


def _cut_in_graph(batch, padding_side, has_token_labels):
    full = batch[0]["padding_mask"].shape[-1]
    lengths = tf.constant(sorted({batch_length(n, full) for n in range(1, full + 1)}))
    longest = tf.reduce_max(_lengths_in_graph(batch[0]))
    length = lengths[tf.searchsorted(lengths, longest[tf.newaxis])[0]]
    return _cut(batch, length, padding_side, has_token_labels)


def _cut(batch, length, padding_side, has_token_labels):
    """A batch of arrays or tensors. Those with tokens are cut to a length.

    Features have their tokens in the last axis, labels and weights in the one after the rows.
    """
    features, *others = batch
    full = features["padding_mask"].shape[-1]
    kept = _kept(length, full, padding_side)
    features = {
        key: x[..., kept] if len(x.shape) > 1 and x.shape[-1] == full else x
        for key, x in features.items()
    }
    if has_token_labels:
        others = keras.tree.map_structure(
            lambda x: x[:, kept] if tuple(x.shape[1:2]) == (full,) else x, others
        )
    return (features, *others)


def _kept(length, full, padding_side):
    """The columns of a batch of some length."""
    return slice(full - length, None) if padding_side == "left" else slice(0, length)
