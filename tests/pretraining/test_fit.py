"""The permutation language model trains on records with `fit`, on one device and two replicas."""

import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM
from keras_xlnet.pretraining import (
    PermutationBatches,
    ResumeBatches,
    read_original_records,
    write_token_records,
)
from keras_xlnet.tokenizers import XLNetTokenizer

BATCH, LENGTH = 8, 32


@pytest.fixture(scope="module")
def batches(tmp_path_factory, golden_dir):
    raw = [str(p) for p in sorted((golden_dir / "pretrain_data" / "raw").glob("*.txt"))]
    tokenizer = XLNetTokenizer(golden_dir / "spiece.model")
    records = write_token_records(
        raw, tokenizer, tmp_path_factory.mktemp("records"), shard_bytes=2**20, verbose=0
    )
    return PermutationBatches(
        records, BATCH, LENGTH, num_predictions=6, bidirectional_data=True, num_replicas=2
    )


def model_of(batch_size, stateful=True, **arguments):
    reading = {"memory_length": 12, "reuse_length": 16, "bidirectional_data": True, **arguments}
    backbone = XLNetBackbone(
        200,
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=24,
        dropout=0.0,
        attention_dropout=0.0,
        kernel_initializer=keras.initializers.RandomNormal(stddev=0.2, seed=1),
        **reading,
    )
    model = XLNetPermutationLM(backbone, stateful=stateful, batch_size=batch_size)
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(scale=0.2, size=variable.shape) + ("gamma" in variable.path))
    model.compile(keras.optimizers.SGD(0.1))
    return model


def test_two_replicas_train_as_one(batches, two_replicas):
    """Each replica has its own forward and backward rows and its own memory."""
    steps = 3
    with two_replicas.scope():
        model = model_of(BATCH // 2)
    model.fit(batches.dataset(), steps_per_epoch=steps, shuffle=False, verbose=0)
    # On one device, the forward rows of both replicas come first.
    rows = np.arange(BATCH).reshape(2, 2, BATCH // 4).swapaxes(0, 1).reshape(-1)
    gathered = batches.dataset().map(
        lambda *batch: tf.nest.map_structure(lambda x: tf.gather(x, rows), batch)
    )
    expected = model_of(BATCH)
    expected.run_eagerly = True  # To trace the step would take seconds.
    expected.fit(gathered, steps_per_epoch=steps, shuffle=False, verbose=0)
    for actual, e in zip(model.trainable_variables, expected.trainable_variables, strict=True):
        np.testing.assert_allclose(actual, e, rtol=0, atol=1e-5)
    for memory, other in zip(model.memories, expected.memories, strict=True):
        of_replicas = two_replicas.experimental_local_results(
            two_replicas.run(lambda m=memory: tf.identity(m.training_state.value))
        )
        state = np.asarray(other.training_state)
        assert np.any(state)
        np.testing.assert_allclose(np.concatenate(of_replicas), state[np.argsort(rows)], atol=1e-5)


def test_trains_on_records_of_the_original(golden_dir):
    dataset = read_original_records(golden_dir / "pretrain_data" / "bi" / "tfrecords")
    model = model_of(4)
    model.compile(keras.optimizers.Adam(3e-3), run_eagerly=True)
    losses = model.fit(dataset.take(6), epochs=3, shuffle=False, verbose=0).history["loss"]
    assert losses[2] < losses[0] - 0.1


def test_the_path_of_records_is_enough(batches):
    arguments = {"batch_size": BATCH, "sequence_length": LENGTH, "num_predictions": 6}
    expected, *_ = PermutationBatches(batches.records, **arguments).evaluation_dataset()
    for path in (batches.records.directory, pathlib.Path(batches.records.directory)):
        found, *_ = PermutationBatches(path, **arguments).evaluation_dataset()
        np.testing.assert_array_equal(found[0]["token_ids"], expected[0]["token_ids"])
    with pytest.raises(FileNotFoundError, match="must contain finished token records"):
        PermutationBatches("no_records", **arguments)
    for other in (batches, [1, 2], None):
        with pytest.raises(ValueError, match="`records` must be .* or the path of their directory"):
            PermutationBatches(other, **arguments)


def test_callbacks_take_batches_and_not_their_dataset(batches):
    ResumeBatches(batches)
    with pytest.raises(ValueError, match="`batches` must be a `PermutationBatches`.*not their"):
        ResumeBatches(batches.dataset())


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            {"bidirectional_data": False},
            "`bidirectional_data` of the backbone, False. Received: .* bidirectional_data=True",
        ),
        ({"reuse_length": 8}, "`reuse_length` of the backbone, 8. Received: .* reuse_length=16"),
        ({"reuse_length": None}, "`reuse_length` of the backbone, None. .* reuse_length=16"),
    ],
)
def test_batches_that_are_read_otherwise_than_the_backbone_expects(
    batches, golden_dir, arguments, message
):
    original = read_original_records(golden_dir / "pretrain_data" / "bi" / "tfrecords")
    datasets = [(batches.dataset(), BATCH), (batches.evaluation_dataset(), BATCH), (original, 4)]
    for dataset, size in datasets:
        model = model_of(size, **arguments)
        with pytest.raises(ValueError, match=message):
            model.fit(dataset, steps_per_epoch=1)
        with pytest.raises(ValueError, match=message):
            model.fit(dataset.take(1), validation_data=dataset)
        with pytest.raises(ValueError, match=message):
            model.evaluate(dataset, steps=1)


def test_what_is_reused_matters_to_a_memory_that_is_kept(batches):
    model = model_of(None, stateful=False, memory_length=None, reuse_length=None)
    model.run_eagerly = True
    model.evaluate(batches.dataset(), steps=1, verbose=0)
    with pytest.raises(ValueError, match="`bidirectional_data` of the backbone, False"):
        model_of(None, stateful=False, bidirectional_data=False).fit(batches.dataset())
