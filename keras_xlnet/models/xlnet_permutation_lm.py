import keras
from keras import ops

from keras_xlnet.layers import HashDropout, LogitBias, MaskEmbedding, RecurrentMemory
from keras_xlnet.layers.arguments import check_positive_int
from keras_xlnet.layers.full_batch import full_batch
from keras_xlnet.layers.initialization import spawn_seeds
from keras_xlnet.models.task_model import TaskModel


@keras.saving.register_keras_serializable(package="keras_xlnet")
class XLNetPermutationLM(TaskModel, keras.Model):
    """Permutation language model: pretrains an `XLNetBackbone`, and shares every weight with it.

    A query stream, which knows where a token stands but not what it is, predicts the tokens at
    `target_positions` from what the factorization order lets it see. The softmax is tied to the
    token embedding.

    The model comes compiled: `fit` takes integer labels, with a weight of 0 for what is not to be
    predicted. `"auto"` in `compile` stands for AdamW with a learning rate of 1e-4, the mean
    cross-entropy of the targets, and their accuracy.

    Args:
        backbone: An `XLNetBackbone` of type `"bi"`.
        two_stream: `False` for denoising as BERT does it, to compare with: no query stream, the
            targets are masked in the content, everything sees everything, and `permutation_mask`
            is not looked at.
        partial_prediction: `True`: a query row for each of `target_positions`. `False`: one for
            each token, with `target_mask` in place of `target_positions`; the others hold what
            the token is.
        stateful: `True`: the model keeps its memory itself, in `fit` from batch to batch, so that
            row `r` of a batch has to go on where row `r` of the batch before it ended. `evaluate`
            and `predict` have a memory of their own, empty when they start. `False`: memory is an
            input and an output, if the backbone has any.
        batch_size: Int, needed with `stateful`: the rows of a batch on one replica.
        attend_to_empty_memory: `True`: a stateful memory that is not filled yet is attended to,
            as rows of zeros, which is what the original does. `False`: it is not.
        name: String, name of the model.

    Inputs, a dict. `token_ids`, `permutation_mask` and `target_positions` must be given:
        token_ids, segment_ids, padding_mask: as in `XLNetBackbone`.
        permutation_mask: `(batch, length, length)` bool, `[b, i, j]` `True` where `i` may see `j`.
            The content stream always sees itself, the query stream follows the mask as given.
        target_positions: `(batch, num_predictions)` int32; or `target_mask`: `(batch, length)`
            bool.
        memory, memory_mask, memory_segment_ids: as in `XLNetBackbone`, unless `stateful`.
        reset_memory: `(batch,)` bool, only if `stateful`: `True` for rows that begin a new text.
            Not looked at if the backbone has no memory.

    Outputs, a dict:
        logits: `(batch, num_predictions, vocabulary_size)`, or `(batch, length,
            vocabulary_size)`, float32.
        memory, memory_mask, memory_segment_ids: as in `XLNetBackbone`, unless `stateful`.

    Raises:
        ValueError: If an argument or the keys of the inputs are not as above.

    Example:

    >>> backbone = keras_xlnet.models.XLNetBackbone(
    ...     vocabulary_size=100, num_layers=2, num_heads=2, hidden_dim=16,
    ...     intermediate_dim=32, memory_length=4)
    >>> model = keras_xlnet.models.XLNetPermutationLM(backbone, stateful=True, batch_size=2)
    >>> generator = keras_xlnet.layers.PermutationMaskGenerator(num_predictions=3, seed=0)
    >>> token_ids = np.random.default_rng(0).integers(9, 100, (2, 8))
    >>> features = generator(token_ids, token_ids % 2 == 0)
    >>> inputs = {key: features[key] for key in ("permutation_mask", "target_positions")}
    >>> inputs["token_ids"] = token_ids
    >>> history = model.fit(inputs, features["labels"], batch_size=2, verbose=0,
    ...     sample_weight=features["sample_weight"])
    >>> model.predict(inputs, batch_size=2, verbose=0)["logits"].shape
    (2, 3, 100)

    Source: Yang et al. 2019 (XLNet), sections 2.2 to 2.5; zihangdai/xlnet, `two_stream_loss`.
    """

    _arguments = (
        "two_stream",
        "partial_prediction",
        "stateful",
        "batch_size",
        "attend_to_empty_memory",
    )

    def __init__(
        self,
        backbone,
        two_stream=True,
        partial_prediction=True,
        stateful=False,
        batch_size=None,
        attend_to_empty_memory=False,
        name="xlnet_permutation_lm",
        **kwargs,
    ):
        _check_arguments(backbone, stateful, batch_size, attend_to_empty_memory)
        dtype = backbone.dtype_policy

        # === Layers ===
        mask_embedding = MaskEmbedding(backbone.hidden_dim, dtype=dtype, name="mask_embedding")
        (query_seed,) = spawn_seeds(backbone.seed, 1)
        query_dropout = HashDropout(
            backbone.dropout, seed=query_seed, dtype=dtype, name="query_dropout"
        )
        # Half precision is too coarse for the logits of a large vocabulary.
        logit_bias = LogitBias(dtype="float32", name="logits")
        memories = mask_memory = segment_memory = None
        if stateful:
            memories = [
                _stateful_memory(backbone, f"memory_{i}") for i in range(backbone.num_layers)
            ]
            if not attend_to_empty_memory:
                mask_memory = _stateful_memory(backbone, "memory_mask")
            if backbone.carry_memory_segments:
                segment_memory = _stateful_memory(backbone, "memory_segments")

        # === Functional graph ===
        inputs = _inputs(backbone, two_stream, partial_prediction, stateful, batch_size)
        reset = inputs.get("reset_memory")
        memory_mask = inputs.get("memory_mask")
        memory_segment_ids = inputs.get("memory_segment_ids")
        if mask_memory is not None:
            memory_mask = mask_memory(inputs["padding_mask"], reset=reset)
        if segment_memory is not None:
            memory_segment_ids = segment_memory(inputs["segment_ids"], reset=reset)

        def memory_of_layer(i, content):
            if stateful:
                return memories[i](content, reset=reset)
            return inputs["memory"][:, i] if "memory" in inputs else None

        embeddings = backbone.token_embedding(inputs["token_ids"])
        targets = inputs["target_positions" if partial_prediction else "target_mask"]
        query = None
        if two_stream:
            query = mask_embedding(targets, None if partial_prediction else embeddings)
            query = query_dropout(query)
        else:
            is_target = _mask_of(targets, inputs["token_ids"]) if partial_prediction else targets
            embeddings = mask_embedding(is_target, embeddings)
        content = backbone.embedding_dropout(embeddings)
        memory = memory_of_layer(0, content)
        positions = backbone.position_dropout(backbone.position_encoding(content, memory=memory))
        biases = backbone.attention_biases and backbone.attention_biases(positions)
        segment_matrix = backbone.segment_matrix(
            inputs["segment_ids"], memory=memory, memory_segment_ids=memory_segment_ids
        )
        content_mask, query_mask = backbone.attention_mask(
            content,
            padding_mask=inputs["padding_mask"],
            permutation_mask=inputs.get("permutation_mask"),
            memory=memory,
            memory_mask=memory_mask,
        )
        new_memory = []
        for i, block in enumerate(backbone.blocks):
            memory = memory_of_layer(i, content) if i else memory
            if "memory" in inputs:
                new_memory.append(backbone.recurrent_memory(content, memory))
            is_top = i + 1 == backbone.num_layers
            streams = _TwoStreams(block, name=f"streams_{i}")(
                content,
                query,
                memory=memory,
                position_encoding=positions,
                segment_matrix=segment_matrix,
                content_attention_mask=content_mask,
                query_attention_mask=query_mask if two_stream else None,
                target_positions=targets if two_stream and partial_prediction else None,
                attention_biases=biases,
                return_content_stream=not (two_stream and is_top),
            )
            if not two_stream:
                content = streams
            elif is_top:
                query = streams
            else:
                content, query = streams
        if not two_stream:
            query = content
            if partial_prediction:
                query = ops.take_along_axis(content, ops.expand_dims(targets, -1), axis=1)
        query = backbone.output_dropout(query)
        outputs = {"logits": logit_bias(backbone.token_embedding(query, reverse=True))}
        if "memory" in inputs:
            outputs["memory"] = ops.stack(new_memory, axis=1)
            outputs["memory_mask"] = backbone.recurrent_memory(inputs["padding_mask"], memory_mask)
        if "memory_segment_ids" in inputs:
            outputs["memory_segment_ids"] = backbone.recurrent_memory(
                inputs["segment_ids"], memory_segment_ids
            )
        super().__init__(inputs=inputs, outputs=outputs, name=name, **kwargs)

        # Only now: PyTorch modules take no submodules before they are initialized.
        self.backbone = backbone
        if backbone not in self._layers:
            # Its blocks are called in operations, where Keras does not look for weights; and Keras
            # 3.12 does not track what is set on a functional model either.
            self._layers.append(backbone)
        self.mask_embedding = mask_embedding
        self.query_dropout = query_dropout
        self.logit_bias = logit_bias
        self.memories = [m for m in (*(memories or ()), mask_memory, segment_memory) if m]

        # === Config ===
        self.two_stream = two_stream
        self.partial_prediction = partial_prediction
        self.stateful = stateful
        self.batch_size = batch_size
        self.attend_to_empty_memory = attend_to_empty_memory
        self.compile()

    def _objective(self):
        # The mean over the targets of the batch, as in the original: not over all rows.
        loss = keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="mean_with_sample_weight"
        )
        return {
            "learning_rate": 1e-4,
            "loss": {"logits": loss},
            "weighted_metrics": {"logits": [keras.metrics.SparseCategoricalAccuracy("accuracy")]},
        }

    def evaluate(self, *args, **kwargs):
        """As `keras.Model.evaluate`; a stateful memory starts empty, that of training is kept."""
        self._forget_evaluation()
        return super().evaluate(*args, **kwargs)

    def predict(self, *args, **kwargs):
        """As `keras.Model.predict`; a stateful memory starts empty, that of training is kept."""
        self._forget_evaluation()
        return super().predict(*args, **kwargs)

    def reset_state(self):
        """Forgets all that a stateful model remembers, of training and of evaluation."""
        for memory in self.memories:
            memory.reset_state()

    def _forget_evaluation(self):
        for memory in self.memories:
            memory.reset_evaluation_state()

    def _complete(self, inputs):
        # So that the data of both objectives, and with and without memory, are the same.
        unused = set() if self.two_stream else {"permutation_mask"}
        unused |= set() if self.backbone.memory_length else {"reset_memory"}
        if isinstance(inputs, dict):
            inputs = {key: value for key, value in inputs.items() if key not in unused}
        inputs = super()._complete(inputs)
        return self._full_batches(inputs)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """As in `keras.Model`; a stateful model refuses a batch that is not full."""
        y, sample_weight = (
            None if v is None else self._full_batches(v) for v in (y, sample_weight)
        )
        return super().compute_loss(x, y, y_pred, sample_weight, training=training)

    def _full_batches(self, tensors):
        if not self.stateful:
            return tensors
        return keras.tree.map_structure(lambda x: full_batch(x, self.batch_size), tensors)


