"""Vectors with a byte or a bit for each number.

    int8    c = floor((v - low) / step) - 128,   step = (high - low) / 255
            v ~ low + (c + 128 + 1/2) step
    binary  c = 1 if v > 0, otherwise 0,         eight numbers in a byte
            v ~ (2 c - 1) / sqrt(dim)

`low` and `high` are the ranges of the numbers at each place of the vectors. `uint8` and `ubinary`
are the same codes without the offset of 128. Vectors are NumPy arrays, as in `vector_search`.

Source: `quantize_embeddings` of sentence-transformers, whose codes are equal; Shakir et al. 2024,
"Binary and scalar embedding quantization".
"""

import numpy as np

from keras_xlnet.arguments import check_choice

PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")
_STEPS = 255


def quantize_embeddings(
    vectors: np.ndarray, precision: str, ranges: np.ndarray | None = None
) -> np.ndarray:
    """Returns vectors with fewer bits.

    Args:
        vectors: Float array `(rows, dim)`.
        precision: `"float32"`, `"int8"`, `"uint8"`, `"binary"` or `"ubinary"`.
        ranges: Float array `(2, dim)`, the smallest and largest number at each place, for int8 and
            uint8. Larger and smaller numbers are clipped. `None`: those of `vectors`.

    Returns:
        Array of float32, int8 or uint8 `(rows, dim)`; `(rows, ceil(dim / 8))` for bits.

    Raises:
        ValueError: If `precision` or `ranges` is not as above, or a single vector has no `ranges`.

    Example:

    >>> vectors = np.array([[0.0, 0.0], [255.0, 510.0]], "float32")
    >>> keras_xlnet.ops.quantize_embeddings(vectors, "int8")
    array([[-128, -128],
           [ 127,  127]], dtype=int8)
    >>> keras_xlnet.ops.quantize_embeddings(vectors, "ubinary")
    array([[  0],
           [192]], dtype=uint8)
    """
    check_choice("precision", precision, PRECISIONS)
    if precision == "float32":
        return vectors.astype("float32")
    if precision.endswith("binary"):
        codes = np.packbits(vectors > 0, axis=-1)
    else:
        if ranges is None and len(vectors) < 2:
            raise ValueError(
                f"`precision={precision!r}` needs `ranges` for a single vector: the smallest and "
                "largest numbers of the vectors of a collection"
            )
        ranges = np.stack([vectors.min(axis=0), vectors.max(axis=0)]) if ranges is None else ranges
        low, step = _low_and_step(ranges, vectors.shape[-1])
        codes = np.clip(np.floor((vectors - low) / step), 0, _STEPS).astype("uint8")
    return codes if precision.startswith("u") else (codes.astype("int16") - 128).astype("int8")


def dequantize_embeddings(
    codes: np.ndarray, dim: int, ranges: np.ndarray | None = None
) -> np.ndarray:
    """Returns the vectors, about the same, that `quantize_embeddings` made codes of.

    Args:
        codes: Int8 or uint8 array `(rows, dim)`, or `(rows, ceil(dim / 8))` of bits.
        dim: Int, the numbers of a vector.
        ranges: Float array `(2, dim)`, those that `codes` were made with. Bits need none.

    Returns:
        Float32 array `(rows, dim)`.

    Raises:
        ValueError: If the shape of `codes` or `ranges` is not as above.
    """
    unsigned = codes if codes.dtype == np.uint8 else (codes.astype("int16") + 128).astype("uint8")
    if codes.shape[-1] == -(-dim // 8) < dim:
        bits = np.unpackbits(unsigned, axis=-1, count=dim)
        return (2 * bits.astype("float32") - 1) / np.float32(np.sqrt(dim))
    if codes.shape[-1] != dim:
        raise ValueError(
            f"Quantized vectors must have shape (texts, {dim}), or (texts, {-(-dim // 8)}) of "
            f"bits. Received: shape {codes.shape}"
        )
    if ranges is None:
        raise ValueError("Vectors of int8 and uint8 need the `ranges` that they were made with")
    low, step = _low_and_step(ranges, dim)
    # The middle of each step.
    return low + (unsigned.astype("float32") + np.float32(0.5)) * step


def _low_and_step(ranges, dim):
    ranges = np.asarray(ranges, "float32")
    if ranges.shape != (2, dim):
        raise ValueError(
            f"`ranges` must have shape (2, {dim}), the smallest and largest number at each place. "
            f"Received: shape {ranges.shape}"
        )
    low, high = ranges
    step = (high - low) / _STEPS
    return low, np.where(step == 0, np.float32(1), step)
