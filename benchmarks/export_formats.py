"""Size, accuracy and latency of the forms in which `keras_xlnet.serving.export` writes a model.

    python -m benchmarks.export_formats --data ../shared/data

The model is the classifier of `xlnet_mini_en` with the adapter `sentiment`. Accuracy is that on the
development set of SST-2. Latency is that of token ids in, probabilities out, for single texts and
for batches of 8, of SST-2 and of the SMS collection, as a ratio to the SavedModel in float32. With
one thread it is CPU time; with two it is the time that passed, for an otherwise idle machine.

Each form has a process of its own, and requests are sent to one process at a time, in turns. The
time of a request is the shortest of all rounds. Needs `pip install ".[onnx,tensorflow]"`;
ai-edge-litert is used in place of TensorFlow's interpreter, and OpenVINO has rows, if they (and
nncf) are installed.
"""

import importlib.util
import json
import multiprocessing
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from absl import app, flags

from benchmarks.comparison import machine

FLAGS = flags.FLAGS
flags.DEFINE_string("data", "data", "Folder with tasks/sst2 and sms_spam_collection.")
flags.DEFINE_string("output_dir", "runs/export_formats", "Where models and tables are written.")
flags.DEFINE_integer("num_texts", 96, "Texts of each collection that are timed.", lower_bound=8)
flags.DEFINE_integer("rounds", 5, "How often each request is sent.", lower_bound=1)

SENTIMENT = {"location": "xlnet_mini_en", "adapter": "sentiment"}
# Name of the form, format, dtype of the model, quantization.
EXPORTED = [
    ("SavedModel, float32", "saved_model", "float32", None),
    ("SavedModel, bfloat16", "saved_model", "bfloat16", None),
    ("ONNX, float32", "onnx", "float32", None),
    ("ONNX, float16", "onnx", "float32", "float16"),
    ("ONNX, int8", "onnx", "float32", "int8"),
    ("LiteRT, float32", "litert", "float32", None),
    ("LiteRT, float16", "litert", "float32", "float16"),
    ("LiteRT, int8", "litert", "float32", "int8"),
]
REFERENCE = EXPORTED[0][0]
# Instructions for products of small numbers.
INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8", "amx_bf16")