class _TwoStreams(keras.Operation):
    """A call of a block of the backbone, of which Keras believes that it has one output.

    Functional models take the number of outputs of a layer from its first call.
    """

    def __init__(self, block, name):
        super().__init__(name=name)
        self.block = block

    def call(self, *args, **kwargs):
        return self.block(*args, **kwargs)

    def compute_output_spec(self, *args, **kwargs):
        return self.block.compute_output_spec(*args, **kwargs)


def _inputs(backbone, two_stream, partial_prediction, stateful, batch_size):
    def new(key, shape, dtype):
        return keras.Input(shape, batch_size=batch_size, dtype=dtype, name=key)

    def like(key, shape=(None,)):
        return new(key, shape, backbone.input[key].dtype)

    inputs = {key: like(key) for key in ("token_ids", "segment_ids", "padding_mask")}
    if two_stream:
        inputs["permutation_mask"] = new("permutation_mask", (None, None), "bool")
    if partial_prediction:
        inputs["target_positions"] = new("target_positions", (None,), "int32")
    else:
        inputs["target_mask"] = new("target_mask", (None,), "bool")
    if stateful:
        inputs["reset_memory"] = new("reset_memory", (), "bool")
        return inputs
    for key in ("memory", "memory_mask", "memory_segment_ids"):
        if key in backbone.input:
            inputs[key] = like(key, backbone.input[key].shape[1:])
    return inputs


