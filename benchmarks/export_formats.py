"""Measures size, accuracy and latency of the formats of `keras_xlnet.serving.export`.

    python -m benchmarks.export_formats --data ../shared/data

The model is the classifier of `xlnet_mini_en` with the adapter `sentiment`. Accuracy is measured on
the development set of SST-2. Latency is the time from token ids to probabilities, for single texts
and for batches of 8, of SST-2 and of the SMS collection, as a ratio to the SavedModel in float32:
CPU time with one thread, elapsed time with two, for an otherwise idle machine.

Each form runs in its own process, and requests are sent to one process at a time, in turns. The
time of a request is the shortest of all rounds. Needs `pip install ".[onnx,tensorflow]"`;
ai-edge-litert, if it is installed, replaces TensorFlow's interpreter.
"""

import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from absl import app, flags

from benchmarks.comparison import machine
from benchmarks.tables import markdown

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
_PROCESS = {}
# Instructions for low-precision products.
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
    return found


def network_bytes(directory):
    """Returns the bytes of an ONNX or LiteRT file, or of all files of a SavedModel."""
    files = [*directory.glob("model.[ot]*")] or directory.rglob("*")
    return sum(path.stat().st_size for path in files if path.is_file())


def read_requests(folder):
    """Returns labels and batches of the development set, and the requests that are timed."""
    from keras_xlnet.models import XLNetTextClassifier
    from keras_xlnet.task_files import read_table

    columns = {"text": 0, "label": 1}
    sst2 = read_table(folder / "tasks/sst2/dev.tsv", columns, has_header=False, integer=["label"])
    file = folder / "sms_spam_collection/SMSSpamCollection"
    sms = read_table(file, {"text": 1}, has_header=False, delimiter="\t")
    preprocessor = XLNetTextClassifier.from_preset(**SENTIMENT).preprocessor

    def encoded(texts, size):
        starts = range(0, len(texts), size)
        return [preprocessor.encode(texts[i : i + size]).features for i in starts]

    requests = {
        f"{collection}, {size}": encoded(rows["text"][: FLAGS.num_texts], size)
        for collection, rows in (("SST-2", sst2), ("SMS", sms))
        for size in (1, 8)
    }
    return np.array(sst2["label"]), encoded(sst2["text"], 32), requests


def timed(forms, requests):
    """Returns a dict from the names of forms to the seconds of all requests."""
    best = {name: np.full(len(requests), np.inf) for name in forms.pools}
    for _ in range(FLAGS.rounds):
        for name in forms.pools:
            seconds = [forms.run(name, request)[1] for request in requests]
            best[name] = np.minimum(best[name], seconds)
    return {name: float(seconds.sum()) for name, seconds in best.items()}


class Forms:
    """Processes that each run a form on request."""

    def __init__(self, directories, threads):
        context = multiprocessing.get_context("spawn")
        self.pools = {
            name: concurrent.futures.ProcessPoolExecutor(1, context, start, (str(path), threads))
            for name, path in directories.items()
        }

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for pool in self.pools.values():
            pool.shutdown()

    def run(self, name, features):
        """Returns the outputs of a form, and the seconds that it took."""
        return self.pools[name].submit(answer, features).result()


def start(directory, threads):
    """Loads a form in its process."""
    is_saved_model = (pathlib.Path(directory) / "saved_model.pb").exists()
    run = (start_saved_model if is_saved_model else start_text_model)(directory, threads)
    # CPU time ignores waiting but sums over threads.
    _PROCESS.update(run=run, clock=time.process_time if threads == 1 else time.perf_counter)


def answer(features):
    begin = _PROCESS["clock"]()
    outputs = _PROCESS["run"](features)
    return outputs, _PROCESS["clock"]() - begin


def start_saved_model(directory, threads):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  # Registers the kernels.

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    served = tf.saved_model.load(directory).signatures["serving_tokens"]
    return lambda x: served(**{k: tf.constant(v) for k, v in x.items()})["probabilities"].numpy()


def start_text_model(directory, threads):
    from keras_xlnet.serving.portable.predict import TextModel

    return TextModel(directory, threads).run


def described_machine():
    found = machine.describe()
    instructions = ", ".join(name for name in INSTRUCTIONS if name in machine.cpu_flags())
    return f"{found['cpu']} ({instructions}), {found['cores']} cores, {found['system']}"


def format_table(rows):
    """Returns a table in Markdown. A cell has the ratios of single texts and of batches of 8."""
    timings = [(c, t) for t in (1, 2) for c in ("SST-2", "SMS")]
    reference, cells = rows[REFERENCE], []
    for name, row in rows.items():
        sizes = (f"{row['bytes'] / 1e6:.1f}", f"{row['bytes'] / reference['bytes']:.2f}")
        keys = [[f"{c}, {size}, {t}" for size in (1, 8)] for c, t in timings]
        ratios = (" / ".join(f"{row[key] / reference[key]:.2f}" for key in pair) for pair in keys)
        cells.append((name, *sizes, f"{100 * row['accuracy']:.1f}", *ratios))
    columns = [f"{c}, {t} thread{'s' * (t > 1)}" for c, t in timings]
    return markdown(("", "MB", "of float32", "SST-2 dev", *columns), cells)


if __name__ == "__main__":
    app.run(main)
