import functools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import keras
import numpy as np
from keras import ops

from keras_xlnet.arguments import (
    check_choice,
    check_count,
    check_int,
    check_number,
    check_positive_int,
)
from keras_xlnet.compat.recompute import recomputed_in_chunks
from keras_xlnet.layers import SequencePooling
from keras_xlnet.models.task import Task, check_preprocessor
from keras_xlnet.models.task_graph import check_backbone, join_choices, token_inputs
from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.ops.contrastive import in_batch_negatives_loss
from keras_xlnet.ops.vector_quantization import (
    PRECISIONS,
    dequantize_embeddings,
    quantize_embeddings,
)
from keras_xlnet.ops.vector_search import most_similar, unit_length
from keras_xlnet.preprocessing import Preprocessor, RankedDocument, XLNetTextEmbedderPreprocessor
from keras_xlnet.preprocessing.examples import is_batches
from keras_xlnet.preprocessing.texts import as_texts, is_text, one_row, plain_texts
from keras_xlnet.registration import register
from keras_xlnet.types import Shape, Tensor

# The prompts of texts that are searched, in the order in which sentence-transformers takes them.
_DOCUMENTS = ("document", "passage", "corpus")


@register
class CosineSimilarityLoss(keras.losses.Loss):
    """Squared difference between the cosine of two embeddings and a number.

    Args:
        matryoshka_dims: Optional ints. The loss is the sum of the losses of the embeddings cut to
            each of these lengths.
        name: Name of the loss.
        **kwargs: Other arguments of `keras.losses.Loss`.

    Call arguments:
        y_true: Numbers `(batch, 1)`, from -1 to 1.
        y_pred: Embeddings of length 1, `(batch, 2, dim)`.

    Example:

    >>> loss = keras_xlnet.models.CosineSimilarityLoss()
    >>> float(loss(np.array([[0.5]]), np.array([[[1.0, 0.0], [0.0, 1.0]]])))
    0.25

    Source: Reimers and Gurevych 2019, "Sentence-BERT", section 3, the regression objective.
    """

    def __init__(
        self,
        matryoshka_dims: Sequence[int] | None = None,
        name: str = "cosine_similarity_loss",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.matryoshka_dims = matryoshka_dims

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        numbers = ops.reshape(y_true, (-1,))
        cosines = [
            ops.sum(x[:, 0] * x[:, 1], axis=-1) for x in _cut_to(self.matryoshka_dims, y_pred)
        ]
        return sum(ops.square(cosine - numbers) for cosine in cosines)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "matryoshka_dims": self.matryoshka_dims}


