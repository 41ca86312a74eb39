"""The example of the language model: trains, is killed and continues, continues a prompt."""

import functools
import json

import pytest

from tests.examples import fork_example

SMALL = (
    "--num_layers=1 --hidden_dim=16 --num_heads=2 --intermediate_dim=16 --sequence_length=8 "
    "--memory_length=8 --batch_size=4 --steps=6 --epochs=2 --num_new_tokens=5 --memory_curve=0,8"
).split()
TEXT = "the cat sat on the mat\nthe dog ran to the cat\n" * 30


run = functools.partial(fork_example, "language_model")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "mine.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "unit, more",
    [
        ("character", []),
        pytest.param("word", [], marks=pytest.mark.slow),
        pytest.param("piece", ["--vocabulary_size=30"], marks=pytest.mark.slow),
    ],
)
def test_trains_and_continues_a_prompt(unit, more, text, tmp_path):
    result = run(f"--text={text}", f"--unit={unit}", f"--output_dir={tmp_path}", *SMALL, *more)
    assert result.returncode == 0, result.stderr
    metrics = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))
    assert set(metrics["held_out_loss_by_memory"]) == {"0", "8"}
    assert (tmp_path / "samples.txt").read_text(encoding="utf-8").count("--- after epoch") == 2
    assert (tmp_path / "memory.png").stat().st_size > 5000
    again = run(f"--load={tmp_path}", "--prompt=the cat", "--num_new_tokens=4")
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("the cat")


def test_problems_are_one_line(tmp_path):
    result = run(f"--text={tmp_path}/none.txt")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("language_model.py: --text: no file matches")
