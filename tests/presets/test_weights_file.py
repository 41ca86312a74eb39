import shutil

import h5py
import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone
from keras_xlnet.presets.weights_file import load_weights, save_weights

KERNEL = "layers/two_stream_block/feed_forward/intermediate_dense/vars/0"
BIAS = "layers/two_stream_block/feed_forward/intermediate_dense/vars/1"


@pytest.fixture(scope="module")
def model():
    return XLNetBackbone(20, 1, 1, 8, 16, kernel_initializer="glorot_normal")


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    file = tmp_path_factory.mktemp("saved") / "model.weights.h5"
    save_weights(model, file)
    return file


@pytest.fixture
def file(saved, tmp_path):
    return shutil.copy(saved, tmp_path / "model.weights.h5")


@pytest.fixture(scope="module")
def fresh():
    """A second model; tests that load nothing leave it as it was."""
    return XLNetBackbone(20, 1, 1, 8, 16)


def assert_same(a, b):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


def test_weights_come_back(model, file):
    copy = XLNetBackbone(20, 1, 1, 8, 16)
    assert any((a != b).any() for a, b in zip(model.get_weights(), copy.get_weights(), strict=True))
    load_weights(copy, file)
    assert_same(model.get_weights(), copy.get_weights())
    save_weights(copy, file)  # what numbers the variables is gone again
    with h5py.File(file) as h5:
        assert h5[KERNEL].shape == (8, 16)


def test_every_weight_is_in_the_file_once(model, file):
    shapes = []
    with h5py.File(file) as h5:
        h5.visititems(lambda _, x: shapes.append(x.shape) if isinstance(x, h5py.Dataset) else None)
    assert sorted(shapes) == sorted(tuple(w.shape) for w in model.weights)


def change(file, path, value):
    with h5py.File(file, "a") as h5:
        old = h5[path][()]
        del h5[path]
        h5[path] = value(old) if callable(value) else value


def drop(file, path):
    with h5py.File(file, "a") as h5:
        del h5[path]


def add(file, path="layers/other/vars/0"):
    with h5py.File(file, "a") as h5:
        h5[path] = np.zeros(3, "float32")


def link(file, target):
    drop(file, KERNEL)
    with h5py.File(file, "a") as h5:
        h5[KERNEL] = target


def external(file):
    (file.parent / "raw").write_bytes(bytes(8 * 16 * 4))
    drop(file, KERNEL)
    with h5py.File(file, "a") as h5:
        h5.create_dataset(KERNEL, (8, 16), "float32", external=str(file.parent / "raw"))


def virtual(file):
    with h5py.File(file.parent / "other.h5", "w") as h5:
        h5["x"] = np.zeros((8, 16), "float32")
    drop(file, KERNEL)
    layout = h5py.VirtualLayout((8, 16), "float32")
    layout[:] = h5py.VirtualSource(file.parent / "other.h5", "x", (8, 16))
    with h5py.File(file, "a") as h5:
        h5.create_virtual_dataset(KERNEL, layout)


def alias(file, name):
    with h5py.File(file, "a") as h5:
        h5[name] = h5["layers"]


def named_type(file):
    with h5py.File(file, "a") as h5:
        h5["type"] = np.dtype("float64")


def deep(file):
    with h5py.File(file, "a") as h5:
        group = h5
        for _ in range(3000):
            group = group.create_group("g")


def mark(file):
    with h5py.File(file, "a") as h5:
        h5[KERNEL].attrs["dtype"] = "bfloat16"


