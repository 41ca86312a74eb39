import keras
from keras import ops

from keras_xlnet.layers import (
    AttentionBiases,
    AttentionMask,
    HashDropout,
    RecurrentMemory,
    RelativePositionEncoding,
    SegmentMatrix,
    TwoStreamBlock,
)
from keras_xlnet.layers.arguments import check_choice, check_positive_int, check_rate
from keras_xlnet.layers.gelu_tanh import get_activation, serialize_activation
from keras_xlnet.layers.initialization import (
    clone_initializer,
    get_kernel_initializer,
    spawn_seeds,
)
from keras_xlnet.layers.quantization import RestoresQuantization
from keras_xlnet.models.named_sizes import NAMED_SIZES
from keras_xlnet.models.optional_inputs import OptionalInputs
from keras_xlnet.models.preset import Preset


@keras.saving.register_keras_serializable(package="keras_xlnet")
class XLNetBackbone(RestoresQuantization, Preset, OptionalInputs, keras.Model):
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
        memory_length: Int, how many rows of each layer's input are remembered for the next
            segment. `None` or 0 for a model without memory.
        reuse_length: Int, how many rows from the start of a segment are remembered. `None` or 0
            for all of them.
        clamp_length: Int: larger distances are taken as this one. `None` for no limit.
        same_length: With `"uni"`, row `i` loses the `i` oldest context rows.
        bidirectional_data: If `True`, the second half of the batch holds text in reverse.
        tie_attention_biases: If `True`, all layers share the three query biases (the original's
            `untie_r=False`).
        carry_memory_segments: If `True`, the segment ids of memory are carried along with it. By
            default all of memory is segment 0, as in the original.
        layer_norm_epsilon: Float; the original's is 1e-12.
        kernel_initializer: Initializer of all weights but dense biases. `None` for
            normal(0, 0.02).
        dtype: Keras dtype or policy of all layers.
        seed: Optional int that fixes the dropout masks.
        attention_chunk_size: Int: attention is computed for so many query rows at a time, so that
            memory grows with the length and not with its square. Same numbers, other dropout masks.
            `None` for all rows at once.
        gradient_checkpointing: If `True`, training remembers only what goes into each block, and
            the backward pass computes the block again: less memory, more time, the same numbers.

    Inputs, a dict. Only `token_ids` must be given:
        token_ids: `(batch, length)` int32.
        segment_ids: `(batch, length)` int32. All alike by default, which is the same as none.
        padding_mask: `(batch, length)` bool, `True` for real tokens. All real by default.
        memory: `(batch, num_layers, up to memory_length, hidden_dim)`. None remembered by
            default. Only with `memory_length`, like the next two.
        memory_mask: `(batch, as memory)` bool, `True` for rows that may be attended to. All by
            default, as in the original.
        memory_segment_ids: `(batch, as memory)` int32, only with `carry_memory_segments`.

    Outputs, a dict:
        sequence_output: `(batch, length, hidden_dim)`.
        memory, memory_mask, memory_segment_ids: what to feed with the next segment, if the
            inputs have them. They carry no gradient.

    Raises:
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

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        head_dim=None,
        dropout=0.1,
        attention_dropout=0.1,
        activation="gelu_tanh",
        attention_type="bi",
        memory_length=None,
        reuse_length=None,
        clamp_length=None,
        same_length=False,
        bidirectional_data=False,
        tie_attention_biases=False,
        carry_memory_segments=False,
        layer_norm_epsilon=1e-12,
        kernel_initializer=None,
        dtype=None,
        seed=None,
        attention_chunk_size=None,
        gradient_checkpointing=False,
        name="xlnet_backbone",
        **kwargs,
    ):
        check_positive_int("vocabulary_size", vocabulary_size)
        check_positive_int("num_layers", num_layers)
        check_rate("dropout", dropout)
        head_dim = _head_dim(head_dim, hidden_dim, num_heads)
        memory_length, reuse_length = memory_length or None, reuse_length or None
        _check_memory_arguments(memory_length, reuse_length, carry_memory_segments)
        dtype = keras.dtype_policies.get(dtype)
        initializer = get_kernel_initializer(kernel_initializer)
        seeds = spawn_seeds(seed, num_layers + 3)

        # === Layers ===
        token_embedding = keras.layers.ReversibleEmbedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=clone_initializer(initializer),
            dtype=dtype,
            name="token_embedding",
        )
        embedding_dropout, position_dropout, output_dropout = (
            HashDropout(dropout, seed=s, dtype=dtype, name=f"{what}_dropout")
            for what, s in zip(("embedding", "position", "output"), seeds[num_layers:], strict=True)
        )
        encode_positions = RelativePositionEncoding(
            hidden_dim,
            attention_type=attention_type,
            clamp_length=clamp_length,
            bidirectional_data=bidirectional_data,
            dtype=dtype,
            name="position_encoding",
        )
        make_mask = AttentionMask(
            attention_type, same_length=same_length, dtype=dtype, name="attention_mask"
        )
        match_segments = SegmentMatrix(dtype=dtype, name="segment_matrix")
        shared_biases = None
        if tie_attention_biases:
            shared_biases = AttentionBiases(
                num_heads, head_dim, initializer, dtype=dtype, name="attention_biases"
            )
        blocks = [
            TwoStreamBlock(
                num_heads,
                head_dim,
                intermediate_dim,
                dropout=dropout,
                attention_dropout=attention_dropout,
                activation=activation,
                layer_norm_epsilon=layer_norm_epsilon,
                kernel_initializer=initializer,
                seed=seeds[i],
                attention_chunk_size=attention_chunk_size,
                gradient_checkpointing=gradient_checkpointing,
                dtype=dtype,
                name=f"block_{i}",
            )
            for i in range(num_layers)
        ]
        remember = None
        if memory_length:
            remember = RecurrentMemory(
                memory_length, reuse_length, dtype=dtype, name="recurrent_memory"
            )

        # === Functional graph ===
        inputs = {
            "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
            "segment_ids": keras.Input((None,), dtype="int32", name="segment_ids"),
            "padding_mask": keras.Input((None,), dtype="bool", name="padding_mask"),
        }
        if memory_length:
            inputs["memory"] = keras.Input(
                (num_layers, None, hidden_dim), dtype=dtype.compute_dtype, name="memory"
            )
            inputs["memory_mask"] = keras.Input((None,), dtype="bool", name="memory_mask")
        if carry_memory_segments:
            inputs["memory_segment_ids"] = keras.Input(
                (None,), dtype="int32", name="memory_segment_ids"
            )
        memory = inputs.get("memory")
        x = embedding_dropout(token_embedding(inputs["token_ids"]))
        positions = position_dropout(encode_positions(x, memory=memory))
        biases = shared_biases(positions) if tie_attention_biases else None
        segment_matrix = match_segments(
            inputs["segment_ids"],
            memory=memory,
            memory_segment_ids=inputs.get("memory_segment_ids"),
        )
        attention_mask, _ = make_mask(
            x,
            padding_mask=inputs["padding_mask"],
            memory=memory,
            memory_mask=inputs.get("memory_mask"),
        )
        new_memory = []
        for i, block in enumerate(blocks):
            layer_memory = None if memory is None else memory[:, i]
            if memory is not None:
                new_memory.append(remember(x, layer_memory))
            x = block(
                x,
                memory=layer_memory,
                position_encoding=positions,
                segment_matrix=segment_matrix,
                content_attention_mask=attention_mask,
                attention_biases=biases,
            )
        outputs = {"sequence_output": output_dropout(x)}
        if memory is not None:
            outputs["memory"] = ops.stack(new_memory, axis=1)
            outputs["memory_mask"] = remember(inputs["padding_mask"], inputs["memory_mask"])
        if carry_memory_segments:
            outputs["memory_segment_ids"] = remember(
                inputs["segment_ids"], inputs["memory_segment_ids"]
            )
        super().__init__(inputs=inputs, outputs=outputs, name=name, **kwargs)

        # Only now: PyTorch modules take no submodules before they are initialized.
        self.token_embedding = token_embedding
        self.embedding_dropout = embedding_dropout
        self.position_dropout = position_dropout
        self.position_encoding = encode_positions
        self.attention_mask = make_mask
        self.segment_matrix = match_segments
        self.attention_biases = shared_biases
        self.blocks = blocks
        self.recurrent_memory = remember
        self.output_dropout = output_dropout

        # === Config ===
        self.dtype_policy = dtype
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.head_dim = head_dim
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.activation = get_activation(activation)
        self.attention_type = attention_type
        self.memory_length = memory_length
        self.reuse_length = reuse_length
        self.clamp_length = clamp_length
        self.same_length = same_length
        self.bidirectional_data = bidirectional_data
        self.tie_attention_biases = tie_attention_biases
        self.carry_memory_segments = carry_memory_segments
        self.layer_norm_epsilon = layer_norm_epsilon
        self.kernel_initializer = initializer
        self.seed = seed
        self.attention_chunk_size = attention_chunk_size
        self.gradient_checkpointing = gradient_checkpointing

    @classmethod
    def from_config_name(cls, name, **overrides):
        """A backbone of a named size, with random weights.

        `"xlnet_base"` and `"xlnet_large"` have the hyper-parameters of the released models,
        `"xlnet_tiny"` and `"xlnet_small"` are for trying things.

        Args:
            name: `"xlnet_tiny"`, `"xlnet_small"`, `"xlnet_base"` or `"xlnet_large"`.
            **overrides: Arguments of the class that are to be others, such as `vocabulary_size`
                (32000).

        Returns:
            An `XLNetBackbone`.

        Raises:
            ValueError: If there is no such name.

        Example:

        >>> backbone = keras_xlnet.models.XLNetBackbone.from_config_name(
        ...     "xlnet_tiny", vocabulary_size=100)
        >>> backbone.num_layers, backbone.hidden_dim
        (2, 128)

        Source: `xlnet_config.json` of the released checkpoints; Yang et al. 2019, table 8.
        """
        check_choice("name", name, tuple(NAMED_SIZES))
        return cls(**{**NAMED_SIZES[name], **overrides})

    def get_config(self):
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
            "carry_memory_segments": self.carry_memory_segments,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
            "attention_chunk_size": self.attention_chunk_size,
            "gradient_checkpointing": self.gradient_checkpointing,
            **self.quantization_config(),
        }


def _head_dim(head_dim, hidden_dim, num_heads):
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


def _check_memory_arguments(memory_length, reuse_length, carry_memory_segments):
    if memory_length is not None:
        check_positive_int("memory_length", memory_length)
    if memory_length is None and (reuse_length is not None or carry_memory_segments):
        raise ValueError(
            "`reuse_length` and `carry_memory_segments` need a `memory_length`. Received: "
            f"memory_length=None, reuse_length={reuse_length!r}, "
            f"carry_memory_segments={carry_memory_segments!r}"
        )