@register
class XLNetTextEmbedder(Task):
    """Represents each text by a vector, so that texts of similar meaning have similar vectors.

    The vector is the mean of the last states of the tokens, of length 1: the product of two is
    their cosine. `embed` returns vectors of texts, `similarity` cosines, and `search` the texts in
    a collection that are most similar to queries. A model that was trained with prompts has them
    in `prompts`: `encode_query`, `encode_document` and `search` put them before the texts.

    `fit` takes pairs of texts. Without labels, the two texts of a pair belong together, and those
    of other pairs in the batch do not (in-batch negatives); a third text of a row is one more
    negative. Texts equal to a text of the pair are not its negatives. Large batches make
    the task harder, and training better. With labels, numbers from -1 to 1, the cosine of a pair
    is trained to equal its number. `fit` takes texts as they are, without prompts.

    It is compiled with `FineTuningAdamW` and `CosineSimilarityLoss`, which
    is used only with labels. Call `compile` to change that; arguments you leave out
    keep these defaults.

    Args:
        backbone: An `XLNetBackbone`.
        preprocessor: An `XLNetTextEmbedderPreprocessor`.
        pooling: Mode of `SequencePooling`.
        scale: Float, the factor of cosines in the loss of in-batch negatives.
        prompts: Optional dict of strings by name, such as `{"query": "query: ", "document":
            "passage: "}`.
        matryoshka_dims: Optional ints, such as `[384, 128, 64]`. The loss is the sum of the losses
            of the embeddings cut to each of these lengths, so that `truncate_dim` of `embed` and
            `search` loses little. `None` for the loss of the whole embeddings.
        mini_batch_size: Optional int, for batches that do not fit in memory. A training step reads
            so many rows of its batch at a time, for the vectors and again for the gradients, which
            are those of the whole batch. It takes more time, and batches are padded, not packed.
        name: Name of the model.

    Inputs, a dict: `token_ids`, `segment_ids`, `padding_mask`, as in `XLNetBackbone`, but of
    shape `(batch, texts, length)`.

    Outputs: Tensor `(batch, texts, hidden_dim)`, float32. `predict` leaves out the axis of the
    texts if each row has one.

    Raises:
        ValueError: If an argument is not as above.

    Example:

    >>> from keras_xlnet.preprocessing import XLNetTextEmbedderPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> texts = ["a river is water", "a harbor is for ships", "a ship sails"]
    >>> tokenizer = XLNetTokenizer.train(iter(texts * 20), vocabulary_size=32)
    >>> embedder = keras_xlnet.models.XLNetTextEmbedder(
    ...     keras_xlnet.models.XLNetBackbone(32, 1, 2, 16, 32),
    ...     preprocessor=XLNetTextEmbedderPreprocessor(tokenizer, sequence_length=24))
    >>> embedder.embed(texts).shape
    (3, 16)
    >>> history = embedder.fit([("ships", texts[1]), ("water", texts[0])], verbose=0)
    >>> found = embedder.search(["a ship sails"], texts, top_k=2)
    >>> found[0][0].text
    'a ship sails'

    Source: Reimers and Gurevych 2019, "Sentence-BERT"; Henderson et al. 2017, "Efficient Natural
    Language Response Suggestion for Smart Reply", for in-batch negatives; Kusupati et al. 2022,
    "Matryoshka representation learning"; Gao et al. 2021, "Scaling deep contrastive learning batch
    size under memory limited setup", for `mini_batch_size`.
    """

    task = "text_embedder"
    # sentence-transformers has other files beside those of the encoder.
    checkpoint: ClassVar = {"architectures": ("XLNetModel",)}
    signatures = "texts"
    output_name = "embedding"
    # Fine-tuning soon destroys what a preset has learned.
    _learning_rate = 1e-5
    preprocessor_cls = XLNetTextEmbedderPreprocessor
    _arguments = (
        "preprocessor",
        "pooling",
        "scale",
        "prompts",
        "matryoshka_dims",
        "mini_batch_size",
    )

    def __init__(
        self,
        backbone: XLNetBackbone,
        preprocessor: Preprocessor | None = None,
        pooling: str = "mean",
        scale: float = 20.0,
        prompts: Mapping[str, str] | None = None,
        matryoshka_dims: Sequence[int] | None = None,
        mini_batch_size: int | None = None,
        name: str = "xlnet_text_embedder",
        **kwargs: Any,
    ) -> None:
        check_backbone(backbone)
        check_preprocessor(preprocessor, backbone, self.preprocessor_cls)
        check_number("scale", scale)
        if prompts is not None:
            _check_prompts(prompts)
        for dim in matryoshka_dims or ():
            _check_dim("matryoshka_dims", dim, backbone)
        if mini_batch_size is not None:
            check_positive_int("mini_batch_size", mini_batch_size)
        inputs = token_inputs(backbone, (None, None))
        texts = join_choices(inputs)
        pool = SequencePooling(
            pooling,
            num_heads=backbone.num_heads,
            head_dim=backbone.head_dim,
            dtype=backbone.dtype_policy,
            name="pooling",
        )
        pooled = pool(
            backbone(texts)["sequence_output"],
            padding_mask=texts["padding_mask"],
            token_ids=texts["token_ids"],
        )
        # Half precision is too coarse for cosines.
        normalize = keras.layers.UnitNormalization(dtype="float32", name="embeddings")
        embeddings = SplitTexts(name="texts")(normalize(pooled), inputs["token_ids"])
        super().__init__(backbone, inputs=inputs, outputs=embeddings, name=name, **kwargs)

        # PyTorch accepts submodules only after its module is initialized.
        self.sequence_pooling = pool

        # === Config ===
        self.pooling = pooling
        self.scale = scale
        self.mini_batch_size = mini_batch_size
        # Not tracked: Keras would wrap them.
        object.__setattr__(self, "prompts", prompts)
        object.__setattr__(self, "matryoshka_dims", matryoshka_dims or None)
        self._hold(preprocessor)
        self.compile()

    def _compile_defaults(self):
        return {"loss": CosineSimilarityLoss(self.matryoshka_dims), "metrics": []}

    # === Training on pairs ===

    def call(
        self, inputs: dict[str, Tensor], training: bool | None = None, mask: Any = None
    ) -> Any:
        """Runs the functional graph, in parts of `mini_batch_size` rows in training."""
        if not (training and self.mini_batch_size and self.trainable_variables):
            return super().call(inputs, training=training, mask=mask)
        call = functools.partial(super().call, training=training)
        # For each text of a row.
        output = keras.KerasTensor((inputs["token_ids"].shape[1], self.output.shape[-1]))
        return recomputed_in_chunks(self, call, inputs, self.mini_batch_size, output)

    def _read(self, x, y=None, sample_weight=None, *others, has_labels=True, pack=True, **options):
        # Packed rows cannot be divided.
        pack = pack and not (has_labels and self.mini_batch_size)
        found = super()._read(
            x, y, sample_weight, *others, has_labels=has_labels, pack=pack, **options
        )
        if not has_labels:
            return found
        if isinstance(found.x, dict) and np.shape(found.x["token_ids"])[1] == 1:
            raise ValueError(
                "`x` must be pairs of texts to train or evaluate on: a list of rows (text, pair) "
                "or a tuple of two columns. Received: single texts"
            )
        if found.y is None and found.sample_weight is not None:
            raise ValueError("`sample_weight` needs labels `y`. Received: y=None")
        return found

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Tensor:
        """Computes the loss. Without labels it is the loss of in-batch negatives."""
        if y is not None:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        texts = None
        if isinstance(x, dict):
            texts, mask = x["token_ids"], x.get("padding_mask")
            texts = texts if mask is None else ops.where(mask, texts, -1)
        cut = _cut_to(self.matryoshka_dims, y_pred)
        return self._mean_loss(sum(in_batch_negatives_loss(x, self.scale, texts) for x in cut))

    def _attended(self, batch_size, length):
        # A row has at most three texts.
        most = 3 * self.mini_batch_size if self.mini_batch_size else batch_size
        return super()._attended(min(batch_size, most), length)

    # === Using the embeddings ===

    def _predict(self, *args, **kwargs):
        outputs = super()._predict(*args, **kwargs)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def embed(
        self,
        texts: Any,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        *,
        prompt_name: str | None = None,
        truncate_dim: int | None = None,
        precision: str = "float32",
        ranges: np.ndarray | None = None,
    ) -> np.ndarray:
        """Returns a vector of length 1 for each text.

        Args:
            texts: A string, a list, array or column of a table of strings, or batches of these.
            batch_size, verbose: As in `keras.Model.predict`.
            prompt_name: Optional key of `prompts`, the prompt to put before each text.
            truncate_dim: Optional int: the vectors have only their first numbers, and again the
                length 1.
            precision: `"float32"`, or `"int8"`, `"uint8"`, `"binary"` or `"ubinary"` for codes of
                one byte or one bit for each number.
            ranges: For int8 and uint8, see `keras_xlnet.ops.quantize_embeddings`.

        Returns:
            Float32 array `(texts, hidden_dim)`, or `(hidden_dim,)` for a string. With
            `truncate_dim` and `precision` as they say.

        Raises:
            ValueError: If an argument is not as above, or the model has no preprocessor.
        """
        check_choice("precision", precision, PRECISIONS)
        if isinstance(texts, (str, bytes)):
            texts, is_one, verbose = [texts], True, 0
        else:
            texts, is_one = plain_texts(texts), False
        if isinstance(texts, list) and not isinstance((texts or [None])[0], (list, tuple)):
            texts = as_texts(texts, "texts")
        if prompt_name is not None:
            texts = self._with_prompt(prompt_name, texts)
        examples = self._read(texts, batch_size=batch_size, has_labels=False)
        encoded = examples.encoded
        if not is_batches(texts) and (encoded is None or len(encoded.columns) > 1):
            raise ValueError(
                "`texts` must be a string or a list of strings. Received: "
                f"{'pairs of texts' if encoded else type(texts).__name__}"
            )
        vectors = np.asarray(self._predict(examples, batch_size, verbose))
        vectors = self._truncated(vectors, truncate_dim)
        vectors = quantize_embeddings(vectors, precision, ranges)
        return vectors[0] if is_one else vectors

    def encode_query(self, texts: Any, **options: Any) -> np.ndarray:
        """Returns the vectors of queries: `embed` with the prompt `"query"`, if there is one.

        Args:
            texts: As in `embed`.
            **options: Other arguments of `embed`.

        Example:

        >>> embedder = keras_xlnet.models.XLNetTextEmbedder.from_preset(
        ...     "xlnet_mini_en", prompts={"query": "question: "})
        >>> vector = embedder.encode_query("where?", truncate_dim=64)
        >>> bool(np.allclose(vector, embedder.embed("question: where?", truncate_dim=64)))
        True
        """
        return self.embed(texts, **{"prompt_name": self._prompt_of(("query",)), **options})

    def encode_document(self, texts: Any, **options: Any) -> np.ndarray:
        """Returns the vectors of texts of a collection, as sentence-transformers does.

        They are those of `embed` with the first of the prompts `"document"`, `"passage"` and
        `"corpus"` that exists.

        Args:
            texts: As in `embed`.
            **options: Other arguments of `embed`.
        """
        return self.embed(texts, **{"prompt_name": self._prompt_of(_DOCUMENTS), **options})

    def _prompt_of(self, names):
        return next((name for name in names if name in (self.prompts or {})), None)

    def _with_prompt(self, name, texts):
        check_choice("prompt_name", name, [*(self.prompts or {})])
        if not isinstance(texts, list):
            raise ValueError(
                "`texts` must be a string or a list of strings to put a prompt before each. Add "
                f"it to batches yourself. Received: {type(texts).__name__}"
            )
        return [self.prompts[name] + text for text in as_texts(texts, "texts")]

    def _truncated(self, vectors, truncate_dim):
        if truncate_dim is None:
            return vectors
        _check_dim("truncate_dim", truncate_dim, self.backbone)
        return unit_length(vectors[..., :truncate_dim])

    def similarity(
        self,
        texts: Any,
        others: Any,
        batch_size: int | None = None,
        verbose: str | int = "auto",
    ) -> np.ndarray:
        """Returns the cosines between texts and other texts.

        Args:
            texts, others: Texts or a string, as in `embed`; or vectors of texts, which `embed`
                returned, of any dtype: `(hidden_dim,)`, `(texts, hidden_dim)` or a list of vectors.
            batch_size, verbose: As in `keras.Model.predict`.

        Returns:
            Float32 array `(texts, others)`, without an axis for a string or a single vector.

        Example: see `XLNetTextEmbedder`.
        """
        vectors, others = (self._vectors(x, batch_size, verbose) for x in (texts, others))
        return np.clip(vectors @ others.T, -1.0, 1.0)

    def search(
        self,
        queries: Any,
        corpus: Any,
        top_k: int = 10,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        *,
        truncate_dim: int | None = None,
        ranges: np.ndarray | None = None,
    ) -> list[list[RankedDocument]]:
        """Returns the texts of a collection that are most similar to each query.

        Texts are read by `encode_query` and `encode_document`. The cosines are computed in blocks,
        so collections of millions of vectors need little extra memory.

        Args:
            queries: Texts or vectors, as in `similarity`. A string or a vector is one query.
            corpus: Texts or vectors. Embed a collection once if it is searched often. Vectors can
                have another `precision` of `embed`. They are compared to the float32 vectors of
                the queries as the numbers that their codes stand for.
            top_k: Int, the number of texts to return for a query.
            batch_size, verbose: As in `keras.Model.predict`.
            truncate_dim: As in `embed`. Float vectors may be longer, and are truncated.
            ranges: For vectors of int8 and uint8, the `ranges` that they were made with.

        Returns:
            For each query a list of `RankedDocument`, the most similar one first: `index`, `text`
            (`""` if `corpus` is vectors) and `score`, the cosine.

        Raises:
            ValueError: If an argument is not as above.
        """
        check_positive_int("top_k", top_k)
        queries, corpus = (one_row(plain_texts(x))[0] for x in (queries, corpus))
        vectors = np.atleast_2d(
            self._vectors(queries, batch_size, verbose, truncate_dim, self.encode_query)
        )
        if _are_codes(corpus):
            corpus_vectors = np.atleast_2d(corpus)
            as_floats = functools.partial(
                dequantize_embeddings, dim=vectors.shape[-1], ranges=ranges
            )
        else:
            corpus_vectors = np.atleast_2d(
                self._vectors(corpus, batch_size, verbose, truncate_dim, self.encode_document)
            )
            as_floats = np.asarray
        rows, scores = most_similar(vectors, corpus_vectors, top_k, as_floats)
        texts = None if _are_numbers(corpus) else as_texts(corpus)
        return [
            [
                RankedDocument(int(i), "" if texts is None else texts[i], float(score))
                for i, score in zip(found, values, strict=True)
            ]
            for found, values in zip(rows, np.clip(scores, -1.0, 1.0), strict=True)
        ]

    def mine_hard_negatives(
        self,
        queries: Sequence[str],
        positives: Sequence[str],
        corpus: Sequence[str] | None = None,
        num_negatives: int = 3,
        *,
        range_min: int = 0,
        range_max: int | None = None,
        max_score: float | None = None,
        relative_margin: float | None = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
    ) -> list[tuple[str, str, str]]:
        """Finds texts that are similar to queries but do not belong to them, for `fit`.

        The texts of `positives` with equal queries are never negatives of these queries. The
        others are ordered by their cosine with the query, as `search` does.

        Args:
            queries, positives: Lists of strings, the two texts of each pair.
            corpus: Optional list of strings to find negatives in, besides `positives`.
            num_negatives: Int, how many negatives each pair gets, fewer if there are too few.
            range_min: Int, how many of the most similar texts are skipped: some may be unmarked
                positives.
            range_max: Optional int, how many of the most similar texts are candidates. By default
                as many as are needed, or about 10 times as many with a limit of scores.
            max_score: Optional float, the largest cosine of a negative.
            relative_margin: Optional float. With 0.05 the cosine of a negative is at least 5 %
                below the cosines of the query's positives.
            batch_size, verbose: As in `keras.Model.predict`.

        Returns:
            List of rows `(query, positive, negative)`, those of a pair together.

        Raises:
            ValueError: If an argument is not as above.

        Example:

        >>> embedder = keras_xlnet.models.XLNetTextEmbedder.from_preset("xlnet_mini_en")
        >>> texts = ["The ship is in the harbor.", "The ship sails north.", "He bakes bread."]
        >>> embedder.mine_hard_negatives(["Where is the ship?"], texts[:1], texts, 1, verbose=0)
        [('Where is the ship?', 'The ship is in the harbor.', 'The ship sails north.')]

        Source: Moreira et al. 2024, "NV-Retriever: improving text embedding models with effective
        hard-negative mining", for the margin; `mine_hard_negatives` of sentence-transformers.
        """
        check_positive_int("num_negatives", num_negatives)
        check_int("range_min", range_min, 0)
        queries, positives = as_texts(queries, "queries"), as_texts(positives, "positives")
        check_count(
            positives, len(queries), f"`positives` must have {len(queries)} texts. Received: "
        )
        texts = [*dict.fromkeys([*as_texts(corpus or [], "corpus"), *positives])]
        places = {text: i for i, text in enumerate(texts)}
        own: dict[str, set[int]] = {}
        for query, positive in zip(queries, positives, strict=True):
            own.setdefault(query, set()).add(places[positive])
        most = max(map(len, own.values()), default=0)
        has_limit = max_score is not None or relative_margin is not None
        if range_max is None:
            range_max = range_min + num_negatives * (10 if has_limit else 1) + most
        check_int("range_max", range_max, range_min + num_negatives)
        options = {"batch_size": batch_size, "verbose": verbose}
        query_vectors = self.encode_query([*own], **options)
        vectors = self.encode_document(texts, **options)
        negatives = {}
        found = zip(*most_similar(query_vectors, vectors, range_max + most), strict=True)
        for (query, is_own), vector, (rows, scores) in zip(
            own.items(), query_vectors, found, strict=True
        ):
            limit = np.inf if max_score is None else max_score
            if relative_margin is not None:
                cosine = min(vectors[[*is_own]] @ vector)
                limit = min(limit, cosine - relative_margin * abs(cosine))
            kept = [
                i
                for i, score in zip(rows, scores, strict=True)
                if i not in is_own and score <= limit
            ]
            negatives[query] = [texts[i] for i in kept[range_min:range_max][:num_negatives]]
        return [
            (query, positive, negative)
            for query, positive in zip(queries, positives, strict=True)
            for negative in negatives[query]
        ]

    def _vectors(self, texts, batch_size, verbose, truncate_dim=None, encode=None):
        """Embeddings of texts; vectors are only truncated and normalized."""
        texts = plain_texts(texts)
        if not _are_numbers(texts):
            encode = encode or self.embed
            return unit_length(
                encode(texts, batch_size=batch_size, verbose=verbose, truncate_dim=truncate_dim)
            )
        rows = [ops.convert_to_numpy(row) for row in texts] if isinstance(texts, list) else texts
        try:
            vectors = np.asarray(ops.convert_to_numpy(rows), "float32")
        except (TypeError, ValueError) as error:
            raise ValueError(f"Vectors of texts must have numbers, all as many ({error})") from None
        sizes = [self.backbone.hidden_dim] + ([truncate_dim] if truncate_dim else [])
        if vectors.ndim not in (1, 2) or vectors.shape[-1] not in sizes:
            raise ValueError(
                f"Vectors of texts must have shape (texts, {' or '.join(map(str, sizes))}). "
                f"Received: shape {vectors.shape}"
            )
        return unit_length(self._truncated(vectors, truncate_dim))


