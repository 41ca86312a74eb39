"""Memory and time of training steps: ways to fine-tune, and ways to read long documents.

    python benchmarks/training_memory.py --table fine_tuning
    python benchmarks/training_memory.py --table long_documents --plot docs/long_documents.png

The first compares full fine-tuning, LoRA, a frozen backbone and gradient checkpointing for a
classifier of the size of XLNet-Base, at 512 tokens. The second compares the ways of
`long_document` for a classifier of the size of xlnet_small_en, on a document of up to 20 pages.
Weights are random. Each case has a process of its own, whose peak (ru_maxrss) above what TensorFlow
needs without a model is shown, with the seconds of a step once it is warm: 3 and 10 minutes, and up
to 12 GB, on two cores.
"""

import json
import os
import platform
import resource
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

from absl import app, flags
from peak_memory import draw, in_process

FLAGS = flags.FLAGS
flags.DEFINE_enum("table", "fine_tuning", ["fine_tuning", "long_documents"], "What to measure.")
flags.DEFINE_integer("batch_size", None, "Rows of a batch. [2; documents 1]")
flags.DEFINE_list("lengths", ["512", "1280", "2560", "5120", "10240"], "Tokens of documents.")
flags.DEFINE_integer("limit_mib", 12288, "A way that would need more is left out.")
flags.DEFINE_string("plot", None, "Where to draw the memory of documents.")
flags.DEFINE_string("case", None, "Used by the command itself: a case, as JSON.")

BASE = {"num_layers": 12, "num_heads": 12, "hidden_dim": 768, "intermediate_dim": 3072}
SMALL = {"num_layers": 6, "num_heads": 4, "hidden_dim": 256, "intermediate_dim": 1024}
SEGMENT = 128
# The graph of a step through all segments has all of them: more take minutes to trace.
MOST_SEGMENTS = 20
FINE_TUNING = {
    "all weights": {},
    "all weights, checkpointing": {"checkpointing": True},
    "LoRA of rank 8": {"lora": 8},
    "LoRA of rank 8, checkpointing": {"lora": 8, "checkpointing": True},
    "the head alone": {"frozen": True},
}
DOCUMENTS = {
    "whole": {"long_document": "truncate"},
    "windows": {"long_document": "windows"},
    "memory, 1 segment": {"long_document": "memory", "gradient_segments": 1},
    "memory, all segments": {"long_document": "memory", "gradient_segments": None},
}


def main(_):
    if FLAGS.case:
        print(json.dumps(measure(**json.loads(FLAGS.case))))
    elif FLAGS.table == "fine_tuning":
        compare_fine_tuning()
    else:
        compare_documents()


def compare_fine_tuning():
    batch_size = FLAGS.batch_size or 2
    print(f"XLNet-Base, 512 tokens, batch {batch_size}; {machine()}")
    print(f"{'':32}{'trained':>14}{'MiB':>8}{'s a step':>10}")
    for name, way in FINE_TUNING.items():
        found = measured(length=512, batch_size=batch_size, size=BASE, **way)
        trained = f"{found['trained']:,}"
        print(f"{name:32}{trained:>14}{found['peak']:8.0f}{found['training']:10.2f}", flush=True)


def compare_documents():
    lengths, batch_size = [int(length) for length in FLAGS.lengths], FLAGS.batch_size or 1
    print(f"{SMALL}, segments of {SEGMENT}, batch {batch_size}; {machine()}")
    print("MiB (seconds of a training step, of a prediction)")
    print(f"{'tokens':>8}" + "".join(f"{name:>24}" for name in DOCUMENTS))
    rows = {name: [] for name in DOCUMENTS}
    for i, length in enumerate(lengths):
        for name, way in DOCUMENTS.items():
            # Twice the length needs at most four times as much.
            growth = (length / lengths[i - 1]) ** 2 if i else 0
            last = rows[name][-1] if rows[name] else {"peak": 0}
            too_much = last is None or last["peak"] * growth > FLAGS.limit_mib
            if way.get("gradient_segments", 1) is None:
                too_much = length > MOST_SEGMENTS * SEGMENT
            case = {"size": SMALL, "document": True, "length": length, "batch_size": batch_size}
            found = None if too_much else measured(**case, **way)
            rows[name].append(found)
        print(f"{length:8}" + "".join(f"{cell(r[-1]):>24}" for r in rows.values()), flush=True)
    if FLAGS.plot:
        draw(FLAGS.plot, lengths, rows, range(7, 15), "tokens of the document")


def cell(found):
    if found is None:
        return "-"
    return f"{found['peak']:.0f} ({found['training']:.1f}, {found['predicting']:.1f})"


def machine():
    return f"{os.cpu_count()} x {platform.machine()}, float32"


def measured(**case):
    """What `measure` returns in a process of its own."""
    return in_process(__file__, "--case", json.dumps(case))


def measure(
    length, batch_size, size, document=False, lora=None, frozen=False, checkpointing=False, **way
):
    """Returns MiB of the peak, trained weights, and seconds of a warm step and prediction."""
    import numpy as np
    import tensorflow as tf

    from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier

    tf.matmul(tf.ones((2, 2)), tf.ones((2, 2)))  # What TensorFlow needs without a model.
    before = peak_mib()
    backbone = XLNetBackbone(
        8000 if document else 32000,
        **size,
        memory_length=SEGMENT if way.get("long_document") == "memory" else None,
        gradient_checkpointing=checkpointing,
        seed=0,
    )
    model = XLNetTextClassifier(backbone, 2, segment_length=SEGMENT, **way)
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
    return {
        "peak": peak,
        "trained": sum(int(np.prod(w.shape)) for w in model.trainable_variables),
        "training": training,
        "predicting": seconds_of(lambda: model.predict_on_batch(x)),
    }


def seconds_of(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


if __name__ == "__main__":
    app.run(main)
