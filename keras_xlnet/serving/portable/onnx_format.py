"""ONNX: a network of the PyTorch backend, and smaller versions of the file.

Keras' `model.export(format="onnx")` does not convert these models. With TensorFlow, tf2onnx 1.17
writes `Erfc`, an operation of GELU that ONNX does not have. With PyTorch, Keras uses the older
exporter for inputs of any length, which requires constant shapes.
"""

import pathlib
import tempfile
import warnings
from typing import Any

import keras

# The first version with GELU, and the version of the file format that it came with. ONNX Runtime
# reads them from 1.17 on; the exporter would write version 10, which needs 1.18.
_OPSET, _IR_VERSION = 20, 9
# Weights with at least this many numbers are stored in fewer bits.
_SMALLEST = 1024
# Constants for rounding inputs by row.
_LAST_AXIS, _TINY, _MOST, _MIDDLE, _ZERO = (
    f"by_row/{name}" for name in ("last_axis", "tiny", "most", "middle", "zero")
)
# Weights of any size that depend only on constants are computed before the export.
_NO_LIMIT = 2**40
# Sizes of the axes of any size while a network is traced. PyTorch takes an axis for fixed if its
# size equals another one, such as the number of heads: models do not have these sizes.
_EXAMPLE = {"batch": 11, "texts": 13, "memory": 17, "length": 19}


def write_onnx(network: keras.Model, file: pathlib.Path, quantization: str | None = None) -> None:
    """Writes a network for any number of rows of any length. The backend must be PyTorch.

    Args:
        network: Functional model with dicts of inputs `(batch, length)` and of outputs.
        file: Path of the file.
        quantization: As in `compress_onnx`.
    """
    with tempfile.TemporaryDirectory() as folder:
        float32_file = pathlib.Path(folder) / "float32.onnx"
        _write_float32(network, float32_file)
        compress_onnx(float32_file, file, quantization)


def _write_float32(network, file):
    import onnxscript.optimizer
    import torch

    class OfTensors(torch.nn.Module):
        """The network with separate inputs, because the exporter takes a dict as arguments."""

        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, *inputs):
            with OfAnySize():
                outputs = self.network(dict(zip(names, inputs, strict=True)))
            # Keras may sort them.
            return tuple(outputs[name] for name in network.output)

    class OfAnySize(torch.overrides.TorchFunctionMode):
        """Replaces two functions whose traces fix the sizes of the example."""

        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.take_along_dim:
                return taken(*args, **kwargs)
            if func is torch.nn.functional.one_hot:
                x, size = args
                return (x[..., None] == torch.arange(size)).long()
            return func(*args, **(kwargs or {}))

    def taken(x, indices, dim):
        shape = list(x.shape)
        shape[dim] = indices.shape[dim]
        return torch.gather(x, dim, indices.expand(shape))

    names = [*network.input]
    axes = [_free_axes(name, value.shape) for name, value in network.input.items()]
    example = [
        keras.ops.ones(
            [_EXAMPLE.get(free.get(axis), size) for axis, size in enumerate(x.shape)], x.dtype
        )
        for free, x in zip(axes, network.input.values(), strict=True)
    ]
    with warnings.catch_warnings(), torch.no_grad():
        # Warnings about packages that are not used here, and about how Keras makes tensors.
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            OfTensors().eval(),
            tuple(example),
            dynamo=True,
            input_names=names,
            output_names=[*network.output],
            dynamic_shapes=(tuple(axes),),
            opset_version=_OPSET,
            verbose=False,
        )
    # The graph reshapes the kernels of projections, but only constants can be stored in int8.
    onnxscript.optimizer.optimize(
        program.model, input_size_limit=_NO_LIMIT, output_size_limit=_NO_LIMIT
    )
    program.model.ir_version = _IR_VERSION
    program.save(file, external_data=False)


def _free_axes(name, shape):
    """The names of the axes of any size, by their place."""
    last = "memory" if name.startswith("memory") else "length"
    names = ("batch", *("texts",) * (len(shape) > 2), last)
    return {axis: names[axis] for axis, size in enumerate(shape) if size is None}


def compress_onnx(source: pathlib.Path, target: pathlib.Path, quantization: str | None) -> None:
    """Writes a copy of a float32 file, with weights in fewer bits.

    `"float16"` halves the file; the weights are converted to float32 when the file is loaded,
    because CPU runtimes have no float16 products. With `"int8"`, tables have 8 bits, and kernels
    have 7 bits with a scale for each column. The inputs of each product are rounded to 8 bits at
    run time, separately for each row, and products are computed in int8.

    Args:
        source: Path of the file in float32.
        target: Path of the file that is written.
        quantization: `"float16"`, `"int8"`, or `None` for the same file.
    """
    if quantization is None:
        target.write_bytes(source.read_bytes())
    elif quantization == "float16":
        _store_as_float16(source, target)
    else:
        _quantize(source, target)


