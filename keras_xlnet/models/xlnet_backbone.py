import contextlib
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras

from keras_xlnet.arguments import check_choice, check_positive_int, check_rate
from keras_xlnet.compat.lora import ReversibleEmbedding
from keras_xlnet.layers import (
    AttentionBiases,
    AttentionMask,
    HashDropout,
    PackTexts,
    RecurrentMemory,
    RelativePositionEncoding,
    SegmentMatrix,
    TwoStreamBlock,
    UnpackTexts,
)
from keras_xlnet.layers.activations import get_activation, serialize_activation
from keras_xlnet.layers.initializers import (
    clone_initializer,
    get_kernel_initializer,
    spawn_seeds,
)
from keras_xlnet.models.base_model import BaseModel
from keras_xlnet.models.keeps_memory import next_memory, read_memories
from keras_xlnet.registration import register
from keras_xlnet.types import Activation, DType, Initializer, Tensor


class _OfThread(threading.local):
    """Values of a thread. `torch.compile` reads them, but not a `contextvars.ContextVar`."""

    # The `packing` of a task model whose graph calls the backbone without it.
    packing: Any = None


_of_thread = _OfThread()


def _config(num_layers, hidden_dim, num_heads):
    return {
        "vocabulary_size": 32000,
        "num_layers": num_layers,
        "num_heads": num_heads,
        "hidden_dim": hidden_dim,
        "intermediate_dim": 4 * hidden_dim,
        "head_dim": 64,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "activation": "gelu_tanh",
    }


CONFIGS = {
    "xlnet_tiny": _config(2, 128, 2),
    "xlnet_small": _config(4, 256, 4),
    # The released sizes.
    "xlnet_base": _config(12, 768, 12),
    "xlnet_large": _config(24, 1024, 16),
}


