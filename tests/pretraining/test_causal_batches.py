"""Batches of a long text: equal to the authors', and each row continues itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_xlnet.pretraining import CausalBatches


def batches_of(*args):
    return listed(CausalBatches(*args).evaluation_dataset())


def listed(dataset):
    return [(x["token_ids"], y, x["reset_memory"]) for x, y in dataset.as_numpy_iterator()]


def test_equal_to_the_authors(golden_dir):
    with np.load(golden_dir / "transformer_xl" / "iterators.npz") as golden:
        found = batches_of(golden["tokens"], 4, 7)
        assert len(found) == 3  # Theirs has a fourth one, of other shapes.
        for k, (token_ids, labels, _) in enumerate(found):
            np.testing.assert_array_equal(token_ids, golden[f"data/{k}"].T)
            np.testing.assert_array_equal(labels, golden[f"target/{k}"].T)


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 60))
def test_rows_continue_and_nothing_is_lost(batch_size, sequence_length, more):
    token_ids = np.arange(batch_size * (sequence_length + 1) + more)
    found = batches_of(token_ids, batch_size, sequence_length)
    rows = np.concatenate([batch for batch, _, _ in found], axis=1)
    labels = np.concatenate([labels for _, labels, _ in found], axis=1)
    np.testing.assert_array_equal(labels, rows + 1)
    np.testing.assert_array_equal(np.diff(rows, axis=1), 1)
    length = len(token_ids) // batch_size
    np.testing.assert_array_equal(rows[:, 0], np.arange(batch_size) * length)
    assert rows.shape[1] > length - 1 - sequence_length


def test_memory_is_reset_at_the_start_of_a_pass():
    batches = CausalBatches(np.arange(30), 2, 4)
    assert batches.steps_per_pass == 3
    found = listed(batches.dataset().take(6))
    assert [bool(reset.all()) for _, _, reset in found] == [True, False, False] * 2
    batches.first_step = 4
    for a, b in zip(listed(batches.dataset().take(2)), found[4:], strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    "token_ids, batch_size, message",
    [
        (np.arange(9), 2, "at least 10 tokens for 2 rows of 4"),
        (np.zeros((3, 9)), 2, "must be one row of tokens"),
        (np.arange(9), 0, "`batch_size` must be a positive"),
    ],
)
def test_bad_arguments(token_ids, batch_size, message):
    with pytest.raises(ValueError, match=message):
        CausalBatches(token_ids, batch_size, 4)
