"""Span masks: a slow twin, the original's statistics, bad input."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.layers import SpanMaskSampler


def slow_targets(sampler, word_starts, candidates, draws):
    """One row, token by token, as the class description has it."""
    length = len(word_starts)
    goal = length if sampler.num_predictions is None else sampler.num_predictions
    chosen = np.zeros(length, "bool")
    position, spans = 0, list(draws[length:].reshape(-1, 2))
    weights = [1 / n for n in range(1, sampler.max_gram + 1)]

    def next_start(position):
        while position < length and not word_starts[position]:
            position += 1
        return position

    while spans and position < length and chosen.sum() < goal and sampler.unit != "token":
        u, v = spans.pop(0)
        n = 1 + sum(
            u >= np.float32(sum(weights[:k]) / sum(weights)) for k in range(1, len(weights))
        )
        remaining = goal - chosen.sum()
        if sampler.unit == "piece":
            n = min(n, remaining)
        context = n * sampler.alpha // sampler.beta
        left = min(int(np.float32(v) * np.float32(context)), context - 1)
        begin = next_start(position + left)
        if begin >= length:
            break
        if sampler.unit == "piece":
            end = begin + n
            if end >= length:
                break
            span = (begin, end)
        else:
            ends = [begin]
            for _ in range(n):
                ends.append(next_start(ends[-1] + 1))
            fitting = [e for e in ends[1:] if e < length and candidates[begin:e].sum() <= remaining]
            span = (begin, fitting[-1] if fitting else begin)
            end = fitting[-1] if fitting else ends[1]
        chosen[span[0] : span[1]] |= candidates[span[0] : span[1]]
        position = end + max((end - begin) * sampler.alpha // sampler.beta - left, 0)
    if sampler.num_predictions is not None:
        free = [i for i in np.argsort(-draws[:length]) if candidates[i] and not chosen[i]]
        chosen[free[: goal - chosen.sum()]] = True
    return chosen


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32 - 1),
    length=st.integers(8, 60),
    unit=st.sampled_from(["word", "piece", "token"]),
    max_gram=st.integers(1, 6),
    goal=st.one_of(st.none(), st.integers(1, 6)),
)
def test_equals_a_slow_twin(seed, length, unit, max_gram, goal):
    if unit == "token" and goal is None:
        goal = 3
    rng = np.random.default_rng(seed)
    sampler = SpanMaskSampler(goal, max_gram, alpha=int(rng.integers(1, 8)), unit=unit)
    word_starts = rng.random((4, length)) < 0.6
    candidates = rng.random((4, length)) < 0.9
    candidates[:, :6] = True
    draws = rng.random((4, sampler.num_draws(length)), "float32")
    targets = sampler.sample(word_starts, candidates, draws=draws)
    for row in range(4):
        expected = slow_targets(sampler, word_starts[row], candidates[row], draws[row])
        np.testing.assert_array_equal(targets[row], expected)
    if goal is not None:
        np.testing.assert_array_equal(targets.sum(axis=1), goal)
    assert not np.any(targets & ~candidates)


@pytest.mark.parametrize("unit", ["word", "piece", "token"])
def test_numpy_eager_graph_and_xla_agree(rng, unit):
    sampler = SpanMaskSampler(7, unit=unit)
    word_starts, candidates = rng.random((5, 40)) < 0.6, rng.random((5, 40)) < 0.9
    reverse = np.array([0, 1, 0, 1, 1], "bool")
    draws = rng.random((5, sampler.num_draws(40)), "float32")
    inputs = (word_starts, candidates, reverse, draws)
    expected = sampler.sample(*inputs)
    np.testing.assert_array_equal(sampler(*inputs), expected)
    for jit_compile in (False, True):
        compiled = tf.function(lambda *x: sampler(*x), jit_compile=jit_compile)
        np.testing.assert_array_equal(compiled(*map(tf.constant, inputs)), expected)


def test_reversed_rows_are_sampled_in_reading_order(rng):
    sampler = SpanMaskSampler(5)
    word_starts = rng.random((6, 30)) < 0.5
    draws = rng.random((6, sampler.num_draws(30)), "float32")
    forward = sampler.sample(word_starts, draws=draws)
    backward = sampler.sample(word_starts[:, ::-1], reverse=np.ones(6, "bool"), draws=draws)
    np.testing.assert_array_equal(backward[:, ::-1], forward)


def test_whole_words_are_chosen_until_the_last_tokens(rng):
    # Without a goal nothing is filled up or cut: every chosen word is chosen as a whole.
    word_starts = rng.random((200, 64)) < 0.5
    targets = SpanMaskSampler(unit="word", num_predictions=None).sample(word_starts, draws=rng)
    inner = ~word_starts[:, 1:]
    assert targets.any()
    np.testing.assert_array_equal(targets[:, 1:][inner], targets[:, :-1][inner] & inner[inner])


@pytest.mark.parametrize("case", range(6))
def test_statistics_of_the_original(golden, case):
    """2,000 draws of the original's `_sample_mask`, 20,000 of ours: within 5 standard errors."""
    arrays, facts = golden("data.npz"), golden("data.json")
    expected = facts["sample_mask"]["stats"][case]
    length, num_draws = expected["seg_len"], 20_000
    pieces = _pieces(arrays["sm_seg"][:length])
    word_starts = np.array([facts["is_start_piece"][piece] for piece in pieces])
    sampler = SpanMaskSampler(expected["goal_num_predict"], expected["max_gram"], unit="piece")
    targets = sampler.sample(
        np.tile(word_starts, (num_draws, 1)),
        reverse=np.full(num_draws, expected["reverse"]),
        draws=np.random.default_rng(case),
    )
    _assert_mean(targets.sum(axis=1), expected["num_masked"])
    _assert_mean(targets.argmax(axis=1), expected["first_masked"])
    frequency = arrays[f"smstat{case}_freq"]
    error = np.sqrt(frequency * (1 - frequency) * (1 / 2000 + 1 / num_draws))
    assert np.all(np.abs(targets.mean(axis=0) - frequency) <= 5 * error + 1e-9)
    runs = _run_lengths(targets)
    total = sum(expected["run_length_hist"].values())
    for run, count in expected["run_length_hist"].items():
        share = count / total
        actual = np.mean(runs == int(run))
        assert abs(actual - share) <= 5 * np.sqrt(share * (1 - share) / total) + 1e-3


