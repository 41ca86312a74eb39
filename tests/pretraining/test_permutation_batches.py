"""Batches for pretraining, made from tokens whose ids are their positions."""

import contextlib
import functools
import itertools
import pathlib
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.layers import PermutationMaskGenerator
from keras_xlnet.pretraining import PermutationBatches, ResumeBatches, write_token_records
from keras_xlnet.pretraining.token_shard import TokenShard
from keras_xlnet.tokenizers import XLNetTokenizer

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
SEP, CLS, EOD, FIRST = 4, 3, 7, 10
# Single tokens where spans do not matter: tracing takes a quarter of the time.
SETTINGS = dict(batch_size=4, sequence_length=32, num_predictions=6, unit="token")


class Tokenizer:
    """A vocabulary in which every third piece begins a word."""

    sep_token_id, cls_token_id, eod_token_id = SEP, CLS, EOD

    def vocabulary_size(self):
        return 5000

    def id_to_token(self, index):
        return "▁a" if index % 3 == 0 else "a"


class Records:
    """Shards in which token `FIRST + n` is the n-th of all."""

    directory = "/made/up"

    def __init__(self, num_tokens, sentence_length=7):
        self.shards = [{"tokens": count} for count in num_tokens]
        self.begins = np.concatenate([[0], np.cumsum(num_tokens)])
        self.sentence_length = sentence_length
        self.num_reads = 0

    def tokenizer(self):
        return Tokenizer()

    def read(self, index):
        self.num_reads += 1
        tokens = FIRST + np.arange(self.begins[index], self.begins[index + 1], dtype="int32")
        inner = np.arange(0, len(tokens), self.sentence_length)
        return TokenShard(tokens, np.append(inner, len(tokens)), 1)


@pytest.fixture(scope="module")
def records():
    return Records([700, 1000, 400])


def take(dataset, count):
    return list(itertools.islice(dataset.as_numpy_iterator(), count))


@functools.cache
def batches_of(records, count=None, **kwargs):
    batches = PermutationBatches(records, **{**SETTINGS, **kwargs})
    return batches, take(batches.dataset(), batches.steps_per_pass if count is None else count)


