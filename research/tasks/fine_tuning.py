"""What the examples of the tasks have in common: flags, the model, its training, several runs."""

import json
import logging
import math
import os
import sys
import tempfile

import keras
import numpy as np
from absl import flags
from absl import logging as absl_logging

from keras_xlnet.models import XLNetBackbone
from keras_xlnet.training import AdamWeightDecay, GradualUnfreezing, fastest_dtype

# Models from this width on, such as the released ones, are fine-tuned as in the paper.
WIDE = 512
WIDE_RATE, FROZEN_RATE = 3e-5, 3e-3
# From this number of steps on a run is long, and compiling with XLA pays.
LONG = 1000

# Of data without a test part.
TEST_SHARE = 0.25

FLAGS = flags.FLAGS


def define_flags(output_dir, batch_size, rows):
    """Defines the flags that all examples have.

    Args:
        output_dir: String, the default of the flag.
        batch_size: Int, the default of the flag.
        rows: String, what a batch has, in the help.
    """
    flags.DEFINE_string("output_dir", output_dir, "Where everything is written.")
    flags.DEFINE_string("preset", "xlnet_small_en", "Fine-tune this: a preset's name or location.")
    define_method_flags()
    flags.DEFINE_integer("epochs", None, "Number of epochs.", lower_bound=1)
    flags.DEFINE_integer("batch_size", batch_size, f"{rows} in a training step.", lower_bound=1)
    flags.DEFINE_integer(
        "num_examples", None, "Use so many rows to train on and to test. [all]", lower_bound=1
    )
    flags.DEFINE_integer("runs", 1, "Trainings, each with another seed.", lower_bound=1)
    flags.DEFINE_integer("seed", 1, "Seed of the first run.")


def define_method_flags():
    """Defines the flags that say which weights are trained, and how."""
    flags.DEFINE_bool("from_scratch", False, "Train its architecture from random weights.")
    flags.DEFINE_integer("lora_rank", None, "Train LoRA matrices of this rank and the head alone.")
    flags.DEFINE_bool("freeze_backbone", False, "Train the head alone.")
    flags.DEFINE_bool("unfreeze_gradually", False, "One more block an epoch, from the top.")
    flags.DEFINE_float("layer_decay", None, "Each layer learns at this times the rate of the next.")
    flags.DEFINE_bool("gradient_checkpointing", False, "Use less memory, and more time.")
    flags.DEFINE_enum(
        "dtype",
        "auto",
        ["auto", "float32", "mixed_bfloat16"],
        "Policy of the training. [the faster]",
    )
    flags.DEFINE_float("learning_rate", None, "Peak. [of the example; 3e-5 for wide models]")


def main(run):
    """Returns a `main` for `absl.app`, which prints an error that a user can mend as one line.

    Args:
        run: Function of the arguments that are no flags.
    """

    def run_or_exit(arguments):
        absl_logging.set_verbosity(absl_logging.WARNING)  # Libraries log details of their start.
        # It warns of several models, and of batches of several lengths.
        logging.getLogger("tensorflow").setLevel(logging.ERROR)
        try:
            check_method_flags()
            run(arguments[1:])
        except (ImportError, OSError, RuntimeError, ValueError) as error:
            sys.exit(f"error: {' '.join(str(error).split())}")

    return run_or_exit


def no_arguments(arguments):
    """Raises `ValueError` if there are arguments that are no flags."""
    if arguments:
        raise ValueError(f"arguments that are no flags: {' '.join(arguments)}")


def check_method_flags():
    """Raises `ValueError` if flags of the method contradict each other."""
    if FLAGS.lora_rank is not None and FLAGS.lora_rank < 1:
        raise ValueError(f"--lora_rank must be at least 1. Received: {FLAGS.lora_rank}")
    alternatives = FLAGS.from_scratch, FLAGS.freeze_backbone, FLAGS.lora_rank is not None
    if sum(alternatives) > 1:
        raise ValueError("use one of --from_scratch, --freeze_backbone and --lora_rank")
    if FLAGS.unfreeze_gradually and any(alternatives):
        raise ValueError("--unfreeze_gradually trains all weights of a pretrained model")