def _pieces(token_ids):
    import sentencepiece

    from tests.conftest import GOLDEN

    model = sentencepiece.SentencePieceProcessor(model_file=str(GOLDEN / "spiece.model"))
    return [model.id_to_piece(int(i)) for i in token_ids]


def _assert_mean(values, expected):
    mean, deviation = expected
    assert abs(values.mean() - mean) <= 5 * deviation / np.sqrt(2000) + 1e-9
    assert values.std() == pytest.approx(deviation, rel=0.15, abs=1e-9)


def _run_lengths(targets):
    edges = np.diff(np.pad(targets.astype("int8"), ((0, 0), (1, 1))), axis=1)
    return np.argwhere(edges < 0)[:, 1] - np.argwhere(edges > 0)[:, 1]


def test_a_seed_fixes_what_is_drawn():
    word_starts = np.ones((3, 20), "bool")
    first, again = (SpanMaskSampler(4, seed=5) for _ in range(2))
    a, b, c = first(word_starts), first(word_starts), again(word_starts)
    np.testing.assert_array_equal(a, c)
    assert np.any(np.asarray(a) != np.asarray(b))


def test_every_replica_draws_its_own(two_replicas):
    with two_replicas.scope():
        sampler = SpanMaskSampler(4, seed=5)
    word_starts = tf.ones((3, 20), "bool")
    run = tf.function(lambda: two_replicas.run(sampler, (word_starts,)))
    a, b = two_replicas.experimental_local_results(run())
    assert np.any(a.numpy() != b.numpy())


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_predictions": 0}, "`num_predictions` must be a positive integer"),
        ({"num_predictions": 3, "unit": "words"}, "`unit` must be one of"),
        ({"num_predictions": 3, "alpha": 1, "beta": 2}, "alpha=1, beta=2"),
        ({"num_predictions": None, "unit": "token"}, "num_predictions=None"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        SpanMaskSampler(**arguments)


def test_an_infeasible_goal_is_an_error():
    sampler = SpanMaskSampler(5)
    few = np.zeros((2, 8), "bool")
    few[0] = few[1, :3] = True
    for call in (sampler, sampler.sample):
        with pytest.raises(ValueError, match="exceeds .*4"):
            call(np.ones((2, 4), "bool"))
        with pytest.raises(ValueError, match="number of `candidates`, 3, in row 1"):
            call(np.ones((2, 8), "bool"), candidates=few)
    with pytest.raises(ValueError, match="must have a static length"):
        tf.function(sampler).get_concrete_function(tf.TensorSpec((2, None), "bool"))
    # In a graph the rows are not known: all there is, and it ends.
    targets = tf.function(sampler)(tf.ones((2, 8), "bool"), tf.constant(few))
    np.testing.assert_array_equal(targets.numpy().sum(axis=1), [5, 3])
