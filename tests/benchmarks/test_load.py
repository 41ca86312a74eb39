"""A minute of load: no wrong answers, no crashes, and memory that does not grow."""

import pytest

from benchmarks.load import Load


@pytest.mark.slow
def test_a_minute_of_load(tmp_path):
    found = Load(tmp_path, seconds=60, seed=1).run()
    assert (found["wrong"], found["crashes"]) == (0, 0), found
    assert found["kills"] == 1 and found["versions"] >= 3
    assert min(found[name] for name in ("answers", "refused", "garbage", "disconnects")) > 10
    after_warmup, at_the_end = found["rss_mb"]
    assert at_the_end < 1.25 * after_warmup
