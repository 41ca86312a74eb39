"""From a folder of text to a preset, as its users run it: a process of its own."""

import random
import re
import subprocess
import sys

import pytest

from keras_xlnet.models import XLNetPermutationLM, XLNetTextClassifier
from tests.examples import RESEARCH

WORDS = "the a cat dog house river sees finds leaves old small green and with under".split()


@pytest.mark.slow
def test_folder_to_preset(tmp_path):
    rng = random.Random(0)
    folder = tmp_path / "texts"
    folder.mkdir()
    for source in ("letters", "news"):
        documents = [
            ". ".join(" ".join(rng.choices(WORDS, k=8)).capitalize() for _ in range(40)) + "."
            for _ in range(200)
        ]
        (folder / f"{source}.txt").write_text("\n\n".join(documents))
    recipe = {
        "num_layers": 1, "hidden_dim": 16, "sequence_length": 16, "memory_length": 8,
        "batch_size": 2, "steps_per_epoch": 20, "validation_steps": 2,
    }  # fmt: skip
    command = [
        sys.executable, RESEARCH / "pretraining" / "small_model" / "make_model.py",
        f"--corpus={folder}", f"--output_dir={tmp_path / 'out'}", "--name=tiny",
        "--vocabulary_sizes=52,57", "--vocabulary_cpu_minutes=0.1", "--cpu_minutes=0.1",
        *(f"--recipe={name}={value}" for name, value in recipe.items()),
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stderr[-3000:]
    bits = dict(re.findall(r"(\d+) pieces: ([\d.]+) bits per character", result.stdout))
    best = int(min(bits, key=lambda size: float(bits[size])))
    preset = tmp_path / "out" / "tiny"
    model = XLNetPermutationLM.from_preset(preset)
    assert model.backbone.vocabulary_size == best and len(bits) == 2
    assert "| letters |" in (preset / "README.md").read_text()
    classifier = XLNetTextClassifier.from_preset(preset, num_classes=2, sequence_length=16)
    assert classifier.predict(["the old cat"], verbose=0).shape == (1, 2)
    # Done is done: the second call trains nothing.
    again = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert again.returncode == 0 and "weights," not in again.stdout
