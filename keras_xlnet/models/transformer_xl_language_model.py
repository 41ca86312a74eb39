import types
from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_positive_int, check_rate
from keras_xlnet.layers import (
    AdaptiveEmbedding,
    AdaptiveSoftmax,
    AttentionMask,
    RelativePositionEncoding,
    TransformerXLBlock,
)
from keras_xlnet.layers.activations import get_activation, serialize_activation
from keras_xlnet.layers.initializers import get_kernel_initializer, spawn_seeds
from keras_xlnet.models.base_model import BaseModel
from keras_xlnet.models.decoding import CausalDecoder
from keras_xlnet.models.generation import GeneratesText
from keras_xlnet.models.keeps_memory import (
    KeepsMemory,
    check_memory_arguments,
    new_memories,
    next_memory,
    read_memories,
)
from keras_xlnet.models.scoring import Scores, score_causally, take_tokens
from keras_xlnet.models.xlnet_backbone import head_dim_of, new_common_layers, run_blocks
from keras_xlnet.registration import register
from keras_xlnet.types import Activation, DType, Initializer, Tensor


@register
class TransformerXLLanguageModel(GeneratesText, KeepsMemory, BaseModel):  # type: ignore[misc]  # `fit` names Keras' arguments.
    """The language model of Transformer-XL: predicts each next token, with memory.

    Every token attends to the tokens before it in the segment and to the memory of earlier
    segments. The model is compiled: `fit` takes token ids and, as labels, the ids that follow
    them. `loss="auto"` in `compile` means the mean negative log-likelihood of the labels; with
    `cutoffs`, only the clusters of the labels are computed. Optimizer `"auto"` is Adam with a
    learning rate of 2.5e-4 and gradients clipped to a norm of 0.25, as in the authors' code.

    Args:
        vocabulary_size: Int, number of token ids.
        num_layers: Int, number of blocks.
        num_heads: Int, number of attention heads.
        hidden_dim: Even int, width of the blocks.
        intermediate_dim: Int, width of the feed-forward networks.
        tokenizer: Optional `VocabularyTokenizer` or `XLNetTokenizer`, for `score` and `generate`.
        head_dim: Int, size of each head. `None` for `hidden_dim / num_heads`.
        embedding_dim: Int, width of the token embeddings, which are projected to `hidden_dim`.
            `None` for `hidden_dim`.
        dropout: Float, dropout rate of embeddings, positions, attention outputs, feed-forward
            networks and output.
        attention_dropout: Float, dropout rate of the attention probabilities.
        activation: `"relu"` (the authors') or any Keras activation.
        normalize_first: If `True`, the inputs of attention and feed-forward are normalized, not
            their outputs (`pre_lnorm` of the authors).
        memory_length: Int, the number of rows of each layer's input that are remembered for the
            next segment. `None` or 0 for a model without memory.
        reuse_length: Int, the number of rows from the start of a segment that are remembered, for
            segments that overlap: `tgt_len` of the authors with an `ext_len`. `None` or 0 for all.
        clamp_length: Int, the largest distance: larger ones are replaced by it. `None` for no
            limit.
        same_length: If `True`, every token attends to at most `memory_length` tokens, including
            itself, as in the authors' PyTorch code. An int sets another number; the authors'
            TensorFlow code uses `memory_length + 1`.
        tie_attention_biases: If `True`, all layers share the two query biases (`untie_r=False`).
        cutoffs: Increasing ints, the first ids of the second, third, ... cluster of an adaptive
            embedding and softmax. Token ids are then ordered by frequency.
        div_val: Int, the ratio of the embedding width of a cluster to that of the next.
        tie_embeddings: If `True`, embedding and softmax share their tables.
        tie_projections: Bool, or a list with a bool for each cluster: whether embedding and softmax
            share the projections between `embedding_dim` and `hidden_dim`.
        stateful: If `True`, the model keeps its memory in variables from batch to batch, so row
            `r` of a batch must continue row `r` of the previous one. `evaluate` and `predict` have
            their own memory, which is empty when they start. If `False`, memory is an input
            and an output.
        batch_size: Int, the number of rows of a batch on one replica. Required with `stateful`.
        attend_to_empty_memory: If `True`, rows of memory that are still empty are attended to, as
            rows of zeros, as in the authors' TensorFlow code and in Hugging Face's.
        layer_norm_epsilon: Float. The authors' PyTorch code uses 1e-5.
        kernel_initializer: Initializer of all weights except the biases of dense layers. `None`
            for normal(0, 0.02).
        dtype: Keras dtype or policy of all layers.
        seed: Optional int that fixes the dropout masks.
        attention_chunk_size: Int, see `RelativeMultiHeadAttention`. `None` for all rows at once.
        gradient_checkpointing: If `True`, training keeps only the inputs of each block.

    Inputs, a dict. Only `token_ids` is required:
        token_ids: `(batch, length)` int32.
        padding_mask: `(batch, length)` bool, `True` for real tokens. All real by default.
        memory: `(batch, num_layers, rows, hidden_dim)`. By default `memory_length` rows of zeros.
            Like the next, only with `memory_length` and without `stateful`.
        memory_mask: `(batch, rows)` bool, `True` for rows that may be attended to. By default
            all rows of a given memory, and no row of the default memory unless
            `attend_to_empty_memory`.
        reset_memory: `(batch,)` bool, `True` for rows that begin a new document. Only if
            `stateful`; accepted and not used without memory.

    Outputs, a dict:
        log_probs: `(batch, length, vocabulary_size)` float32, the log-probabilities of each next
            token.
        sequence_output: `(batch, length, hidden_dim)`, the input of the softmax.
        memory, memory_mask: The inputs for the next segment, unless `stateful`. They carry no
            gradient.

    Raises:
        TypeError: If there is no argument of that name.
        ValueError: If an argument or the keys of the inputs are not as above.

    Example:

    >>> model = keras_xlnet.models.TransformerXLLanguageModel(
    ...     vocabulary_size=50, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32,
    ...     memory_length=8, stateful=True, batch_size=4)
    >>> text = np.random.default_rng(0).integers(0, 50, (4, 6 * 5 + 1))
    >>> segments = [text[:, i : i + 7] for i in range(0, 30, 6)]
    >>> inputs = np.concatenate([segment[:, :-1] for segment in segments])
    >>> labels = np.concatenate([segment[:, 1:] for segment in segments])
    >>> history = model.fit(
    ...     {"token_ids": inputs}, labels, batch_size=4, shuffle=False, verbose=0)
    >>> model = model.with_arguments(stateful=False, batch_size=None)
    >>> first = model({"token_ids": text[:, :6]})
    >>> memory = {key: first[key] for key in ("memory", "memory_mask")}
    >>> model({"token_ids": text[:, 6:12], **memory})["log_probs"].shape
    TensorShape([4, 6, 50])

    Source: Dai et al. 2019, "Transformer-XL: attentive language models beyond a fixed-length
    context"; kimiyoung/transformer-xl.
    """

    # The SHA-256 of the vocabulary that the weights were trained with, if it is known.
    vocabulary_sha256 = None
    signatures = "causal_lm"
    # Subclasses may encode positions differently, as the models of the ablation in research do.
    position_encoding_class = RelativePositionEncoding

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        tokenizer: keras.layers.Layer | None = None,
        head_dim: int | None = None,
        embedding_dim: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation: Activation = "relu",
        normalize_first: bool = False,
        memory_length: int | None = None,
        reuse_length: int | None = None,
        clamp_length: int | None = None,
        same_length: bool | int = False,
        tie_attention_biases: bool = False,
        cutoffs: Sequence[int] = (),
        div_val: int = 1,
        tie_embeddings: bool = True,
        tie_projections: bool | Sequence[bool] = False,
        stateful: bool = False,
        batch_size: int | None = None,
        attend_to_empty_memory: bool = False,
        layer_norm_epsilon: float = 1e-5,
        kernel_initializer: Initializer | None = None,
        dtype: DType | None = None,
        seed: int | None = None,
        attention_chunk_size: int | None = None,
        gradient_checkpointing: bool = False,
        name: str = "transformer_xl_language_model",
        **kwargs: Any,
    ) -> None:
        check_positive_int("vocabulary_size", vocabulary_size)
        check_positive_int("num_layers", num_layers)
        check_rate("dropout", dropout)
        head_dim = head_dim_of(head_dim, hidden_dim, num_heads)
        memory_length, reuse_length = memory_length or None, reuse_length or None
        check_memory_arguments(memory_length, stateful, batch_size, attend_to_empty_memory)
        config = types.SimpleNamespace(
            dtype_policy=keras.dtype_policies.get(dtype),
            vocabulary_size=vocabulary_size,
            num_layers=num_layers,
            num_heads=num_heads,
            hidden_dim=hidden_dim,
            intermediate_dim=intermediate_dim,
            head_dim=head_dim,
            embedding_dim=embedding_dim,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation=get_activation(activation),
            normalize_first=normalize_first,
            memory_length=memory_length,
            reuse_length=reuse_length,
            clamp_length=clamp_length,
            same_length=same_length,
            tie_attention_biases=tie_attention_biases,
            cutoffs=cutoffs,
            div_val=div_val,
            tie_embeddings=tie_embeddings,
            tie_projections=tie_projections,
            stateful=stateful,
            batch_size=batch_size,
            attend_to_empty_memory=attend_to_empty_memory,
            layer_norm_epsilon=layer_norm_epsilon,
            kernel_initializer=get_kernel_initializer(kernel_initializer),
            seed=seed,
            attention_chunk_size=attention_chunk_size,
            gradient_checkpointing=gradient_checkpointing,
        )

        # === Functional graph ===
        layers = _new_layers(config, self.position_encoding_class)
        config.tie_projections = _one_for_each_cluster(tie_projections, layers.softmax.num_clusters)
        memories = {}
        if stateful:
            remembered = [] if attend_to_empty_memory else ["memory_mask"]
            memories = new_memories(num_layers, remembered, layers.recurrent_memory)
        inputs = _new_inputs(config)
        embedded, tables, projections = layers.token_embedding(
            inputs["token_ids"], return_weights=True
        )
        content, layer_inputs = type(self).encode(
            layers,  # Its attributes are the layers that `encode` uses.
            layers.embedding_dropout(embedded),
            padding_mask=inputs["padding_mask"],
            **read_memories(inputs, memories),
        )
        hidden = layers.output_dropout(content)
        shared = _shared_weights(
            tables if tie_embeddings else None, projections, config.tie_projections, div_val
        )
        outputs = {
            "log_probs": layers.softmax(hidden, **shared),
            "sequence_output": hidden,
            **next_memory(layers.recurrent_memory, layer_inputs, inputs),
        }
        super().__init__(inputs=inputs, outputs=outputs, name=name, **kwargs)
        # The layers know the defaults of missing arguments.
        config.embedding_dim = layers.token_embedding.embedding_dim
        config.cutoffs = layers.token_embedding.cutoffs
        for attribute, value in {**vars(config), **vars(layers)}.items():
            setattr(self, attribute, value)
        self.memories = list(memories.values())
        self.tokenizer = tokenizer
        self.compile()

    def encode(
        self,
        content: Tensor,
        *,
        padding_mask: Tensor,
        read_memory: Callable[[int, Tensor], Tensor] | None = None,
        memory_mask: Tensor | None = None,
    ) -> tuple[Tensor, list[Tensor]]:
        """Runs the blocks on embedded tokens.

        Args:
            content: `(batch, length, hidden_dim)`.
            padding_mask, memory_mask: As in the inputs.
            read_memory: Optional function of a layer's index and input content that returns the
                layer's memory. It is called once for each layer.

        Returns:
            The output of the last block, and the list of the inputs of the blocks.
        """
        memory = read_memory(0, content) if read_memory else None
        positions = self.position_dropout(self.position_encoding(content, memory=memory))
        mask, _ = self.attention_mask(
            content, padding_mask=padding_mask, memory=memory, memory_mask=memory_mask
        )
        biases = None if self.attention_biases is None else self.attention_biases(positions)
        content, _, layer_inputs = run_blocks(
            self.blocks,
            content,
            memory=memory,
            read_memory=read_memory,
            position_encoding=positions,
            attention_mask=mask,
            attention_biases=biases,
        )
        return content, layer_inputs

    def score(
        self,
        texts: Any,
        tokenizer: Callable[..., Any] | None = None,
        start_token_id: int | None = None,
        segment_length: int = 512,
        batch_size: int = 16,
    ) -> Scores:
        """Computes the log-probability of each token of texts, given those before it.

        Args:
            texts: List of strings, or of sequences of token ids; or an int array.
            tokenizer: A callable from strings to token ids, such as a `VocabularyTokenizer`. `None`
                for the tokenizer of the model.
            start_token_id: Int, a token that is put before each text, such as the one that
                separates documents. `None`: the first token is given, and not scored.
            segment_length: Int. Longer texts are read in segments of this length, with memory.
                If the memory holds all earlier segments, the scores do not change.
            batch_size: Int, texts at a time.

        Returns:
            `Scores`: `token_ids`, `log_probs`, `totals` and `standard_errors`.

        Raises:
            ValueError: If a text is empty or has other ids, or the model is stateful.

        Example:

        >>> model = keras_xlnet.models.TransformerXLLanguageModel(50, 2, 2, 16, 32, memory_length=4)
        >>> scores = model.score([[5, 17, 8], [6, 7]], start_token_id=0)
        >>> [len(log_probs) for log_probs in scores.log_probs]
        [3, 2]
        """
        self._check_stateless("score")
        tokenizer = self._tokenizer_or(tokenizer)
        return score_causally(self, texts, tokenizer, start_token_id, segment_length, batch_size)

    def _decoder(self):
        self._check_stateless("generate")
        return CausalDecoder(self)

    def shared_weights(self, tables: list[Tensor], projections: list[Tensor]) -> dict[str, Any]:
        """Returns the arguments of `softmax` for the weights that it shares with the embedding.

        Args:
            tables, projections: What `token_embedding` returns with `return_weights=True`.
        """
        return _shared_weights(
            tables if self.tie_embeddings else None, projections, self.tie_projections, self.div_val
        )

    def empty_memory(self, batch_size: int) -> dict[str, Tensor]:
        """Returns the memory of a first segment, as the inputs `memory` and `memory_mask`.

        Args:
            batch_size: Int.

        Returns:
            A dict of arrays; empty if the model has no memory input.
        """
        if not self.memory_length or self.stateful:
            return {}
        shape = (batch_size, self.num_layers, self.memory_length, self.hidden_dim)
        return {
            "memory": ops.zeros(shape, self.compute_dtype),
            "memory_mask": ops.full(
                (batch_size, self.memory_length), self.attend_to_empty_memory, dtype="bool"
            ),
        }

    def _check_stateless(self, method):
        if self.stateful:
            raise ValueError(
                f"`{method}` needs a model with `stateful=False`, whose memory is an input and an "
                "output: `model.with_arguments(stateful=False, batch_size=None)`"
            )

    # === Training ===

    def _compile_defaults(self):
        return {}  # `compute_loss` has the loss.

    def _default_optimizer(self):
        return keras.optimizers.Adam(2.5e-4, global_clipnorm=0.25)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Tensor:
        """Computes the loss as `keras.Model` does; by default the mean negative log-likelihood of
        the labels, in which padding has the weight 0.

        Raises:
            ValueError: If the model is stateful and the batch is incomplete.
        """
        x, y, sample_weight = self._ensure_batch_size((x, y, sample_weight))
        y_pred, sample_weight = self._weights_that_count(y, y_pred, sample_weight)
        if self.loss is not None or y is None:
            return super().compute_loss(x, y, y_pred, sample_weight, training=training)
        labels = y["log_probs"] if isinstance(y, dict) else y
        losses = self._negative_log_likelihood(y_pred, labels)
        weights = ops.ones_like(losses)
        padding_mask = x.get("padding_mask") if isinstance(x, dict) else None
        for weight in (sample_weight, padding_mask):
            if weight is not None:
                weights *= ops.cast(weight, losses.dtype)
        return self._mean_loss(losses, weights)

    def _negative_log_likelihood(self, outputs, labels):
        """`(batch, length)`, from as few of the outputs as possible: graphs drop the others."""
        if self.cutoffs:
            return -self.label_log_probs(outputs["sequence_output"], labels)
        return -take_tokens(outputs["log_probs"], ops.cast(labels, "int32"))

    def label_log_probs(self, sequence_output: Tensor, labels: Tensor) -> Tensor:
        """Computes only the log-probabilities of labels.

        Args:
            sequence_output: `(batch, rows, hidden_dim)`, rows of the output of that name.
            labels: `(batch, rows)` int, the token after each.

        Returns:
            `(batch, rows)` float32.
        """
        # The embedding is unused, so no graph computes it.
        _, tables, projections = self.token_embedding(labels, return_weights=True)
        shared = self.shared_weights(tables, projections)
        return self.softmax(sequence_output, targets=labels, **shared)

    # === Inputs ===

    def _complete(self, inputs):
        # The same data serves models with and without memory.
        if isinstance(inputs, dict) and not self.memory_length:
            inputs = {key: value for key, value in inputs.items() if key != "reset_memory"}
        elif isinstance(inputs, dict) and not self.stateful and inputs.get("memory") is None:
            # Of the full length, so that all segments have the same shapes.
            memory, mask = self._empty_memory(ops.convert_to_tensor(inputs["token_ids"]))
            inputs = {"memory_mask": mask, **inputs, "memory": memory}
        return super()._complete(inputs)

    def _empty_memory(self, token_ids):
        rows = ops.zeros_like(token_ids[:, :1], dtype=self.compute_dtype)
        shape = (1, self.num_layers, self.memory_length, self.hidden_dim)
        memory = ops.tile(ops.reshape(rows, (-1, 1, 1, 1)), shape)
        mask = ops.ones_like(memory[:, 0, :, 0], dtype="bool")
        return memory, mask if self.attend_to_empty_memory else ops.logical_not(mask)

    def get_config(self) -> dict[str, Any]:
        names = (
            "vocabulary_size num_layers num_heads hidden_dim intermediate_dim head_dim "
            "embedding_dim dropout attention_dropout normalize_first memory_length reuse_length "
            "clamp_length same_length tie_attention_biases div_val tie_embeddings stateful "
            "batch_size attend_to_empty_memory layer_norm_epsilon seed attention_chunk_size "
            "gradient_checkpointing"
        ).split()
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            **{name: getattr(self, name) for name in names},
            "tokenizer": keras.saving.serialize_keras_object(self.tokenizer),
            "activation": serialize_activation(self.activation),
            "cutoffs": list(self.cutoffs),
            "tie_projections": list(self.tie_projections),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            **self.sublayer_config(),
        }


