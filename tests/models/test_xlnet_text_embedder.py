"""Embeddings of texts: training with and without labels, search, saving, and what is refused."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.checkpoints import save_huggingface
from keras_xlnet.models import CosineSimilarityLoss, XLNetTextEmbedder
from keras_xlnet.ops.contrastive import in_batch_negatives_loss
from keras_xlnet.ops.vector_quantization import dequantize_embeddings, quantize_embeddings
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


def test_prompts(tokenizer, model, tmp_path):
    """They stand before the texts of queries and documents, also in saved models."""
    prompts = {"query": "old ", "passage": "a ship: ", "other": "arch "}
    prompted = make(tokenizer, prompts=prompts)
    prompted.assign_weights(model)
    texts = ["the river", "a fort"]
    prompted.save_to_preset(tmp_path)
    for found in (prompted, XLNetTextEmbedder.from_preset(tmp_path), prompted.clone()):
        assert found.prompts == prompts
        found.assign_weights(model)
        for encode, prompt in (
            (found.embed, ""),
            (found.encode_query, "old "),
            (found.encode_document, "a ship: "),
            (functools.partial(found.embed, prompt_name="other"), "arch "),
        ):
            expected = model.embed([prompt + text for text in texts], verbose=0)
            np.testing.assert_allclose(encode(texts, verbose=0), expected, atol=1e-6)
            np.testing.assert_allclose(encode(texts[0]), expected[0], atol=1e-6)
    vectors = model.embed(["old the river", "a ship: a fort", "a ship: the river"], verbose=0)
    (documents,) = prompted.search("the river", ["a fort", "the river"], verbose=0)
    assert {each.index: pytest.approx(each.score, abs=1e-5) for each in documents} == {
        0: vectors[0] @ vectors[1],
        1: vectors[0] @ vectors[2],
    }
    np.testing.assert_allclose(model.encode_query(texts[0]), model.embed(texts[0]), atol=1e-6)


def test_truncated_vectors(model):
    texts, _, _ = pairs(12, 6)
    vectors = model.embed(texts, verbose=0)
    cut = vectors[:, :8] / np.linalg.norm(vectors[:, :8], axis=1, keepdims=True)
    found = model.embed(texts, verbose=0, truncate_dim=8)
    np.testing.assert_allclose(found, cut, atol=1e-6)
    cosines = cut[0] @ cut.T
    for corpus in (texts, vectors, found):
        (documents,) = model.search(texts[0], corpus, top_k=12, verbose=0, truncate_dim=8)
        scores = [document.score for document in documents]
        np.testing.assert_allclose(scores, np.sort(cosines)[::-1], atol=1e-5)
    with pytest.raises(ValueError, match=r"must have shape \(texts, 32 or 8\)"):
        model.search(texts[0], vectors[:, :9], truncate_dim=8)


@pytest.mark.parametrize("precision", ["int8", "uint8", "binary", "ubinary"])
@pytest.mark.parametrize("dim", [32, 13])
def test_codes_are_those_of_sentence_transformers(precision, dim):
    theirs = pytest.importorskip("sentence_transformers.util.quantization")
    rng = np.random.default_rng(3)
    vectors, calibration = rng.normal(size=(2, 40, dim)).astype("float32")
    vectors[:, 5] = 0.25  # Its range is empty.
    ranges = np.stack([calibration.min(axis=0), calibration.max(axis=0)])
    for options in ({}, {"ranges": ranges}):
        expected = theirs.quantize_embeddings(vectors, precision, **options)
        found = quantize_embeddings(vectors, precision, **options)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    step = np.ptp(ranges, axis=0) / 255
    back = dequantize_embeddings(found, dim, ranges)
    if "int8" in precision:
        clipped = np.clip(vectors, *ranges)
        assert (np.abs(back - clipped) <= 0.501 * step).all()
    else:
        np.testing.assert_array_equal(back > 0, vectors > 0)
        np.testing.assert_allclose(np.linalg.norm(back, axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("precision", ["int8", "ubinary"])
def test_search_in_codes(model, precision):
    texts, _, _ = pairs(40, 6)
    texts = [f"{text} {i}" for i, text in enumerate(texts)]
    vectors = model.embed(texts, verbose=0)
    ranges = np.stack([vectors.min(axis=0), vectors.max(axis=0)])
    codes = model.embed(texts, verbose=0, precision=precision, ranges=ranges)
    np.testing.assert_array_equal(codes, quantize_embeddings(vectors, precision, ranges))
    query = model.embed("an old boat")
    products = dequantize_embeddings(codes, 32, ranges) @ query
    (found,) = model.search(query, codes, top_k=9, ranges=ranges)
    np.testing.assert_allclose([x.score for x in found], np.sort(products)[:-10:-1], atol=1e-6)
    assert found[0].text == ""


def test_matryoshka_loss_is_that_of_sentence_transformers(tokenizer, tmp_path):
    losses = pytest.importorskip("sentence_transformers.losses")
    import torch
    from sentence_transformers import SentenceTransformer

    model = make(tokenizer, matryoshka_dims=[32, 8, 3])
    save_huggingface(model, tmp_path)
    theirs = SentenceTransformer(str(tmp_path))
    ranking = losses.MultipleNegativesRankingLoss(theirs, scale=20.0)
    loss = losses.MatryoshkaLoss(theirs, ranking, [32, 8, 3])
    columns = [f"the {w} is old" for w in WORDS], [f"an old {w}" for w in OTHERS]
    with torch.no_grad():
        features = [theirs.preprocess(column) for column in columns]
        expected = float(loss(features, None))
    assert model.evaluate(columns, verbose=0) == pytest.approx(expected, rel=1e-4)
    # With labels, the sum of squares.
    labels = np.linspace(-1, 1, 6)
    found = model.predict(columns, verbose=0)
    expected = 0.0
    for dim in (32, 8, 3):
        cut = found[..., :dim] / np.linalg.norm(found[..., :dim], axis=-1, keepdims=True)
        expected += np.mean(((cut[:, 0] * cut[:, 1]).sum(axis=-1) - labels) ** 2)
    assert model.evaluate(columns, labels, verbose=0) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("mini_batch_size", [4, 50])
def test_a_step_in_parts_is_a_step(tokenizer, monkeypatch, mini_batch_size):
    """Equal gradients; with dropout, those of parts that are not computed again."""
    first, second, _ = pairs(13, 1)

    def step(dropout, **kwargs):
        keras.utils.set_random_seed(4)
        backbone = small_backbone(
            vocabulary_size=48, dropout=dropout, attention_dropout=dropout, num_layers=2
        )
        preprocessor = XLNetTextEmbedderPreprocessor(tokenizer, sequence_length=32)
        model = XLNetTextEmbedder(backbone, preprocessor, **kwargs)
        model.compile(keras.optimizers.SGD(1.0))
        before = [keras.ops.convert_to_numpy(v) for v in model.trainable_variables]
        model.fit((first, second), batch_size=13, verbose=0, pack=False)
        after = [keras.ops.convert_to_numpy(v) for v in model.trainable_variables]
        return [x - y for x, y in zip(before, after, strict=True)]

    expected, found = step(0.0), step(0.0, mini_batch_size=mini_batch_size)
    assert_equal_gradients(found, expected)
    found = step(0.3, mini_batch_size=mini_batch_size)
    monkeypatch.setattr(keras, "remat", lambda function: function)
    assert_equal_gradients(found, step(0.3, mini_batch_size=mini_batch_size))


def assert_equal_gradients(found, expected):
    largest = max(np.abs(x).max() for x in expected)
    assert largest > 0.1
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-6 * largest)


@pytest.mark.parametrize(
    "options",
    [{}, {"range_min": 2}, {"relative_margin": 0.0}, {"max_score": 0.9, "range_min": 1}],
)
def test_hard_negatives_are_those_of_sentence_transformers(tokenizer, tmp_path, options):
    theirs = pytest.importorskip("sentence_transformers.util.hard_negatives")
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer

    model = make(tokenizer)
    save_huggingface(model, tmp_path)
    queries = [f"the {word} is old" for word in WORDS for _ in range(2)]
    positives = [text for w in OTHERS for text in (f"an old {w}", f"the {w} by the river")]
    corpus = [f"{a} and {b}" for a in WORDS for b in OTHERS]
    found = model.mine_hard_negatives(queries, positives, corpus, 2, verbose=0, **options)
    expected = theirs.mine_hard_negatives(
        Dataset.from_dict({"query": queries, "positive": positives}),
        SentenceTransformer(str(tmp_path)),
        corpus=corpus,
        num_negatives=2,
        verbose=False,
        **options,
    )
    assert sorted(found) == sorted(
        zip(*(expected[:][c] for c in expected.column_names), strict=True)
    )
    assert found
    model.fit(found, verbose=0)


BAD = {
    "prompts": (lambda m: m.with_arguments(prompts={"a": 1}), "`prompts` must be a dict of str"),
    "prompt_name": (lambda m: m.embed("a", prompt_name="b"), "`prompt_name` must be one of"),
    "dims": (lambda m: m.with_arguments(matryoshka_dims=[33]), "`matryoshka_dims` must be at most"),
    "mini": (lambda m: m.with_arguments(mini_batch_size=0), "`mini_batch_size` must be a positive"),
    "truncate_dim": (lambda m: m.embed("a", truncate_dim=33), "`truncate_dim` must be at most 32"),
    "precision": (lambda m: m.embed("a", precision="int4"), "`precision` must be one of"),
    "ranges": (lambda m: m.embed("a", precision="int8"), "needs `ranges` for a single vector"),
    "shape": (
        lambda m: m.embed("a", precision="int8", ranges=np.ones((2, 5))),
        r"`ranges` must have shape \(2, 32\)",
    ),
    "codes": (lambda m: m.search("a", np.ones((3, 32), "int8")), "need the `ranges`"),
    "bits": (lambda m: m.search("a", np.ones((3, 5), "uint8")), r"\(texts, 4\) of bits"),
    "positives": (lambda m: m.mine_hard_negatives(["a"], ["b", "c"]), "`positives` must have 1"),
    "range": (
        lambda m: m.mine_hard_negatives(["a"], ["b"], range_max=2),
        "`range_max` must be an integer of at least 3",
    ),
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
