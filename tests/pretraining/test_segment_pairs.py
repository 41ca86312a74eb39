"""Segments A and B equal the original's for given random numbers, and in their statistics."""

import random

import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.pretraining.segment_pairs import pack_rows, sample_segment_pairs
from tests.pretraining import original_segments as reference


def boundaries_of(sentence_ids):
    changes = np.flatnonzero(np.diff(sentence_ids)) + 1
    return np.concatenate([[0], changes, [len(sentence_ids)]]).astype("int64")


def test_reference_equals_the_original(golden):
    data = golden("data.npz")
    tokens, sentence_ids = data["split_data"], data["split_sent_ids"]
    for case in golden("data.json")["split_a_and_b"]["cases"]:
        a_begin, a_end, b_begin, b_end, follows = reference.split_segments(
            sentence_ids, case["begin_idx"], case["tot_len"], random.Random(case["seed"]), 1
        )
        expected = case["result"]
        if expected is None:
            # The original needs the token after each segment, and enough tokens after `begin`.
            assert max(case["begin_idx"] + case["tot_len"], a_end, b_end) >= len(tokens)
            continue
        assert tokens[a_begin:a_end].tolist() == expected["a"]
        assert tokens[b_begin:b_end].tolist() == expected["b"]
        assert follows == expected["label"]


def random_cases(rng, num_texts=150):
    """Yields texts with sentences of many lengths, and a batch of positions in each."""
    for _ in range(num_texts):
        lengths = rng.integers(1, rng.integers(2, 30), rng.integers(1, 30))
        boundaries = np.concatenate([[0], np.cumsum(lengths)]).astype("int64")
        num_tokens = int(boundaries[-1])
        if num_tokens >= 2:
            total_length = int(rng.integers(2, min(num_tokens, 40) + 1))
            begin = rng.integers(0, num_tokens - total_length + 1, 16)
            yield boundaries, total_length, begin, rng.random((16, 3))


def test_equals_the_reference_for_given_draws(rng):
    seen = set()
    for boundaries, total_length, begin, draws in random_cases(rng):
        sentence_ids = np.repeat(np.arange(len(boundaries) - 1), np.diff(boundaries))
        a_length, b_begin, follows = sample_segment_pairs(
            tf.constant(boundaries), tf.constant(begin), total_length, tf.constant(draws)
        )
        for row in range(len(begin)):
            a_begin, a_end, expected_begin, b_end, expected_follows = reference.split_segments(
                sentence_ids, int(begin[row]), total_length, reference.Draws(*draws[row]), 0
            )
            assert int(a_length[row]) == a_end - a_begin
            assert int(b_begin[row]) == expected_begin
            assert bool(follows[row]) == expected_follows
            assert a_end - a_begin + b_end - expected_begin == total_length
            seen.add((bool(follows[row]), a_end - a_begin > b_end - expected_begin))
    assert len(seen) == 4


def test_statistics_agree_with_the_original(golden):
    stats = golden("data.json")["split_a_and_b"]["stats"]
    boundaries = boundaries_of(golden("data.npz")["split_sent_ids"])
    num_draws = 20000
    a_length, b_begin, follows = sample_segment_pairs(
        tf.constant(boundaries),
        tf.fill([num_draws], tf.constant(stats["begin_idx"], tf.int64)),
        stats["tot_len"],
        tf.random.stateless_uniform((num_draws, 3), (7, 7), dtype="float64"),
    )
    b_length = stats["tot_len"] - a_length
    for values, key in ((a_length, "len_a"), (b_length, "len_b"), (b_begin, "b_begin")):
        mean, deviation = stats[key]
        # Both means have a sampling error; the golden ones are of 2,000 draws.
        error = deviation * np.sqrt(1 / stats["draws"] + 1 / num_draws)
        assert abs(np.mean(values) - mean) < 4 * error, key
        assert np.std(values) == pytest.approx(deviation, rel=0.05), key
    share = np.mean(follows)
    assert abs(share - stats["label_mean"]) < 4 * 0.5 * np.sqrt(1 / stats["draws"] + 1 / num_draws)


def test_pack_rows():
    tokens = tf.range(100, 200, dtype=tf.int32)
    token_ids, segment_ids = pack_rows(
        tokens,
        begin=tf.constant([10, 0], tf.int64),
        reuse_length=3,
        a_length=tf.constant([2, 4], tf.int64),
        b_begin=tf.constant([50, 99], tf.int64),
        sequence_length=11,
        special_ids=(4, 3),
    )
    assert token_ids.numpy().tolist() == [
        [110, 111, 112, 113, 114, 4, 150, 151, 152, 4, 3],
        [100, 101, 102, 103, 104, 105, 106, 4, 199, 4, 3],
    ]
    assert segment_ids.numpy().tolist() == [
        [0] * 6 + [1] * 4 + [2],
        [0] * 8 + [1] * 2 + [2],
    ]
