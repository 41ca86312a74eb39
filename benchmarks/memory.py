"""Peak memory and time of training steps, and of loading a large model.

    python -m benchmarks.memory attention --plot docs/long_sequences.png
    python -m benchmarks.memory fine_tuning
    python -m benchmarks.memory long_documents --plot docs/long_documents.png
    python -m benchmarks.memory loading
    python -m benchmarks.memory lora
    python -m benchmarks.memory adapters

- `attention`: forward and backward pass of a backbone against length: plain, in chunks, and with
  gradient checkpointing. MiB above the process with the model and its graph.
- `fine_tuning`: full fine-tuning, LoRA and a frozen backbone, for a classifier of the size of
  XLNet-Base at 512 tokens; `long_documents`: the ways of `long_document` for a classifier of the
  size of xlnet_small_en, on a document of up to 20 pages. MiB above TensorFlow without a model.
- `loading`: a random model of a released size in each format, as a ratio to the bytes of its
  weights. MiB above TensorFlow after a tiny model was loaded from the same format.
- `lora`: LoRA on float32 and on int8 weights, as in `fine_tuning`, and the ratio of their memory.
- `adapters`: the adapters of the package, served from one copy of the weights and as a model each,
  and one of them, after requests to each. MiB of the process, and the ratio to one model.

Weights are random. Each case runs in its own process, whose peak (ru_maxrss) is shown with the
seconds of a warm step. Each table takes 2 to 10 minutes and up to 12 GB on two cores.
"""

