"""Vocabularies, and runs of run_pretraining.py, for make_model.py and compare_recipes.py."""

import itertools
import json
import pathlib
import random
import subprocess
import sys

from keras_xlnet.tokenizers import XLNetTokenizer

PRETRAIN = pathlib.Path(__file__).parents[1] / "run_pretraining.py"
# Characters of text that a vocabulary is trained on.
SAMPLE = 30_000_000
# The results of the search (compare_recipes.py, docs/small_model.md).
RECIPE = {
    "num_layers": 6,
    "hidden_dim": 256,
    "sequence_length": 64,
    "memory_length": 32,
    "predicted_share": 0.33,
    # Reversed rows help only tasks that read backward; fine-tuning reads forward.
    "bidirectional_data": False,
    "batch_size": 32,
    "embeddings": "cooccurrence",
    "learning_rate": 1e-3,
    "optimizer": "adamw",
    "dtype": "mixed_bfloat16",
    "lines": "paragraphs",
    "steps_per_epoch": 1000,
    "validation_steps": 10,
}


def train_vocabulary(folder, train, size):
    """Returns the path of a vocabulary, trained on a sample of a text if it does not exist.

    Args:
        folder: `pathlib.Path`, where it is written.
        train: `pathlib.Path` of the text.
        size: Int, the number of pieces.
    """
    path = folder / "spiece.model"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        lines = [line for line in train.read_text(encoding="utf-8").splitlines() if line.strip()]
        random.Random(0).shuffle(lines)
        sizes = itertools.accumulate(map(len, lines))
        sample = [line for line, end in zip(lines, sizes, strict=True) if end - len(line) < SAMPLE]
        XLNetTokenizer.train(iter(sample), vocabulary_size=size).save_assets(str(folder))
    return path


def run_pretraining(run, train, held_out, cpu_minutes, recipe):
    """Runs or continues run_pretraining.py until its processor time is used up.

    Args:
        run: `pathlib.Path` of the folder that it writes.
        train: `pathlib.Path` of the text.
        held_out: List of the paths of held-out texts.
        cpu_minutes: Float, the processor time.
        recipe: Dict of other flags.
    """
    if (run / "metrics.json").is_file() and read_json(run, "budget")["cpu_minutes"] >= cpu_minutes:
        return
    values = {"corpus": train, "held_out": ",".join(map(str, held_out)), "output_dir": run}
    values |= {"cpu_minutes": cpu_minutes, **recipe}
    flags = (f"--{name}={value}" for name, value in values.items())
    subprocess.run([sys.executable, PRETRAIN, *flags], check=True)


def read_json(run, name):
    return json.loads((run / f"{name}.json").read_text(encoding="utf-8"))
