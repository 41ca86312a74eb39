"""Ranking of documents: training with both losses, order, saving, and what is refused."""

import keras
import numpy as np
import pytest

from keras_xlnet.models import ListSoftmaxLoss, PairwiseHingeLoss, XLNetRanker
from keras_xlnet.preprocessing import XLNetRankerPreprocessor
from keras_xlnet.preprocessing.ranker_preprocessor import relevance_labels
from keras_xlnet.preprocessing.texts import read_columns
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.small_models import small_backbone

WORDS = ["river", "harbor", "ship", "forest", "castle", "bridge"]


def examples(count, seed):
    """A document is relevant if it has the word of the query."""
    rng = np.random.default_rng(seed)
    queries, documents, relevance = [], [], []
    for _ in range(count):
        words = [str(word) for word in rng.permutation(WORDS)[: rng.integers(2, 5)]]
        chosen = int(rng.integers(len(words)))
        queries.append(f"{words[chosen]}?")
        documents.append([f"the {word} is old" for word in words])
        relevance.append([int(i == chosen) for i in range(len(words))])
    return {"query": queries, "documents": documents}, relevance


def make(**kwargs):
    keras.utils.set_random_seed(4)
    x, _ = examples(40, 0)
    lines = [*x["query"], *(text for texts in x["documents"] for text in texts)]
    tokenizer = XLNetTokenizer.train(iter(lines), vocabulary_size=42)
    backbone = small_backbone(vocabulary_size=42, hidden_dim=32, intermediate_dim=64)
    preprocessor = XLNetRankerPreprocessor(tokenizer, sequence_length=24)
    return XLNetRanker(backbone, preprocessor=preprocessor, dropout=0.0, **kwargs)


@pytest.fixture(scope="module")
def trained():
    model = make(pooling="pair")
    model.compile(keras.optimizers.Adam(5e-3))
    x, relevance = examples(120, 1)
    history = model.fit(
        x, relevance, epochs=5, batch_size=20, verbose=0, validation_data=examples(40, 2)
    ).history
    return model, history


def test_learns_to_rank(trained):
    model, history = trained
    assert history["val_loss"][-1] < 0.5 * history["val_loss"][0]
    x, relevance = examples(40, 2)
    first = [documents[0].index for documents in model.rank(x, verbose=0)]
    right = [row[index] for row, index in zip(relevance, first, strict=True)]
    assert np.mean(right) > 0.8
    assert model.evaluate(x, relevance, verbose=0) == pytest.approx(
        history["val_loss"][-1], rel=0.02
    )


def test_documents_are_in_the_order_of_their_scores(trained):
    model, _ = trained
    x, _ = examples(10, 3)
    scores = model.predict(x, verbose=0)
    for documents, row, texts in zip(model.rank(x, verbose=0), scores, x["documents"], strict=True):
        assert (row[len(texts) :] == -1e9).all()
        assert [d.score for d in documents] == sorted(row[: len(texts)].tolist(), reverse=True)
        assert all(d.text == texts[d.index] for d in documents)
        assert sorted(d.index for d in documents) == list(range(len(texts)))


def test_a_document_does_not_depend_on_the_others(trained):
    model, _ = trained
    x, _ = examples(4, 5)
    scores = model.predict(x, verbose=0)
    for row, (query, texts) in enumerate(zip(*x.values(), strict=True)):
        for column, text in enumerate(texts):
            alone = model.predict([(query, [text])], verbose=0)
            assert alone[0, 0] == pytest.approx(scores[row, column], abs=1e-4)


def test_the_pairwise_loss_trains_too():
    model = make()
    loss = PairwiseHingeLoss(margin=0.5)
    model.compile(keras.optimizers.Adam(2e-3), loss=loss, run_eagerly=True)
    x, relevance = examples(40, 1)
    history = model.fit(x, relevance, epochs=3, batch_size=20, verbose=0).history["loss"]
    assert history[-1] < history[0]


@pytest.mark.parametrize("loss", [ListSoftmaxLoss(), PairwiseHingeLoss(margin=0.5)])
def test_losses_are_saved(loss):
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert again.get_config() == loss.get_config()


def test_saved_models_rank_the_same(trained, tmp_path):
    model, _ = trained
    x, _ = examples(4, 6)
    expected = model.predict(x, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_to_preset(tmp_path / "preset")
    for loaded in (
        keras.models.load_model(tmp_path / "model.keras"),
        XLNetRanker.from_preset(tmp_path / "preset"),
    ):
        np.testing.assert_allclose(loaded.predict(x, verbose=0), expected, atol=1e-5)


BAD = {
    "another key": ({"query": ["a"], "texts": [["b"]]}, 'keys "query" and "documents"'),
    "lengths": ((["a", "b"], [["c"]]), "must have equal lengths. Received: {'query': 2"),
    "a string": ([("a", "b")], "`documents` must be lists of strings. Received in row 0: 'b'"),
    "no documents": ((["a", "b"], [["c"], []]), "lists of strings. Received in row 1"),
    "a number": ((["a"], [["c", 3]]), "`documents` must be strings. Received in row 0: 3"),
    "query": ((["a", None], [["c"], ["d"]]), "`query` must be strings. Received in row 1: None"),
    "rows": ([("a", ["b"]), ("c",)], r"rows \(query, documents\). Received in row 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_queries(case):
    x, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        read_columns(x, [("query", "documents")])


@pytest.mark.parametrize(
    ("relevance", "message"),
    [
        ([[1]], "of the documents of 2 queries. Received: 1 rows"),
        ([[1], [0, 1, 0]], "Received in row 1: 3 for 2 documents"),
        ([[1], [0, -1]], r"at least 0. Received in row 1: \[0, -1\]"),
        ([[1], [0, np.nan]], "at least 0. Received in row 1"),
        (None, "Received: None"),
    ],
)
def test_bad_relevance(relevance, message):
    with pytest.raises(ValueError, match=message):
        relevance_labels(relevance, [["a"], ["b", "c"]])
