"""The "New York" example: blanks that are filled together fit together."""

import functools
import re

import pytest

from tests.research import fork_research

run = functools.partial(fork_research, "language_models/fill_together")


def test_fills_the_given_sentence_and_draws_it(tmp_path):
    text = "--text=New <mask> is a <mask>"
    result = run("--steps=3", "--num_results=2", text, f"--output_dir={tmp_path}")
    assert result.returncode == 0, result.stderr
    fillings = re.findall(r"% +(New \w+ is a \w+)", result.stdout)
    assert len(fillings) == 4
    assert (tmp_path / "fillings.png").stat().st_size > 5000


@pytest.mark.slow
def test_a_sentence_without_blanks_is_refused(tmp_path):
    result = run("--steps=1", "--text=New York is a city", f"--output_dir={tmp_path}")
    assert result.returncode == 1
    assert "must have blanks" in result.stderr.splitlines()[-1]


@pytest.mark.slow
def test_only_what_is_filled_together_is_true(tmp_path):
    result = run(f"--output_dir={tmp_path}")
    assert "\ntogether: 10 of 10 are in the text" in result.stdout
    alone = re.search(r"each on its own: (\d+) of 10", result.stdout)
    assert int(alone[1]) <= 3
