"""Memory that a language model keeps in variables from batch to batch."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_xlnet.inputs.full_batches import fill_last_batch, weights_of_rows
from keras_xlnet.layers import StatefulMemory
from keras_xlnet.layers.arguments import check_positive_int
from keras_xlnet.layers.memory import ensure_batch_size
from keras_xlnet.types import Tensor

# What is remembered beside the content, and of which input.
_REMEMBERED = {"memory_mask": "padding_mask", "memory_segment_ids": "segment_ids"}


class KeepsMemory:
    """Mixin of language models with the arguments `stateful` and `batch_size`.

    A stateful model has its `StatefulMemory` layers in the list `memories`.
    """

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        *args: Any,
        validation_data: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Trains as `keras.Model` does.

        A stateful model has the `batch_size` that it was made with. Its arrays are full batches,
        and are not shuffled: a row continues the same row of the batch before. The last batch of
        `validation_data` is filled up with rows of weight 0, as in `evaluate`.
        """
        if self.stateful and isinstance(validation_data, (tuple, list)):
            given_x, given_y, weights = (*validation_data, None)[:3]
            filled = _filled(given_x, given_y, weights, self._batch_size_of(None))
            validation_data = tuple(part for part in filled[:3] if part is not None)
        kwargs["validation_data"] = validation_data
        if not self.stateful or not isinstance(x, dict):
            return super().fit(x, y, batch_size, *args, **kwargs)
        batch_size = self._batch_size_of(batch_size)
        rows = keras.tree.flatten(x)[0].shape[0]
        if rows % batch_size:
            raise ValueError(
                "`x` must have full batches for a stateful model. Received: "
                f"{rows} rows, batch_size={batch_size}"
            )
        kwargs.setdefault("shuffle", False)
        if kwargs["shuffle"]:
            raise ValueError(
                "`shuffle` must be False for a stateful model, in which a row continues the same "
                f"row of the batch before. Received: shuffle={kwargs['shuffle']!r}"
            )
        return super().fit(x, y, batch_size, *args, **kwargs)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Evaluates as `keras.Model` does, with an empty memory; that of training is kept.

        A stateful model has the `batch_size` that it was made with. The last batch of arrays is
        filled up with rows of weight 0.
        """
        self._reset_evaluation()
        if self.stateful:
            batch_size = self._batch_size_of(batch_size)
            x, y, sample_weight, rows = _filled(x, y, sample_weight, batch_size)
            batch_size = None if rows is None else batch_size
        return super().evaluate(
            x, y, batch_size, verbose=verbose, sample_weight=sample_weight, **kwargs
        )

    def predict(self, x: Any, batch_size: int | None = None, *args: Any, **kwargs: Any) -> Any:
        """Predicts as `keras.Model` does, with an empty memory; that of training is kept.

        A stateful model has the `batch_size` that it was made with. The last batch of arrays is
        filled up, and what is predicted for the added rows is left out.
        """
        self._reset_evaluation()
        if not self.stateful:
            return super().predict(x, batch_size, *args, **kwargs)
        batch_size = self._batch_size_of(batch_size)
        x, rows = fill_last_batch(x, batch_size)
        batch_size = None if rows is None else batch_size
        outputs = super().predict(x, batch_size, *args, **kwargs)
        return keras.tree.map_structure(lambda output: output[:rows], outputs)

    def _batch_size_of(self, given):
        strategy = getattr(self, "distribute_strategy", None)
        expected = self.batch_size * (strategy.num_replicas_in_sync if strategy else 1)
        if given not in (None, expected):
            raise ValueError(
                f"`batch_size` must be that of the stateful model, {expected}. Received: "
                f"batch_size={given}"
            )
        return expected

    def reset_state(self) -> None:
        """Forgets what a stateful model remembers, of training and of evaluation."""
        for memory in self.memories:
            memory.reset_state()

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        """Computes the metrics as `keras.Model` does, of complete batches alone."""
        x, y, sample_weight = self._ensure_batch_size((x, y, sample_weight))
        return super().compute_metrics(x, y, y_pred, sample_weight)

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


def _filled(x, y, sample_weight, batch_size):
    """Arrays whose last batch is full, with rows of weight 0, and how many rows were given."""
    (x, y, sample_weight), rows = fill_last_batch((x, y, sample_weight), batch_size)
    if rows is not None and y is not None:
        sample_weight = weights_of_rows(y, sample_weight, rows)
    return x, y, sample_weight, rows


def new_memories(
    num_layers: int, remembered: Sequence[str], recurrent_memory: keras.layers.Layer
) -> dict[str, StatefulMemory]:
    """Returns `StatefulMemory` layers by name: `memory_0`, `memory_1`, ... and the others.

    Args:
        num_layers: Int, the number of blocks.
        remembered: List of those of `memory_mask` and `memory_segment_ids` that are kept too.
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
        A dict with those of `memory`, `memory_mask` and `memory_segment_ids` that are among the
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
