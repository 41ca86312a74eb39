"""The "New York" example: blanks that are filled together fit together."""

import functools
import re

from tests.research import fork_research

run = functools.partial(fork_research, "language_models/fill_together")


def test_fills_the_given_sentence_and_draws_it(tmp_path):
    picture = tmp_path / "fillings.png"
    result = run("--steps=3", "--text=New <mask> is a <mask>", f"--picture={picture}")
    assert result.returncode == 0, result.stderr[-3000:]
    assert len(re.findall(r"% +(New \w+ is a \w+)", result.stdout)) == 20
    assert picture.stat().st_size > 5000


def test_only_what_is_filled_together_is_true(tmp_path):
    result = run(f"--picture={tmp_path / 'fillings.png'}")
    assert "\ntogether: 10 of 10 are in the text" in result.stdout
    alone = re.search(r"each on its own: (\d+) of 10", result.stdout)
    assert int(alone[1]) <= 3
