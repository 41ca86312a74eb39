"""Estimates whether training attention fits in the memory of the machine."""

import os
import warnings

import keras

# A training step keeps at least three arrays of the size of the scores: the scores, the
# probabilities and a gradient.
_KEPT_ARRAYS = 3
_BYTES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2}


def training_bytes(backbone: keras.Model, batch_size: int, length: int) -> int:
    """Returns a lower bound of the bytes that the attention scores of a training step need.

    Args:
        backbone: An `XLNetBackbone`, or a model with the same arguments.
        batch_size: Int, the rows of a batch.
        length: Int, tokens of a row.
    """
    rows = min(length, backbone.attention_chunk_size or length)
    # Only one chunk, or one block that is computed again, is in memory at a time.
    is_computed_again = rows < length or backbone.gradient_checkpointing
    layers = 1 if is_computed_again else backbone.num_layers
    context = length + (backbone.memory_length or 0)
    scores = batch_size * backbone.num_heads * rows * context
    return _KEPT_ARRAYS * layers * scores * _BYTES[backbone.dtype_policy.compute_dtype]


def warn_of_attention_memory(backbone: keras.Model, batch_size: int, length: int) -> None:
    """Warns if attention in a training step needs more memory than the machine has.

    Accelerators never trigger the warning: the size of their memory is unknown here.
    """
    if not _computes_on_processor():
        return
    needed, there = training_bytes(backbone, batch_size, length), machine_bytes()
    if there is not None and needed > there:
        warnings.warn(
            f"Attention over {length} tokens in batches of {batch_size} needs at least "
            f"{needed / 2**30:.0f} GiB in training, and this machine has {there / 2**30:.0f} GiB. "
            "Load or create the backbone with `attention_chunk_size=256` and "
            "`gradient_checkpointing=True`, or use smaller batches",
            stacklevel=4,
        )


def _computes_on_processor() -> bool:
    try:
        devices = keras.distribution.list_devices()
    except AttributeError:  # The PyTorch backend does not list its devices.
        return False
    return all(name.startswith("cpu") for name in devices)


def machine_bytes() -> int | None:
    """Returns the bytes of memory of the machine, `None` if the system does not report them."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
