"""Smaller forms of an ONNX file, on a network of two products."""

import numpy as np
import pytest

from keras_xlnet.serving.portable.onnx_format import compress_onnx

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

ROWS, INNER, OUTER = 200, 96, 40


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """Rows of a table, a product and a bias, which is too small to be stored in fewer bits."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(3)
    weights = {
        "table": rng.normal(size=(ROWS, INNER)),
        "kernel": rng.normal(size=(INNER, OUTER)),
        "bias": rng.normal(size=OUTER),
    }
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "ids"], ["rows"]),
            helper.make_node("MatMul", ["rows", "kernel"], ["product"]),
            helper.make_node("Add", ["product", "bias"], ["output"]),
        ],
        "network",
        [helper.make_tensor_value_info("ids", TensorProto.INT32, ["batch", "length"])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", "length", OUTER])],
        [numpy_helper.from_array(x.astype("float32"), name) for name, x in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    path = tmp_path_factory.mktemp("onnx") / "network.onnx"
    onnx.save(model, path)
    return path


IDS = np.arange(60, dtype="int32").reshape(4, 15)


def run(path, ids=IDS):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"ids": ids})[0]


def test_float32_is_the_same_file(network, tmp_path):
    compress_onnx(network, tmp_path / "same.onnx", None)
    assert (tmp_path / "same.onnx").read_bytes() == network.read_bytes()


@pytest.mark.parametrize(
    ("quantization", "size", "difference"), [("float16", 0.53, 2e-3), ("int8", 0.33, 0.06)]
)
def test_fewer_bits(network, tmp_path, quantization, size, difference):
    path = tmp_path / "small.onnx"
    compress_onnx(network, path, quantization)
    assert path.stat().st_size < size * network.stat().st_size
    expected = run(network)
    found = run(path)
    assert found.dtype == expected.dtype
    # Relative to the numbers that there are, which are some 10.
    worst = np.abs(found - expected).max() / np.abs(expected).max()
    assert 0 < worst < difference


def test_int8_rounds_each_place_by_itself(network, tmp_path):
    path = tmp_path / "int8.onnx"
    compress_onnx(network, path, "int8")
    # Neither other rows of a batch nor other tokens of a row, such as padding, change an output.
    expected = run(path)
    for row in range(len(IDS)):
        np.testing.assert_array_equal(run(path, IDS[row : row + 1])[0], expected[row])
    np.testing.assert_array_equal(run(path, IDS[:, :7]), expected[:, :7])


def test_small_weights_stay_in_float32(network, tmp_path):
    compress_onnx(network, tmp_path / "half.onnx", "float16")
    weights = {x.name: x.data_type for x in onnx.load(tmp_path / "half.onnx").graph.initializer}
    assert weights["bias"] == onnx.TensorProto.FLOAT
    assert weights["kernel/float16"] == onnx.TensorProto.FLOAT16


def test_no_other_files_are_written(network, tmp_path):
    before = sorted(network.parent.iterdir())
    compress_onnx(network, tmp_path / "int8.onnx", "int8")
    assert [path.name for path in tmp_path.iterdir()] == ["int8.onnx"]
    assert sorted(network.parent.iterdir()) == before