import argparse
import json
import os
import pathlib
import platform
import resource
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# Query rows of a chunk of attention, and tokens of a segment of a document.
CHUNK, SEGMENT = 256, 128
# The graph of a step through all segments contains all of them: more take minutes to trace.
# Cases that would need more memory are left out.
MOST_SEGMENTS, MOST_MIB = 20, 16384
BASE = {"num_layers": 12, "num_heads": 12, "hidden_dim": 768, "intermediate_dim": 3072}
SMALL = {"num_layers": 6, "num_heads": 4, "hidden_dim": 256, "intermediate_dim": 1024}
ATTENTION = {
    "plain": {},
    "checkpointing": {"gradient_checkpointing": True},
    "chunks": {"attention_chunk_size": CHUNK},
    "both": {"attention_chunk_size": CHUNK, "gradient_checkpointing": True},
}
FINE_TUNING = {
    "all weights": {},
    "all weights, checkpointing": {"gradient_checkpointing": True},
    "LoRA of rank 8": {"lora": 8},
    "LoRA of rank 8, checkpointing": {"lora": 8, "gradient_checkpointing": True},
    "only the head": {"frozen": True},
}
LORA = {
    "LoRA on float32": {"lora": 8},
    "LoRA on int8": {"lora": 8, "quantization": "int8"},
}
DOCUMENTS = {
    "whole": {"long_document": "truncate"},
    "windows": {"long_document": "windows"},
    "memory, 1 segment": {"long_document": "memory", "gradient_segments": 1},
    "memory, all segments": {"long_document": "memory", "gradient_segments": None},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("table", nargs="?", choices=TABLES)
    parser.add_argument("--lengths", nargs="+", type=int, help="tokens [of the table of the docs]")
    parser.add_argument("--plot", help="where to draw the memory against the length")
    parser.add_argument("--size", default="xlnet_large", help="for `loading`: a configuration")
    parser.add_argument("--case", help="used by the command itself: a case, as JSON")
    options = parser.parse_args()
    if options.case:
        function, arguments = json.loads(options.case)
        print(json.dumps(globals()[function](**arguments)))
    else:
        print(f"{os.cpu_count()} x {platform.machine()}, float32; MiB at the peak (seconds)")
        TABLES[options.table](options)


def in_process(function, **arguments):
    """Runs a function of this file in its own process and returns the result."""
    command = [sys.executable, __file__, "--case", json.dumps([function.__name__, arguments])]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(printed.splitlines()[-1])


# === Tables ===


def print_grid(options, measure, ways, lengths, **case):
    """Prints a line for each length, with a cell for each way, and draws the peaks."""
    lengths = options.lengths or lengths
    print(f"{'tokens':>8}" + "".join(f"{name:>24}" for name in ways))
    rows = {name: [] for name in ways}
    for i, length in enumerate(lengths):
        cells = []
        for name, way in ways.items():
            # Twice the length needs at most four times as much.
            growth = (length / lengths[i - 1]) ** 2 if i else 0
            last = rows[name][-1] if rows[name] else {"peak": 0}
            is_too_much = last is None or last["peak"] * growth > MOST_MIB
            if way.get("gradient_segments", 1) is None:
                is_too_much = length > MOST_SEGMENTS * SEGMENT
            found = None if is_too_much else in_process(measure, length=length, **case, **way)
            rows[name].append(found)
            seconds = found and ", ".join(f"{each:.1f}" for each in found["seconds"])
            cells.append(f"{found['peak']:.0f} ({seconds})" if found else "-")
        print(f"{length:8}" + "".join(f"{cell:>24}" for cell in cells), flush=True)
    if options.plot:
        draw(options.plot, lengths, rows)


def compare_fine_tuning(options):
    print(f"{'':32}{'trained':>14}{'MiB':>8}{'s a step':>10}")
    for name, way in FINE_TUNING.items():
        (length,) = options.lengths or [512]
        found = in_process(measure_training, length=length, batch_size=2, size=BASE, **way)
        trained = f"{found['trained']:,}"
        print(f"{name:32}{trained:>14}{found['peak']:8.0f}{found['seconds'][0]:10.2f}", flush=True)


def compare_lora(options):
    (length,) = options.lengths or [512]
    peaks = []
    for name, way in LORA.items():
        found = in_process(measure_training, length=length, batch_size=2, size=BASE, **way)
        peaks.append(found["peak"])
        print(f"{name:20}{found['peak']:8.0f}{found['seconds'][0]:10.2f}", flush=True)
    print(f"ratio {peaks[1] / peaks[0]:.2f}")


def compare_adapters(options):
    with tempfile.TemporaryDirectory() as folder:
        in_process(export_adapters, folder=folder)
        one = None
        for name in ("one", "shared", "each"):
            found = in_process(measure_serving, folder=f"{folder}/{name}")
            one = one or found
            ratio = found["rss"] / one["rss"]
            print(f"{name:8}{found['models']:3} models{found['rss']:8.0f}{ratio:8.2f}", flush=True)


def compare_loading(options):
    print(f"{'format':12}{'weights':>12}{'peak above':>12}{'ratio':>8}{'seconds':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for name in in_process(write_checkpoints, folder=folder, size=options.size):
            found = in_process(measure_loading, folder=folder, size=options.size, format=name)
            row = "{weights:12.0f}{peak:12.0f}{ratio:8.2f}{seconds:9.1f}".format(**found)
            print(name.ljust(12) + row, flush=True)


TABLES = {
    "attention": lambda options: print_grid(
        options, measure_attention, ATTENTION, [512, 1024, 2048, 4096, 8192]
    ),
    "fine_tuning": compare_fine_tuning,
    "lora": compare_lora,
    "adapters": compare_adapters,
    "long_documents": lambda options: print_grid(
        options, measure_training, DOCUMENTS, [512, 1280, 2560, 5120, 10240], size=SMALL
    ),
    "loading": compare_loading,
}


def draw(path, lengths, rows):
    """Draws MiB against length, both logarithmic: a slope of 1 is linear, of 2 quadratic."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for (name, found), marker in zip(rows.items(), "osD^", strict=True):
        points = [(n, f["peak"]) for n, f in zip(lengths, found, strict=True) if f]
        axes.loglog(*zip(*points, strict=True), marker=marker, label=name)
    axes.set_xticks(lengths, [f"{n:,}" for n in lengths])
    axes.minorticks_off()
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(alpha=0.3)
    axes.set(xlabel="tokens", ylabel="MiB at the peak of a training step")
    axes.legend()
    figure.savefig(path, dpi=130)


# === Cases ===


def measure_attention(length, **way):
    """Returns MiB of the peak of a step of a backbone, and its seconds once it is warm."""
    import numpy as np
    import tensorflow as tf

    from keras_xlnet.models import XLNetBackbone

    backbone = XLNetBackbone(1000, 4, 4, 256, 1024, dropout=0.1, attention_dropout=0.1, **way)
    variables = [variable.value for variable in backbone.trainable_variables]

    @tf.function
    def step(token_ids):
        with tf.GradientTape() as tape:
            output = backbone({"token_ids": token_ids}, training=True)["sequence_output"]
            loss = tf.reduce_mean(tf.square(output[:, 1:] - tf.stop_gradient(output[:, :-1])))
        return loss, sum(tf.norm(g) for g in tape.gradient(loss, variables) if g is not None)

    token_ids = tf.constant(np.random.default_rng(0).integers(0, 1000, (1, length)), tf.int32)
    graph = step.get_concrete_function(token_ids)
    before = peak_mib()
    graph(token_ids)
    peak = peak_mib() - before
    return {"peak": peak, "seconds": [seconds_of(lambda: graph(token_ids)[0].numpy())]}


def measure_training(length, size, batch_size=1, lora=None, frozen=False, quantization=None, **way):
    """Returns MiB of the peak, trained weights, and seconds of a warm step and prediction."""
    import numpy as np
    import tensorflow as tf

    from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier

    tf.matmul(tf.ones((2, 2)), tf.ones((2, 2)))  # TensorFlow's memory without a model.
    before = peak_mib()
    backbone = XLNetBackbone(
        8000 if way.get("long_document") else 32000,
        **size,
        memory_length=SEGMENT if way.get("long_document") == "memory" else None,
        gradient_checkpointing=way.pop("gradient_checkpointing", False),
        seed=0,
    )
    model = XLNetTextClassifier(backbone, 2, segment_length=SEGMENT, **way)
    if quantization:
        backbone.quantize(quantization)
    if lora:
        model.enable_lora(lora)
    backbone.trainable = not frozen
    model.compile(jit_compile=False)
    rng = np.random.default_rng(0)
    x = {"token_ids": rng.integers(9, 8000, (batch_size, length)).astype("int32")}
    y = np.arange(batch_size) % 2
    model.train_on_batch(x, y)
    training = seconds_of(lambda: model.train_on_batch(x, y))
    peak = peak_mib() - before
    model.predict_on_batch(x)
    trained = sum(int(np.prod(w.shape)) for w in model.trainable_variables)
    seconds = [training, seconds_of(lambda: model.predict_on_batch(x))]
    return {"peak": peak, "trained": trained, "seconds": seconds}


def export_adapters(folder):
    """Writes SavedModels: of one adapter, of all with one copy of the weights, and of each."""
    import keras_xlnet
    from keras_xlnet.models import Task
    from keras_xlnet.serving import export

    models = {}
    for name in keras_xlnet.adapters():
        model = Task.from_preset(adapter=name)
        export(model, f"{folder}/each/{name}/1")
        if name == "spam":
            export(model, f"{folder}/one/{name}/1")
    base = keras_xlnet.models.XLNetTextClassifier.from_preset("xlnet_mini_en", num_classes=2)
    for name in keras_xlnet.adapters():
        models[name] = Task.from_preset(adapter=name, share_with=base)
    export(models, f"{folder}/shared/tasks/1")


def measure_serving(folder):
    """Returns the number of models of a directory, and MiB of a process that has asked each."""
    import numpy as np

    from keras_xlnet.server import ModelStore

    store = ModelStore(folder)
    store.refresh()
    texts = np.array(["Angela won a free prize in Paris, call now."] * 8, object)
    for name in store.names:
        version = store.get(name)
        inputs = dict.fromkeys(version.input_specs("serving_default"), texts)
        for _ in range(3):
            version.run("serving_default", inputs)
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    rss = int(status.partition("VmRSS:")[2].split()[0]) / 2**10
    return {"models": len(store.names), "rss": rss}


def write_checkpoints(folder, size):
    """Writes a random model, and a tiny one, in every format, and returns the formats."""
    from keras_xlnet.checkpoints import FORMATS, save_checkpoint
    from keras_xlnet.models import XLNetBackbone

    for name in (size, "xlnet_tiny"):
        model = XLNetBackbone.from_config_name(name)
        for format in FORMATS:
            save_checkpoint(model, pathlib.Path(folder) / f"{name}-{format}", format)
    return list(FORMATS)


def measure_loading(folder, size, format):
    """Returns MiB of the weights and of the peak, and seconds."""
    from keras_xlnet.checkpoints import load_checkpoint

    load_checkpoint(f"{folder}/xlnet_tiny-{format}", format)
    before, models = peak_mib(), []
    path = f"{folder}/{size}-{format}"
    seconds = seconds_of(lambda: models.append(load_checkpoint(path, format)))
    weights, peak = models[0].count_params() * 4 / 2**20, peak_mib() - before
    return {"weights": weights, "peak": peak, "ratio": peak / weights, "seconds": seconds}


def seconds_of(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


if __name__ == "__main__":
    main()
