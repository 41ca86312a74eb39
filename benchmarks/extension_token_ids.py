"""How many texts get the same token ids from the SentencePiece op of onnxruntime-extensions.

    pip install onnx onnxruntime onnxruntime-extensions torch
    python benchmarks/extension_token_ids.py --data ../shared/data

Compares them on the SMS collection with `XLNetTokenizer.encode`, which gives the ids of the
original. An ONNX file with this op could take text.
"""

import os
import pathlib

# The extensions crash in a process that has loaded TensorFlow.
os.environ["KERAS_BACKEND"] = "torch"

import numpy as np
from absl import app, flags

from keras_xlnet.preset_files import shipped_directory
from keras_xlnet.tokenizers import XLNetTokenizer

FLAGS = flags.FLAGS
flags.DEFINE_string("data", "data", "Folder with sms_spam_collection.")
flags.DEFINE_list("presets", ["xlnet_mini_en", "xlnet_small_en"], "Presets that are compared.")


def main(_):
    file = pathlib.Path(FLAGS.data) / "sms_spam_collection/SMSSpamCollection"
    lines = file.read_text(encoding="utf-8").split("\n")
    texts = [line.split("\t", 1)[1] for line in lines if line]
    # What a regular expression in the graph can do.
    cleaned = [" ".join(x.split()).replace("``", '"').replace("''", '"') for x in texts]
    for preset in FLAGS.presets:
        expected = XLNetTokenizer.from_preset(preset).encode(texts)
        found = ids_of_extension(shipped_directory(preset) / "assets/spiece.model", cleaned)
        equal = sum(map(np.array_equal, found, expected))
        print(f"{preset}: the ids of {equal:,} of {len(texts):,} messages are equal")


def ids_of_extension(vocabulary, texts):
    """Returns the ids of each text, by the op `SentencepieceTokenizer`."""
    import onnxruntime
    import onnxruntime_extensions

    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(onnxruntime_extensions.get_library_path())
    network = tokenizer_network(vocabulary.read_bytes())
    session = onnxruntime.InferenceSession(network, options, ["CPUExecutionProvider"])
    ids, starts = session.run(None, {"text": np.array(texts, object)})
    return np.split(ids, starts[1:-1])


def tokenizer_network(vocabulary):
    """Returns an ONNX file with one node, as bytes."""
    from onnx import TensorProto, helper

    names = ("nbest_size", "alpha", "add_bos", "add_eos", "reverse")
    types = (TensorProto.INT64, TensorProto.FLOAT, *[TensorProto.BOOL] * 3)
    off = [helper.make_tensor(*pair, [1], [0]) for pair in zip(names, types, strict=True)]
    domain = "ai.onnx.contrib"
    outputs = ["ids", "starts"]
    node = helper.make_node(
        "SentencepieceTokenizer", ["text", *names], outputs, domain=domain, model=vocabulary
    )
    graph = helper.make_graph(
        [node],
        "tokenizer",
        [helper.make_tensor_value_info("text", TensorProto.STRING, ["texts"])],
        [
            helper.make_tensor_value_info("ids", TensorProto.INT32, [None]),
            helper.make_tensor_value_info("starts", TensorProto.INT64, [None]),
        ],
        off,
    )
    versions = [helper.make_opsetid("", 18), helper.make_opsetid(domain, 1)]
    return helper.make_model(graph, opset_imports=versions, ir_version=9).SerializeToString()


if __name__ == "__main__":
    app.run(main)
