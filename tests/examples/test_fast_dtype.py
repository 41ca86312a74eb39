import sys

import pytest

from tests.examples import EXAMPLES

sys.path.insert(0, str(EXAMPLES))
import fast_dtype


@pytest.mark.parametrize("bfloat16, chosen", [(1.0, "mixed_bfloat16"), (2.5, "float32")])
def test_the_faster_policy_is_chosen(bfloat16, chosen, monkeypatch):
    seconds = {"float32": 2.0, "bfloat16": bfloat16}
    monkeypatch.setattr(fast_dtype, "product_seconds", seconds.get)
    assert fast_dtype.choose() == chosen
    assert fast_dtype.choose("float32") == "float32"


def test_products_are_measured():
    assert all(fast_dtype.product_seconds(dtype, 2) > 0 for dtype in ("float32", "bfloat16"))
