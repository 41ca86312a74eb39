"""Adapters: directories with the LoRA and the head of a task model, without its backbone."""

import copy
import dataclasses
import math
import pathlib
from collections.abc import Collection, Mapping
from typing import Any

import keras
import numpy as np

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.preset_files.adapter_weights import (
    MATRICES,
    check_not_quantized,
    head_weights,
    is_base,
    lora_by_path,
    lora_matrices,
    set_lora,
)
from keras_xlnet.preset_files.files import file_in, quoted, read_json
from keras_xlnet.preset_files.safetensors_files import SafetensorsFiles
from keras_xlnet.preset_files.shipped import adapter_directory, origin_recorded
from keras_xlnet.preset_files.trusted_config import errors_named, read_config
from keras_xlnet.preset_files.weights import (
    FLOATS,
    WeightMatch,
    assign_matches,
    check_matches,
    model_weights,
)
from keras_xlnet.types import PathLike

CONFIG, WEIGHTS, CARD = "adapter.json", "adapter.safetensors", "README.md"
_SIZES = (
    "vocabulary_size",
    "num_layers",
    "hidden_dim",
    "intermediate_dim",
    "num_heads",
    "head_dim",
)
# Of a model that is made to check an adapter's arguments.
_SMALLEST = dict.fromkeys(_SIZES, 2) | {"vocabulary_size": 16}
_KEYS = {"module", "class_name", "config", "registered_name", "lora", "base"}
#: Of layers: a model that gets an adapter has its own.
OF_LAYERS = {"name", "trainable", "dtype", "quantization", "lora", "trainability"}
#: Attributes that a model takes from an adapter.
TAKEN = ("class_names", "null_threshold", "threshold")
# Those that the outputs do not depend on. All others have to be equal.
_FREE = {*TAKEN, "dropout", "gradient_segments", "scale"}


@dataclasses.dataclass(frozen=True)
class Adapter:
    """An adapter whose config has been checked.

    Args:
        directory: Path of its files.
        config: Serialized model: the class, and the arguments of head, backbone and preprocessor.
        arguments: Dict of the arguments of the model, without its backbone and its preprocessor.
        lora: Dict of rank and scale by the path of the layer.
        base: Dict with the `preset` (a name, or `None`) and the checksums of the backbone.
    """

    directory: pathlib.Path
    config: dict[str, Any]
    arguments: dict[str, Any]
    lora: dict[str, tuple[int, float]]
    base: dict[str, Any]

    @classmethod
    def open(cls, location: PathLike, family: type) -> "Adapter":
        """Reads the config of an adapter.

        Args:
            location: Name of an adapter that comes with the package, or a location as in
                `local_directory`.
            family: Base class of all models that adapters are of.

        Raises:
            FileNotFoundError: If `location` is not an adapter.
            ValueError: If `adapter.json` is damaged, has unknown keys or arguments that the
                classes refuse, or names a class that is not registered.
        """
        directory = adapter_directory(location, (CONFIG, WEIGHTS))
        if not (directory / CONFIG).is_file():
            raise FileNotFoundError(f"{directory} is not an adapter: it has no {CONFIG}")
        file = file_in(directory, CONFIG)
        config = read_config(file, family, family)
        entry = config["config"].get("backbone")
        if not isinstance(entry, dict) or not isinstance(entry.get("config"), dict):
            raise ValueError(f"{file} is damaged: its backbone is {quoted(entry)}")
        content = read_json(file)
        unknown = sorted(content.keys() - _KEYS)
        if unknown:
            raise ValueError(f"{file} has unknown keys, {unknown}. A newer version may have them")
        lora, base = _read_lora(file, content), _read_base(file, content)
        return cls(directory, config, _checked_arguments(file, config), lora, base)

    @property
    def model_class(self) -> Any:
        """The class of the model."""
        return keras.saving.get_registered_object(self.config["registered_name"])

    @property
    def backbone_arguments(self) -> dict[str, Any]:
        """The arguments of the backbone, as configs have them."""
        return without(self.config["config"]["backbone"]["config"], OF_LAYERS)

    @property
    def preprocessor(self) -> dict[str, Any] | None:
        """The config of the preprocessor, `None` if the model had none."""
        return self.config["config"].get("preprocessor")

    def check_class(self, cls: type) -> None:
        """Raises `ValueError` if the adapter is not of `cls` or of a class below it."""
        if not issubclass(self.model_class, cls):
            name = self.model_class.__name__
            raise ValueError(
                f"{self.directory} is an adapter of {name}, not of {cls.__name__}: use {name}, or "
                "`Task.from_preset(adapter=...)`"
            )

    def check_sizes(self, sizes: Mapping[str, Any], owner: str) -> None:
        """Raises `ValueError` if a backbone has other sizes.

        Args:
            sizes: Dict with the sizes of the backbone, such as its config.
            owner: What the error calls the backbone.
        """
        for name in _SIZES:
            expected = self.backbone_arguments.get(name)
            if sizes.get(name) != expected:
                raise ValueError(
                    f"{self.directory} belongs to a backbone with {name}={expected!r}, and "
                    f"{owner} has {name}={sizes.get(name)!r}"
                )

    def load_into(self, model: Any, merge: bool = True) -> None:
        """Loads the adapter, as `Task.load_adapter` describes.

        Args:
            model: A task model.
            merge: Whether the product of the matrices is added to kernels without LoRA. `False`:
                the model gets this LoRA, instead of any that it has.
        """
        self.check_class(type(model))
        sizes = {name: getattr(model.backbone, name) for name in _SIZES}
        self.check_sizes(sizes, "that of this model")
        self._check_arguments(model)
        check_not_quantized(model)
        self._check_base(model.backbone)
        layers = lora_by_path(model.backbone) if merge else {}
        self._check_lora(layers)
        kernels = self._kernels(model.backbone)
        head = [WeightMatch(path, weight, path) for path, weight in head_weights(model).items()]
        matrices = [
            WeightMatch(path, weight, path)
            for path, weight in (
                lora_matrices(layers) if layers else self._expected(kernels)
            ).items()
        ]
        files = SafetensorsFiles([file_in(self.directory, WEIGHTS)], self.directory / WEIGHTS)
        unexpected = sorted(set(files.shapes) - {match.name for match in head + matrices})
        check_matches(head + matrices, files, FLOATS, unexpected)
        assign_matches(head, files)
        if not merge:
            set_lora(model.backbone, self.lora)
            loaded = lora_matrices(lora_by_path(model.backbone))
            matrices = [WeightMatch(path, weight, path) for path, weight in loaded.items()]
        if layers or not merge:
            assign_matches(matrices, files)
        else:
            self._merge(kernels, files)
        for name in self.arguments.keys() & set(TAKEN):
            setattr(model, name, self.arguments[name])
        recorded = origin_recorded(self.directory, files.metadata) or self.base["preset"]
        model.trained_from = recorded or model.trained_from

    def _kernels(self, backbone):
        weights = model_weights(backbone, merge_lora=False)
        missing = [path for path in self.lora if f"{path}/kernel" not in weights]
        if missing:
            raise ValueError(
                f"{self.directory / CONFIG} is damaged: the backbone has no layer {missing[0]!r}"
            )
        return {path: weights[f"{path}/kernel"] for path in self.lora}

    def _expected(self, kernels):
        """The matrices of LoRA of a model without it, with shapes and without values."""
        shapes: dict[str, tuple[int, ...]] = {}
        for path, kernel in kernels.items():
            rank, *_ = self.lora[path]
            both = (*kernel.shape[:-1], rank), (rank, kernel.shape[-1])
            shapes |= {f"{path}/{name}": s for name, s in zip(MATRICES, both, strict=True)}
        return {path: keras.KerasTensor(shape, "float32") for path, shape in shapes.items()}

    def _merge(self, kernels, files):
        for path, kernel in kernels.items():
            rank, alpha = self.lora[path]
            a, b = (files.read(f"{path}/{name}")[...].astype("float32") for name in MATRICES)
            value = np.asarray(keras.ops.convert_to_numpy(kernel), "float32")
            kernel.assign(value + alpha / rank * np.matmul(a, b))

    # === What is refused ===

    def _check_arguments(self, model):
        for name, expected in self.arguments.items():
            found = getattr(model, name, None)
            if name not in _FREE and found != expected:
                raise ValueError(
                    f"{self.directory} is of a model with {name}={expected!r}. Received: a "
                    f"{type(model).__name__} with {name}={found!r}"
                )

    def _check_base(self, backbone):
        if not is_base(self.base, model_weights(backbone, merge_lora=False)):
            preset = self.base["preset"]
            base = f"the preset {preset!r}" if preset else "a backbone"
            raise ValueError(
                f"{self.directory} belongs to {base} with other weights than this model has. They "
                "change when they are trained, and when an adapter is merged into them: load the "
                "preset again"
            )

    def _check_lora(self, layers):
        found = {path: (layer.lora_rank, layer.lora_alpha) for path, layer in layers.items()}
        if found and found != self.lora:
            raise ValueError(
                f"{self.directory} has LoRA of {_named(self.lora)}, and this model of "
                f"{_named(found)}. Enable the same, or load it into a model without LoRA"
            )