def _stateful_memory(backbone, name):
    return RecurrentMemory(
        backbone.memory_length,
        backbone.reuse_length,
        stateful=True,
        dtype=backbone.dtype_policy,
        name=name,
    )


def _mask_of(target_positions, token_ids):
    """`(batch, num_predictions)` positions -> `(batch, length)` bool."""
    index = ops.cumsum(ops.ones_like(token_ids), axis=1) - 1
    positions = ops.expand_dims(target_positions, 2)
    return ops.any(ops.equal(positions, ops.expand_dims(index, 1)), axis=1)


def _check_arguments(backbone, stateful, batch_size, attend_to_empty_memory):
    if backbone.attention_type != "bi":
        raise ValueError(
            "`backbone` must see in both directions: the order of a permutation is not that of "
            f"the text. Received: backbone.attention_type={backbone.attention_type!r}"
        )
    if stateful and backbone.memory_length is None:
        raise ValueError(
            "`stateful=True` needs a `backbone` with a `memory_length`. Received: None"
        )
    if stateful and batch_size is None:
        raise ValueError(
            "`stateful=True` needs a `batch_size`: one row of memory for each row of a batch (of "
            "one replica). Received: batch_size=None"
        )
    if batch_size is not None:
        check_positive_int("batch_size", batch_size)
    if attend_to_empty_memory and not stateful:
        raise ValueError(
            "`attend_to_empty_memory` is for `stateful=True`; otherwise `memory_mask` says so"
        )