@register
class XLNetBackbone(BaseModel):
    """The XLNet encoder (Transformer-XL encoder with segments) as a functional model.

    Args:
        vocabulary_size: Int, number of token ids.
        num_layers: Int, number of blocks.
        num_heads: Int, number of attention heads.
        hidden_dim: Even int, width of the embeddings and of the output.
        intermediate_dim: Int, width of the feed-forward networks.
        head_dim: Int, size of each head. `None` for `hidden_dim / num_heads`.
        dropout: Float, dropout rate of embeddings, positions, attention outputs, feed-forward
            networks and output.
        attention_dropout: Float, dropout rate of the attention probabilities.
        activation: `"gelu_tanh"` (the released models) or any Keras activation.
        attention_type: `"bi"`: every token sees every real token. `"uni"`: causal.
        memory_length: Int, the number of rows of each layer's input that are remembered for the
            next segment. `None` or 0 for a model without memory.
        reuse_length: Int, the number of rows from the start of a segment that are remembered.
            `None` or 0 for all rows.
        clamp_length: Int, the largest distance: larger ones are replaced by it. `None` for no
            limit.
        same_length: If `True`, with `"uni"`, row `i` does not attend to the `i` oldest context
            rows.
        bidirectional_data: If `True`, the second half of the batch is text in reverse.
        tie_attention_biases: If `True`, all layers share the three query biases (`untie_r=False`
            of the original).
        remember_segment_ids: If `True`, the segment ids of memory are remembered with it. By
            default all of memory is segment 0, as in the original.
        layer_norm_epsilon: Float. The original uses 1e-12.
        kernel_initializer: Initializer of all weights except the biases of dense layers. `None`
            for normal(0, 0.02).
        dtype: Keras dtype or policy of all layers.
        seed: Optional int that fixes the dropout masks.
        attention_chunk_size: Int, the number of query rows for which attention is computed at a
            time. Memory then grows linearly with the length, not quadratically. The results are
            the same except for the dropout masks. `None` for all rows at once.
        gradient_checkpointing: If `True`, training keeps only the inputs of each block, and the
            backward pass recomputes the block: less memory, more time, the same results.

    Inputs, a dict. Only `token_ids` is required:
        token_ids: `(batch, length)` int32, from 0 to `vocabulary_size - 1`. `fit`, `evaluate` and
            `predict` check arrays before the first step. In datasets and calls, other ids are
            not always detected: compiled graphs clamp them.
        segment_ids: `(batch, length)` int32. One segment by default.
        padding_mask: `(batch, length)` bool, `True` for real tokens. All real by default.
        packing: `(rows, row_length)` int32: which token stands at each place of rows that hold
            several texts, counted over `(batch, length)`; -1 for none, see `PackTexts`. Outputs of
            real tokens do not depend on it. By default each text is a row. Not with a
            `memory_length` or `bidirectional_data`.
        memory: `(batch, num_layers, rows, hidden_dim)`, at most `memory_length` rows. Empty by
            default. Only with `memory_length`, as the next two.
        memory_mask: `(batch, rows)` bool, `True` for rows that may be attended to. All by
            default, as in the original.
        memory_segment_ids: `(batch, rows)` int32. Only with `remember_segment_ids`.

    Outputs, a dict:
        sequence_output: `(batch, length, hidden_dim)`.
        memory, memory_mask, memory_segment_ids: The inputs for the next segment, if the model has
            these inputs. They carry no gradient.

    Raises:
        TypeError: If there is no argument of that name.
        ValueError: If an argument or the keys of the inputs are not as above.

    Example:

    >>> backbone = keras_xlnet.models.XLNetBackbone(
    ...     vocabulary_size=100, num_layers=2, num_heads=2, hidden_dim=16,
    ...     intermediate_dim=32, memory_length=4)
    >>> first = backbone({"token_ids": np.array([[5, 17, 8, 9, 3]])})
    >>> first["sequence_output"].shape, first["memory"].shape
    (TensorShape([1, 5, 16]), TensorShape([1, 2, 4, 16]))
    >>> second = backbone({"token_ids": np.array([[6, 7, 3]]), "memory": first["memory"]})

    Source: Yang et al. 2019 (XLNet); Dai et al. 2019 (Transformer-XL).
    """

    # The SHA-256 of the SentencePiece model (`spiece.model`) that the weights were trained with.
    # `from_preset` sets it if the preset records it; tokenizers with another one are refused.
    vocabulary_sha256 = None

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        head_dim: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation: Activation = "gelu_tanh",
        attention_type: str = "bi",
        memory_length: int | None = None,
        reuse_length: int | None = None,
        clamp_length: int | None = None,
        same_length: bool | int = False,
        bidirectional_data: bool = False,
        tie_attention_biases: bool = False,
        remember_segment_ids: bool = False,
        layer_norm_epsilon: float = 1e-12,
        kernel_initializer: Initializer | None = None,
        dtype: DType | None = None,
        seed: int | None = None,
        attention_chunk_size: int | None = None,
        gradient_checkpointing: bool = False,
        name: str = "xlnet_backbone",
        **kwargs: Any,
    ) -> None:
        check_positive_int("vocabulary_size", vocabulary_size)
        check_positive_int("num_layers", num_layers)
        check_rate("dropout", dropout)
        head_dim = head_dim_of(head_dim, hidden_dim, num_heads)
        memory_length, reuse_length = memory_length or None, reuse_length or None
        _check_memory_arguments(memory_length, reuse_length, remember_segment_ids)
        config = types.SimpleNamespace(
            dtype_policy=keras.dtype_policies.get(dtype),
            vocabulary_size=vocabulary_size,
            num_layers=num_layers,
            num_heads=num_heads,
            hidden_dim=hidden_dim,
            intermediate_dim=intermediate_dim,
            head_dim=head_dim,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation=get_activation(activation),
            attention_type=attention_type,
            memory_length=memory_length,
            reuse_length=reuse_length,
            clamp_length=clamp_length,
            same_length=same_length,
            bidirectional_data=bidirectional_data,
            tie_attention_biases=tie_attention_biases,
            remember_segment_ids=remember_segment_ids,
            layer_norm_epsilon=layer_norm_epsilon,
            kernel_initializer=get_kernel_initializer(kernel_initializer),
            seed=seed,
            attention_chunk_size=attention_chunk_size,
            gradient_checkpointing=gradient_checkpointing,
        )

        # === Functional graph ===
        layers, inputs = _new_layers(config), _new_inputs(config)
        content = layers.embedding_dropout(layers.token_embedding(inputs["token_ids"]))
        content, _, layer_inputs = XLNetBackbone.encode(
            layers,  # Its attributes are the layers that `encode` uses.
            content,
            segment_ids=inputs["segment_ids"],
            padding_mask=inputs["padding_mask"],
            **read_memories(inputs),
        )
        outputs = {
            "sequence_output": layers.output_dropout(content),
            **next_memory(layers.recurrent_memory, layer_inputs, inputs),
        }
        super().__init__(inputs=inputs, outputs=outputs, name=name, **kwargs)
        for attribute, value in {**vars(config), **vars(layers)}.items():
            setattr(self, attribute, value)

    @property
    def _inputs_without_default(self):
        # Rows of memory, and of text in reverse, are of one text.
        return () if self.memory_length or self.bidirectional_data else ("packing",)

    def call(
        self, inputs: dict[str, Tensor], training: bool | None = None, mask: Any = None
    ) -> dict[str, Tensor]:
        """Runs the functional graph, or the same layers on packed rows."""
        packing = inputs.get("packing", _of_thread.packing)
        inputs = _without_packing(inputs)
        if packing is None:
            return super().call(inputs, training=training, mask=mask)
        rows = self.pack_texts(**inputs, packing=packing)
        content = self.token_embedding(rows.pop("token_ids"))
        content = self.embedding_dropout(content, training=training)
        content, _, _ = self.encode(content, **rows, training=training)
        content = self.output_dropout(content, training=training)
        return {"sequence_output": self.unpack_texts(content, packing, inputs["token_ids"])}

    def compute_output_spec(
        self, inputs: dict[str, Tensor], training: bool | None = None, mask: Any = None
    ) -> dict[str, keras.KerasTensor]:
        """Returns the shapes of the outputs, which do not depend on `packing`."""
        return super().compute_output_spec(_without_packing(inputs), training=training, mask=mask)

    def encode(
        self,
        content: Tensor,
        query: Tensor | None = None,
        *,
        segment_ids: Tensor,
        padding_mask: Tensor,
        permutation_mask: Tensor | None = None,
        target_positions: Tensor | None = None,
        read_memory: Callable[[int, Tensor], Tensor] | None = None,
        memory_mask: Tensor | None = None,
        memory_segment_ids: Tensor | None = None,
        text_ids: Tensor | None = None,
        training: bool | None = None,
    ) -> tuple[Tensor | None, Tensor | None, list[Tensor]]:
        """Runs the blocks on embedded tokens, with or without a query stream.

        Args:
            content: `(batch, length, hidden_dim)`, the first content stream.
            query: Optional `(batch, length or num_predictions, hidden_dim)`, the first query
                stream. The last block then computes the query stream only.
            segment_ids, padding_mask, memory_mask, memory_segment_ids: As in the inputs.
            permutation_mask: Optional `(batch, length, length)` bool, `[b, i, j]` is `True` where
                `i` may see `j`.
            target_positions: Optional `(batch, num_predictions)`, the positions of the rows of
                `query`.
            read_memory: Optional function of a layer's index and input content stream that returns
                the layer's memory. It is called once for each layer.
            text_ids: Optional, for rows of several texts, as in `AttentionMask`.
            training: As in the call of a layer.

        Returns:
            The last content stream, or `None` with a query stream; the last query stream, or
            `None`; and the list of the layers' input content streams.
        """
        memory = read_memory(0, content) if read_memory else None
        positions = self.position_dropout(
            self.position_encoding(content, memory=memory), training=training
        )
        segment_matrix = self.segment_matrix(
            segment_ids, memory=memory, memory_segment_ids=memory_segment_ids
        )
        content_mask, query_mask = self.attention_mask(
            content,
            padding_mask=padding_mask,
            permutation_mask=permutation_mask,
            memory=memory,
            memory_mask=memory_mask,
            text_ids=text_ids,
        )
        biases = None if self.attention_biases is None else self.attention_biases(positions)
        return run_blocks(
            self.blocks,
            content,
            query,
            memory=memory,
            read_memory=read_memory,
            position_encoding=positions,
            segment_matrix=segment_matrix,
            content_attention_mask=content_mask,
            query_attention_mask=None if query is None else query_mask,
            target_positions=target_positions,
            attention_biases=biases,
            training=training,
        )

    @classmethod
    def from_config_name(cls, name: str, **overrides: Any) -> "XLNetBackbone":
        """Creates a backbone with the hyperparameters of a named configuration and new weights.

        `"xlnet_base"` and `"xlnet_large"` are the configurations of the released models,
        `"xlnet_tiny"` and `"xlnet_small"` are for experiments.

        Args:
            name: `"xlnet_tiny"`, `"xlnet_small"`, `"xlnet_base"` or `"xlnet_large"`.
            **overrides: Arguments of the class that override the configuration, such as
                `vocabulary_size`, which is 32000.

        Returns:
            An `XLNetBackbone`.

        Raises:
            ValueError: If there is no configuration of that name.
            TypeError: If there is no argument of that name.

        Example:

        >>> backbone = keras_xlnet.models.XLNetBackbone.from_config_name(
        ...     "xlnet_tiny", vocabulary_size=100)
        >>> backbone.num_layers, backbone.hidden_dim
        (2, 128)

        Source: `xlnet_config.json` of the released checkpoints; Yang et al. 2019, table 8.
        """
        check_choice("name", name, tuple(CONFIGS))
        return cls(**{**CONFIGS[name], **overrides})

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "vocabulary_size": self.vocabulary_size,
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "hidden_dim": self.hidden_dim,
            "intermediate_dim": self.intermediate_dim,
            "head_dim": self.head_dim,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation": serialize_activation(self.activation),
            "attention_type": self.attention_type,
            "memory_length": self.memory_length,
            "reuse_length": self.reuse_length,
            "clamp_length": self.clamp_length,
            "same_length": self.same_length,
            "bidirectional_data": self.bidirectional_data,
            "tie_attention_biases": self.tie_attention_biases,
            "remember_segment_ids": self.remember_segment_ids,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
            "attention_chunk_size": self.attention_chunk_size,
            "gradient_checkpointing": self.gradient_checkpointing,
            **self.sublayer_config(),
        }