def without(config: dict[str, Any], keys: Collection[str]) -> dict[str, Any]:
    """Returns a dict without some of its keys."""
    return {key: value for key, value in config.items() if key not in keys}


def _named(lora):
    ranks = sorted(set(lora.values()))
    text = ", ".join(f"rank {rank} and scale {alpha:g}" for rank, alpha in ranks)
    return f"{text} in {len(lora)} layers ({next(iter(lora))}, ...)"


def _checked_arguments(file, config):
    """The arguments of a model, from one with few weights that is made of the config."""
    for name in _SIZES:
        with errors_named(file):
            check_positive_int(name, config["config"]["backbone"]["config"].get(name))
    config = copy.deepcopy(config)
    config["config"]["backbone"]["config"] |= _SMALLEST
    with errors_named(file):
        model = keras.saving.deserialize_keras_object(config)
    return {name: getattr(model, name) for name in model._arguments if name != "preprocessor"}


def _read_lora(file, content):
    lora = content.get("lora")
    is_valid = isinstance(lora, dict) and lora and all(map(_is_rank_and_scale, lora.values()))
    if not is_valid:
        raise ValueError(f"{file} is damaged: its 'lora' is {quoted(lora)}")
    return {path: (rank, alpha) for path, (rank, alpha) in lora.items()}


def _is_rank_and_scale(value):
    if not isinstance(value, list) or len(value) != 2:
        return False
    rank, alpha = value
    is_number = isinstance(alpha, (int, float)) and 0 < alpha < math.inf
    return isinstance(rank, int) and rank > 0 and is_number and bool not in map(type, value)


def _read_base(file, content):
    base = content.get("base")
    is_valid = (
        isinstance(base, dict)
        and base.keys() <= {"preset", "sha256", "sha256_in_bfloat16"}
        and isinstance(base.get("sha256"), str)
        and isinstance(base.get("preset"), (str, type(None)))
        and isinstance(base.get("sha256_in_bfloat16", []), list)
        and all(isinstance(each, str) for each in base.get("sha256_in_bfloat16", []))
    )
    if not is_valid:
        raise ValueError(f"{file} is damaged: its 'base' is {quoted(base)}")
    return base
