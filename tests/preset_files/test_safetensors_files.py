"""Tensors in one or several files, read when they are needed."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from keras_xlnet.preset_files.safetensors_files import SafetensorsFiles, write_safetensors


@pytest.fixture
def arrays(rng):
    return {
        "a": rng.normal(size=(5, 3)).astype("float32"),
        "b": rng.integers(-9, 9, 4).astype("int8"),
        "c": rng.normal(size=(2, 2)).astype("bfloat16"),
        "d": np.array(True),
        "e": rng.normal(size=(3, 4)).astype("float32").T,  # In Fortran order.
    }


def test_tensors_come_back_whole_and_by_rows(arrays, tmp_path):
    file = tmp_path / "model.safetensors"
    write_safetensors(file, arrays)
    files = SafetensorsFiles([file], file)
    assert files.shapes == {"a": (5, 3), "b": (4,), "c": (2, 2), "d": (), "e": (4, 3)}
    dtypes = ("float32", "int8", "bfloat16", "bool", "float32")
    assert files.dtypes == dict(zip("abcde", dtypes, strict=True))
    for name, array in arrays.items():
        np.testing.assert_array_equal(files.read(name)[...], array)
        assert files.file_of(name) == file
    np.testing.assert_array_equal(files.read("a")[1:3], arrays["a"][1:3])
    assert str(files) == str(file)


def test_a_tensor_in_two_files_is_refused(arrays, tmp_path):
    names = [tmp_path / "1.safetensors", tmp_path / "2.safetensors"]
    for name in names:
        save_file({"a": arrays["a"]}, name)
    with pytest.raises(ValueError, match="'a' is in .*1.safetensors and in .*2.safetensors"):
        SafetensorsFiles(names, tmp_path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match="none.safetensors cannot be read"):
        SafetensorsFiles([tmp_path / "none.safetensors"], "none")
