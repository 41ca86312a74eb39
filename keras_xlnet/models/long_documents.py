"""How a task model reads documents that are too long for its attention."""

from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_choice, check_positive_int
from keras_xlnet.preprocessing.packing import SEGMENT_PADDING
from keras_xlnet.preprocessing.rows_of_texts import NUM_LAST
from keras_xlnet.types import Shape, Tensor

DOCUMENT_ARGUMENTS = ("long_document", "segment_length", "gradient_segments")
_MODES = ("truncate", "head_tail", "windows", "memory")


class SegmentReader(keras.layers.Layer):
    """Runs a backbone over the segments of documents, each with the memory of earlier ones.

    Documents are divided from their end, so the last segment is full, and padding is on the
    left of the first one. It is masked in memory too, and each document
    starts with an empty memory. Memory carries no gradient.

    Args:
        backbone: An `XLNetBackbone` with a `memory_length`.
        segment_length: Int, the tokens of a segment.
        gradient_segments: Int, the number of segments at the end that are returned and trained on.
            Earlier ones are read in a loop without dropout, only to fill the memory: training
            needs no more memory for longer documents. `None` for all, which needs a static length.

    Call arguments:
        inputs: Dict of `token_ids`, `segment_ids` and `padding_mask`, `(batch, length)`.
        training: Whether dropout is applied in the segments that are returned.

    Returns:
        The backbone's outputs `(batch, returned_length, hidden_dim)`, and the token ids and the
        padding mask of the returned tensor, `(batch, returned_length)`.
    """

    def __init__(
        self,
        backbone: keras.Model,
        segment_length: int,
        gradient_segments: int | None = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(dtype=backbone.dtype_policy, **kwargs)
        self.backbone = backbone
        self.segment_length = segment_length
        self.gradient_segments = gradient_segments
        self.built = True

    def call(
        self, inputs: dict[str, Tensor], training: bool | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        # As many segments as are returned, also for short documents.
        inputs = _whole_segments(inputs, self.segment_length, self.gradient_segments or 1)
        count = ops.shape(inputs["token_ids"])[1] // self.segment_length
        first = self._first_returned(count)
        memory = self._read_before(inputs, first)
        sequences = []
        for back in range(self.gradient_segments or count, 0, -1):
            segment = _segment(inputs, count - back, self.segment_length)
            outputs = self.backbone({**segment, **memory}, training=training)
            sequences.append(outputs.pop("sequence_output"))
            memory = outputs
        length = len(sequences) * self.segment_length
        token_ids, mask = (inputs[key][:, -length:] for key in ("token_ids", "padding_mask"))
        return ops.concatenate(sequences, axis=1), token_ids, mask

    def _first_returned(self, count):
        if self.gradient_segments is not None:
            return count - self.gradient_segments
        if not isinstance(count, int):
            raise ValueError(
                "`gradient_segments=None` needs inputs of a static length. Received: token_ids of "
                "an unknown length. Pad all batches to one length, or give a number of segments"
            )
        return 0

    def _read_before(self, inputs, end):
        """The memory of the segments before segment `end`, read in a loop."""
        memory = self._empty_memory(inputs["token_ids"])
        if isinstance(end, int) and end == 0:
            return memory
        keys = tuple(memory)
        # Segments that are padding in all documents of the batch are not computed.
        is_empty = ops.logical_not(ops.any(inputs["padding_mask"], axis=0))
        num_empty = ops.sum(ops.cumprod(ops.cast(is_empty, "int32")))
        start = ops.cast(num_empty // self.segment_length, "int32")

        def read(i, *values):
            segment = _segment(inputs, i, self.segment_length)
            given = dict(zip(keys, values, strict=True))
            outputs = self.backbone({**segment, **given}, training=False)
            return (i + 1, *(outputs[key] for key in keys))

        state = ops.while_loop(lambda i, *_: i < end, read, (start, *memory.values()))
        return dict(zip(keys, map(ops.stop_gradient, state[1:]), strict=True))

    def _empty_memory(self, token_ids):
        """The empty memory: of full length, all of it masked."""
        row = ops.zeros_like(token_ids[:, :1])
        rows = ops.repeat(row, self.backbone.memory_length, axis=1)
        shape = (1, self.backbone.num_layers, 1, self.backbone.hidden_dim)
        content = ops.cast(rows[:, None, :, None], self.backbone.input["memory"].dtype)
        memory = {"memory": ops.tile(content, shape), "memory_mask": ops.cast(rows, "bool")}
        if self.backbone.remember_segment_ids:
            memory["memory_segment_ids"] = rows
        return memory

    def compute_output_spec(
        self, inputs: dict[str, keras.KerasTensor], training: bool | None = None
    ) -> tuple[keras.KerasTensor, keras.KerasTensor, keras.KerasTensor]:
        token_ids, mask = inputs["token_ids"], inputs["padding_mask"]
        length = self.gradient_segments and self.gradient_segments * self.segment_length
        shape = (token_ids.shape[0], length)
        return (
            keras.KerasTensor((*shape, self.backbone.hidden_dim), dtype=self.compute_dtype),
            keras.KerasTensor(shape, dtype=token_ids.dtype),
            keras.KerasTensor(shape, dtype=mask.dtype),
        )


class DivideIntoWindows(keras.Operation):
    """`(batch, length)` -> `(batch * num_windows, window_length)`, and which windows have tokens.

    Windows are counted from the end. Each ends with the last two tokens of its row, `<sep>` and
    `<cls>`.

    Args:
        window_length: Int, the tokens of a window, with the two.
    """

    def __init__(self, window_length: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.window_length = window_length

    def call(self, inputs: dict[str, Tensor]) -> tuple[dict[str, Tensor], Tensor]:
        length = self.window_length - NUM_LAST
        last = {key: value[:, None, -NUM_LAST:] for key, value in inputs.items()}
        content = {key: value[:, :-NUM_LAST] for key, value in inputs.items()}
        content = _whole_segments(content, length)
        batch_size, total = ops.shape(content["token_ids"])
        count = total // length
        windows = {}
        for key, value in content.items():
            value = ops.reshape(value, (batch_size, count, length))
            windows[key] = ops.concatenate([value, ops.repeat(last[key], count, axis=1)], axis=2)
        is_window = ops.any(windows["padding_mask"][:, :, :-NUM_LAST], axis=2)
        # A text without tokens keeps its last window, so that it has a summary.
        is_last = ops.arange(count) == count - 1
        is_window = ops.logical_or(is_window, is_last[None])
        flat = {
            key: ops.reshape(value, (batch_size * count, self.window_length))
            for key, value in windows.items()
        }
        return flat, is_window

    def compute_output_spec(
        self, inputs: dict[str, keras.KerasTensor]
    ) -> tuple[dict[str, keras.KerasTensor], keras.KerasTensor]:
        flat = {
            key: keras.KerasTensor((None, self.window_length), dtype=value.dtype)
            for key, value in inputs.items()
        }
        batch_size = inputs["token_ids"].shape[0]
        return flat, keras.KerasTensor((batch_size, None), dtype="bool")


class GroupWindows(keras.Operation):
    """`(batch * num_windows, hidden_dim)` -> `(batch, num_windows, hidden_dim)`."""

    def call(self, summaries: Tensor, is_window: Tensor) -> Tensor:
        return ops.reshape(summaries, (*ops.shape(is_window), summaries.shape[-1]))

    def compute_output_spec(
        self, summaries: keras.KerasTensor, is_window: keras.KerasTensor
    ) -> keras.KerasTensor:
        shape: Shape = (*is_window.shape, summaries.shape[-1])
        return keras.KerasTensor(shape, dtype=summaries.dtype)


def check_long_document(
    backbone: keras.Model,
    pooling: str,
    long_document: str,
    segment_length: int,
    gradient_segments: int | None,
) -> None:
    """Raises `ValueError` if the arguments of a task model for long documents do not fit."""
    check_choice("long_document", long_document, _MODES)
    if long_document not in ("windows", "memory"):
        return
    check_positive_int("segment_length", segment_length)
    if segment_length <= NUM_LAST:
        raise ValueError(
            "`segment_length` must be at least 3: a token, <sep> and <cls>. Received: "
            f"segment_length={segment_length}"
        )
    if gradient_segments is not None:
        check_positive_int("gradient_segments", gradient_segments)
    if pooling == "pair":
        raise ValueError(
            f"`pooling='pair'` compares the tokens of two texts at once. Received: pooling='pair', "
            f"long_document={long_document!r}"
        )
    if long_document == "memory" and backbone.memory_length is None:
        raise ValueError(
            "`long_document='memory'` needs a backbone with a `memory_length`: load it with "
            "`from_preset(..., memory_length=...)`. Received: backbone.memory_length=None"
        )


def preprocessor_for_documents(
    preprocessor: Any, preprocessor_cls: type, long_document: str
) -> Any:
    """Returns a preprocessor as the model needs it: of its class, with its truncation.

    Raises:
        ValueError: If segments are counted from the end but the preprocessor pads there.
    """
    if preprocessor is None:
        return None
    if long_document in ("windows", "memory") and preprocessor.padding_side != "left":
        raise ValueError(
            f"`long_document={long_document!r}` needs a preprocessor that pads on the left. "
            f"Received: preprocessor.padding_side={preprocessor.padding_side!r}"
        )
    is_of_class = isinstance(preprocessor, preprocessor_cls)
    changed = {"truncation": "middle"} if long_document == "head_tail" else {}
    if is_of_class and all(getattr(preprocessor, key) == value for key, value in changed.items()):
        return preprocessor
    config = {**preprocessor.get_config(), "tokenizer": preprocessor.tokenizer, **changed}
    if not is_of_class:
        del config["name"]
    return preprocessor_cls(**config)


def _whole_segments(inputs, length, at_least=1):
    """The inputs, padded on the left to a multiple of a length, and to at least some segments."""
    missing = -ops.shape(inputs["token_ids"])[1] % length + (at_least - 1) * length
    values = {"token_ids": 0, "segment_ids": SEGMENT_PADDING, "padding_mask": False}
    return {
        key: ops.pad(inputs[key], ((0, 0), (missing, 0)), constant_values=value)
        for key, value in values.items()
    }


def _segment(inputs, i, length):
    """Segment `i` of the inputs; padding for one before the first."""
    return {
        key: ops.slice(value, (0, i * length), (ops.shape(value)[0], length))
        for key, value in inputs.items()
    }
