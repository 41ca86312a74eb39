"""Prints the cost of pretraining: operations by part, savings by change, and hours by device.

    python -m benchmarks.training_cost                       # XLNet-Base, the tables of a page
    python -m benchmarks.training_cost --size=xlnet_large --batch_size=8192 --steps=500000
    python -m benchmarks.training_cost --num_layers=6 --num_heads=4 --hidden_dim=256 \
        --intermediate_dim=1024 --vocabulary_size=8000 --sequence_length=128 --memory_length=96

Hours are operations / (peak of the data sheet x utilisation): nothing is measured. docs/recipes.md
says where the peaks and the utilisation come from. Takes seconds; nothing is trained.
"""

import dataclasses
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags

from benchmarks.flop import Shapes, training_flop
from benchmarks.tables import markdown
from keras_xlnet.models.xlnet_backbone import CONFIGS

FLAGS = flags.FLAGS
SHAPES = [field.name for field in dataclasses.fields(Shapes) if field.type is int]
UTILISATIONS = (0.2, 0.35, 0.5)
# FLOP/s of dense products in bfloat16.
DEVICES = {
    "1 A100": 312e12,
    # The data sheets give 1,979 TFLOP/s with sparsity, twice the rate of dense products.
    "1 H100 or H200 (SXM)": 989.5e12,
    "TPU v5e-8": 8 * 197e12,
    "512 TPU v3 chips": 512 * 123e12,
    # Measured: benchmarks/README.md, the peak of GEMM in bfloat16.
    "2 cores of an EPYC with AVX512-BF16": 0.7e12,
}


def main(_):
    shapes = shapes_of_flags()
    print(totals_table(shapes, FLAGS.steps), parts_table(shapes), sep="\n")
    print(changes_table(shapes), hours_table(shapes, FLAGS.steps), sep="\n", end="")


def define_shape_flags(values=FLAGS):
    """Defines `--size`, and a flag for each field of `Shapes` that overrides its value."""
    sizes = list(CONFIGS)
    flags.DEFINE_enum("size", "xlnet_base", sizes, "What the others change.", flag_values=values)
    for name in SHAPES:
        text = f"{name} [the value of --size, or of the paper]"
        flags.DEFINE_integer(name, None, text, lower_bound=0, flag_values=values)


def shapes_of_flags(values=FLAGS):
    """Returns the `Shapes` that the flags describe."""
    given = {name: values[name].value for name in SHAPES if values[name].value is not None}
    return Shapes(**{k: v for k, v in CONFIGS[values.size].items() if k in SHAPES} | given)


# === Tables ===


def totals_table(shapes, steps):
    total = sum(training_flop(shapes).values())
    rows = shapes.batch_size
    positions = rows * shapes.sequence_length
    # The next row begins half a row later: the other half is read again.
    new_tokens = positions // 2
    counts = {
        "a step": total,
        "a row": total / rows,
        "a position of a row": total / positions,
        "a new token of the text (half of the row)": total / new_tokens,
        "a prediction": total / (rows * shapes.num_predictions),
        f"the run: {steps:,} steps, {new_tokens * steps:.3g} new tokens": total * steps,
    }
    return markdown(("", "FLOP"), [(name, f"{count:.3g}") for name, count in counts.items()])


def parts_table(shapes):
    parts = training_flop(shapes)
    total = sum(parts.values())
    rows = [(name, f"{100 * flop / total:.1f}") for name, flop in parts.items()]
    return markdown(("part", "% of FLOP"), rows)


def changes_table(shapes):
    before, rows = sum(training_flop(shapes).values()), []
    for name, change in changes(shapes).items():
        changed = dataclasses.replace(shapes, **change)
        predictions = changed.batch_size * changed.num_predictions
        predictions /= shapes.batch_size * shapes.num_predictions
        ratio = sum(training_flop(changed).values()) / before
        rows.append((name, f"{ratio:.2f}", f"{ratio / predictions:.2f}"))
    return markdown(("change", "FLOP of a step", "FLOP of a prediction"), rows)


def changes(shapes):
    """Returns fields of `Shapes` to replace, by name. All read the same positions per step."""
    names = ("sequence_length", "memory_length", "num_predictions")
    short = {name: getattr(shapes, name) // 2 for name in names}
    length, memory, predictions = short.values()
    pieces, layers = shapes.vocabulary_size // 2, shapes.num_layers // 2
    return {
        f"rows of {length}, memory {memory}, twice as many": {
            **short, "batch_size": 2 * shapes.batch_size,
        },
        "no memory": {"memory_length": 0},
        "half of the predictions": {"num_predictions": predictions},
        "twice the predictions": {"num_predictions": 2 * shapes.num_predictions},
        f"a vocabulary of {pieces:,}": {"vocabulary_size": pieces},
        f"{layers} layers": {"num_layers": layers},
    }  # fmt: skip


def hours_table(shapes, steps, devices=DEVICES):
    flop = steps * sum(training_flop(shapes).values())
    rows = [
        (name, rounded(peak / 1e12), *(rounded(flop / (peak * u) / 3600) for u in UTILISATIONS))
        for name, peak in devices.items()
    ]
    return markdown(("device", "peak TFLOP/s", *(f"hours at {u:.0%}" for u in UTILISATIONS)), rows)


def rounded(number):
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


if __name__ == "__main__":
    define_shape_flags()
    flags.DEFINE_integer("steps", 1_000_000, "Steps of the run.", lower_bound=1)
    app.run(main)
