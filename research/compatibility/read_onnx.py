"""Reads the ONNX files with ONNX Runtime or OpenVINO, whichever is installed."""

import importlib.util

from reading import ARRAYS, DIRECTORY, difference, report


def read_with_onnxruntime(folder):
    import onnxruntime

    session = onnxruntime.InferenceSession(DIRECTORY / folder / "model.onnx")
    inputs = {x.name: ARRAYS[x.name] for x in session.get_inputs()}
    return difference(session.run(None, inputs)[0], folder)


def read_with_openvino(folder):
    import openvino

    model = openvino.Core().compile_model(DIRECTORY / folder / "model.onnx", "CPU")
    # A tensor has several names. One of them is in the file.
    names = [(x.names & {*ARRAYS.files}).pop() for x in model.inputs]
    inputs = {name: ARRAYS[name] for name in names}
    return difference(model(inputs)[0], folder)


package = "onnxruntime" if importlib.util.find_spec("onnxruntime") else "openvino"
read = {"onnxruntime": read_with_onnxruntime, "openvino": read_with_openvino}[package]
report(
    [package, "numpy"],
    float32=lambda: read("onnx_float32"),
    int8=lambda: read("onnx_int8"),
)
