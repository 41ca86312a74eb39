"""The types that annotations share.

Keras and TensorFlow come without type information, so a type checker takes their classes for `Any`.
What a tensor has to be, its shape and its dtype, is in the docstrings.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import keras

if TYPE_CHECKING:
    Tensor: TypeAlias = Any
else:

    @runtime_checkable
    class Tensor(Protocol):
        """A tensor of any Keras backend, a symbolic tensor or an array.

        They have no common class. This one has a name in `help`, where `Any` says nothing.
        """

        shape: Any
        dtype: Any


# Ints, and `None` for a size that differs between calls. Most code computes with sizes that it
# knows to be ints.
Shape: TypeAlias = tuple[Any, ...]
DType: TypeAlias = str | dict[str, Any] | keras.DTypePolicy
PathLike: TypeAlias = str | os.PathLike[str]
Initializer: TypeAlias = str | dict[str, Any] | keras.initializers.Initializer
Activation: TypeAlias = str | Callable[..., Any]


class Tokenizer(Protocol):
    """Converts strings to ids and back, such as an `XLNetTokenizer`."""

    def __call__(self, inputs: Any) -> Any: ...

    def decode(self, ids: Any) -> Any: ...
