"""Measures the effect of a file of `keras_xlnet/compat`: the same work with and without it.

    python -m benchmarks.workarounds eager_variables            # a first `fit`
    python -m benchmarks.workarounds eager_variables --without
    python -m benchmarks.workarounds fused                      # the same, and later steps
    python -m benchmarks.workarounds dense_gradients            # updates of all weights by AdamW
    python -m benchmarks.workarounds generated_dataset          # a later `fit` of texts
    python -m benchmarks.workarounds quick_deletion             # `quantize`, and loading the model
    python -m benchmarks.workarounds sequential_map             # `predict` in chunks

Prints CPU seconds, or the quantity that the docstring of the file names. Run both forms in turn, a
few times. With `TF_NUM_INTEROP_THREADS=10`, `sequential_map` is measured as on a machine
with ten processors or more. Takes from seconds to two minutes.
"""

import argparse
import contextlib
import os
import pathlib
import resource
import tempfile
import time
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

from keras_xlnet import models
from keras_xlnet.compat import dense_gradients, fused, sublayers
from keras_xlnet.models import base_model
from keras_xlnet.ops import long_attention
from keras_xlnet.preprocessing import text_batches


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", choices=sorted(MEASUREMENTS))
    parser.add_argument("--without", action="store_true", help="without the workaround")
    options = parser.parse_args()
    print(options.file, "without" if options.without else "with", flush=True)
    measure, *replaced = MEASUREMENTS[options.file]
    with contextlib.ExitStack() as stack:
        for module, name, replacement in replaced if options.without else ():
            stack.enter_context(mock.patch.object(module, name, replacement))
        measure()


def first_fit():
    model, tokens = _classifier(), _tokens(8, 64)
    with _processor_seconds("first fit, 2 steps"):
        model.fit(tokens, np.arange(8) % 2, batch_size=4, verbose=0)


def steps():
    tokens, labels = _tokens(32, 32), np.arange(32) % 2
    for name in ("first model", "second model"):
        model = _classifier()
        with _processor_seconds(f"{name}, first step"):
            model.train_on_batch(tokens, labels)
    model.train_on_batch(tokens, labels)
    with _processor_seconds("10 more"):
        for _ in range(10):
            model.train_on_batch(tokens, labels)


def updates():
    variables = _classifier().trainable_variables
    optimizer = keras.optimizers.AdamW(1e-4, global_clipnorm=1.0)
    optimizer.build(variables)
    rng = np.random.default_rng(0)
    gradients = [tf.constant(rng.normal(size=v.shape), "float32") for v in variables]

    @tf.function
    def update(gradients):
        with dense_gradients.dense_gradients(optimizer):
            optimizer.apply(gradients, variables)

    update(gradients)
    with _processor_seconds("20 updates"):
        for _ in range(20):
            update(gradients)


def fit_of_texts():
    rng = np.random.default_rng(0)
    texts = [" ".join(["word"] * n) for n in rng.integers(4, 60, 512)]
    preset = models.XLNetTextClassifier.from_preset("xlnet_mini_en", num_classes=2)
    for name in ("first fit", "second fit"):
        with _processor_seconds(name):
            preset.fit(texts, rng.integers(0, 2, 512), verbose=0)


def quantizing():
    model = _classifier()
    with _processor_seconds("quantize"):
        model.quantize("int8")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.keras"
        model.save(path)
        with _processor_seconds("load_model"):
            keras.models.load_model(path)


def long_text():
    model = _classifier(num_layers=2, hidden_dim=128, attention_chunk_size=128)
    model.predict(_tokens(1, 256), verbose=0)
    before = _peak_mib()
    model.predict(_tokens(1, 6144), verbose=0)
    print(f"6144 tokens: {_peak_mib() - before:.0f} MiB")


def _nothing(*_):
    return contextlib.nullcontext()


# The work, and the replacements of the workaround.
MEASUREMENTS = {
    # The function of `compat` has the signature of Keras' method.
    "dense_gradients": (
        updates, (dense_gradients, "_adam_step", keras.optimizers.Adam.update_step),
    ),
    "eager_variables": (first_fit, (base_model, "eager_variables", _nothing)),
    "fused": (steps, (fused, "_in_tensorflow_graph", lambda: False)),
    "generated_dataset": (
        fit_of_texts,
        (
            text_batches, "generated_dataset",
            lambda f, spec, _: tf.data.Dataset.from_generator(f, output_signature=spec),
        ),
    ),
    "quick_deletion": (
        quantizing, *((module, "quick_deletion", _nothing) for module in (base_model, sublayers)),
    ),
    "sequential_map": (
        long_text, (long_attention, "sequential_map", lambda f, x, like: keras.ops.map(f, x)),
    ),
}  # fmt: skip


def _classifier(num_layers=6, hidden_dim=256, **arguments):
    backbone = models.XLNetBackbone(8000, num_layers, 4, hidden_dim, 4 * hidden_dim, **arguments)
    return models.XLNetTextClassifier(backbone, 2)


def _tokens(*shape):
    return {"token_ids": np.random.default_rng(0).integers(9, 8000, shape)}


def _peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextlib.contextmanager
def _processor_seconds(what):
    start = time.process_time()
    yield
    print(f"{what}: {time.process_time() - start:.1f} s")


if __name__ == "__main__":
    main()