def _check_prompts(prompts):
    is_dict = isinstance(prompts, Mapping)
    if not is_dict or not all(isinstance(x, str) for x in [*prompts, *prompts.values()]):
        raise ValueError(
            '`prompts` must be a dict of strings, such as {"query": "query: "}. Received: '
            f"prompts={prompts!r}"
        )


def _check_dim(name, dim, backbone):
    if check_positive_int(name, dim) > backbone.hidden_dim:
        raise ValueError(
            f"`{name}` must be at most {backbone.hidden_dim}, the length of the vectors. Received: "
            f"{dim}"
        )


def _cut_to(dims, embeddings):
    """The embeddings cut to each length, and normalized again."""
    if dims is None:
        return [embeddings]
    return [ops.normalize(embeddings[..., :dim], axis=-1) for dim in dims]


def _are_numbers(x):
    """Whether `x` is a vector or vectors: an array, a tensor, or a list of these or of numbers."""
    while isinstance(x, list) and x:
        x = x[0]
    return isinstance(x, (int, float)) or (hasattr(x, "dtype") and not is_text(x))


def _are_codes(x):
    return isinstance(x, np.ndarray) and x.dtype in (np.int8, np.uint8)


class SplitTexts(keras.Operation):
    """`(batch * texts, dim)` -> `(batch, texts, dim)`."""

    def call(self, x: Tensor, token_ids: Tensor) -> Tensor:
        return ops.reshape(x, (*ops.shape(token_ids)[:2], x.shape[-1]))

    def compute_output_spec(
        self, x: keras.KerasTensor, token_ids: keras.KerasTensor
    ) -> keras.KerasTensor:
        shape: Shape = (*token_ids.shape[:2], x.shape[-1])
        return keras.KerasTensor(shape, dtype=x.dtype)
