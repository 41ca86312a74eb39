"""The parts of the graphs of tasks: inputs, summaries of texts, logits."""

import numbers
from collections.abc import Sequence

import keras
from keras import ops

from keras_xlnet.arguments import check_choice, check_positive_int
from keras_xlnet.compat.lora import Dense
from keras_xlnet.layers import PairComparison, SequencePooling, SequenceSummary
from keras_xlnet.layers.initializers import clone_initializer, spawn_seeds
from keras_xlnet.layers.sequence_pooling import MODES
from keras_xlnet.models.long_documents import DivideIntoWindows, GroupWindows, SegmentReader
from keras_xlnet.models.weight_rows import Row, dense, norm
from keras_xlnet.types import Shape, Tensor

# The logit of a missing choice or document.
_ABSENT = -1e9
# The weight mapping of `SequenceSummary`. The spelling of the scope is the original's. Pooling by
# attention has weights of its own.
_SUMMARY = "model/sequnece_summary"
_POOLING = "sequence_summary/pooling"
SUMMARY_ROWS = [
    Row(f"{_POOLING}/query", f"{_SUMMARY}/summary_bias", None),
    *(
        Row(f"{_POOLING}/attention/{ours}/kernel", f"{_SUMMARY}/abs_attn/{theirs}/kernel", None)
        for ours, theirs in (("query", "q"), ("key", "k"), ("value", "v"))
    ),
    Row(
        f"{_POOLING}/attention/attention_output/kernel",
        f"{_SUMMARY}/abs_attn/o/kernel",
        None,
        original_axes=(1, 2, 0),
    ),
    *norm(f"{_POOLING}/norm", f"{_SUMMARY}/abs_attn/LayerNorm", None),
    *dense("sequence_summary/dense", f"{_SUMMARY}/summary", "sequence_summary.summary"),
]


def check_backbone(backbone: keras.Model) -> None:
    """Raises `ValueError` if `backbone` is none, or expects text in reverse in half of a batch."""
    if not hasattr(backbone, "bidirectional_data"):
        raise ValueError(
            "`backbone` must be an XLNetBackbone, such as XLNetBackbone.from_preset("
            f"'xlnet_mini_en'). Received: backbone={backbone!r}"
        )
    if backbone.bidirectional_data:
        raise ValueError(
            "`backbone` expects text in reverse in the second half of a batch, as in pretraining. "
            "Load it with `from_preset(directory, bidirectional_data=False)`. Received: "
            "backbone.bidirectional_data=True"
        )


def check_classes(num_classes: int, activation: str, class_names: Sequence[str] | None) -> None:
    """Raises `ValueError` if number, activation and names of classes do not match."""
    check_positive_int("num_classes", num_classes)
    if activation == "softmax" and num_classes == 1:
        raise ValueError(
            "`num_classes=1` with `activation='softmax'` always gives 1.0. Use 2 classes, or "
            "another activation"
        )
    if class_names is None:
        return
    is_list = not isinstance(class_names, (str, bytes, dict)) and hasattr(class_names, "__len__")
    if not is_list or not all(isinstance(name, (str, numbers.Integral)) for name in class_names):
        raise ValueError(
            f"`class_names` must be a list of strings. Received: class_names={class_names!r}"
        )
    if len(class_names) != num_classes:
        raise ValueError(
            f"`class_names` must have `num_classes` names. Received: {len(class_names)} names, "
            f"num_classes={num_classes}"
        )
    names = [str(name) for name in class_names]
    for row, name in enumerate(names):
        if name in names[:row]:
            raise ValueError(
                "`class_names` must have different names. Received in places "
                f"{names.index(name)} and {row}: {name!r}"
            )


def token_inputs(backbone: keras.Model, shape: Shape = (None,)) -> dict[str, keras.KerasTensor]:
    """Returns the symbolic inputs `token_ids`, `segment_ids` and `padding_mask`.

    Args:
        backbone: An `XLNetBackbone`.
        shape: Their shape, without the batch.
    """
    return {
        key: keras.Input(shape, dtype=backbone.input[key].dtype, name=key)
        for key in ("token_ids", "segment_ids", "padding_mask")
    }


def pooled_logits(
    backbone: keras.Model,
    inputs: dict[str, keras.KerasTensor],
    units: int,
    pooling: str,
    dropout: float,
    long_document: str = "truncate",
    segment_length: int = 512,
    gradient_segments: int | None = 1,
) -> tuple[keras.KerasTensor, keras.layers.Layer, keras.layers.Layer]:
    """Builds the graph from inputs to the logits of whole texts.

    Args:
        backbone: An `XLNetBackbone`.
        inputs: The symbolic inputs of `token_inputs`.
        units: Int, the number of logits.
        pooling: As in `SequenceSummary`, or `"pair"` for `PairComparison`.
        dropout: Float, dropout rate before the logits.
        long_document, segment_length, gradient_segments: As in `XLNetTextClassifier`.

    Returns:
        Symbolic logits `(batch, units)`, the summary layer and the last dense layer.
    """
    summarize = _new_summary(backbone, pooling, dropout)
    document = long_document, segment_length, gradient_segments
    reading = read_texts(backbone, inputs, pooling, *document)
    summary = summary_of(reading, summarize)
    logits_dense = new_logits(backbone, units)
    return logits_dense(summary), summarize, logits_dense


