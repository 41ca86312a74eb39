import pytest

from keras_xlnet.training import dtypes, fastest_dtype


@pytest.mark.parametrize("bfloat16, chosen", [(1.0, "mixed_bfloat16"), (2.5, "float32")])
def test_the_faster_policy_is_chosen(bfloat16, chosen, monkeypatch):
    seconds = {"float32": 2.0, "bfloat16": bfloat16}
    monkeypatch.setattr(dtypes, "product_seconds", seconds.get)
    assert fastest_dtype() == chosen


def test_products_are_measured():
    assert all(dtypes.product_seconds(dtype, 2) > 0 for dtype in ("float32", "bfloat16"))
