"""Scores of texts: the chain rule in every order, and what must make no difference."""

import itertools

import keras
import numpy as np
import pytest

from keras_xlnet.models import TransformerXLLanguageModel, XLNetBackbone, XLNetPermutationLM
from keras_xlnet.models.scoring import score_in_segments, score_with_ranks

TINY, LENGTH = 7, 3
ALL_TEXTS = np.array(list(itertools.product(range(TINY), repeat=LENGTH)))


def with_random_weights(model, seed=0):
    rng = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(scale=0.4, size=variable.shape) + ("gamma" in variable.path))
    return model


def permutation_model(vocabulary_size=TINY, **kwargs):
    arguments = {"memory_length": None, **kwargs}
    backbone = XLNetBackbone(vocabulary_size, 2, 2, 16, 24, dropout=0.0, **arguments)
    return with_random_weights(XLNetPermutationLM(backbone))


def causal_model(vocabulary_size=TINY, **kwargs):
    model = TransformerXLLanguageModel(
        vocabulary_size, 2, 2, 16, 24, **{"dropout": 0.0, "memory_length": 40, **kwargs}
    )
    return with_random_weights(model)


@pytest.fixture(scope="module")
def model():
    return permutation_model()


@pytest.fixture(scope="module")
def large():
    return permutation_model(50)


def texts_of(lengths, vocabulary_size=50, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, vocabulary_size, length) for length in lengths]


# === The chain rule ===


ORDERS = {
    "left_to_right": [0, 1, 2],
    "right_to_left": [2, 1, 0],
    **{f"ranks {ranks}": list(ranks) for ranks in ((1, 0, 2), (2, 0, 1))},
}


@pytest.mark.parametrize("name", ORDERS)
def test_all_texts_of_a_length_have_the_probability_1(name, model):
    ranks = ORDERS[name]
    order = name if not name.startswith("ranks") else [ranks] * len(ALL_TEXTS)
    scores = model.score(ALL_TEXTS, order=order, batch_size=len(ALL_TEXTS))
    assert abs(np.exp(scores.totals).sum() - 1) < 1e-5
    # And each conditional: texts that agree on what came before differ only in what comes next.
    log_probs = np.stack(scores.log_probs)
    for turn, position in enumerate(np.argsort(ranks)):
        earlier = np.argsort(ranks)[:turn]
        groups = {}
        for text, found in zip(ALL_TEXTS, log_probs[:, position], strict=True):
            group = groups.setdefault(tuple(text[earlier]), {})
            np.testing.assert_allclose(group.setdefault(text[position], found), found, atol=1e-5)
        assert len(groups) == TINY**turn
        for group in groups.values():
            assert abs(np.exp(list(group.values())).sum() - 1) < 1e-5


@pytest.mark.parametrize("cutoffs", [(), (2, 5)], ids=["softmax", "adaptive_softmax"])
def test_all_texts_of_a_length_have_the_probability_1_causally(cutoffs):
    model = causal_model(cutoffs=cutoffs)
    scores = model.score(ALL_TEXTS, start_token_id=3, batch_size=len(ALL_TEXTS))
    assert abs(np.exp(scores.totals).sum() - 1) < 1e-5
    of_the_first = [text for text in ALL_TEXTS if text[0] == 4]
    scores = model.score(of_the_first, batch_size=len(of_the_first))
    assert abs(np.exp(scores.totals).sum() - 1) < 1e-5
    assert all(np.isnan(log_probs[0]) for log_probs in scores.log_probs)


def test_the_causal_score_is_that_of_the_log_probabilities():
    model = causal_model(50)
    (text,) = texts_of([9])
    log_probs = np.asarray(model({"token_ids": text[None, :-1]})["log_probs"])[0]
    scores = model.score([text])
    np.testing.assert_allclose(
        scores.log_probs[0][1:], log_probs[np.arange(8), text[1:]], rtol=0, atol=1e-5
    )
    np.testing.assert_allclose(scores.totals[0], scores.log_probs[0][1:].sum(), rtol=1e-5)


# === The most probable tokens ===


def assert_best(found, positions):
    """Of the texts that agree on the tokens before, the one with the largest value is best."""
    for position in positions:
        groups = [tuple(text[:position]) for text in ALL_TEXTS]
        for group in set(groups):
            rows = [row for row, other in enumerate(groups) if other == group]
            log_probs = np.array([found["log_probs"][row][position] for row in rows])
            is_best = np.array([found["is_best"][row][position] for row in rows], bool)
            assert is_best.any() and not is_best.all()
            np.testing.assert_allclose(log_probs[is_best], log_probs.max(), atol=1e-5)
            assert (log_probs[~is_best] < log_probs.max()).all()


def test_one_token_is_the_best_after_given_ones(model):
    found = score_with_ranks(model, ALL_TEXTS, [np.array([-1, 0, 1])] * len(ALL_TEXTS))
    assert_best(found, [1, 2])


@pytest.mark.parametrize("cutoffs", [(), (2, 5)], ids=["softmax", "adaptive_softmax"])
def test_one_token_is_the_best_causally(cutoffs):
    model = causal_model(cutoffs=cutoffs)
    found = score_in_segments(model, ALL_TEXTS, 3, segment_length=2, find_best=True)
    assert_best(found, [0, 1, 2])
    expected = model.score(ALL_TEXTS, start_token_id=3, batch_size=len(ALL_TEXTS)).log_probs
    np.testing.assert_allclose(found["log_probs"], expected, atol=1e-5)