def _longest_attention(same_length, memory_length):
    """The argument `same_length` of `AttentionMask`."""
    if same_length is not True:
        return same_length
    if memory_length is None:
        raise ValueError(
            "`same_length=True` needs a `memory_length`: every token attends to that many tokens. "
            "Received: memory_length=None"
        )
    return memory_length


def _one_for_each_cluster(tie_projections: bool | Sequence[bool], num_clusters: int) -> list[bool]:
    if isinstance(tie_projections, bool):
        return [tie_projections] * num_clusters
    if len(tie_projections) != num_clusters:
        raise ValueError(
            f"`tie_projections` must be a bool, or a list with one for each of the {num_clusters} "
            f"clusters. Received: {tie_projections!r}"
        )
    return list(tie_projections)


def _shared_weights(tables, projections, tie_projections, div_val):
    """The arguments of `AdaptiveSoftmax` for the weights that it shares with the embedding."""
    if projections:
        # With one table, all clusters are projected by the one projection of the embedding.
        projections = [
            projections[0 if div_val == 1 else i] if is_tied else None
            for i, is_tied in enumerate(tie_projections)
        ]
    shared = {"tables": tables, "projections": projections or None}
    return {key: value for key, value in shared.items() if value is not None}


def _new_layers(config, position_encoding_class):
    """The layers of a model, by the names of its attributes."""
    layers = new_common_layers(config, "TransformerXLLanguageModel", has_segments=False)
    dtype = config.dtype_policy
    block_seeds = spawn_seeds(
        config.seed, config.num_layers, "TransformerXLBlock of the language model"
    )
    vocabulary = {
        "vocabulary_size": config.vocabulary_size,
        "hidden_dim": config.hidden_dim,
        "cutoffs": config.cutoffs,
        "div_val": config.div_val,
        "embedding_dim": config.embedding_dim,
        "kernel_initializer": config.kernel_initializer,
        "dtype": dtype,
    }
    layers.token_embedding = AdaptiveEmbedding(**vocabulary, name="token_embedding")
    layers.softmax = AdaptiveSoftmax(**vocabulary, name="softmax")
    layers.position_encoding = position_encoding_class(
        config.hidden_dim,
        attention_type="uni",
        clamp_length=config.clamp_length,
        dtype=dtype,
        name="position_encoding",
    )
    layers.attention_mask = AttentionMask(
        "uni",
        same_length=_longest_attention(config.same_length, config.memory_length),
        dtype=dtype,
        name="attention_mask",
    )
    layers.blocks = [
        TransformerXLBlock(
            config.num_heads,
            config.head_dim,
            config.intermediate_dim,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            activation=config.activation,
            normalize_first=config.normalize_first,
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
    """The symbolic inputs of a model by name."""

    def new_input(name, shape, dtype):
        return keras.Input(shape, batch_size=config.batch_size, dtype=dtype, name=name)

    inputs = {
        "token_ids": new_input("token_ids", (None,), "int32"),
        "padding_mask": new_input("padding_mask", (None,), "bool"),
    }
    if config.stateful:
        inputs["reset_memory"] = new_input("reset_memory", (), "bool")
    elif config.memory_length:
        rows = (config.num_layers, None, config.hidden_dim)
        compute_dtype = config.dtype_policy.compute_dtype
        inputs["memory"] = new_input("memory", rows, compute_dtype)
        inputs["memory_mask"] = new_input("memory_mask", (None,), "bool")
    return inputs
