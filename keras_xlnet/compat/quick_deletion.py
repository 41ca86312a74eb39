"""Deletes weights without searching the whole process for garbage each time.

Upstream: `del layer.kernel` ends with `gc.collect()`, which looks at every object of the process:
0.3 seconds after importing TensorFlow, more in a notebook. Quantizing deletes a weight of each
layer, and so does loading a quantized model.
Without it: `python -m benchmarks.workarounds quick_deletion` (6 layers of width 256) takes 13 s of
a processor to quantize instead of 0.4, and 15 to 17 s to load instead of 1.8 to 2.3.
Reproduction: docs/upstream.md, "Quantizing collects garbage".
Delete this file when: deleting a weight collects no garbage.
"""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def quick_deletion() -> Iterator[None]:
    """A context in which `gc.collect` looks only at objects that were created in it.

    It does nothing in a process that uses `gc.freeze` itself.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
