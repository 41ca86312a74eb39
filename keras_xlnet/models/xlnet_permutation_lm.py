from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_choice
from keras_xlnet.layers import HashDropout, LogitBias, MaskEmbedding
from keras_xlnet.layers.initializers import spawn_seeds
from keras_xlnet.models.base_model import BaseModel
from keras_xlnet.models.decoding import PermutationDecoder
from keras_xlnet.models.filling import fill_blanks
from keras_xlnet.models.generation import GeneratesText
from keras_xlnet.models.keeps_memory import (
    KeepsMemory,
    check_memory_arguments,
    new_memories,
    next_memory,
    read_memories,
)
from keras_xlnet.models.scoring import Scores, check_orders, score_permutations
from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.preprocessing.weights import weights_of_labels
from keras_xlnet.registration import register
from keras_xlnet.types import Tensor, Tokenizer


@register
class XLNetPermutationLM(GeneratesText, KeepsMemory, BaseModel):  # type: ignore[misc]  # `fit` names Keras' arguments.
    """Permutation language model: pretrains an `XLNetBackbone`, and shares every weight with it.

    The query stream represents the position of a token but not the token. It predicts the tokens
    at `target_positions` from the tokens that come before them in the factorization order. The
    softmax is tied to the token embedding.

    Its preset and its `.keras` file hold the head: the bias of each token, and the vector that the
    query stream starts from. `backbone.save_to_preset` leaves them out.

    The model is compiled. `fit` takes integer labels, and sample weights of 0 for labels to
    ignore. `"auto"` in `compile` means AdamW with a learning rate of 1e-4, the mean
    cross-entropy of the targets, and their accuracy.

    Args:
        backbone: An `XLNetBackbone` of type `"bi"`.
        tokenizer: Optional `XLNetTokenizer`, for `score`, `fill` and `generate`. `from_preset` sets
            the one of the preset.
        objective: `"permutation"`, or `"denoising"` for BERT's objective, for comparisons:
            without a query stream, the targets are masked in the content, all tokens attend to
            all tokens, and `permutation_mask` is ignored.
        partial_prediction: If `True`, the query stream has a row for each of `target_positions`.
            If `False`, it has a row for each token, with `target_mask` in place of
            `target_positions`; the rows of other tokens are their embeddings.
        stateful: If `True`, the model keeps its memory in variables from batch to batch, so row
            `r` of a batch must continue row `r` of the previous one. `evaluate` and `predict` have
            their own memory, which is empty when they start. If `False`, memory is an input
            and an output, if the backbone has memory.
        batch_size: Int, the number of rows of a batch on one replica. Required with `stateful`.
        attend_to_empty_memory: If `True`, rows of a stateful memory that are still empty are
            attended to, as rows of zeros, as in the original.
        name: String, name of the model.

    Inputs, a dict. `token_ids`, `permutation_mask` and `target_positions` are required:
        token_ids, segment_ids, padding_mask: as in `XLNetBackbone`.
        permutation_mask: `(batch, length, length)` bool, `[b, i, j]` is `True` where `i` may see
            `j`. The content stream also sees itself, the query stream follows the mask as given.
        target_positions: `(batch, num_predictions)` int32, from 0 to `length - 1`. -1 is padding,
            for rows with fewer targets: its loss has the weight 0. Or `target_mask`:
            `(batch, length)` bool.
        memory, memory_mask, memory_segment_ids: as in `XLNetBackbone`, unless `stateful`.
        reset_memory: `(batch,)` bool, `True` for rows that begin a new document. Only if
            `stateful`; accepted and not used if the backbone has no memory.

    Outputs, a dict:
        logits: `(batch, num_predictions, vocabulary_size)`, or `(batch, length,
            vocabulary_size)`, float32.
        memory, memory_mask, memory_segment_ids: as in `XLNetBackbone`, unless `stateful`.

    Raises:
        ValueError: If an argument or the keys of the inputs are not as above.

    Example:

    >>> backbone = keras_xlnet.models.XLNetBackbone(
    ...     vocabulary_size=100, num_layers=1, num_heads=2, hidden_dim=16,
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

    signatures = "permutation_lm"
    _is_fine_tuned = False

    def __init__(
        self,
        backbone: XLNetBackbone,
        tokenizer: keras.layers.Layer | None = None,
        objective: str = "permutation",
        partial_prediction: bool = True,
        stateful: bool = False,
        batch_size: int | None = None,
        attend_to_empty_memory: bool = False,
        name: str = "xlnet_permutation_lm",
        **kwargs: Any,
    ) -> None:
        check_choice("objective", objective, ("permutation", "denoising"))
        _check_arguments(backbone, stateful, batch_size, attend_to_empty_memory)
        dtype = backbone.dtype_policy

        # === Layers ===
        mask_embedding = MaskEmbedding(backbone.hidden_dim, dtype=dtype, name="mask_embedding")
        (query_seed,) = spawn_seeds(backbone.seed, 1, "XLNetPermutationLM")
        query_dropout = HashDropout(
            backbone.dropout, seed=query_seed, dtype=dtype, name="query_dropout"
        )
        # Half precision is too coarse for the logits of a large vocabulary.
        logit_bias = LogitBias(dtype="float32", name="logits")
        memories = _stateful_memories(backbone, attend_to_empty_memory) if stateful else {}

        # === Functional graph ===
        inputs = _inputs(backbone, objective, partial_prediction, stateful, batch_size)
        embeddings = backbone.token_embedding(inputs["token_ids"])
        targets = inputs["target_positions" if partial_prediction else "target_mask"]
        query = query_positions = None
        if objective == "denoising":
            is_target = _mask_of(targets, inputs["token_ids"]) if partial_prediction else targets
            embeddings = mask_embedding(is_target, embeddings)
        elif partial_prediction:
            query, query_positions = query_dropout(mask_embedding(targets)), targets
        else:
            query = query_dropout(mask_embedding(targets, embeddings))
        content, query, layer_inputs = backbone.encode(
            backbone.embedding_dropout(embeddings),
            query,
            segment_ids=inputs["segment_ids"],
            padding_mask=inputs["padding_mask"],
            permutation_mask=inputs.get("permutation_mask"),
            target_positions=query_positions,
            **read_memories(inputs, memories),
        )
        if objective == "denoising":
            query = _take_rows(content, targets) if partial_prediction else content
        hidden = backbone.output_dropout(query)
        outputs = {
            "logits": logit_bias(backbone.token_embedding(hidden, reverse=True)),
            **next_memory(backbone.recurrent_memory, layer_inputs, inputs),
        }
        super().__init__(inputs=inputs, outputs=outputs, name=name, **kwargs)
        self.backbone = backbone
        # Keras scales the loss of a model whose own policy is `mixed_float16`.
        self.dtype_policy = dtype

        # PyTorch accepts submodules only after its module is initialized.
        self.mask_embedding = mask_embedding
        self.query_dropout = query_dropout
        self.logit_bias = logit_bias
        self.memories = list(memories.values())

        # === Config ===
        self.objective = objective
        self.partial_prediction = partial_prediction
        self.stateful = stateful
        self.batch_size = batch_size
        self.attend_to_empty_memory = attend_to_empty_memory
        self.tokenizer = tokenizer
        self.compile()

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "trainable": self.trainable,
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "tokenizer": keras.saving.serialize_keras_object(self.tokenizer),
            "objective": self.objective,
            "partial_prediction": self.partial_prediction,
            "stateful": self.stateful,
            "batch_size": self.batch_size,
            "attend_to_empty_memory": self.attend_to_empty_memory,
            **self.sublayer_config(),
        }

    def _default_optimizer(self):
        return keras.optimizers.AdamW(1e-4)

    def _compile_defaults(self):
        # The mean over the targets of the batch, as in the original, not over all rows.
        loss = keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="mean_with_sample_weight"
        )
        return {
            "loss": {"logits": loss},
            "weighted_metrics": {"logits": [keras.metrics.SparseCategoricalAccuracy("accuracy")]},
        }

    # === Using the model ===

    def score(
        self,
        texts: Any,
        tokenizer: Callable[..., Any] | None = None,
        order: str | Sequence[Any] = "left_to_right",
        num_orders: int = 1,
        batch_size: int = 16,
        seed: int = 0,
    ) -> Scores:
        """Computes the log-probability of each token of texts, in an order of the tokens.

        Each token is predicted from the tokens before it in the order, whatever their place in the
        text. `<sep><cls>`, which ends texts in pretraining, is given: the first token of the
        order sees only these.

        Args:
            texts: List of strings, or of sequences of token ids; or an int array.
            tokenizer: An `XLNetTokenizer`, for strings. `None` for the tokenizer of the model.
            order: `"left_to_right"`, `"right_to_left"` or `"random"`; or for each text the ranks
                of its tokens, each number from 0 to `length - 1` once.
            num_orders: Int, the number of random orders to average over.
            batch_size: Int, texts at a time.
            seed: Int, the seed of random orders. The orders of a text depend on its place in
                `texts`, not on the other texts.

        Returns:
            `Scores`: `token_ids`, `log_probs`, `totals` and `standard_errors`.

        Raises:
            ValueError: If an argument is not as above, or the model is stateful.

        Example:

        >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
        >>> model = keras_xlnet.models.XLNetPermutationLM(backbone)
        >>> scores = model.score([[9, 17, 12], [30, 11]], order="random", num_orders=4)
        >>> scores.totals.shape, [len(log_probs) for log_probs in scores.log_probs]
        ((2,), [3, 2])

        Source: Yang et al. 2019 (XLNet), section 2.2.
        """
        tokenizer = self._tokenizer_or(tokenizer)
        return score_permutations(
            self, texts, tokenizer, order, num_orders, batch_size=batch_size, seed=seed
        )

    def fill(
        self,
        texts: Any,
        tokenizer: Tokenizer | None = None,
        num_results: int = 5,
        beam_size: int = 20,
    ) -> Any:
        """Finds the most probable tokens for blanks, jointly and independently.

        Args:
            texts: String with blanks, `"<mask>"`, each of one token; token ids with the id of
                `<mask>`, 6, in the blanks; or a list of these.
            tokenizer: An `XLNetTokenizer`, for strings. `None` for the tokenizer of the model. The
                tokens around blanks are the same as in the filled text
                (`XLNetTokenizer.split_at_blanks`): a blank includes the space before it, and blanks
                without a space between them are pieces of one word. A tokenizer without
                `split_at_blanks` tokenizes each part separately.
            num_results: Int, the number of fillings to return.
            beam_size: Int, the number of partial fillings that beam search follows.

        Returns:
            `Fillings`, or a list of these for a list of texts. `joint` has the best fillings with
            the blanks predicted one after the other, each given the previous ones, by beam search;
            `independent` the best with each blank predicted without the others, as in BERT. Each
            `Filling` has `text`, `token_ids`, `log_prob` and `independent_log_prob`.

        Raises:
            ValueError: If a text has no blank, or an argument is not as above.

        Example:

        >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
        >>> model = keras_xlnet.models.XLNetPermutationLM(backbone)
        >>> fillings = model.fill([[9, 6, 12, 6]], num_results=3)[0]
        >>> len(fillings.joint), fillings.joint[0].token_ids.shape
        (3, (2,))

        Source: Yang et al. 2019 (XLNet), section 2.6.
        """
        return fill_blanks(self, texts, self._tokenizer_or(tokenizer), num_results, beam_size)

    def _decoder(self):
        check_orders(self)
        return PermutationDecoder(self)

    def _complete(self, inputs):
        # The same data serves both objectives, and models with and without memory.
        unused = {"permutation_mask"} if self.objective == "denoising" else set()
        unused |= set() if self.backbone.memory_length else {"reset_memory"}
        if isinstance(inputs, dict):
            inputs = {key: value for key, value in inputs.items() if key not in unused}
        return super()._complete(inputs)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Tensor:
        """Computes the loss as `keras.Model` does. Padded targets (-1) have the weight 0.

        Raises:
            ValueError: If the model is stateful and the batch is incomplete.
        """
        x, y, sample_weight = self._ensure_batch_size((x, y, sample_weight))
        sample_weight = _without_padding(x, y, sample_weight)
        y_pred, sample_weight = self._weights_that_count(y, y_pred, sample_weight)
        return super().compute_loss(x, y, y_pred, sample_weight, training=training)

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        """Computes the metrics as `keras.Model` does. Padded targets (-1) have the weight 0."""
        x, sample_weight = self._ensure_batch_size((x, sample_weight))
        return super().compute_metrics(x, y, y_pred, _without_padding(x, y, sample_weight))


def _inputs(backbone, objective, partial_prediction, stateful, batch_size):
    def new(key, shape, dtype):
        return keras.Input(shape, batch_size=batch_size, dtype=dtype, name=key)

    def like(key, shape=(None,)):
        return new(key, shape, backbone.input[key].dtype)

    inputs = {key: like(key) for key in ("token_ids", "segment_ids", "padding_mask")}
    if objective == "permutation":
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


def _stateful_memories(backbone, attend_to_empty_memory):
    """The layers that keep the memory of each block, and its mask and segment ids, by name."""
    remembered = [] if attend_to_empty_memory else ["memory_mask"]
    remembered += ["memory_segment_ids"] if backbone.remember_segment_ids else []
    return new_memories(backbone.num_layers, remembered, backbone.recurrent_memory)


def _mask_of(target_positions, token_ids):
    """`(batch, num_predictions)` positions -> `(batch, length)` bool."""
    index = ops.cumsum(ops.ones_like(token_ids), axis=1) - 1
    positions = ops.expand_dims(target_positions, 2)
    return ops.any(ops.equal(positions, ops.expand_dims(index, 1)), axis=1)


def _take_rows(content, target_positions):
    """`(batch, length, hidden_dim)` -> `(batch, num_predictions, hidden_dim)`."""
    last = ops.sum(ops.ones_like(content[:, :, 0], dtype="int32"), axis=1, keepdims=True) - 1
    # Positions outside are clamped: padding (-1) takes row 0.
    positions = ops.minimum(ops.maximum(target_positions, 0), last)
    return ops.take_along_axis(content, ops.expand_dims(positions, -1), axis=1)


def _without_padding(x, y, sample_weight):
    """Weights for all targets, with 0 for target positions of -1."""
    if isinstance(x, dict) and x.get("target_positions") is not None:
        is_target = ops.cast(ops.greater_equal(x["target_positions"], 0), "float32")
    elif y is None or sample_weight is None:
        return sample_weight
    else:
        is_target = ops.ones_like(keras.tree.flatten(y)[0], dtype="float32")
    if sample_weight is None:
        return is_target
    return keras.tree.map_structure(
        lambda weight: weights_of_labels(weight, is_target) * is_target, sample_weight
    )


def _check_arguments(backbone, stateful, batch_size, attend_to_empty_memory):
    if backbone.attention_type != "bi":
        raise ValueError(
            "`backbone` must have `attention_type='bi'`: a factorization order is not the order "
            f"of the text. Received: backbone.attention_type={backbone.attention_type!r}"
        )
    check_memory_arguments(backbone.memory_length, stateful, batch_size, attend_to_empty_memory)
    if attend_to_empty_memory and not stateful:
        raise ValueError(
            "`attend_to_empty_memory` needs `stateful=True`. Without it, pass `memory_mask`"
        )
