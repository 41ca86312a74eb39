import json
import sys

import pytest

from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM
from tests.examples import RESEARCH

sys.path.insert(0, str(RESEARCH / "pretraining" / "small_model"))
from model_card import write_card


@pytest.fixture
def run(tmp_path):
    """What run_pretraining.py writes of a run."""
    folder = tmp_path / "run"
    folder.mkdir()
    flags = {
        "num_layers": 1, "batch_size": 4, "sequence_length": 16, "predicted_share": 0.25,
        "corpus": ["/home/ruth/secret.txt"], "seed": 0, "checkpoint": None,
    }  # fmt: skip
    metrics = {"flags": flags, "tokens": 20_000, "bits_per_character": {"news": 2.5, "books": 2.25}}
    (folder / "metrics.json").write_text(json.dumps(metrics))
    (folder / "budget.json").write_text(json.dumps({"cpu_minutes": 90.0, "steps": 100_000}))
    (folder / "curves.png").write_bytes(b"picture")
    return folder


def test_card_tells_what_was_run(run, tmp_path):
    model = XLNetPermutationLM(XLNetBackbone(50, 1, 2, 8, 16))
    notes = tmp_path / "notes.md"
    notes.write_text("## Data\n\nMine.\n")
    preset = tmp_path / "preset"
    preset.mkdir()
    figures = write_card(preset, "tiny_en", model, run, num_words=10_000, notes=notes)
    card = (preset / "README.md").read_text()
    assert card.startswith("# tiny_en\n") and card.endswith("## Data\n\nMine.\n")
    assert 'XLNetTextClassifier.from_preset("tiny_en", num_classes=2)' in card
    assert f"{model.count_params():,}: 1 layers of width 8, 2 heads, 50 pieces" in card
    assert "100,000 steps of 4 rows of 16 tokens: 6,400,000 tokens" in card
    assert (
        "1.5 hours" in card
        and "10,000 words, 20,000 tokens" in card
        and "25% of their tokens" in card
    )
    assert "| news | 2.500 |\n| books | 2.250 |" in card
    assert "--num_layers=1 \\\n        --sequence_length=16" in card
    assert "ruth" not in card and "None" not in card
    assert (preset / "curves.png").read_bytes() == b"picture"
    assert figures == {
        "words read": 3_200_000,
        "bits per character, news": 2.5,
        "bits per character, books": 2.25,
    }
