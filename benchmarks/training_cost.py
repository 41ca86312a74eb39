"""Prints what pretraining costs: operations by part, what a change saves, and hours by device.

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

from benchmarks.training_flop import Shapes, training_flop
from keras_xlnet.models.xlnet_backbone import CONFIGS

FLAGS = flags.FLAGS
SHAPES = [field.name for field in dataclasses.fields(Shapes) if field.type is int]
UTILISATIONS = (0.2, 0.35, 0.5)


@dataclasses.dataclass(frozen=True)
class Device:
    """Some chips of one kind. `peak` is that of one chip: dense products in bfloat16, FLOP/s."""

    name: str
    peak: float
    chips: int = 1


DEVICES = [
    Device("1 A100", 312e12),
    # The data sheets give 1,979 TFLOP/s with sparsity, twice that of dense products.
    Device("1 H100 or H200 (SXM)", 989.5e12),
    Device("TPU v5e-8", 197e12, 8),
    Device("512 TPU v3 chips", 123e12, 512),
    # Measured: benchmarks/README.md, the peak of GEMM in bfloat16.
    Device("2 cores of an EPYC with AVX512-BF16", 0.7e12),
]


def main(_):
    print(tables(shapes_of_flags(), FLAGS.steps))


def define_shape_flags(values=FLAGS):
    """Defines `--size`, and a flag for each of `Shapes` that takes the place of its value."""
    sizes = list(CONFIGS)
    flags.DEFINE_enum("size", "xlnet_base", sizes, "What the others change.", flag_values=values)
    for name in SHAPES:
        text = f"{name} [that of --size, or of the paper]"
        flags.DEFINE_integer(name, None, text, lower_bound=0, flag_values=values)


def shapes_of_flags(values=FLAGS):
    """Returns the `Shapes` that the flags describe."""
    shapes = {name: value for name, value in CONFIGS[values.size].items() if name in SHAPES}
    given = {name: values[name].value for name in SHAPES}
    return Shapes(**shapes | {name: value for name, value in given.items() if value is not None})


def tables(shapes, steps):
    """Returns all tables of a run as Markdown.

    Args:
        shapes: `Shapes`.
        steps: Int, the number of steps of the run.
    """
    parts = [totals_table(shapes, steps), parts_table(shapes), changes_table(shapes)]
    return "\n".join([*parts, hours_table(shapes, steps)])


def totals_table(shapes, steps):
    total = sum(training_flop(shapes).values())
    rows = shapes.batch_size
    positions = rows * shapes.sequence_length
    # The next row begins half a row later: the other half is read again.
    new_tokens = positions // 2
    return markdown(
        ("", "FLOP"),
        [
            ("a step", f"{total:.3g}"),
            ("a row", f"{total / rows:.3g}"),
            ("a position of a row", f"{total / positions:.3g}"),
            ("a new token of the text (half of the row)", f"{total / new_tokens:.3g}"),
            ("a prediction", f"{total / (rows * shapes.num_predictions):.3g}"),
            (
                f"the run: {steps:,} steps, {new_tokens * steps:.3g} new tokens",
                f"{total * steps:.3g}",
            ),
        ],
    )


def parts_table(shapes):
    parts = training_flop(shapes)
    total = sum(parts.values())
    return markdown(
        ("part", "% of FLOP"), [(k, f"{100 * v / total:.1f}") for k, v in parts.items()]
    )


def changes_table(shapes):
    before, rows = training_flop(shapes), []
    for name, change in changes(shapes).items():
        changed = dataclasses.replace(shapes, **change)
        after = sum(training_flop(changed).values())
        per_prediction = changed.batch_size * changed.num_predictions
        per_prediction /= shapes.batch_size * shapes.num_predictions
        ratio = after / sum(before.values())
        rows.append((name, f"{ratio:.2f}", f"{ratio / per_prediction:.2f}"))
    return markdown(("change", "FLOP of a step", "FLOP of a prediction"), rows)


def changes(shapes):
    """Returns fields of `Shapes` to replace, by name. All read as many positions in a step."""
    half = shapes.sequence_length // 2
    return {
        f"rows of {half}, memory {shapes.memory_length // 2}, twice as many": {
            "sequence_length": half,
            "memory_length": shapes.memory_length // 2,
            "num_predictions": shapes.num_predictions // 2,
            "batch_size": 2 * shapes.batch_size,
        },
        "no memory": {"memory_length": 0},
        "half of the predictions": {"num_predictions": shapes.num_predictions // 2},
        "twice the predictions": {"num_predictions": 2 * shapes.num_predictions},
        f"a vocabulary of {shapes.vocabulary_size // 2:,}": {
            "vocabulary_size": shapes.vocabulary_size // 2
        },
        f"{shapes.num_layers // 2} layers": {"num_layers": shapes.num_layers // 2},
    }


def hours_table(shapes, steps, devices=DEVICES):
    flop = steps * sum(training_flop(shapes).values())
    columns = [f"hours at {utilisation:.0%}" for utilisation in UTILISATIONS]
    rows = []
    for device in devices:
        peak = device.peak * device.chips
        hours = [rounded(flop / (peak * utilisation) / 3600) for utilisation in UTILISATIONS]
        rows.append((device.name, rounded(peak / 1e12), *hours))
    return markdown(("device", "peak TFLOP/s", *columns), rows)


def rounded(number):
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def markdown(head, rows):
    """Returns a table: the first column is text, the others are numbers."""
    lines = [head, ("---", *["---:"] * (len(head) - 1)), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    define_shape_flags()
    flags.DEFINE_integer("steps", 1_000_000, "Steps of the run.", lower_bound=1)
    app.run(main)