def _quantize(source, target):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    # Products first, because rows of a quantized table would enter a product with the range of the
    # table. Kernels have 7 bits, because products of uint8 and int8 overflow on CPUs without VNNI.
    options = {"MatMul": {"per_channel": True, "reduce_range": True}, "Gather": {}}
    with tempfile.TemporaryDirectory() as folder:
        for op_type, settings in options.items():
            # The function writes files to the folder of the file that it reads.
            copy = pathlib.Path(folder) / f"{op_type}.onnx"
            copy.write_bytes(source.read_bytes())
            source = target
            settings = {**settings, "op_types_to_quantize": [op_type]}
            quantize_dynamic(copy, target, weight_type=QuantType.QInt8, **settings)
            if op_type == "MatMul":
                _round_by_row(target)


def _round_by_row(file):
    """Rounds the inputs of each product by the range of their row.

    `DynamicQuantizeLinear` uses one range for a whole batch, so an answer would depend on the other
    texts of the batch and on their padding.
    """
    import onnx
    from onnx import TensorProto, helper

    model = onnx.load(file)
    # The names must differ from those that the quantizer gives to values from tables.
    renamed: dict[str, str] = {}
    nodes, scales = [], set()
    # The scales of the row and of the columns, by the name of their product.
    products = {}
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = renamed.get(name, name)
        if node.op_type == "DynamicQuantizeLinear":
            (x,) = node.input
            rounded, scale = f"{x}/by_row", f"{x}/by_row/scale"
            renamed.update(zip(node.output, (rounded, scale, _ZERO), strict=True))
            scales.add(scale)
            nodes += _rounding_by_row(x, rounded, scale)
        elif node.op_type == "Mul" and scales.intersection(node.input):
            products[node.output[0]] = sorted(node.input, key=lambda name: name not in scales)
        elif node.op_type == "Mul" and products.keys() & {*node.input}:
            # In two steps, because ONNX Runtime would treat their product as a single number.
            x, product = sorted(node.input, key=lambda name: name in products)
            (result,) = node.output
            row, columns = products[product]
            nodes.append(helper.make_node("Mul", [x, row], [f"{result}/row"]))
            nodes.append(helper.make_node("Mul", [f"{result}/row", columns], [result]))
        else:
            nodes.append(node)
    constants = [
        helper.make_tensor(_LAST_AXIS, TensorProto.INT64, [1], [-1]),
        helper.make_tensor(_TINY, TensorProto.FLOAT, [], [1e-30]),
        helper.make_tensor(_MOST, TensorProto.FLOAT, [], [127]),
        helper.make_tensor(_MIDDLE, TensorProto.FLOAT, [], [128]),
        helper.make_tensor(_ZERO, TensorProto.UINT8, [], [128]),
    ]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(constants)
    onnx.save(model, file)


def _rounding_by_row(x, rounded, scale):
    """The nodes that compute `rounded`, uint8 with 128 for 0, and `scale`, one per row."""
    from onnx import TensorProto, helper

    steps = ("size", "largest", "range", "ratio", "shifted", "even")
    size, largest, range_, ratio, shifted, even = (f"{rounded}/{step}" for step in steps)
    return [
        helper.make_node("Abs", [x], [size]),
        helper.make_node("ReduceMax", [size, _LAST_AXIS], [largest], keepdims=1),
        helper.make_node("Max", [largest, _TINY], [range_]),
        helper.make_node("Div", [range_, _MOST], [scale]),
        helper.make_node("Div", [x, scale], [ratio]),
        helper.make_node("Add", [ratio, _MIDDLE], [shifted]),
        helper.make_node("Round", [shifted], [even]),
        helper.make_node("Cast", [even], [rounded], to=TensorProto.UINT8),
    ]


def _store_as_float16(source, target):
    import onnx
    from onnx import numpy_helper

    model = onnx.load(source)
    casts = []
    for weight in model.graph.initializer:
        values = numpy_helper.to_array(weight)
        if values.dtype == "float32" and values.size >= _SMALLEST:
            casts.append(_cast(weight.name))
            half = numpy_helper.from_array(values.astype("float16"), f"{weight.name}/float16")
            weight.CopyFrom(half)
    # Nodes are stored in the order of computation.
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, target)


def _cast(name: str) -> Any:
    from onnx import TensorProto, helper

    return helper.make_node("Cast", [f"{name}/float16"], [name], to=TensorProto.FLOAT)
