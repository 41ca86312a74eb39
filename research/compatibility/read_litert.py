"""Reads the LiteRT files with ai-edge-litert or tflite-runtime, whichever is installed."""

import importlib.util

from reading import ARRAYS, DIRECTORY, difference, report

package = "ai-edge-litert" if importlib.util.find_spec("ai_edge_litert") else "tflite-runtime"


def read(folder):
    if package == "ai-edge-litert":
        from ai_edge_litert.interpreter import Interpreter
    else:
        from tflite_runtime.interpreter import Interpreter
    runner = Interpreter(str(DIRECTORY / folder / "model.tflite")).get_signature_runner()
    outputs = runner(**{name: ARRAYS[name] for name in runner.get_input_details()})
    return difference(outputs["probabilities"], folder)


report(
    [package, "numpy"],
    float32=lambda: read("litert_float32"),
    int8=lambda: read("litert_int8"),
)