def main(_):
    output_dir = pathlib.Path(FLAGS.output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    directories = export_all(output_dir)
    labels, development, requests = read_requests(pathlib.Path(FLAGS.data))
    rows = {name: {"bytes": network_bytes(path)} for name, path in directories.items()}
    for threads in (1, 2):
        with Forms(directories, threads) as forms:
            if threads == 1:
                for name in rows:
                    outputs = np.concatenate([forms.run(name, x)[0] for x in development])
                    rows[name]["accuracy"] = float((outputs.argmax(axis=1) == labels).mean())
            for collection, found in requests.items():
                for name, seconds in timed(forms, found).items():
                    rows[name][f"{collection}, {threads}"] = seconds
    report = f"{described_machine()}\n\n{format_table(rows)}\n"
    print(report)
    (output_dir / "table.md").write_text(report, encoding="utf-8")
    (output_dir / "rows.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


def export_all(output_dir):
    """Returns a dict from the names of forms to their directories. Those that exist are kept."""
    from keras_xlnet.models import XLNetTextClassifier
    from keras_xlnet.serving import export

    found = {}
    for name, format, dtype, quantization in EXPORTED:
        found[name] = output_dir / name.replace(", ", "_")
        if not found[name].exists():
            model = XLNetTextClassifier.from_preset(**SENTIMENT, dtype=dtype)
            export(model, found[name], format=format, quantization=quantization)
    if all(importlib.util.find_spec(name) for name in ("openvino", "nncf")):
        found.update(export_openvino(found["ONNX, float32"] / "model.onnx", output_dir))
    return found


def export_openvino(network, output_dir):
    """Converts the ONNX file to OpenVINO's format: as it is, and with weights in int8."""
    import nncf
    import openvino

    model = openvino.Core().read_model(network)
    found = {}
    for name in ("float32", "int8"):
        directory = output_dir / f"OpenVINO_{name}"
        if name == "int8":
            model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_ASYM)
        openvino.save_model(model, directory / "model.xml", compress_to_fp16=False)
        found[f"OpenVINO, {name}"] = directory
    return found


def network_bytes(directory):
    """The size of the files of a network, without the vocabulary and the program beside it."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    others = ("spiece.model", "model.json", "predict.py")
    return sum(path.stat().st_size for path in files if path.name not in others)


def read_requests(folder):
    """Returns labels and batches of the development set, and the requests that are timed."""
    from keras_xlnet.models import XLNetTextClassifier

    lines = (folder / "tasks/sst2/dev.tsv").read_text(encoding="utf-8").split("\n")
    sst2, labels = zip(*(line.rsplit("\t", 1) for line in lines if line), strict=True)
    lines = (folder / "sms_spam_collection/SMSSpamCollection").read_text(encoding="utf-8")
    sms = [line.split("\t", 1)[1] for line in lines.split("\n") if line]
    preprocessor = XLNetTextClassifier.from_preset(**SENTIMENT).preprocessor

    def encoded(texts, size):
        starts = range(0, len(texts), size)
        return [preprocessor.encode(texts[i : i + size]).features for i in starts]

    requests = {
        f"{collection}, {size}": encoded(texts[: FLAGS.num_texts], size)
        for collection, texts in (("SST-2", [*sst2]), ("SMS", sms))
        for size in (1, 8)
    }
    return np.array(labels, int), encoded([*sst2], 32), requests


def timed(forms, requests):
    """Returns a dict from the names of forms to the seconds of all requests."""
    best = {name: np.full(len(requests), np.inf) for name in forms.names}
    for _ in range(FLAGS.rounds):
        for name in forms.names:
            seconds = [forms.run(name, request)[1] for request in requests]
            best[name] = np.minimum(best[name], seconds)
    return {name: float(seconds.sum()) for name, seconds in best.items()}


class Forms:
    """Processes that run a form each, when they are asked."""

    def __init__(self, directories, threads):
        self.names = [*directories]
        context = multiprocessing.get_context("spawn")
        self._pipes, self._processes = {}, []
        for name, directory in directories.items():
            self._pipes[name], other = context.Pipe()
            arguments = (other, name, str(directory), threads)
            self._processes.append(context.Process(target=answer, args=arguments, daemon=True))

    def __enter__(self):
        for process in self._processes:
            process.start()
        return self

    def __exit__(self, *error):
        for process in self._processes:
            process.kill()

    def run(self, name, features):
        """Returns the outputs of a form, and the seconds that it took."""
        self._pipes[name].send(features)
        return self._pipes[name].recv()


def answer(pipe, name, directory, threads):
    """Runs a form on each features that come through a pipe."""
    start = {"SavedModel": start_saved_model, "OpenVINO": start_openvino}
    run = start.get(name.partition(",")[0], start_text_model)(directory, threads)
    # The time of other threads too, which is what one thread has in place of waiting.
    clock = time.process_time if threads == 1 else time.perf_counter
    while True:
        features = pipe.recv()
        begin = clock()
        outputs = run(features)
        pipe.send((outputs, clock() - begin))


def start_saved_model(directory, threads):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  # Registers the kernels.

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    served = tf.saved_model.load(directory).signatures["serving_tokens"]
    return lambda x: served(**{k: tf.constant(v) for k, v in x.items()})["probabilities"].numpy()


def start_openvino(directory, threads):
    import openvino

    options = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    network = pathlib.Path(directory) / "model.xml"
    request = openvino.Core().compile_model(network, "CPU", options).create_infer_request()
    return lambda features: request.infer(features)[0].copy()


def start_text_model(directory, threads):
    from keras_xlnet.portable.predict import TextModel

    return TextModel(directory, threads).run


def described_machine():
    found = machine.describe()
    instructions = ", ".join(name for name in INSTRUCTIONS if name in machine.cpu_flags())
    return f"{found['cpu']} ({instructions}), {found['cores']} cores, {found['system']}"


def format_table(rows):
    """A table in Markdown. A cell has the ratios of single texts and of batches of 8."""
    header = ["", "MB", "of float32", "SST-2 dev"]
    header += [f"{c}, {t} thread{'s' * (t > 1)}" for t in (1, 2) for c in ("SST-2", "SMS")]
    lines = [header, ["---", *["---:"] * (len(header) - 1)]]
    reference = rows[REFERENCE]
    for name, row in rows.items():
        cells = [name, f"{row['bytes'] / 1e6:.1f}", f"{row['bytes'] / reference['bytes']:.2f}"]
        cells.append(f"{100 * row['accuracy']:.1f}")
        for threads in (1, 2):
            for collection in ("SST-2", "SMS"):
                keys = [f"{collection}, {size}, {threads}" for size in (1, 8)]
                cells.append(" / ".join(f"{row[key] / reference[key]:.2f}" for key in keys))
        lines.append(cells)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    app.run(main)
