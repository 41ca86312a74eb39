from typing import Any, ClassVar

import keras
import numpy as np
from keras import ops

from keras_xlnet.arguments import check_number, check_positive_int
from keras_xlnet.layers import SequencePooling
from keras_xlnet.models.task import Task, check_preprocessor
from keras_xlnet.models.task_graph import check_backbone, join_choices, token_inputs
from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.ops.contrastive import in_batch_negatives_loss
from keras_xlnet.ops.vector_search import most_similar, unit_length
from keras_xlnet.preprocessing import Preprocessor, RankedDocument, XLNetTextEmbedderPreprocessor
from keras_xlnet.preprocessing.examples import is_batches
from keras_xlnet.preprocessing.texts import as_texts, is_text, one_row, plain_texts
from keras_xlnet.registration import register
from keras_xlnet.types import Shape, Tensor


@register
class CosineSimilarityLoss(keras.losses.Loss):
    """Squared difference between the cosine of two embeddings and a number.

    Args:
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

    def __init__(self, name: str = "cosine_similarity_loss", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        cosine = ops.sum(y_pred[:, 0] * y_pred[:, 1], axis=-1)
        return ops.square(cosine - ops.reshape(y_true, (-1,)))


@register
class XLNetTextEmbedder(Task):
    """Represents each text by a vector, so that texts of similar meaning have similar vectors.

    The vector is the mean of the last states of the tokens, of length 1: the product of two is
    their cosine. `embed` returns vectors of texts, `similarity` cosines, and `search` the texts in
    a collection that are most similar to queries.

    `fit` takes pairs of texts. Without labels, the two texts of a pair belong together, and those
    of other pairs in the batch do not (in-batch negatives); a third text of a row is one more
    negative. Texts equal to a text of the pair are not its negatives. Large batches make
    the task harder, and training better. With labels, numbers from -1 to 1, the cosine of a pair
    is trained to equal its number.

    It is compiled with `FineTuningAdamW` and `CosineSimilarityLoss`, which
    is used only with labels. Call `compile` to change that; arguments you leave out
    keep these defaults.

    Args:
        backbone: An `XLNetBackbone`.
        preprocessor: An `XLNetTextEmbedderPreprocessor`.
        pooling: Mode of `SequencePooling`.
        scale: Float, the factor of cosines in the loss of in-batch negatives.
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
    Language Response Suggestion for Smart Reply", for in-batch negatives.
    """

    task = "text_embedder"
    # sentence-transformers has other files beside those of the encoder.
    checkpoint: ClassVar = {"architectures": ("XLNetModel",)}
    signatures = "texts"
    output_name = "embedding"
    # Fine-tuning soon destroys what a preset has learned.
    _learning_rate = 1e-5
    preprocessor_cls = XLNetTextEmbedderPreprocessor
    _arguments = ("preprocessor", "pooling", "scale")

    def __init__(
        self,
        backbone: XLNetBackbone,
        preprocessor: Preprocessor | None = None,
        pooling: str = "mean",
        scale: float = 20.0,
        name: str = "xlnet_text_embedder",
        **kwargs: Any,
    ) -> None:
        check_backbone(backbone)
        check_preprocessor(preprocessor, backbone, self.preprocessor_cls)
        check_number("scale", scale)
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
        self._hold(preprocessor)
        self.compile()

    def _compile_defaults(self):
        return {"loss": CosineSimilarityLoss(), "metrics": []}

    # === Training on pairs ===

    def _read(self, x, y=None, sample_weight=None, has_labels=True, pack=True, keeps_order=False):
        found = super()._read(x, y, sample_weight, has_labels, pack, keeps_order)
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
        return self._mean_loss(in_batch_negatives_loss(y_pred, self.scale, texts))

    # === Using the embeddings ===

    def _predict(self, *args, **kwargs):
        outputs = super()._predict(*args, **kwargs)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def embed(
        self, texts: Any, batch_size: int | None = None, verbose: str | int = "auto"
    ) -> np.ndarray:
        """Returns a vector of length 1 for each text.

        Args:
            texts: A string, a list, array or column of a table of strings, or batches of these.
            batch_size, verbose: As in `keras.Model.predict`.

        Returns:
            Float32 array `(texts, hidden_dim)`, or `(hidden_dim,)` for a string.

        Raises:
            ValueError: If `texts` is something else, or the model has no preprocessor.
        """
        if isinstance(texts, (str, bytes)):
            return self.embed([texts], verbose=0)[0]
        texts = plain_texts(texts)
        if isinstance(texts, list) and not isinstance((texts or [None])[0], (list, tuple)):
            texts = as_texts(texts, "texts")
        examples = self._read(texts, has_labels=False)
        encoded = examples.encoded
        if not is_batches(texts) and (encoded is None or len(encoded.columns) > 1):
            raise ValueError(
                "`texts` must be a string or a list of strings. Received: "
                f"{'pairs of texts' if encoded else type(texts).__name__}"
            )
        return np.asarray(self._predict(examples, batch_size, verbose))

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
    ) -> list[list[RankedDocument]]:
        """Returns the texts of a collection that are most similar to each query.

        The cosines are computed in blocks, so collections of millions of vectors need little
        extra memory.

        Args:
            queries: Texts or vectors, as in `similarity`. A string or a vector is one query.
            corpus: Texts or vectors. Embed a collection once if it is searched often.
            top_k: Int, the number of texts to return for a query.
            batch_size, verbose: As in `keras.Model.predict`.

        Returns:
            For each query a list of `RankedDocument`, the most similar one first: `index`, `text`
            (`""` if `corpus` is vectors) and `score`, the cosine.

        Raises:
            ValueError: If an argument is not as above.
        """
        check_positive_int("top_k", top_k)
        queries, corpus = (one_row(plain_texts(x))[0] for x in (queries, corpus))
        rows, scores = most_similar(
            np.atleast_2d(self._vectors(queries, batch_size, verbose)),
            np.atleast_2d(self._vectors(corpus, batch_size, verbose)),
            top_k,
        )
        texts = None if _are_numbers(corpus) else as_texts(corpus)
        return [
            [
                RankedDocument(int(i), "" if texts is None else texts[i], float(score))
                for i, score in zip(found, values, strict=True)
            ]
            for found, values in zip(rows, np.clip(scores, -1.0, 1.0), strict=True)
        ]

    def _vectors(self, texts, batch_size, verbose):
        """Embeddings of texts; vectors are only normalized."""
        texts = plain_texts(texts)
        if not _are_numbers(texts):
            return unit_length(self.embed(texts, batch_size, verbose))
        rows = [ops.convert_to_numpy(row) for row in texts] if isinstance(texts, list) else texts
        try:
            vectors = np.asarray(ops.convert_to_numpy(rows), "float32")
        except (TypeError, ValueError) as error:
            raise ValueError(f"Vectors of texts must have numbers, all as many ({error})") from None
        if vectors.ndim not in (1, 2) or vectors.shape[-1] != self.backbone.hidden_dim:
            raise ValueError(
                "Vectors of texts must have shape "
                f"(texts, {self.backbone.hidden_dim}). Received: shape {vectors.shape}"
            )
        return unit_length(vectors)


def _are_numbers(x):
    """Whether `x` is a vector or vectors: an array, a tensor, or a list of these or of numbers."""
    while isinstance(x, list) and x:
        x = x[0]
    return isinstance(x, (int, float)) or (hasattr(x, "dtype") and not is_text(x))


class SplitTexts(keras.Operation):
    """`(batch * texts, dim)` -> `(batch, texts, dim)`."""

    def call(self, x: Tensor, token_ids: Tensor) -> Tensor:
        return ops.reshape(x, (*ops.shape(token_ids)[:2], x.shape[-1]))

    def compute_output_spec(
        self, x: keras.KerasTensor, token_ids: keras.KerasTensor
    ) -> keras.KerasTensor:
        shape: Shape = (*token_ids.shape[:2], x.shape[-1])
        return keras.KerasTensor(shape, dtype=x.dtype)
