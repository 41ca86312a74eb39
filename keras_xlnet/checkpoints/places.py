"""Which variable of ours stands where in a checkpoint of another implementation."""

import dataclasses
import re
import typing
import warnings

import numpy as np
from keras import ops

from keras_xlnet.presets import assign_in_blocks


@dataclasses.dataclass(frozen=True)
class Place:
    """One weight, here and in the checkpoint.

    Args:
        name: Its name in the checkpoint.
        variable: Our variable.
        axes: How to transpose theirs into ours, as in `numpy.transpose`. `None`: the same.
        layer: The index in theirs, if that is one variable of all layers.
        num_layers: How many layers that variable has to have.
    """

    name: str
    variable: typing.Any
    axes: tuple | None = None
    layer: int | None = None
    num_layers: int | None = None

    @property
    def shape(self):
        """Shape of theirs, all layers of it."""
        shape = tuple(self.variable.shape)
        if self.axes is not None:
            shape = tuple(shape[i] for i in np.argsort(self.axes))
        return shape if self.layer is None else (self.num_layers, *shape)

    def to_ours(self, value):
        """Our value, from the whole of theirs."""
        value = value if self.layer is None else value[self.layer]
        return value if self.axes is None else np.transpose(value, self.axes)

    def to_theirs(self):
        """Their value (of this layer) as a float32 array, from ours."""
        dtype = str(self.variable.dtype)
        if "float" not in dtype:
            raise ValueError(
                f"`model` is quantized: {self.name!r} would be of dtype {dtype}. Save the model "
                "as it was before `quantize`"
            )
        value = ops.convert_to_numpy(ops.cast(self.variable, "float32"))
        if self.axes is not None:
            value = np.transpose(value, np.argsort(self.axes))
        # safetensors writes the memory of an array as it lies there.
        return np.ascontiguousarray(value)


@dataclasses.dataclass(frozen=True)
class OpenCheckpoint:
    """A checkpoint, and the model that it is to fill.

    Args:
        model: The model, with initial weights.
        files: An object with `shapes` and `dtypes` (dicts by name), `read(name)`, `file_of(name)`
            and `declared_dtype`, that calls itself what an error is to call it.
        backbone_places: `Place`s of all that must be there.
        head_places: `Place`s of what may be missing.
        layer_pattern: Regular expression of the names of what is in a layer.
    """

    model: typing.Any
    files: typing.Any
    backbone_places: list
    head_places: list
    layer_pattern: str

    def fill(self):
        """Returns the model with the weights of the checkpoint, after all of it has been checked.

        One weight is read at a time, so that a model needs little more memory than its weights.

        Raises:
            ValueError: If a weight is missing, or of another shape or dtype, or there are more
                layers than the configuration says.
        """
        missing = self.missing_of_backbone()
        if missing:
            names = {place.name for place in self.backbone_places}
            others = ", ".join(map(repr, sorted(self.files.shapes)[:3]))
            raise ValueError(
                f"{self.files} lacks {len(missing)} of the {len(names)} weights of the encoder, "
                f"the first of them {missing[0]!r}. It has, for example, {others or 'nothing'}"
            )
        self._refuse_other_layers()
        missing = self.missing_of_head()
        places = [p for p in (*self.backbone_places, *self.head_places) if p.name not in missing]
        for place in places:
            _check(place, self.files)
        if missing:
            warnings.warn(
                f"{self.files} has no fine-tuned {', '.join(map(repr, missing))}: these weights of "
                "the model start from their initial values",
                stacklevel=3,
            )
        for place in places:
            assign_in_blocks(place.variable, place.to_ours(self.files.read(place.name)))
        return self.model

    def missing_of_backbone(self):
        """Names of weights of the encoder that the checkpoint does not have."""
        return self._missing(self.backbone_places)

    def missing_of_head(self):
        """Names of weights beside those of the encoder that the checkpoint does not have."""
        return self._missing(self.head_places)

    def unused(self):
        """Names of what the checkpoint has and the model does not take."""
        known = {place.name for place in (*self.backbone_places, *self.head_places)}
        return sorted(set(self.files.shapes) - known)

    def _missing(self, places):
        return list(dict.fromkeys(p.name for p in places if p.name not in self.files.shapes))

    def _refuse_other_layers(self):
        known = {place.name for place in self.backbone_places}
        for name in self.unused():
            # What an optimizer keeps about a weight is named below it.
            is_slot = any(above in known for above in _above(name))
            if re.match(self.layer_pattern, name) and not is_slot:
                raise ValueError(
                    f"{self.files.file_of(name)} contradicts its configuration, which has no place "
                    f"for {name!r}"
                )


def values_of(places):
    """Their values by name, those of all layers stacked, from our variables."""
    values = {}
    for place in places:
        if place.layer is None:
            values[place.name] = place.to_theirs()
        else:
            values.setdefault(place.name, []).append(place.to_theirs())
    return {
        name: np.stack(value) if isinstance(value, list) else value
        for name, value in values.items()
    }


def _above(name):
    parts = name.split("/")
    return ["/".join(parts[:i]) for i in range(1, len(parts))]


def _check(place, files):
    what = f"{place.name!r} in {files.file_of(place.name)}"
    shape, dtype = tuple(files.shapes[place.name]), files.dtypes[place.name]
    if place.layer is not None and shape[:1] != (place.num_layers,):
        raise ValueError(
            f"{what} is of {shape[0] if shape else 'no'} layers, but the configuration says "
            f"{place.num_layers}"
        )
    if shape != place.shape:
        raise ValueError(f"{what} has shape {shape}, but the configuration makes it {place.shape}")
    # A checkpoint of half precision has to say so in its configuration, or be asked for.
    expected = {"float32", str(place.variable.dtype), files.declared_dtype} - {None}
    if dtype not in expected:
        hint = f"; pass dtype={dtype!r} for such a model" if "float" in dtype else ""
        raise ValueError(f"{what} is of dtype {dtype}, not {' or '.join(sorted(expected))}{hint}")