def model_name():
    """Returns what reports call the trained model."""
    return "xlnet_from_scratch" if FLAGS.from_scratch else "xlnet_fine_tuned"


def write_json(path, value):
    """Writes a value that people read too: indented, and with the letters of all languages."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def print_written():
    """Prints the names of the files that a run wrote."""
    names = sorted(name for name in os.listdir(FLAGS.output_dir) if name[0] != ".")
    print(f"\nWritten to {FLAGS.output_dir}: {', '.join(names)}")


# === Rows, in dicts of columns ===


def split_by(columns, name):
    """Returns the rows with the first values of a column, and those with the last quarter of them.

    No value is on both sides: questions about a text are not tested on a text to train on.
    """
    different = list(dict.fromkeys(columns[name]))
    if len(different) < 2:
        raise ValueError(f"--data has a single {name}: pass other rows with --test")
    last = set(different[-max(1, round(TEST_SHARE * len(different))) :])
    is_test = np.array([value in last for value in columns[name]])
    return [_rows_of(columns, np.flatnonzero(mask)) for mask in (~is_test, is_test)]


def draw(*parts):
    """Returns --num_examples random rows of each part, in their order."""
    rng = np.random.default_rng(FLAGS.seed)
    return [_draw(part, rng) for part in parts]


def _draw(columns, rng):
    total = len(next(iter(columns.values())))
    if FLAGS.num_examples is None or FLAGS.num_examples >= total:
        return columns
    return _rows_of(columns, np.sort(rng.choice(total, FLAGS.num_examples, replace=False)))


def _rows_of(columns, rows):
    return {key: [column[row] for row in rows] for key, column in columns.items()}


# === The model ===


def load_model(model_class, seed, narrow=None, **arguments):
    """Returns a model that is ready for `fit`: pretrained or untrained, whole or partly frozen.

    Args:
        model_class: A task model.
        seed: Int, the seed of the new weights and the dropout.
        narrow: Optional dict of arguments of models that are less wide than the released ones.
        **arguments: Other arguments of the model, its backbone and its preprocessor.
    """
    keras.utils.set_random_seed(seed)
    arguments = {
        # Presets that come from pretraining have none.
        "backbone_dropout": 0.1,
        "attention_dropout": 0.1,
        "gradient_checkpointing": FLAGS.gradient_checkpointing,
        "dtype": fastest_dtype() if FLAGS.dtype == "auto" else FLAGS.dtype,
        "seed": seed,
        **arguments,
    }
    model = model_class.from_preset(FLAGS.preset, **arguments)
    if narrow and model.backbone.hidden_dim < WIDE:
        model = new_head(model, model.backbone, **narrow)
    if FLAGS.from_scratch:
        model = new_head(model, untrained(model.backbone))
    return freeze(model)


def freeze(model):
    """Freezes what --freeze_backbone or --lora_rank do not train, and returns the model."""
    if FLAGS.freeze_backbone:
        model.backbone.trainable = False
    if FLAGS.lora_rank:
        model.enable_lora(FLAGS.lora_rank)
    return model


def new_head(model, backbone, **arguments):
    """Returns a model of the same class and arguments, but these, around a backbone."""
    config = {
        key: value
        for key, value in model.get_config().items()
        if key not in ("backbone", "preprocessor")
    }
    return type(model)(backbone, preprocessor=model.preprocessor, **config | arguments)


def untrained(backbone, **arguments):
    """Returns a backbone of the same arguments, but these, with new weights."""
    # Larger initial weights than XLNet's, which are meant for long pretraining.
    changed = {"kernel_initializer": "glorot_normal", **arguments}
    return XLNetBackbone.from_config({**backbone.get_config(), **changed})


def fit(model, x, y, num_rows, epochs, learning_rate, **arguments):
    """Trains a model as the flags say, and returns it in float32.

    Args:
        model: What `load_model` returned.
        x, y: As in `fit`. `y` is `None` for a dataset.
        num_rows: Int, their number.
        epochs: Int, the default of --epochs.
        learning_rate: Float, the peak for models that are less wide than the released ones.
        **arguments: Other arguments of `compile`.
    """
    epochs = FLAGS.epochs or epochs
    steps = epochs * math.ceil(num_rows / FLAGS.batch_size)
    # The loss and the metrics of the model stay. What is trainable counts from here on.
    model.compile(
        make_optimizer(model, learning_rate, steps),
        jit_compile="auto" if steps >= LONG else False,
        **arguments,
    )
    model.fit(
        x,
        y,
        batch_size=None if y is None else FLAGS.batch_size,
        shuffle=y is not None,
        epochs=epochs,
        callbacks=unfreezing(),
        verbose="auto" if sys.stdout.isatty() else 2,  # A file gets a line an epoch.
    )
    return to_float32(model)


def _peak(model, learning_rate):
    if FLAGS.learning_rate is not None:
        return FLAGS.learning_rate
    if FLAGS.freeze_backbone or FLAGS.lora_rank:
        return FROZEN_RATE
    return WIDE_RATE if model.backbone.hidden_dim >= WIDE else learning_rate


def make_optimizer(model, learning_rate, steps):
    """Returns AdamW with a warmup and a cosine to zero, as the flags say.

    Args:
        model: A task model.
        learning_rate: Float, the peak after the warmup of a tenth of the steps, for models that
            are less wide than the released ones.
        steps: Int, all steps of the run.
    """
    warmup = max(1, steps // 10)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0,
        max(1, steps - warmup),
        warmup_target=_peak(model, learning_rate),
        warmup_steps=warmup,
    )
    arguments = {"weight_decay": 0.01, "global_clipnorm": 1.0}
    if FLAGS.layer_decay is not None:
        return AdamWeightDecay(schedule, layer_decay=FLAGS.layer_decay, **arguments)
    return keras.optimizers.AdamW(schedule, **arguments)


def unfreezing():
    """Returns the callbacks of --unfreeze_gradually."""
    return [GradualUnfreezing()] if FLAGS.unfreeze_gradually else []


def to_float32(model):
    """The model as its weights are, for any device: not each is fast in half precision."""
    return model if model.backbone.dtype_policy.name == "float32" else copy_in_float32(model)


def copy_in_float32(model):
    """A copy for one device, outside of the strategy that the model was trained under."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_to_preset(folder)
        return type(model).from_preset(folder, dtype="float32")


