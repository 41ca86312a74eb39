from typing import Any

import keras

from keras_xlnet.arguments import check_number
from keras_xlnet.models.task import Task, check_preprocessor
from keras_xlnet.models.task_graph import (
    SplitChoices,
    check_backbone,
    join_choices,
    pooled_logits,
    token_inputs,
)
from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.ops.ranking import list_softmax_loss, pairwise_hinge_loss
from keras_xlnet.preprocessing import Preprocessor, XLNetRankerPreprocessor
from keras_xlnet.registration import register
from keras_xlnet.types import Tensor


@register
class ListSoftmaxLoss(keras.losses.Loss):
    """Cross-entropy of the relevance of documents and the softmax of their scores, over lists.

    Args:
        name: Name of the loss.
        **kwargs: Other arguments of `keras.losses.Loss`.

    Call arguments:
        y_true: Relevance `(batch, documents)`, at least 0; negative for missing documents.
        y_pred: Scores `(batch, documents)`.

    Example:

    >>> loss = keras_xlnet.models.ListSoftmaxLoss()
    >>> round(float(loss(np.array([[1, 0, -1]]), np.array([[2.0, 0.0, 9.0]]))), 3)
    0.127

    Source: Cao et al. 2007, "Learning to Rank: From Pairwise Approach to Listwise Approach".
    """

    def __init__(self, name: str = "list_softmax_loss", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return list_softmax_loss(y_true, y_pred)


@register
class PairwiseHingeLoss(keras.losses.Loss):
    """Mean hinge loss over the pairs of documents with different relevance, over lists.

    Args:
        margin: Float, the target difference between the scores of a pair.
        name: Name of the loss.
        **kwargs: Other arguments of `keras.losses.Loss`.

    Call arguments:
        y_true: Relevance `(batch, documents)`, at least 0; negative where there is no document.
        y_pred: Scores `(batch, documents)`.

    Example:

    >>> loss = keras_xlnet.models.PairwiseHingeLoss(margin=1.0)
    >>> float(loss(np.array([[1, 0, 0]]), np.array([[2.0, 1.5, 0.0]])))
    0.25

    Source: Herbrich et al. 2000, "Large Margin Rank Boundaries for Ordinal Regression".
    """

    def __init__(
        self, margin: float = 1.0, name: str = "pairwise_hinge_loss", **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        check_number("margin", margin)
        self.margin = margin

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return pairwise_hinge_loss(y_true, y_pred, self.margin)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "margin": self.margin}


@register
class XLNetRanker(Task):
    """Ranks documents by their relevance for a query.

    Each pair of a query and a document is a text with its own score. The backbone processes
    all documents as one batch. The pooled sequence goes through a dense layer with tanh (the
    summary of the original), dropout, and a dense layer with one output.

    With a preprocessor `fit` and `evaluate` take queries with lists of documents, of any number,
    and their relevance; `predict` gives scores, and `rank` the documents in order.

    It is compiled with `FineTuningAdamW` (for a pretrained backbone) and `ListSoftmaxLoss`. Call
    `compile` to change that, such as to `PairwiseHingeLoss`; arguments you leave out keep
    these defaults.

    Args:
        backbone: An `XLNetBackbone`.
        preprocessor: An `XLNetRankerPreprocessor`. It packs a query and a document as a pair, and
            truncates the longer of them.
        pooling: Mode of `SequencePooling`. The default `"last"` is `<cls>`. Or `"pair"`: query and
            document are compared token by token, by `PairComparison`.
        dropout: Float, dropout rate before the last layer.
        name: Name of the model.

    Inputs, a dict: `token_ids`, `segment_ids`, `padding_mask`, as in `XLNetBackbone`, but of
    shape `(batch, documents, length)`. A document that is only padding is ignored.

    Outputs: Tensor `(batch, documents)`, float32, -1e9 for missing documents.

    Raises:
        ValueError: If an argument is not as above.

    Example:

    >>> from keras_xlnet.preprocessing import XLNetRankerPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> texts = ["a river is water", "a harbor is for ships", "a ship sails"]
    >>> tokenizer = XLNetTokenizer.train(iter(texts * 20), vocabulary_size=32)
    >>> ranker = keras_xlnet.models.XLNetRanker(
    ...     keras_xlnet.models.XLNetBackbone(32, 1, 2, 16, 32),
    ...     preprocessor=XLNetRankerPreprocessor(tokenizer, sequence_length=24))
    >>> queries = {"query": ["a ship", "water"], "documents": [texts, texts[:2]]}
    >>> history = ranker.fit(queries, [[0, 1, 2], [1, 0]], verbose=0)
    >>> [len(documents) for documents in ranker.rank(queries, verbose=0)]
    [3, 2]

    Source: Yang et al. 2019, "XLNet", section 3.4, document ranking on ClueWeb09-B.
    """

    # Only presets have it: a cross-encoder of transformers cannot be told from a regressor.
    task = "ranker"
    signatures = "ranking"
    output_name = "scores"
    preprocessor_cls = XLNetRankerPreprocessor
    _arguments = ("preprocessor", "pooling", "dropout")

    def __init__(
        self,
        backbone: XLNetBackbone,
        preprocessor: Preprocessor | None = None,
        pooling: str = "last",
        dropout: float = 0.1,
        name: str = "xlnet_ranker",
        **kwargs: Any,
    ) -> None:
        check_backbone(backbone)
        check_preprocessor(preprocessor, backbone, self.preprocessor_cls)
        inputs = token_inputs(backbone, (None, None))
        texts = join_choices(inputs)
        logits, summarize, logits_dense = pooled_logits(backbone, texts, 1, pooling, dropout)
        scores = SplitChoices(name="scores")(logits, inputs["padding_mask"])
        super().__init__(backbone, inputs=inputs, outputs=scores, name=name, **kwargs)

        # PyTorch accepts submodules only after its module is initialized.
        self.sequence_summary = summarize
        self.logits_dense = logits_dense

        # === Config ===
        self.pooling = pooling
        self.dropout = dropout
        self._hold(preprocessor)
        self.compile()

    def _compile_defaults(self):
        return {"loss": ListSoftmaxLoss(), "metrics": []}

    def rank(
        self,
        x: Any,
        documents: Any = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
    ) -> Any:
        """Returns the documents of each query, the most relevant one first.

        Args:
            x: Queries with documents: a dict of the columns `query` and `documents`, a tuple of
                these, or a list of rows `(query, documents)`. Or queries, if `documents` are given.
            documents: Optional column of lists of documents. `rank(query, texts)` ranks the texts
                for one query, a string.
            batch_size, verbose: As in `keras.Model.predict`.

        Returns:
            A list with a list of `RankedDocument` for each query: `index`, `text` and `score`. For
            one query that is a string only its list.
        """
        return self._results(x, batch_size, verbose, documents)
