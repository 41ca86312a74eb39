"""TFRecords of the original are parsed, and made into batches, exactly as the original does."""

import json
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.layers import PermutationMaskGenerator
from keras_xlnet.pretraining import read_original_records
from keras_xlnet.pretraining.original_record_files import (
    batches_of_records,
    open_original_records,
    parse_original_records,
)

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "pretrain_data"
VARIANTS = ["bi", "uni"]


@pytest.fixture
def directory(tmp_path):
    return pathlib.Path(shutil.copytree(GOLDEN / "bi" / "tfrecords", tmp_path / "bi"))


def parsed_batches(variant):
    records = open_original_records(GOLDEN / variant / "tfrecords")
    for serialized, _ in batches_of_records(records.files, records.batch_size):
        parsed = parse_original_records(tf.constant(serialized), records.sequence_length)
        yield {name: value.numpy() for name, value in parsed.items()}


@pytest.mark.parametrize("variant", VARIANTS)
def test_records_equal_the_original(variant, golden):
    data = golden("data.npz")
    batches = list(parsed_batches(variant))
    for name, original in [
        ("token_ids", "input"),
        ("segment_ids", "seg_id"),
        ("next_tokens", "target"),
        ("target_mask", "is_masked"),
        ("label", "label"),
    ]:
        values = np.concatenate([batch[name] for batch in batches])
        np.testing.assert_array_equal(values, data[f"{variant}_rec_{original}"], err_msg=name)


def original_features(variant, golden, num_predictions):
    data, config = golden("data.npz"), golden("data.json")["config"]
    generator = PermutationMaskGenerator(
        num_predictions,
        permutation_length=config["perm_size"],
        reuse_length=config["reuse_len"],
    )
    order = np.stack([data["perm_first"], data["perm_second"]])[None]
    for number, batch in zip(range(3), parsed_batches(variant), strict=False):
        features = generator.generate(batch["token_ids"], batch["target_mask"], permutations=order)
        yield number, batch, features


@pytest.mark.parametrize("variant", VARIANTS)
def test_features_equal_the_original(variant, golden):
    expected = {
        name.removeprefix(f"{variant}_feat_"): value
        for name, value in golden("data.npz").items()
        if name.startswith(f"{variant}_feat_")
    }
    for number, batch, features in original_features(variant, golden, 6):
        original = {name: value[number] for name, value in expected.items()}
        is_target = original["target_mask"] > 0
        np.testing.assert_array_equal(batch["token_ids"], original["input_k"])
        np.testing.assert_array_equal(batch["segment_ids"], original["seg_id"])
        np.testing.assert_array_equal(features["permutation_mask"] == 0, original["perm_mask"] > 0)
        np.testing.assert_array_equal(
            features["target_positions"][is_target],
            original["target_mapping"].argmax(-1)[is_target],
        )
        np.testing.assert_array_equal(features["labels"], original["target"])
        np.testing.assert_array_equal(features["sample_weight"], original["target_mask"])


@pytest.mark.parametrize("variant", VARIANTS)
def test_features_of_full_length_equal_the_original(variant, golden):
    data = golden("data.npz")
    _, batch, features = next(original_features(variant, golden, None))
    original = {
        name: data[f"{variant}_featfull_{name}"][0]
        for name in ("input_k", "input_q", "perm_mask", "target", "target_mask")
    }
    np.testing.assert_array_equal(batch["token_ids"], original["input_k"])
    np.testing.assert_array_equal(features["permutation_mask"] == 0, original["perm_mask"] > 0)
    np.testing.assert_array_equal(features["target_mask"], original["input_q"] > 0)
    np.testing.assert_array_equal(features["sample_weight"], original["target_mask"])
    is_target = original["target_mask"] > 0
    np.testing.assert_array_equal(features["labels"][is_target], original["target"][is_target])


@pytest.mark.parametrize("variant", VARIANTS)
def test_dataset_has_every_batch_in_order(variant, golden):
    data = golden("data.npz")
    dataset = read_original_records(GOLDEN / variant / "tfrecords")
    batches = list(dataset.as_numpy_iterator())
    assert (
        len(dataset)
        == len(batches)
        == golden("data.json")[f"{variant}_record_info"]["content"]["num_batch"]
    )
    token_ids = np.concatenate([inputs["token_ids"] for inputs, _, _ in batches])
    np.testing.assert_array_equal(token_ids, data[f"{variant}_rec_input"])
    for number, (inputs, labels, sample_weight) in enumerate(batches):
        assert inputs["reset_memory"].tolist() == [number == 0] * 4
        at_targets = np.take_along_axis(inputs["token_ids"], inputs["target_positions"], axis=1)
        np.testing.assert_array_equal(labels, np.where(sample_weight > 0, at_targets, labels))
    spec = dataset.element_spec
    assert all(part.shape.is_fully_defined() for part in tf.nest.flatten(spec))


