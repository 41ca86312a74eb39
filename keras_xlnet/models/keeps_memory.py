"""Memory that a language model keeps in variables from batch to batch."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import as_values, check_positive_int, check_range
from keras_xlnet.compat.loss_of_all_rows import with_mask
from keras_xlnet.layers import StatefulMemory
from keras_xlnet.layers.memory import ensure_batch_size
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.preprocessing.text_batches import split_rows
from keras_xlnet.preprocessing.weights import weights_of_labels
from keras_xlnet.training.full_batches import fill_last_batch, number_of_rows, weights_of_rows
from keras_xlnet.types import Tensor

# Inputs that are remembered with the content, and the names of their memories.
_REMEMBERED = {"memory_mask": "padding_mask", "memory_segment_ids": "segment_ids"}
# The attribute of a dataset that says how its batches read a text.
_READING = "keras_xlnet_reading"


class KeepsMemory:
    """Mixin of language models with the arguments `stateful` and `batch_size`.

    A stateful model has its `StatefulMemory` layers in the list `memories`.
    """

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: str | int = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool | None = None,
        class_weight: Any = None,
        sample_weight: Any = None,
        *,
        validation_batch_size: int | None = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains as `keras.Model.fit` does.

        A stateful model has the `batch_size` that it was made with, also in validation, and takes
        the rows of arrays in their order: row `r` of a batch continues row `r` of the batch before.
        The last batch of arrays is filled up with rows that do not count, as in `evaluate`. Memory
        is kept from epoch to epoch: `reset_state` forgets it, and the input `reset_memory` in
        single rows.

        Raises:
            ValueError: If the model is stateful and `batch_size` is another one, `shuffle` is true
                or a `PyDataset` has several workers; or a dataset of this package was made with
                another `reuse_length` or `bidirectional_data` than the backbone.
        """
        for data in (x, validation_data):
            self._check_reading(data)
        if self.stateful:
            _check_order(shuffle)
            shuffle, batch_size = False, self._batch_size_of(batch_size)
            validation_batch_size = self._batch_size_of(
                validation_batch_size, "validation_batch_size"
            )
            rows = number_of_rows((x, y, sample_weight))
            if rows is not None and validation_split:
                # Divided here, because the validation rows may have to be filled up.
                (x, y, sample_weight), validation_data = split_rows(
                    (x, y, sample_weight), validation_split
                )
                validation_split, rows = 0.0, number_of_rows(x)
            x, y, sample_weight = _filled(x, y, sample_weight, batch_size=batch_size)
            batch_size = None if rows is None else batch_size
            if isinstance(validation_data, (list, tuple)):
                validation_data = _filled(*validation_data, batch_size=validation_batch_size)
            else:
                validation_batch_size = None
        return super().fit(
            x,
            y,
            batch_size=batch_size,
            epochs=epochs,
            verbose=verbose,
            callbacks=callbacks,
            validation_split=validation_split,
            validation_data=validation_data,
            shuffle=True if shuffle is None else shuffle,
            class_weight=class_weight,
            sample_weight=sample_weight,
            validation_batch_size=validation_batch_size,
            **kwargs,
        )

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Evaluates as `keras.Model` does, with an empty memory. The memory of training is kept.

        A stateful model has the `batch_size` that it was made with. The last batch of arrays is
        filled up with rows that do not count.
        """
        self._check_reading(x)
        self._reset_evaluation()
        if self.stateful:
            batch_size = self._batch_size_of(batch_size)
            is_arrays = number_of_rows((x, y, sample_weight)) is not None
            x, y, sample_weight = _filled(x, y, sample_weight, batch_size=batch_size)
            batch_size = batch_size if is_arrays else None
        return super().evaluate(
            x, y, batch_size, verbose=verbose, sample_weight=sample_weight, **kwargs
        )

    def predict(self, x: Any, batch_size: int | None = None, *args: Any, **kwargs: Any) -> Any:
        """Predicts as `keras.Model` does, with an empty memory. The memory of training is kept.

        A stateful model has the `batch_size` that it was made with. The last batch of arrays is
        filled up, and the predictions for the added rows are left out.
        """
        self._check_reading(x)
        self._reset_evaluation()
        if not self.stateful:
            return super().predict(x, batch_size, *args, **kwargs)
        batch_size = self._batch_size_of(batch_size)
        x, rows = fill_last_batch(x, batch_size)
        batch_size = None if rows is None else batch_size
        outputs = super().predict(x, batch_size, *args, **kwargs)
        return keras.tree.map_structure(lambda output: output[:rows], outputs)

    def _batch_size_of(self, given, argument="batch_size"):
        strategy = getattr(self, "distribute_strategy", None)
        expected = self.batch_size * (strategy.num_replicas_in_sync if strategy else 1)
        if given not in (None, expected):
            raise ValueError(
                f"`{argument}` must be the one of the stateful model, {expected}. Received: "
                f"{argument}={given}"
            )
        return expected

    def _check_reading(self, data):
        """Raises `ValueError` if batches are not read as the model expects it."""
        if self.stateful and isinstance(data, keras.utils.PyDataset) and data.workers > 1:
            # findings/keras_pydataset_order.sh
            raise ValueError(
                "A stateful model needs batches in their order. With several workers, Keras starts "
                "with the second batch on JAX and PyTorch: make the `PyDataset` with `workers=1`. "
                f"Received: workers={data.workers}"
            )
        backbone, reading = getattr(self, "backbone", None), getattr(data, _READING, {})
        # Without a memory that is kept, nothing depends on the reused tokens.
        names = ("bidirectional_data", *(("reuse_length",) if self.stateful else ()))
        for name in names:
            expected, given = (getattr(backbone, name, None), reading.get(name))
            if name in reading and given != expected:
                raise ValueError(
                    f"The batches must have the `{name}` of the backbone, {expected}. Received: "
                    f"batches with {name}={given}"
                )

    def reset_state(self) -> None:
        """Forgets what a stateful model remembers, of training and of evaluation."""
        for memory in self.memories:
            memory.reset_state()

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        """Computes the metrics as `keras.Model` does, but only of complete batches."""
        x, y, sample_weight = self._ensure_batch_size((x, y, sample_weight))
        y_pred, sample_weight = self._weights_that_count(y, y_pred, sample_weight)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def _weights_that_count(self, y, y_pred, sample_weight):
        """Outputs and weights of labels, in which rows that fill up a batch do not count."""
        if sample_weight is None:
            return y_pred, None
        labels = keras.tree.flatten(y)[0]
        weights = keras.tree.map_structure(
            lambda weight: weights_of_labels(weight, labels), sample_weight
        )
        if not self.stateful:
            return y_pred, weights
        is_given = ops.isfinite(keras.tree.flatten(weights)[0])
        weights = keras.tree.map_structure(lambda w: ops.where(is_given, w, 0.0), weights)
        return keras.tree.map_structure(lambda x: with_mask(x, is_given), y_pred), weights

    def _check_ranges(self, x, y=None):
        super()._check_ranges(x, y)
        size = backbone_of(self).vocabulary_size
        check_range("y", as_values(y), 0, size - 1, f"vocabulary_size={size}")

    def _reset_evaluation(self):
        for memory in self.memories:
            memory.reset_evaluation_state()

    def _complete(self, inputs):
        return self._ensure_batch_size(super()._complete(inputs))

    def _ensure_batch_size(self, tensors):
        """Returns a tree of tensors and `None`s, with a static batch size if stateful.

        Everything that is computed from a batch needs it: TensorFlow reports the operation that
        fails first.
        """
        if not self.stateful:
            return tensors
        return keras.tree.map_structure(
            lambda x: None if x is None else ensure_batch_size(x, self.batch_size), tensors
        )


def record_reading(dataset: Any, reuse_length: int, bidirectional_data: bool) -> Any:
    """Returns a dataset after recording how its batches read a text.

    `fit` and `evaluate` compare it with the backbone. A dataset that is made of this one, such as
    with `take`, does not have it, and is not checked.

    Args:
        dataset: A `tf.data.Dataset`.
        reuse_length, bidirectional_data: As in `PermutationBatches`.
    """
    reading = {"reuse_length": reuse_length, "bidirectional_data": bidirectional_data}
    setattr(dataset, _READING, reading)
    return dataset


def _filled(x, y=None, sample_weight=None, batch_size=None):
    """Arrays with a full last batch, and weights that say which rows count; other data as it is."""
    (x, y, sample_weight), rows = fill_last_batch((x, y, sample_weight), batch_size)
    if rows is not None and y is not None:
        sample_weight = weights_of_rows(y, sample_weight, rows)
    return x, y, sample_weight


def _check_order(shuffle):
    if shuffle:
        raise ValueError(
            "`shuffle` must be False for a stateful model: row r of a batch continues row r of the "
            f"batch before. Received: shuffle={shuffle!r}"
        )


def new_memories(
    num_layers: int, remembered: Sequence[str], recurrent_memory: keras.layers.Layer
) -> dict[str, StatefulMemory]:
    """Returns `StatefulMemory` layers by name: `memory_0`, `memory_1`, ... and the others.

    Args:
        num_layers: Int, the number of blocks.
        remembered: List of the names among `memory_mask` and `memory_segment_ids` that are kept.
        recurrent_memory: The `RecurrentMemory` layer with the same lengths.
    """
    return {
        name: StatefulMemory(
            recurrent_memory.memory_length,
            recurrent_memory.reuse_length,
            dtype=recurrent_memory.dtype_policy,
            name=name,
        )
        for name in (*(f"memory_{i}" for i in range(num_layers)), *remembered)
    }


def read_memories(
    inputs: dict[str, Tensor], memories: dict[str, StatefulMemory] | None = None
) -> dict[str, Any]:
    """Returns the arguments of `encode` for the memory: those that there are.

    Args:
        inputs: The symbolic inputs of a model, a dict.
        memories: Optional dict of `new_memories`, which are read in place of inputs.

    Returns:
        A dict with `read_memory`, `memory_mask` and `memory_segment_ids`, or some of them.
    """
    memories, reset = memories or {}, inputs.get("reset_memory")
    arguments = {key: inputs[key] for key in _REMEMBERED if key in inputs}
    for key, new in _REMEMBERED.items():
        if key in memories:
            arguments[key] = memories[key](inputs[new], reset=reset)
    if memories:
        arguments["read_memory"] = lambda layer, content: memories[f"memory_{layer}"](
            content, reset=reset
        )
    elif "memory" in inputs:
        arguments["read_memory"] = lambda layer, content: inputs["memory"][:, layer]
    return arguments


def next_memory(
    recurrent_memory: Any, layer_inputs: Sequence[Tensor], inputs: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Returns the memory for the next segment.

    Args:
        recurrent_memory: A `RecurrentMemory` layer.
        layer_inputs: List of the content streams that entered the blocks.
        inputs: The symbolic inputs of this segment, a dict.

    Returns:
        A dict with `memory`, `memory_mask` and `memory_segment_ids`, as far as they are among the
        inputs.
    """
    outputs = {}
    if "memory" in inputs:
        rows = [
            recurrent_memory(content, inputs["memory"][:, i])
            for i, content in enumerate(layer_inputs)
        ]
        outputs["memory"] = ops.stack(rows, axis=1)
    for key, new in _REMEMBERED.items():
        if key in inputs:
            outputs[key] = recurrent_memory(inputs[new], inputs[key])
    return outputs


def check_memory_arguments(
    memory_length: int | None, stateful: bool, batch_size: int | None, attend_to_empty_memory: bool
) -> None:
    """Raises `ValueError` if the arguments of a stateful memory do not fit together."""
    if stateful and memory_length is None:
        raise ValueError("`stateful=True` needs a `memory_length`. Received: None")
    if stateful and batch_size is None:
        raise ValueError(
            "`stateful=True` needs a `batch_size`, the number of rows of a batch on one replica. "
            "Received: batch_size=None"
        )
    if batch_size is not None:
        check_positive_int("batch_size", batch_size)
    if attend_to_empty_memory and memory_length is None:
        raise ValueError("`attend_to_empty_memory=True` needs a `memory_length`. Received: None")
