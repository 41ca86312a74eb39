import gc
import weakref

import pytest

from keras_xlnet.compat.quick_deletion import quick_deletion
from keras_xlnet.models import XLNetBackbone


@pytest.fixture
def unfrozen():
    gc.unfreeze()
    yield
    gc.freeze()


class Node:
    """An object that only the garbage collector can free."""

    def __init__(self):
        self.itself = self


def test_only_what_was_made_inside_is_collected(unfrozen):
    before = weakref.ref(Node())
    with quick_deletion():
        inside = weakref.ref(Node())
        gc.collect()
        assert inside() is None and before() is not None
    gc.collect()
    assert before() is None and gc.get_freeze_count() == 0


def test_ends_with_an_error(unfrozen):
    with pytest.raises(KeyError), quick_deletion():
        raise KeyError
    assert gc.get_freeze_count() == 0


def test_objects_that_the_caller_has_frozen_stay_so(unfrozen):
    gc.freeze()
    with quick_deletion():
        pass
    assert gc.get_freeze_count() > 0


def test_quantizing_frees_the_old_weights_at_once(unfrozen):
    model = XLNetBackbone(20, 1, 2, 8, 16)
    kernels = [weakref.ref(block.attention.query_dense.kernel) for block in model.blocks]
    gc.disable()
    try:
        model.quantize("int8")
        assert [kernel() for kernel in kernels] == [None]
    finally:
        gc.enable()