@contextlib.contextmanager
def packed_rows(inputs: dict[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    """A context in which backbones read packed rows, if the inputs of a task model have `packing`.

    Yields:
        The inputs without it, for a graph that does not know of it.
    """
    before, _of_thread.packing = _of_thread.packing, inputs.get("packing")
    try:
        yield _without_packing(inputs)
    finally:
        _of_thread.packing = before


def _without_packing(inputs):
    return {key: value for key, value in inputs.items() if key != "packing"}


def run_blocks(
    blocks: Sequence[keras.layers.Layer],
    content: Tensor,
    query: Tensor | None = None,
    *,
    memory: Tensor | None = None,
    read_memory: Callable[[int, Tensor], Tensor] | None = None,
    **arguments: Any,
) -> tuple[Tensor | None, Tensor | None, list[Tensor]]:
    """Runs blocks one after the other, with or without a query stream.

    Args:
        blocks: List of `TwoStreamBlock`s; without a query stream also of `TransformerXLBlock`s.
        content, query, read_memory: As in `XLNetBackbone.encode`.
        memory: Optional, the memory of the first block.
        **arguments: The other arguments of all blocks.

    Returns:
        As `XLNetBackbone.encode`.
    """
    layer_inputs = []
    for i, block in enumerate(blocks):
        if i > 0 and read_memory:
            memory = read_memory(i, content)
        layer_inputs.append(content)
        if query is None:
            content = block(content, memory=memory, **arguments)
        elif i + 1 < len(blocks):
            content, query = block(content, query, memory=memory, **arguments)
        else:  # No later layer attends to the content stream.
            query = block(content, query, memory=memory, return_content_stream=False, **arguments)
            content = None
    return content, query, layer_inputs


def head_dim_of(head_dim: int | None, hidden_dim: int, num_heads: int) -> int:
    """Returns the size of a head: the given one, or `hidden_dim / num_heads` for `None`."""
    check_positive_int("hidden_dim", hidden_dim)
    check_positive_int("num_heads", num_heads)
    if head_dim is not None:
        return check_positive_int("head_dim", head_dim)
    if hidden_dim % num_heads:
        raise ValueError(
            "`hidden_dim` must be a multiple of `num_heads` unless `head_dim` is given. "
            f"Received: hidden_dim={hidden_dim}, num_heads={num_heads}"
        )
    return hidden_dim // num_heads


def _check_memory_arguments(memory_length, reuse_length, remember_segment_ids):
    if memory_length is not None:
        check_positive_int("memory_length", memory_length)
    if memory_length is None and (reuse_length is not None or remember_segment_ids):
        raise ValueError(
            "`reuse_length` and `remember_segment_ids` need a `memory_length`. Received: "
            f"memory_length=None, reuse_length={reuse_length!r}, "
            f"remember_segment_ids={remember_segment_ids!r}"
        )


def new_common_layers(config: Any, owner: str, has_segments: bool = True) -> types.SimpleNamespace:
    """Returns the layers that XLNet and Transformer-XL share, by attribute name.

    In a namespace: PyTorch accepts submodules only after its module is initialized.

    Args:
        config: Namespace of the arguments of the model.
        owner: String, the class of the model, for the seeds of its dropout.
        has_segments: Bool, whether tied attention biases have one for segments.
    """
    dtype = config.dtype_policy
    dropout_seeds = spawn_seeds(config.seed, 3, f"HashDropout of {owner}")
    layers = types.SimpleNamespace()
    layers.embedding_dropout, layers.position_dropout, layers.output_dropout = (
        HashDropout(config.dropout, seed=s, dtype=dtype, name=f"{what}_dropout")
        for what, s in zip(("embedding", "position", "output"), dropout_seeds, strict=True)
    )
    layers.attention_biases = None
    if config.tie_attention_biases:
        layers.attention_biases = AttentionBiases(
            config.num_heads,
            config.head_dim,
            config.kernel_initializer,
            has_segments=has_segments,
            dtype=dtype,
            name="attention_biases",
        )
    layers.recurrent_memory = None
    if config.memory_length:
        layers.recurrent_memory = RecurrentMemory(
            config.memory_length, config.reuse_length, dtype=dtype, name="recurrent_memory"
        )
    return layers


def _new_layers(config):
    """The layers of a backbone, by the names of its attributes."""
    dtype = config.dtype_policy
    block_seeds = spawn_seeds(config.seed, config.num_layers, "TwoStreamBlock of XLNetBackbone")
    # First, because a global seed numbers layers in the order of their creation.
    token_embedding = ReversibleEmbedding(
        config.vocabulary_size,
        config.hidden_dim,
        embeddings_initializer=clone_initializer(config.kernel_initializer),
        dtype=dtype,
        name="token_embedding",
    )
    layers = new_common_layers(config, "XLNetBackbone")
    layers.token_embedding = token_embedding
    layers.position_encoding = RelativePositionEncoding(
        config.hidden_dim,
        attention_type=config.attention_type,
        clamp_length=config.clamp_length,
        bidirectional_data=config.bidirectional_data,
        dtype=dtype,
        name="position_encoding",
    )
    layers.attention_mask = AttentionMask(
        config.attention_type, same_length=config.same_length, dtype=dtype, name="attention_mask"
    )
    layers.pack_texts = PackTexts(dtype=dtype, name="pack_texts")
    layers.unpack_texts = UnpackTexts(dtype=dtype, name="unpack_texts")
    layers.segment_matrix = SegmentMatrix(dtype=dtype, name="segment_matrix")
    layers.blocks = [
        TwoStreamBlock(
            config.num_heads,
            config.head_dim,
            config.intermediate_dim,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            activation=config.activation,
            layer_norm_epsilon=config.layer_norm_epsilon,
            kernel_initializer=config.kernel_initializer,
            seed=block_seeds[i],
            attention_chunk_size=config.attention_chunk_size,
            gradient_checkpointing=config.gradient_checkpointing,
            dtype=dtype,
            name=f"block_{i}",
        )
        for i in range(config.num_layers)
    ]
    return layers


def _new_inputs(config):
    """The symbolic inputs of a backbone by name."""
    inputs = {
        "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
        "segment_ids": keras.Input((None,), dtype="int32", name="segment_ids"),
        "padding_mask": keras.Input((None,), dtype="bool", name="padding_mask"),
    }
    if config.memory_length:
        inputs["memory"] = keras.Input(
            (config.num_layers, None, config.hidden_dim),
            dtype=config.dtype_policy.compute_dtype,
            name="memory",
        )
        inputs["memory_mask"] = keras.Input((None,), dtype="bool", name="memory_mask")
    if config.remember_segment_ids:
        inputs["memory_segment_ids"] = keras.Input(
            (None,), dtype="int32", name="memory_segment_ids"
        )
    return inputs