# === What makes no difference ===


@pytest.mark.parametrize("order", ["left_to_right", "right_to_left", "random"])
def test_batches_and_padding_change_nothing(order, large):
    texts = texts_of([5, 1, 30, 14, 15])
    together = large.score(texts, order=order, batch_size=2, seed=4)
    for i, text in enumerate(texts):
        alone = large.score(texts[: i + 1], order=order, batch_size=i + 1, seed=4)
        np.testing.assert_allclose(alone.log_probs[i], together.log_probs[i], rtol=0, atol=1e-5)
        assert len(alone.log_probs[i]) == len(text)


@pytest.mark.parametrize("segment_length", [1, 7, 512])
def test_segments_that_memory_holds_change_nothing(segment_length):
    model = causal_model(50)
    texts = texts_of([5, 2, 31, 14])
    expected = model.score(texts, start_token_id=1)
    found = model.score(texts, start_token_id=1, segment_length=segment_length, batch_size=3)
    for a, b in zip(found.log_probs, expected.log_probs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-5)


def test_without_memory_a_text_is_one_segment():
    model = causal_model(50, memory_length=None)
    texts = texts_of([31])
    np.testing.assert_allclose(
        model.score(texts, segment_length=4).totals, causal_model(50).score(texts).totals, rtol=1e-5
    )


def test_no_token_knows_itself(large):
    (text,) = texts_of([6])
    for order in ("left_to_right", "right_to_left"):
        before = large.score([text], order=order).log_probs[0]
        changed = text.copy()
        changed[2] = (changed[2] + 1) % 50
        after = large.score([changed], order=order).log_probs[0]
        moved = np.abs(after - before) > 1e-6
        later = np.arange(6) >= 2 if order == "left_to_right" else np.arange(6) <= 2
        np.testing.assert_array_equal(moved, later)


# === Several orders ===


def test_the_mean_over_random_orders_and_its_error(large):
    texts = texts_of([6, 4])
    scores = large.score(texts, order="random", num_orders=9, seed=2)
    by_order = []
    for k in range(9):
        ranks = [np.random.default_rng((2, i, k)).permutation(len(t)) for i, t in enumerate(texts)]
        by_order.append(large.score(texts, order=ranks).totals)
    np.testing.assert_allclose(scores.totals, np.mean(by_order, axis=0), rtol=1e-5)
    expected = np.std(by_order, axis=0, ddof=1) / 3
    np.testing.assert_allclose(scores.standard_errors, expected, rtol=1e-3)
    assert np.all(np.isnan(large.score(texts).standard_errors))


# === Text, and bad input ===


def test_strings(tokenizer):

    model = permutation_model(tokenizer.vocabulary_size())
    scores = model.score(["a text", "another one"], tokenizer)
    expected = model.score([np.asarray(tokenizer(t)) for t in ("a text", "another one")])
    np.testing.assert_allclose(scores.totals, expected.totals, rtol=1e-6)


@pytest.mark.parametrize(
    "texts, arguments, message",
    [
        ([], {}, "`texts` must have at least one text"),
        ("one", {}, "must be a list of texts"),
        (["one"], {}, "pass `tokenizer=`"),
        ([[1], []], {}, "at least one token each. Received in row 1"),
        ([[1], [2, 50]], {}, "token ids from 0 to 49. Received in row 1: 50"),
        ([[1, 2]], {"order": "backwards"}, "`order` must be one of"),
        ([[1, 2]], {"order": [[0, 2]]}, "each rank from 0 to 1 once in row 0"),
        ([[1, 2]], {"order": [[0, 1]] * 2}, "the ranks of each of the 1 texts"),
        ([[1, 2]], {"num_orders": 2}, "`num_orders` is for `order='random'`"),
        ([[1, 2]], {"order": "random", "num_orders": 0}, "`num_orders` must be a positive"),
    ],
)
def test_bad_input(texts, arguments, message, large):
    with pytest.raises(ValueError, match=message):
        large.score(texts, **arguments)


@pytest.mark.parametrize("start", ["<eos>", -1, 50, 1.0, True])
def test_a_start_token_must_be_an_id(start):
    with pytest.raises(ValueError, match=f"`start_token_id` must be an id from 0 to .*{start}"):
        causal_model().score([[1, 2]], start_token_id=start)


def test_models_that_cannot_score():
    backbone = XLNetBackbone(20, 1, 2, 8, 12, memory_length=4)
    stateful = XLNetPermutationLM(backbone, stateful=True, batch_size=2)
    with pytest.raises(ValueError, match="scored without memory"):
        stateful.score([[1]])
    with pytest.raises(ValueError, match="objective='permutation'"):
        XLNetPermutationLM(backbone, objective="denoising").score([[1]])
    both_ways = XLNetPermutationLM(XLNetBackbone(20, 1, 2, 8, 12, bidirectional_data=True))
    with pytest.raises(ValueError, match="bidirectional_data=False"):
        both_ways.score([[1]])
    with pytest.raises(ValueError, match="`score` needs a model with `stateful=False`"):
        causal_model(stateful=True, batch_size=2).score([[1]])


def test_a_scored_model_is_saved_as_before(large, tmp_path):
    large.score([[1, 2]])
    large.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.score([[1, 2]]).totals, large.score([[1, 2]]).totals)