def assert_equal(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        for x, y in zip(tf.nest.flatten(a), tf.nest.flatten(b), strict=True):
            np.testing.assert_array_equal(x, y)


def segments_of(row, segment_ids):
    """Returns the reused tokens with A, and B, of a row with two segments."""
    (first, second) = np.flatnonzero(row == SEP)
    assert second == len(row) - 2 and row[-1] == CLS and segment_ids[-1] == 2
    assert (segment_ids[: first + 1] == 0).all() and (segment_ids[first + 1 : -1] == 1).all()
    return row[:first], row[first + 1 : second]


def test_rows_of_a_pass(records):
    batches, found = batches_of(records)
    follows, bounds = [], records.begins + FIRST
    for inputs, _, _ in found:
        for row, segment_ids in zip(inputs["token_ids"], inputs["segment_ids"], strict=True):
            a, b = segments_of(row, segment_ids)
            assert (np.diff(a) == 1).all() and (np.diff(b) == 1).all()
            assert len(a) > batches.reuse_length and len(b) > 0
            shard = np.searchsorted(bounds, a[0], side="right")
            assert bounds[shard - 1] <= b[0] and b[-1] < bounds[shard]
            # Every B begins a sentence.
            assert (b[0] - bounds[shard - 1]) % records.sentence_length == 0
            follows.append(b[0] == a[-1] + 1)
    assert 0.2 < np.mean(follows) < 0.7


@pytest.mark.parametrize("bidirectional_data", [False, True])
@pytest.mark.parametrize("segment_pairs", [False, True])
def test_rows_continue_from_batch_to_batch(records, bidirectional_data, segment_pairs):
    batches, found = batches_of(
        records, bidirectional_data=bidirectional_data, segment_pairs=segment_pairs
    )
    signs = np.array([1, 1, -1, -1] if bidirectional_data else [1] * 4)
    resets = 0
    for (before, _, _), (now, _, _) in itertools.pairwise(found):
        if now["reset_memory"].any():
            assert now["reset_memory"].all()
            resets += 1
            continue
        reused = now["token_ids"][:, : batches.reuse_length]
        last = before["token_ids"][:, batches.reuse_length - 1]
        np.testing.assert_array_equal(reused[:, 0], last + signs)
        assert (np.diff(reused, axis=1) == signs[:, None]).all()
    assert found[0][0]["reset_memory"].all() and resets == 2


def test_one_segment(records):
    _, found = batches_of(records, segment_pairs=False)
    for inputs, _, _ in found:
        assert (np.diff(inputs["token_ids"][:, :-2], axis=1) == 1).all()
        assert (inputs["token_ids"][:, -2:] == [SEP, CLS]).all()
        assert (inputs["segment_ids"] == [0] * 31 + [2]).all()


@pytest.mark.parametrize("num_replicas", [1, 3])
def test_backward_rows_read_the_parts_of_forward_rows_of_their_replica(records, num_replicas):
    """The original puts all backward rows of a host after all forward rows."""
    _, found = batches_of(
        records, batch_size=12, bidirectional_data=True, num_replicas=num_replicas
    )
    starts = [index for index, (inputs, _, _) in enumerate(found) if inputs["reset_memory"][0]]
    for begin, end in zip(starts, [*starts[1:], len(found)], strict=True):
        reused = np.stack([inputs["token_ids"][:, :16] for inputs, _, _ in found[begin:end]])
        # (replicas, directions, rows, steps, tokens)
        reused = reused.transpose(1, 0, 2).reshape(num_replicas, 2, -1, end - begin, 16)
        assert (np.diff(reused[:, 0], axis=-1) == 1).all()
        assert (np.diff(reused[:, 1], axis=-1) == -1).all()
        # Backward rows begin where the forward rows of the same replica end: 29 tokens of text.
        last_forward = reused[:, 0, :, -1, 0] + 28
        np.testing.assert_array_equal(reused[:, 1, :, 0, 0], last_forward)


def test_hosts_make_the_rows_of_their_replicas(records):
    kwargs = dict(batch_size=8, bidirectional_data=True, num_replicas=4)
    _, whole = batches_of(records, **kwargs)
    parts = [
        batches_of(records, **kwargs, num_hosts=2, host_index=host_index)[1]
        for host_index in range(2)
    ]
    joined = [
        tf.nest.map_structure(lambda *rows: np.concatenate(rows), *of_hosts)
        for of_hosts in zip(*parts, strict=True)
    ]
    assert_equal(whole, joined)


@pytest.mark.parametrize("unit, num_predictions", [("word", 7), ("piece", 20), ("token", 2)])
def test_targets(records, unit, num_predictions):
    _, found = batches_of(records, 4, unit=unit, num_predictions=num_predictions)
    for inputs, labels, sample_weight in found:
        positions = inputs["target_positions"]
        assert (np.diff(positions, axis=1) > 0).all()
        num_reused = (positions < 16).sum(axis=1)
        np.testing.assert_array_equal(num_reused, num_predictions - num_predictions // 2)
        tokens = np.take_along_axis(inputs["token_ids"], positions, axis=1)
        np.testing.assert_array_equal(labels, tokens)
        assert not np.isin(labels, [SEP, CLS]).any()
        # The weight is 0 for a target that is first in the order and cannot attend to any token.
        assert sample_weight.mean() > 0.9
        mask = inputs["permutation_mask"]
        assert PermutationMaskGenerator.verify(mask, positions, sample_weight) == 0


def test_spans_begin_at_words_in_reading_order(records):
    _, found = batches_of(records, 8, bidirectional_data=True, sequence_length=64, unit="piece")
    starts = {False: [], True: []}
    for inputs, labels, _ in found:
        for row in range(4):
            reverse = row >= 2
            positions = inputs["target_positions"][row]
            for run in np.split(labels[row], np.flatnonzero(np.diff(positions) != 1) + 1):
                if len(run) > 1:
                    starts[reverse].append(run[-1 if reverse else 0] % 3 == 0)
    # A third would be by chance. Not all, because single tokens are added to the spans.
    assert len(starts[False]) > 10 and np.mean(starts[False]) > 0.6
    assert len(starts[True]) > 10 and np.mean(starts[True]) > 0.6


def test_static_shapes(records):
    for kwargs in ({}, dict(bidirectional_data=True, segment_pairs=False)):
        dataset = PermutationBatches(records, **{**SETTINGS, **kwargs}).dataset()
        assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
        spec = dataset.element_spec
        assert all(part.shape.is_fully_defined() for part in tf.nest.flatten(spec))
        assert {name: part.dtype.name for name, part in spec[0].items()} == {
            "token_ids": "int32",
            "segment_ids": "int32",
            "permutation_mask": "int8",
            "target_positions": "int32",
            "reset_memory": "int8",
        }


def test_parts_of_different_length(records):
    _, found = batches_of(records, 3, reuse_length=8, permutation_length=4)
    mask = found[0][0]["permutation_mask"]
    assert not mask[:, :8, 8:].any() and mask[:, 8:, :8].all()


def test_batches_depend_only_on_the_seed(records):
    _, one = batches_of(records, 3)
    assert_equal(one, batches_of(Records([700, 1000, 400]), 3)[1])
    other = batches_of(records, 3, seed=1)[1]
    assert all(
        (a[0]["token_ids"] != b[0]["token_ids"]).any() for a, b in zip(one, other, strict=True)
    )


def test_passes_differ(records):
    batches, found = batches_of(Records([700]), 50)
    steps = batches.steps_per_pass
    first, second = found[0], found[steps]
    assert first[0]["reset_memory"].all() and second[0]["reset_memory"].all()
    for name in ("token_ids", "permutation_mask", "target_positions"):
        assert (first[0][name] != second[0][name]).any()


def test_continues_from_any_step(records):
    batches, expected = batches_of(records, 130, bidirectional_data=True)
    assert 2 * batches.steps_per_pass < 126
    dataset = batches.dataset()
    for first_step in (13, batches.steps_per_pass, 126):
        batches.first_step = first_step
        assert_equal(take(dataset, 4), expected[first_step : first_step + 4])
    assert_equal(take(batches.dataset(first_step=13), 4), expected[13:17])


def test_continuing_does_not_read_earlier_shards(records):
    records = Records([700, 1000, 400])
    batches = PermutationBatches(records, **SETTINGS)
    take(batches.dataset(first_step=10**6), 1)
    # One shard, and those that the pipeline prefetches.
    assert records.num_reads <= 4


def test_evaluation_is_always_the_same_pass(records):
    batches = PermutationBatches(records, **SETTINGS)
    dataset = batches.evaluation_dataset()
    once = list(dataset.as_numpy_iterator())
    batches.first_step = 5
    assert_equal(once, list(dataset.as_numpy_iterator()))
    assert len(dataset) == len(once) == batches.steps_per_pass


def test_other_backends_get_the_same_batches(records, monkeypatch):
    batches, in_graph = batches_of(records, 6, bidirectional_data=True, unit="word")
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    assert_equal(in_graph, take(batches.dataset(first_step=0), 6))


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(batch_size=0), "`batch_size` must be an integer of at least 1. .*=0"),
        (dict(sequence_length=4), "`sequence_length` must be an integer of at least 8"),
        (dict(num_predictions=1), "`num_predictions` must be an integer of at least 2"),
        (dict(seed=-1), "`seed` must be an integer of at least 0. .*=-1"),
        (dict(seed=None), "`seed` must be an integer of at least 0. .*=None"),
        (dict(reuse_length=28), "`reuse_length` must leave room .*=28"),
        (dict(reuse_length=12), "permutation_length"),
        (
            dict(num_predictions=28),
            "`num_predictions` is too large: 14 targets .* 13 tokens of seg",
        ),
        (dict(num_predictions=12, reuse_length=4, permutation_length=4), "from 4 reused"),
        (dict(unit="words"), "`unit` must be one of"),
        (dict(num_replicas=3), "`batch_size` must be divisible by num_replicas=3. .*=4"),
        (dict(num_replicas=4, bidirectional_data=True), "num_replicas=4 times 2"),
        (dict(num_replicas=2, num_hosts=4), "`num_replicas` must be divisible by `num_hosts`"),
        (dict(num_replicas=2, num_hosts=2, host_index=2), "`host_index` must be less"),
        (
            dict(batch_size=40),
            "at least 1160 tokens: .* 40 parts of 29 tokens .* 3 shards in '/made/up', .* 1000",
        ),
    ],
)
def test_arguments_are_checked(records, changes, message):
    with pytest.raises(ValueError, match=message):
        PermutationBatches(records, **{**SETTINGS, **changes})


