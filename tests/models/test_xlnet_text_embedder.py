"""Embeddings of texts: training with and without labels, search, saving, and what is refused."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.models import CosineSimilarityLoss, XLNetTextEmbedder
from keras_xlnet.ops.contrastive import in_batch_negatives_loss
from keras_xlnet.ops.vector_search import most_similar
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor, XLNetTextEmbedderPreprocessor
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.small_models import small_backbone

WORDS = ["river", "harbor", "ship", "forest", "castle", "bridge"]
# A second name of each thing.
OTHERS = ["stream", "port", "boat", "wood", "fort", "arch"]


def pairs(count, seed):
    rng = np.random.default_rng(seed)
    chosen = rng.integers(len(WORDS), size=count)
    first = [f"the {WORDS[i]} is old" for i in chosen]
    return first, [f"an old {OTHERS[i]}" for i in chosen], chosen


@pytest.fixture(scope="module")
def tokenizer():
    first, second, _ = pairs(60, 0)
    return XLNetTokenizer.train(iter(first + second), vocabulary_size=48)


def make(tokenizer, padding_side="left", **kwargs):
    keras.utils.set_random_seed(4)
    backbone = small_backbone(vocabulary_size=48, hidden_dim=32, intermediate_dim=64)
    preprocessor = XLNetTextEmbedderPreprocessor(
        tokenizer, sequence_length=32, padding_side=padding_side
    )
    return XLNetTextEmbedder(backbone, preprocessor=preprocessor, **kwargs)


@pytest.fixture(scope="module")
def model(tokenizer):
    return make(tokenizer)


def test_in_batch_negatives_train(tokenizer):
    model = make(tokenizer)
    model.compile(keras.optimizers.Adam(5e-3))
    first, second, _ = pairs(240, 1)
    history = model.fit((first, second), epochs=4, batch_size=12, verbose=0).history["loss"]
    assert history[-1] < 0.8 * history[0]
    found = model.search([f"the {word} is old" for word in WORDS], [f"an old {w}" for w in OTHERS])
    assert np.mean([documents[0].index == i for i, documents in enumerate(found)]) > 0.8


def test_cosine_regression_trains(tokenizer):
    model = make(tokenizer)
    model.compile(keras.optimizers.Adam(5e-3))
    rng = np.random.default_rng(3)
    i, j = rng.integers(len(WORDS), size=(2, 240))
    texts = [f"the {WORDS[k]} is old" for k in i], [f"an old {OTHERS[k]}" for k in j]
    similar = (i == j).astype("float32")
    before = model.evaluate(texts, similar, verbose=0)
    model.fit(texts, similar, epochs=4, batch_size=12, verbose=0)
    assert model.evaluate(texts, similar, verbose=0) < 0.6 * before


def test_loss_is_that_of_loops():
    """A slow twin: the cross-entropy of the right candidate among all of them."""
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(5, 3, 8))
    embeddings /= np.linalg.norm(embeddings, axis=-1, keepdims=True)
    expected = []
    for row in range(5):
        scores = [
            7.0 * embeddings[row, 0] @ embeddings[other, column]
            for column in (1, 2)
            for other in range(5)
        ]
        expected.append(np.log(np.sum(np.exp(scores))) - scores[row])
    found = in_batch_negatives_loss(keras.ops.convert_to_tensor(embeddings), 7.0)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found), expected, rtol=1e-5)
    labels = rng.normal(size=(5, 1))
    cosine = (embeddings[:, 0] * embeddings[:, 1]).sum(axis=1)
    loss = CosineSimilarityLoss(reduction=None)(labels, embeddings[:, :2])
    np.testing.assert_allclose(loss, (cosine - labels[:, 0]) ** 2, rtol=1e-5)


def test_embeddings_are_means_of_states(model):
    texts = ["the river is old", "a ship", "an old castle and an old bridge"]
    found = model.embed(texts, verbose=0)
    features = model.preprocessor.encode(texts).features
    states = model.backbone.predict_on_batch({k: v[:, 0] for k, v in features.items()})
    for row, vector in enumerate(found):
        mean = states["sequence_output"][row][features["padding_mask"][row, 0]].mean(axis=0)
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(model.embed(texts[1]), found[1], atol=1e-5)


@pytest.mark.parametrize("padding_side", ["left", "right"])
def test_neighbours_and_padding_do_not_matter(tokenizer, model, padding_side):
    other = make(tokenizer, padding_side)
    other.assign_weights(model)
    texts, _, _ = pairs(70, 5)
    texts = [text * (1 + i % 3) for i, text in enumerate(texts)]
    together = other.embed(texts, verbose=0)
    np.testing.assert_allclose(together, model.embed(texts, verbose=0), atol=1e-5)
    for row in (0, 33, 69):
        np.testing.assert_allclose(other.embed(texts[row]), together[row], atol=1e-5)


def test_forms_of_pairs_give_the_same(model):
    rows = [("a river", "a stream"), ("the old port", "ships")]
    columns = tuple(zip(*rows, strict=True))
    expected = model.predict(rows, verbose=0)
    assert expected.shape == (2, 2, 32)
    forms = [columns, dict(zip(("text", "pair"), columns, strict=True)), np.array(rows)]
    forms += [model.preprocessor.encode(rows), model.preprocessor.encode(rows).features]
    for form in forms:
        np.testing.assert_allclose(model.predict(form, verbose=0), expected, atol=1e-5)
    for column, texts in enumerate(columns):
        np.testing.assert_allclose(model.embed(texts, verbose=0), expected[:, column], atol=1e-5)


def test_the_graph_makes_the_same_features(model):
    rows = [("a river", "a stream", "a fort"), ("the old port", "ships", "")]
    columns = tuple(map(list, zip(*rows, strict=True)))
    for x in (columns, columns[:2], columns[0]):
        expected = model.preprocessor.encode(x, shorten=False).features
        found = model.preprocessor(x)
        for key, values in expected.items():
            np.testing.assert_array_equal(found[key], values)
    assert model.preprocessor("a river")["token_ids"].shape == (1, 32)


def test_datasets(tokenizer):
    model = make(tokenizer)
    first, second, chosen = pairs(24, 2)
    labels = (chosen % 2).astype("float32")
    texts = tf.data.Dataset.from_tensor_slices(((first, second), labels)).batch(8)
    expected = model.evaluate((first, second), labels, verbose=0)
    assert model.evaluate(texts, verbose=0) == pytest.approx(expected, rel=1e-4)
    unlabelled = texts.map(lambda x, y: (x,))
    before = model.evaluate(unlabelled, verbose=0)
    model.compile(keras.optimizers.Adam(5e-3))
    model.fit(unlabelled, epochs=3, verbose=0)
    assert model.evaluate(unlabelled, verbose=0) < before


def test_saved_models_embed_the_same(model, tmp_path):
    texts = ["the river is old", "a ship"]
    expected = model.embed(texts, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_to_preset(tmp_path / "preset")
    for loaded in (
        keras.models.load_model(tmp_path / "model.keras"),
        XLNetTextEmbedder.from_preset(tmp_path / "preset"),
        model.with_arguments(scale=5.0),
    ):
        np.testing.assert_allclose(loaded.embed(texts, verbose=0), expected, atol=1e-5)


def test_similarity_and_search(model):
    texts, _, _ = pairs(9, 6)
    texts = [f"{text} {'old ' * i}" for i, text in enumerate(texts)]
    vectors = model.embed(texts, verbose=0)
    np.testing.assert_allclose(
        model.similarity(texts, texts[:3]), vectors @ vectors[:3].T, atol=1e-5
    )
    assert model.similarity(texts[0], texts[1]).shape == ()
    np.testing.assert_allclose(model.similarity(3 * vectors, texts), vectors @ vectors.T, atol=1e-5)
    found = model.search(texts[:4], texts, top_k=3)
    for row, documents in enumerate(found):
        assert documents[0].index == row and documents[0].text == texts[row]
        assert documents[0].score == pytest.approx(1, abs=1e-5)
        assert [d.score for d in documents] == sorted((d.score for d in documents), reverse=True)
    by_vectors = model.search(vectors[:4], vectors, top_k=3)
    assert [[d.index for d in row] for row in by_vectors] == [[d.index for d in r] for r in found]
    assert by_vectors[0][0].text == ""
    (one,) = model.search(texts[0], texts)
    assert len(one) == 9 and one[0].text == texts[0]


def test_forms_of_vectors(model):
    texts, _, _ = pairs(5, 6)
    vectors = model.embed(texts, verbose=0)
    (expected,) = model.search(vectors[2:3], texts, top_k=2)
    expected = [(found.index, found.text) for found in expected]
    for query in (vectors[2], vectors[2].tolist(), [vectors[2]], [vectors[2].tolist()],
                  np.round(127 * vectors[2:3]).astype("int8"), vectors[2].astype("float64"),
                  tf.cast(vectors[2], "bfloat16")):  # fmt: skip
        (found,) = model.search(query, texts, top_k=2)
        assert [(each.index, each.text) for each in found] == expected
        assert model.similarity(query, vectors).shape[-1] == 5
    # The vectors of an untrained model are nearly equal.
    ((best,),) = model.search(vectors[2], [*vectors], top_k=1)
    assert best.text == "" and best.score == pytest.approx(1.0, abs=1e-5)
    assert model.search("a", texts[0], top_k=3)[0][0].text == texts[0]
    for wrong in ([vectors[0], "a"], [[1.0, 2.0], [1.0]], np.ones((2, 3))):
        with pytest.raises(ValueError, match="Vectors of texts must have"):
            model.search(wrong, texts)


@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(1, 40), st.integers(1, 50), st.integers(0, 99))
def test_search_in_blocks_is_a_sort(num_queries, rows, top_k, seed):
    rng = np.random.default_rng(seed)
    # Few different numbers: many products are equal.
    queries, vectors = (rng.integers(-1, 2, (n, 3)).astype("float32") for n in (num_queries, rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keras_xlnet.ops.vector_search._BLOCK", 7)
        patch.setattr("keras_xlnet.ops.vector_search._QUERIES", 4)
        found, scores = most_similar(queries, vectors, top_k)
    products = queries @ vectors.T
    expected = np.argsort(-products, axis=1, kind="stable")[:, :top_k]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(scores, np.take_along_axis(products, expected, axis=1))


BAD = {
    "single texts": (lambda m: m.fit(["a", "b"]), "`x` must be pairs of texts to train"),
    "pairs": (lambda m: m.embed([("a", "b")]), "`texts` must be a string or a list.*pairs"),
    "numbers": (lambda m: m.embed([1, 2]), "`texts` must be strings. Received in row 0: 1"),
    "four": (lambda m: m.predict([("a", "b", "c", "d")]), r"rows \(text, pair\) or \(text, pair, "),
    "rows": (lambda m: m.predict([("a", "b"), ("c",)]), "Received in row 1"),
    "lengths": (lambda m: m.predict((["a"], ["b", "c"])), "equal lengths"),
    "none": (lambda m: m.predict([("a", None)]), "`pair` must be strings. Received in row 0: None"),
    "labels": (lambda m: m.fit([("a", "b")], ["x"]), "must be numbers"),
    "weights": (lambda m: m.fit([("a", "b")], sample_weight=[1.0]), "needs labels"),
    "top_k": (lambda m: m.search("a", ["b"], top_k=0), "`top_k` must be a positive integer"),
    "vectors": (lambda m: m.search("a", np.ones((3, 5))), r"must have shape \(texts, 32\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(model, case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call(model)


def test_bad_models(model, tokenizer):
    without = XLNetTextEmbedder(model.backbone)
    with pytest.raises(ValueError, match="has no `preprocessor`"):
        without.embed("a")
    with pytest.raises(ValueError, match="must be an instance of .*XLNetTextEmbedderPreprocessor"):
        XLNetTextEmbedder(model.backbone, preprocessor=tokenizer)
    with pytest.raises(ValueError, match="`scale` must be"):
        XLNetTextEmbedder(model.backbone, scale="large")
    assert XLNetTextEmbedderPreprocessor.accepts(XLNetTextClassifierPreprocessor)


# === Texts of other rows that are no negatives ===


def test_equal_texts_are_no_negatives(model):
    """Four equal pairs have nothing to be told from; equal anchors have several right texts."""
    pair = ("the river is old", "an old stream")
    assert model.evaluate([pair] * 4, verbose=0) == pytest.approx(0, abs=1e-6)
    swapped = [pair, pair[::-1]]
    assert model.evaluate(swapped, verbose=0) == pytest.approx(0, abs=1e-6)
    same_anchor = [pair, (pair[0], "an old arch")]
    assert model.evaluate(same_anchor, verbose=0) == pytest.approx(0, abs=1e-6)
    others = [("the ship is old", "an old boat"), ("the castle is old", "an old fort")]
    once = model.evaluate([pair, *others], batch_size=9, verbose=0)
    assert once > 0.1
    # A second copy changes the mean, not the losses of the others.
    losses = [
        float(keras.ops.sum(loss_of_rows(model, rows)[-2:]))
        for rows in ([pair, *others], [pair, pair, *others])
    ]
    counted = loss_of_rows(model, [pair, pair, *others])
    assert float(counted[0]) == pytest.approx(float(loss_of_rows(model, [pair, *others])[0]))
    assert losses[1] > losses[0]  # The copy is one more text that does not belong to them.


def loss_of_rows(model, rows):
    features = model.preprocessor.encode(rows).features
    ids = np.where(features["padding_mask"], features["token_ids"], -1)
    return in_batch_negatives_loss(model(features), model.scale, ids)


@pytest.mark.parametrize(
    "x, y, message",
    [
        ([("a ship", "a boat")] * 2, [0.0, 5.0], "`y` must be from -1 to 1 .*5.0 in row 1"),
        ([("a ship", "a boat", "an arch")] * 2, [0.0, 1.0], r"rows \(text, pair\) if there are"),
    ],
)
def test_labels_are_cosines_of_two_texts(model, x, y, message):
    for method in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match=message):
            method(x, y, verbose=0)
        with pytest.raises(ValueError, match=message):
            method(model.preprocessor.encode(x).features, np.array(y), verbose=0)


def test_cosines_are_at_most_1(model, rng):
    vectors = rng.normal(size=(300, 32)).astype("float32")
    found = model.similarity(vectors, vectors)
    assert np.abs(found).max() <= 1
    assert max(document.score for (document,) in model.search(vectors, vectors, top_k=1)) <= 1
    for factor in (1e-30, 1e30):  # Their squares are no float32 numbers.
        np.testing.assert_allclose(model.similarity(factor * vectors, vectors), found, atol=1e-6)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_vectors_that_are_not_finite_are_refused(model, rng, number):
    vectors = rng.normal(size=(4, 32))
    vectors[2, 5] = number
    for call in (model.search, model.similarity):
        for arguments in ((["a ship"], vectors), (vectors, vectors[:1])):
            with pytest.raises(ValueError, match="finite numbers. Received in row 2"):
                call(*arguments)