# === Several runs ===


def repeat(train_and_test):
    """Trains --runs times, and prints the mean and the deviation of the metrics.

    Args:
        train_and_test: Function of a seed. It returns a model, its predictions, and a dict of
            metrics by name.

    Returns:
        The model and the predictions of the first run, and a dict with `runs`, `mean` and
        `deviation` of the metrics of all.
    """
    model, predictions, metrics = train_and_test(FLAGS.seed)
    rows = [metrics]
    for seed in range(FLAGS.seed + 1, FLAGS.seed + FLAGS.runs):
        print(f"\nRun {len(rows) + 1} of {FLAGS.runs}, seed {seed}", flush=True)
        rows.append(train_and_test(seed)[2])
    return model, predictions, summarize(rows)


def summarize(rows):
    """Prints and returns `runs`, `mean` and `deviation` of dicts of metrics."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    mean = {name: float(np.mean(values)) for name, values in columns.items()}
    # Of a single run nothing is known.
    deviation = {
        name: float(np.std(values, ddof=1)) if len(values) > 1 else None
        for name, values in columns.items()
    }
    if len(rows) > 1:
        print(f"\nMean and standard deviation of {len(rows)} runs:")
        for name in columns:
            print(f"{name:<20} {mean[name]:8.3f} ± {deviation[name]:.3f}")
    return {"runs": rows, "mean": mean, "deviation": deviation}