def test_first_step_is_checked(records):
    with pytest.raises(ValueError, match="`first_step` must be an integer of at least 0"):
        PermutationBatches(records, **SETTINGS).dataset(first_step=-1)


def test_warns_of_short_shards():
    with pytest.warns(UserWarning, match="1 of the 2 shards .* are not read: 90 of 790 tokens"):
        batches = PermutationBatches(Records([700, 90]), **SETTINGS)
    assert batches.steps_per_pass == PermutationBatches(Records([700]), **SETTINGS).steps_per_pass


def test_damaged_shards_are_named(tmp_path):
    (tmp_path / "a.txt").write_text("the turtle visited the doctor.\n" * 200)
    tokenizer = XLNetTokenizer(GOLDEN / "spiece.model")
    records = write_token_records(tmp_path / "a.txt", tokenizer, tmp_path / "r", verbose=0)
    batches = PermutationBatches(records, **SETTINGS)
    assert take(batches.dataset(), 1)[0][0]["token_ids"].shape == (4, 32)
    shard = tmp_path / "r" / "tokens-00000.tfrecord"
    content = bytearray(shard.read_bytes())
    content[50] ^= 1
    shard.write_bytes(content)
    with pytest.raises(tf.errors.InvalidArgumentError, match="tokens-00000.tfrecord' is damaged"):
        take(batches.dataset(), 1)