NAME = f"block_0/feed_forward/intermediate/kernel .{KERNEL}."
DAMAGES = {
    "shape": (
        lambda f: change(f, KERNEL, np.zeros((8, 15), "float32")),
        rf"{NAME} has shape \(8, 15\), expected \(8, 16\)",
    ),
    "transposed": (lambda f: change(f, KERNEL, np.transpose), r"has shape \(16, 8\)"),
    "missing": (lambda f: drop(f, BIAS), f"intermediate/bias .{BIAS}. is missing"),
    "missing_layer": (lambda f: drop(f, "layers/two_stream_block"), r"missing.*and 14 more"),
    "extra": (add, "layers/other/vars/0 is of no variable"),
    "extra_of_a_layer": (lambda f: add(f, KERNEL[:-1] + "7"), "vars/7 is of no variable"),
    "float16": (
        lambda f: change(f, KERNEL, lambda x: x.astype("float16")),
        f"{NAME} is float16, expected float32",
    ),
    "float64": (lambda f: change(f, KERNEL, lambda x: x.astype("float64")), "is float64"),
    "int": (lambda f: change(f, BIAS, lambda x: x.astype("int64")), "is int64, expected float32"),
    "text": (lambda f: change(f, BIAS, "text"), r"has shape \(\), expected \(16,\)"),
    "marked": (mark, "is float32 marked bfloat16, expected float32"),
    "external_link": (
        lambda f: link(f, h5py.ExternalLink("/etc/other.h5", "x")),
        f"{KERNEL} is a link",
    ),
    "soft_link": (lambda f: link(f, h5py.SoftLink("/" + BIAS)), f"{KERNEL} is a link"),
    "external_storage": (external, f"{KERNEL} has its values in another file"),
    "virtual": (virtual, f"{KERNEL} has its values in another file"),
    "twice": (lambda f: alias(f, "again"), "layers is there under another name"),
    "cycle": (lambda f: alias(f, "layers/self"), "layers/self is there under another name"),
    "named_type": (named_type, "type is no array"),
    "deep": (deep, "cannot be read as HDF5"),
    "truncated": (lambda f: f.write_bytes(f.read_bytes()[:-1000]), "cannot be read as HDF5"),
    "head_only": (lambda f: f.write_bytes(f.read_bytes()[:100]), "cannot be read as HDF5"),
    "empty": (lambda f: f.write_bytes(b""), "cannot be read as HDF5"),
    "no_hdf5": (lambda f: f.write_bytes(b"PK" + bytes(5000)), "cannot be read as HDF5"),
}


@pytest.mark.parametrize("damage, message", DAMAGES.values(), ids=DAMAGES)
def test_files_that_do_not_fit_are_refused_and_change_nothing(fresh, file, damage, message):
    before = fresh.get_weights()
    damage(file)
    with pytest.raises(ValueError, match=f"model.weights.h5.*{message}"):
        load_weights(fresh, file)
    assert_same(before, fresh.get_weights())


def test_other_floats_are_converted_only_when_asked_for(model, fresh, file):
    change(file, KERNEL, lambda x: x.astype("float16"))
    copy = XLNetBackbone(20, 1, 1, 8, 16)
    load_weights(copy, file, cast=True)
    dense = copy.blocks[0].feed_forward.intermediate_dense
    expected = np.asarray(model.blocks[0].feed_forward.intermediate_dense.kernel)
    np.testing.assert_array_equal(dense.kernel, expected.astype("float16").astype("float32"))
    change(file, KERNEL, lambda x: x.astype("int32"))
    with pytest.raises(ValueError, match="is int32, expected float32"):
        load_weights(fresh, file, cast=True)


def test_bfloat16_is_read_as_it_was_written(fresh, tmp_path):
    half = XLNetBackbone(20, 1, 1, 8, 16, dtype="bfloat16")
    file = tmp_path / "model.weights.h5"
    save_weights(half, file)
    copy = XLNetBackbone(20, 1, 1, 8, 16, dtype="bfloat16")
    load_weights(copy, file)
    assert_same(half.get_weights(), copy.get_weights())
    with pytest.raises(ValueError, match="is bfloat16, expected float32"):
        load_weights(fresh, file)
    full = XLNetBackbone(20, 1, 1, 8, 16)
    load_weights(full, file, cast=True)
    assert_same([w.astype("float32") for w in half.get_weights()], full.get_weights())
