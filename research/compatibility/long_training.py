"""Trains one model for 2,000 steps on each backend and in each dtype, and compares the losses.

    python research/compatibility/long_training.py

The model is a small Transformer-XL of bytes with memory, without dropout. Its first weights and its
batches come from NumPy, so they are equal in all runs. Each run has a process of its own, and is
done twice. A finished run is a line of `--output_dir`, so the command continues after an
interruption. Then the trained model reads 2,000 segments in float32 and in bfloat16.
"""

import argparse
import itertools
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tasks"))
from finished_runs import FinishedRuns  # noqa: E402

_MESSAGES = pathlib.Path(__file__).parents[2] / "examples" / "data" / "SMSSpamCollection"
BACKENDS = ("tensorflow", "jax", "torch")
DTYPES = ("float32", "mixed_bfloat16", "bfloat16")
_ROWS, _LENGTH, _STEPS = 8, 32, 2000
# A loss is the mean of so many steps.
_MEAN = 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output_dir", type=pathlib.Path, default="runs/long_training")
    parser.add_argument("--child", nargs=2, metavar=("DTYPE", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        train(*arguments.child)
        return
    directory = arguments.output_dir.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    finished = FinishedRuns(directory / "runs.jsonl")
    for dtype, backend, number in itertools.product(DTYPES, BACKENDS, (0, 1)):
        run = {"backend": backend, "dtype": dtype, "number": number}
        if run not in finished:
            start = time.perf_counter()
            file = directory / f"{backend}-{dtype}-{number}.npz"
            command = [sys.executable, __file__, "--child", dtype, str(file)]
            subprocess.run(command, env={**os.environ, "KERAS_BACKEND": backend}, check=True)
            losses = np.load(file)["losses"]
            finished.add(run, {"losses": losses.tolist()}, time.perf_counter() - start)
    print("\n".join(table({key: row["metrics"]["losses"] for key, row in finished.rows.items()})))
    read_segments(directory / "tensorflow-float32-0.npz")


def train(dtype, file):
    """Trains a model, and writes its losses and weights."""
    import keras

    tokens = bytes_of_messages(_STEPS)
    model = new_model(dtype, stateful=True, batch_size=_ROWS)
    model.compile(keras.optimizers.Adam(1e-3))
    losses = []
    for step in range(0, _STEPS, _MEAN):
        part = tokens[step : step + _MEAN]
        x, y = part[..., :-1].reshape(-1, _LENGTH), part[..., 1:].reshape(-1, _LENGTH)
        history = model.fit({"token_ids": x}, y, batch_size=_ROWS, shuffle=False, verbose=0)
        losses += history.history["loss"]
    weights = {f"weight_{i}": x for i, x in enumerate(arrays_of(model))}
    np.savez(file, losses=losses, **weights)


def bytes_of_messages(steps):
    """Returns bytes `(steps, rows, length + 1)`. A row continues that of the step before it."""
    text = np.frombuffer(_MESSAGES.read_bytes(), dtype="uint8").astype("int32")
    rows = text[: len(text) // _ROWS * _ROWS].reshape(_ROWS, -1)
    columns = np.arange(steps)[:, None] * _LENGTH + np.arange(_LENGTH + 1)
    return rows[:, columns % rows.shape[1]].transpose(1, 0, 2)


def new_model(dtype, **arguments):
    from keras_xlnet.models import TransformerXLLanguageModel

    model = TransformerXLLanguageModel(
        256, 3, 4, 64, 128, dropout=0.0, memory_length=_LENGTH, dtype=dtype, **arguments
    )
    draw = np.random.default_rng(0)
    for weight in model.trainable_variables:
        if len(weight.shape) > 1:
            weight.assign(draw.normal(0, 0.02, weight.shape))
    return model


def arrays_of(model):
    from keras import ops

    return [ops.convert_to_numpy(ops.cast(x, "float32")) for x in model.trainable_variables]


def table(losses):
    """Returns the lines of a table of losses, and of how far they part from TensorFlow's."""
    heading = ["dtype", "backend", "first", "last", "twice", "largest difference", "of last 200"]
    lines = [heading, ["---"] * len(heading)]
    for dtype, backend in itertools.product(DTYPES, BACKENDS):
        first, second = (np.array(losses[backend, dtype, number]) for number in (0, 1))
        difference = np.abs(first - losses["tensorflow", "float32", 0])
        again = np.abs(first - second).max()
        values = [first[0], first[-10:].mean(), again, difference.max(), difference[-10:].mean()]
        lines.append([dtype, backend, *(f"{value:.5g}" for value in values)])
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def read_segments(file):
    """Prints how far bfloat16 is from float32, for the first and the last segments of a text."""
    tokens = bytes_of_messages(_STEPS)
    found = {}
    for dtype in DTYPES:
        model = new_model(dtype, stateful=True, batch_size=_ROWS)
        stored = np.load(file)
        for i, weight in enumerate(model.trainable_variables):
            weight.assign(stored[f"weight_{i}"])
        x = tokens[..., :-1].reshape(-1, _LENGTH)
        outputs = model.predict({"token_ids": x}, batch_size=_ROWS, verbose=0)["log_probs"]
        labels = tokens[..., 1:].reshape(-1, _LENGTH, 1)
        found[dtype] = np.take_along_axis(outputs, labels, axis=2).reshape(_STEPS, -1)
    for dtype in DTYPES[1:]:
        difference = np.abs(found[dtype] - found["float32"]).mean(axis=1)
        parts = [difference[:20], difference[20:200], difference[-200:]]
        print(dtype, "segments 1-20, 21-200, 1801-2000:", *(f"{x.mean():.4f}" for x in parts))


if __name__ == "__main__":
    main()
