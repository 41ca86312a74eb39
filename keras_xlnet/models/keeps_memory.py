"""Memory that a language model keeps in variables from batch to batch."""

import keras

from keras_xlnet.layers import StatefulMemory
from keras_xlnet.layers.arguments import check_positive_int
from keras_xlnet.layers.memory import ensure_batch_size


class KeepsMemory:
    """Mixin of language models with the arguments `stateful` and `batch_size`.

    A stateful model has its `StatefulMemory` layers in the list `memories`.
    """

    def evaluate(self, *args, **kwargs):
        """Evaluates as `keras.Model` does, with an empty memory; that of training is kept."""
        self._reset_evaluation()
        return super().evaluate(*args, **kwargs)

    def predict(self, *args, **kwargs):
        """Predicts as `keras.Model` does, with an empty memory; that of training is kept."""
        self._reset_evaluation()
        return super().predict(*args, **kwargs)

    def reset_state(self):
        """Forgets what a stateful model remembers, of training and of evaluation."""
        for memory in self.memories:
            memory.reset_state()

    def _reset_evaluation(self):
        for memory in self.memories:
            memory.reset_evaluation_state()

    def _complete(self, inputs):
        return self._ensure_batch_size(super()._complete(inputs))

    def _ensure_batch_size(self, tensors):
        if not self.stateful or tensors is None:
            return tensors
        return keras.tree.map_structure(lambda x: ensure_batch_size(x, self.batch_size), tensors)


def new_memories(names, model, dtype):
    """Returns `StatefulMemory` layers by name.

    Args:
        names: List of strings.
        model: What has `memory_length` and `reuse_length`.
        dtype: Dtype policy of the layers.
    """
    return {
        name: StatefulMemory(model.memory_length, model.reuse_length, dtype=dtype, name=name)
        for name in names
    }


def check_memory_arguments(memory_length, stateful, batch_size, attend_to_empty_memory):
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
