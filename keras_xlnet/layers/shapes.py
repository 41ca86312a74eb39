"""Checks of the shapes of call arguments, as far as they are known when a graph is made."""

from typing import Any

from keras_xlnet.types import Shape

# What an axis may have: a size, one of several, or any (`None`).
Sizes = int | None | tuple[int | None, ...]


def check_shape(name: str, tensor: Any, *expected: Sizes) -> None:
    """Raises `ValueError` if a call argument cannot have the shape that it needs.

    Args:
        name: String, the name of the argument.
        tensor: Tensor or array; `None`, if it was not given, fits.
        *expected: For each axis its size, or a tuple of the sizes it may have. `None` is any size.
    """
    if tensor is None:
        return
    shape = tuple(tensor.shape)
    axes = [sizes if isinstance(sizes, tuple) else (sizes,) for sizes in expected]
    fits = len(shape) == len(axes) and all(
        size is None or None in sizes or size in sizes
        for size, sizes in zip(shape, axes, strict=True)
    )
    if not fits:
        described = ", ".join(_describe(sizes) for sizes in axes)
        raise ValueError(f"`{name}` must have shape ({described}). Received: shape {shape}")


def _describe(sizes):
    return "any" if None in sizes else " or ".join(map(str, dict.fromkeys(sizes)))


def check_positions(shape: Shape | None) -> Shape:
    """Returns the shape of a `position_encoding`; raises `ValueError` if none was given."""
    if shape is None:
        raise ValueError(
            "`position_encoding` must be given: what `RelativePositionEncoding` returns for the "
            "content and the memory. Received: position_encoding=None"
        )
    return shape