def fit(dataset, callbacks):
    """Trains a model from target positions to labels, so that weights depend on the batches."""
    keras.utils.set_random_seed(3)
    layers = [keras.Input((6,)), keras.layers.Embedding(32, 16), keras.layers.Dense(64)]
    model = keras.Sequential(layers)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.1), loss)
    dataset = dataset.map(lambda inputs, *rest: (inputs["target_positions"], rest[0] % 64, rest[1]))
    with contextlib.suppress(KeyboardInterrupt):
        model.fit(dataset, epochs=4, steps_per_epoch=3, verbose=0, callbacks=callbacks)
    return model.get_weights()


class Kill(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if int(self.model.optimizer.iterations) >= 5:
            raise KeyboardInterrupt


def test_fit_continues_where_it_was_killed(records, tmp_path):
    batches = PermutationBatches(records, **SETTINGS)
    dataset = batches.dataset()
    whole = fit(dataset, [])
    for kill in ([Kill()], []):
        batches.first_step = 0
        backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
        resumed = fit(dataset, [backup, ResumeBatches(batches), *kill])
    assert batches.first_step == 3
    for one, other in zip(whole, resumed, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
    batches.first_step = 1
    with_others = fit(dataset, [])
    assert any(np.abs(a - b).max() > 1e-3 for a, b in zip(whole, with_others, strict=True))


@pytest.mark.parametrize("scaled", [False, True])
def test_batches_are_counted_with_accumulation_and_loss_scaling(scaled):
    optimizer = keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    x = np.ones((5, 1))
    model.fit(x, x, batch_size=1, verbose=0)
    batches = types.SimpleNamespace(first_step=None)
    model.fit(x, x, batch_size=1, verbose=0, callbacks=[ResumeBatches(batches)])
    assert batches.first_step == 5


class DocumentRecords(Records):
    """As `Records`, but every 45th token is `<eod>`."""

    def read(self, index):
        shard = super().read(index)
        tokens = np.where((shard.tokens - FIRST) % 45 == 44, EOD, shard.tokens)
        return TokenShard(tokens.astype("int32"), shard.boundaries, 1)


@pytest.mark.parametrize("bidirectional_data", [False, True])
def test_memory_is_forgotten_after_documents(bidirectional_data):
    arguments = {"reuse_length": 8, "bidirectional_data": bidirectional_data}
    records = DocumentRecords([700, 1000])
    carried = batches_of(records, **arguments)[1]
    found = batches_of(records, reset_at_documents=True, **arguments)[1]
    num_resets = 0
    for before, batch, other in zip([None, *found], found, carried, strict=False):
        inputs = batch[0]
        expected = other[0]["reset_memory"].astype(bool)
        if before is not None:
            # What the last batch added to the memory are its reused tokens.
            expected |= (before[0]["token_ids"][:, :8] == EOD).any(1)
        np.testing.assert_array_equal(inputs["reset_memory"], expected)
        np.testing.assert_array_equal(inputs["token_ids"], other[0]["token_ids"])
        num_resets += int(expected.sum())
    assert num_resets > 20 > sum(int(batch[0]["reset_memory"].sum()) for batch in carried)