def read_texts(
    backbone: keras.Model,
    inputs: dict[str, keras.KerasTensor],
    pooling: str,
    long_document: str = "truncate",
    segment_length: int = 512,
    gradient_segments: int | None = 1,
) -> dict[str, keras.KerasTensor]:
    """Builds the part of `pooled_logits` that tasks on one backbone share.

    Args:
        backbone, inputs, pooling, long_document, segment_length, gradient_segments: As in
            `pooled_logits`.

    Returns:
        Dict of the symbolic tensors that `summary_of` takes.
    """
    if pooling == "pair":
        return {"levels": _read_levels(backbone, inputs), **inputs}
    if long_document == "memory":
        # The last segments, which have the memory of earlier ones.
        read = SegmentReader(backbone, segment_length, gradient_segments, name="segment_reader")
        sequence, token_ids, padding_mask = read(inputs)
        return {"sequence": sequence, "token_ids": token_ids, "padding_mask": padding_mask}
    others = {}
    if long_document == "windows":
        inputs, others["is_window"] = DivideIntoWindows(segment_length)(inputs)
    sequence = backbone(inputs)["sequence_output"]
    of_tokens = {key: inputs[key] for key in ("token_ids", "padding_mask")}
    return {"sequence": sequence, **of_tokens, **others}


def summary_of(
    reading: dict[str, keras.KerasTensor], summarize: keras.layers.Layer
) -> keras.KerasTensor:
    """Returns the summaries `(batch, hidden_dim)` of what `read_texts` returned.

    Windows have the mean of their summaries.
    """
    reading = dict(reading)
    is_window = reading.pop("is_window", None)
    summary = summarize(reading.pop("levels" if "levels" in reading else "sequence"), **reading)
    if is_window is None:
        return summary
    mean = SequencePooling("mean", dtype=summarize.dtype_policy, name="mean_of_windows")
    return mean(GroupWindows()(summary, is_window), padding_mask=is_window)


def _new_summary(backbone, pooling, dropout):
    check_choice("pooling", pooling, (*MODES, "pair"))
    if pooling == "pair":
        (seed,) = spawn_seeds(backbone.seed, 1, "PairComparison")
        width = max(1, backbone.hidden_dim // 4)
        return PairComparison(width, dropout=dropout, seed=seed, name="pair_comparison")
    return SequenceSummary(
        pooling,
        num_heads=backbone.num_heads,
        head_dim=backbone.head_dim,
        dropout=dropout,
        layer_norm_epsilon=backbone.layer_norm_epsilon,
        kernel_initializer=clone_initializer(backbone.kernel_initializer),
        seed=backbone.seed,
        dtype=backbone.dtype_policy,
        name="sequence_summary",
    )


def _read_levels(backbone, inputs):
    """The states of all layers, for the comparison of pairs."""
    embeddings = backbone.token_embedding(inputs["token_ids"])
    content, _, layer_inputs = backbone.encode(
        backbone.embedding_dropout(embeddings),
        segment_ids=inputs["segment_ids"],
        padding_mask=inputs["padding_mask"],
    )
    levels = [embeddings, *layer_inputs[1:], backbone.output_dropout(content)]
    return ops.stack(levels, axis=2)


def new_logits(backbone: keras.Model, units: int) -> keras.layers.Dense:
    """Returns a dense layer for logits, with the initializer of `backbone`."""
    return Dense(
        units,
        kernel_initializer=clone_initializer(backbone.kernel_initializer),
        dtype=backbone.dtype_policy,
        name="logits",
    )


def join_choices(inputs: dict[str, keras.KerasTensor]) -> dict[str, keras.KerasTensor]:
    """Returns the inputs of `token_inputs` with a row for each choice."""
    return {key: JoinChoices(name=f"all_{key}")(value) for key, value in inputs.items()}


class JoinChoices(keras.Operation):
    """`(batch, num_choices, length)` -> `(batch * num_choices, length)`, of any static shape."""

    def call(self, x: Tensor) -> Tensor:
        return ops.reshape(x, (-1, ops.shape(x)[2]))

    def compute_output_spec(self, x: keras.KerasTensor) -> keras.KerasTensor:
        batch_size, num_choices, length = x.shape
        unknown = batch_size is None or num_choices is None
        shape = (None if unknown else batch_size * num_choices, length)
        return keras.KerasTensor(shape, dtype=x.dtype)


class SplitChoices(keras.Operation):
    """`(batch * num_choices, 1)` -> `(batch, num_choices)`, -1e9 for absent choices."""

    def call(self, logits: Tensor, padding_mask: Tensor) -> Tensor:
        logits = ops.reshape(logits, ops.shape(padding_mask)[:2])
        is_choice = ops.any(padding_mask, axis=-1)
        return ops.where(is_choice, ops.cast(logits, "float32"), _ABSENT)

    def compute_output_spec(
        self, logits: keras.KerasTensor, padding_mask: keras.KerasTensor
    ) -> keras.KerasTensor:
        return keras.KerasTensor(padding_mask.shape[:2], dtype="float32")
