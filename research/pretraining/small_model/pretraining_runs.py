"""Vocabularies and runs of research/pretraining/pretrain.py, for make_model.py and search.py."""

import json
import pathlib
import subprocess
import sys

from corpus import sample_lines

from keras_xlnet.tokenizers import XLNetTokenizer

PRETRAIN = pathlib.Path(__file__).parents[1] / "pretrain.py"
# Characters of text that a vocabulary is trained on.
SAMPLE = 30_000_000


def train_vocabulary(folder, train, size):
    """Returns the path of a vocabulary, trained on a sample of a text if it is not there yet.

    Args:
        folder: `pathlib.Path`, where it is written.
        train: `pathlib.Path` of the text.
        size: Int, the number of pieces.
    """
    path = folder / "spiece.model"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        lines = sample_lines(train, SAMPLE)
        XLNetTokenizer.train(iter(lines), vocabulary_size=size).save_assets(str(folder))
    return path


def run_pretraining(run, train, held_out, cpu_minutes, recipe):
    """Runs research/pretraining/pretrain.py until it has had its processor time, from where it was.

    Args:
        run: `pathlib.Path` of the folder that it writes.
        train: `pathlib.Path` of the text.
        held_out: List of the paths of held-out texts.
        cpu_minutes: Float, the processor time.
        recipe: Dict of other flags.
    """
    if (run / "metrics.json").is_file() and (run / "budget.json").is_file():
        spent = json.loads((run / "budget.json").read_text(encoding="utf-8"))["cpu_minutes"]
        if spent >= cpu_minutes:
            return
    values = {
        "corpus": train,
        "held_out": ",".join(map(str, held_out)),
        "output_dir": run,
        "cpu_minutes": cpu_minutes,
        **recipe,
    }
    command = [sys.executable, PRETRAIN, *(f"--{name}={value}" for name, value in values.items())]
    subprocess.run(command, check=True)