def test_every_pass_draws_new_orders():
    dataset = read_original_records(GOLDEN / "uni" / "tfrecords", num_passes=2, seed=3)
    masks = [inputs["permutation_mask"] for inputs, _, _ in dataset.as_numpy_iterator()]
    again = [inputs["permutation_mask"] for inputs, _, _ in dataset.as_numpy_iterator()]
    assert len(masks) == 52 and (masks[0] != masks[26]).any()
    np.testing.assert_array_equal(masks, again)
    endless = read_original_records(GOLDEN / "uni" / "tfrecords", num_passes=None)
    assert endless.cardinality() == tf.data.INFINITE_CARDINALITY


def test_more_predictions_than_targets_are_padding():
    info = next((GOLDEN / "uni" / "tfrecords").glob("*.json"))
    dataset = read_original_records(info, num_predictions=9)
    _, labels, sample_weight = next(iter(dataset))
    assert labels.shape == (4, 9) and np.sum(sample_weight) <= 4 * 6


def test_number_of_predictions_is_checked(directory):
    with pytest.raises(ValueError, match="`num_predictions` must be at least 6.*num_predictions=5"):
        read_original_records(directory, num_predictions=5)
    for path in list(directory.iterdir()):
        path.rename(str(path).replace(".fnp-6", ""))
    info = next(directory.glob("*.json"))
    info.write_text(info.read_text().replace(".fnp-6", ""))
    with pytest.raises(ValueError, match="`num_predictions` must be given"):
        read_original_records(directory)
    assert next(iter(read_original_records(directory, num_predictions=7)))[1].shape == (4, 7)


def test_several_files(directory):
    info = next(directory.glob("*.json"))
    copy = directory / info.name.replace("train-0-0", "train-0-1")
    copy.write_text(info.read_text())
    dataset = read_original_records(str(directory / "record_info-*.json"))
    resets = [inputs["reset_memory"][0] for inputs, _, _ in dataset.as_numpy_iterator()]
    assert len(resets) == 108 and np.flatnonzero(resets).tolist() == [0, 54]


def test_missing_files_are_named(directory):
    with pytest.raises(FileNotFoundError, match=r"must match at least one.*'/nowhere/\*\.json'"):
        read_original_records("/nowhere/*.json")
    next(directory.glob("*.tfrecords")).unlink()
    with pytest.raises(FileNotFoundError, match=r"train-0-0\.bsz-4.*\.tfrecords"):
        read_original_records(directory)


def test_other_names_and_settings_are_refused(directory):
    info = next(directory.glob("*.json"))
    copy = info.rename(directory / "record_info-mine.json")
    with pytest.raises(ValueError, match=r"names that the original gives.*-mine\.json"):
        read_original_records(directory)
    copy.rename(info)
    other = directory / info.name.replace("bsz-4", "bsz-2")
    shutil.copy(info, other)
    with pytest.raises(ValueError, match=r"equal batch size.*bsz-2.*bsz-4"):
        read_original_records(directory)


def test_sequence_length_of_the_name_is_checked(directory):
    for path in list(directory.iterdir()):
        path.rename(str(path).replace("seqlen-32", "seqlen-64"))
    info = next(directory.glob("*.json"))
    info.write_text(info.read_text().replace("seqlen-32", "seqlen-64"))
    with pytest.raises(ValueError, match="must have 64 integers of 'input'.*Received: 32"):
        read_original_records(directory)


def test_truncated_files_are_named(directory):
    path = next(directory.glob("*.tfrecords"))
    content = path.read_bytes()
    path.write_bytes(content[:-10])
    with pytest.raises(ValueError, match=r"fnp-6\.tfrecords' is truncated"):
        read_original_records(directory)
    one = 12 + int.from_bytes(content[:8], "little") + 4
    path.write_bytes(content[one:])
    with pytest.raises(ValueError, match="lists 54 batches of 4 .* contain 215 records"):
        read_original_records(directory)


def test_damaged_files_are_named(directory):
    path = next(directory.glob("*.tfrecords"))
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    dataset = read_original_records(directory)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"fnp-6\.tfrecords' is damaged"):
        list(dataset)
    content[30] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"fnp-6\.tfrecords' is damaged"):
        read_original_records(directory)


@pytest.mark.parametrize("content", ["{", "[]", json.dumps({"num_batch": 54})])
def test_damaged_descriptions_are_named(directory, content):
    next(directory.glob("*.json")).write_text(content)
    with pytest.raises(ValueError, match=r"record_info-.*\.json' is damaged"):
        read_original_records(directory)
