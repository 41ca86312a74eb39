"""The weights of adapters: LoRA, heads, and the checksums of the backbones that they belong to."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import ml_dtypes
import numpy as np

from keras_xlnet.preset_files import shipped
from keras_xlnet.preset_files.safetensors_files import SafetensorsFiles
from keras_xlnet.preset_files.shipped import presets, shipped_directory
from keras_xlnet.preset_files.weights import layers_with_lora, model_weights

_LITTLE_ENDIAN = {"float16": "<f2", "bfloat16": ml_dtypes.bfloat16}
#: The names of the matrices of a layer with LoRA.
MATRICES = ("lora_kernel_a", "lora_kernel_b")


def lora_by_path(backbone: Any) -> dict[str, Any]:
    """Returns `{path: layer}` of the layers with LoRA."""
    return _layers_by_path(backbone, layers_with_lora(backbone))


def set_lora(backbone: Any, lora: Mapping[str, tuple[int, float]]) -> None:
    """Freezes a backbone and gives it LoRA: new matrices, unless it has the same LoRA already.

    Args:
        backbone: A backbone that is not quantized.
        lora: Dict of rank and scale by the path of the layer.
    """
    layers = lora_by_path(backbone)
    if {path: (layer.lora_rank, layer.lora_alpha) for path, layer in layers.items()} == lora:
        return
    for layer in layers.values():
        layer.disable_lora()
    for weight in backbone.weights:
        weight.trainable = False
    layers = _layers_by_path(backbone, backbone._flatten_layers())
    for path, (rank, alpha) in lora.items():
        layers[path].enable_lora(rank, lora_alpha=alpha)


def _layers_by_path(backbone, layers):
    paths = {id(v): path for path, v in model_weights(backbone, merge_lora=False).items()}
    kernels = {
        paths[id(variable)]: layer
        for layer in layers
        for variable in layer._trainable_variables
        if variable.name == "kernel"
    }
    return {
        path.removesuffix("/kernel"): kernels[path] for path in paths.values() if path in kernels
    }


def lora_matrices(layers: dict[str, Any]) -> dict[str, keras.Variable]:
    """Returns `{path: variable}` of the matrices of layers with LoRA."""
    return {
        f"{path}/{name}": getattr(layer, name)
        for path, layer in layers.items()
        for name in MATRICES
    }


def head_weights(model: Any) -> dict[str, keras.Variable]:
    """Returns `{path: weight}` of what a model has besides its backbone."""
    of_backbone = {id(weight) for weight in model.backbone.weights}
    weights = model_weights(model, merge_lora=False)
    return {path: weight for path, weight in weights.items() if id(weight) not in of_backbone}


def check_not_quantized(model: Any) -> None:
    """Raises `ValueError` if a model is quantized."""
    if any(getattr(layer, "quantization_mode", None) for layer in model._flatten_layers()):
        raise ValueError("Adapters are saved and loaded before `quantize`. This model is quantized")


def check_only_lora_trains(model: Any) -> None:
    """Raises `ValueError` if trained weights of a model would not be part of an adapter."""
    trained = {id(weight) for weight in model.trainable_variables}
    weights = model_weights(model.backbone, merge_lora=False)
    others = [path for path, weight in weights.items() if id(weight) in trained]
    if others:
        raise ValueError(
            "An adapter has no weights of the backbone besides LoRA, but some are trainable: "
            f"{others[:3]}. Call `enable_lora` of the model, which freezes them, before the "
            "training"
        )
    of_backbone = {id(layer) for layer in layers_with_lora(model.backbone)}
    others = [layer.path for layer in layers_with_lora(model) if id(layer) not in of_backbone]
    if others:
        raise ValueError(
            "An adapter has the weights of the head as they are, without LoRA. Received: LoRA in "
            f"{others}"
        )


# === The base ===


def describe_base(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the checksums by which `is_base` knows weights, rounded or not, and their `preset`.

    The preset is the one of the package that has these weights, or `None`. The origin that a model
    records does not tell: its weights may have been trained since.
    """
    sha256 = sha256_of_weights(weights)
    shapes = {path: tuple(weight.shape) for path, weight in weights.items()}
    names = (name for name in presets() if _is_preset(name, shapes, sha256))
    rounded = [("bfloat16",), ("float16", "bfloat16")]  # By a model, and by a preset before.
    return {
        "preset": next(names, None),
        "sha256": sha256,
        "sha256_in_bfloat16": [sha256_of_weights(weights, dtypes) for dtypes in rounded],
    }


def is_base(base: Mapping[str, Any], weights: Mapping[str, Any]) -> bool:
    """Returns whether weights of a model are those that an adapter was trained on.

    Args:
        base: Dict of `describe_base`.
        weights: Dict of variables by path. Those of a model in bfloat16 are rounded.
    """
    if any(keras.backend.standardize_dtype(w.dtype) == "bfloat16" for w in weights.values()):
        return sha256_of_weights(weights, ("bfloat16",)) in base.get("sha256_in_bfloat16", ())
    return sha256_of_weights(weights) == base["sha256"]


def sha256_of_weights(weights: Mapping[str, Any], dtypes: Sequence[str] = ("float16",)) -> str:
    """Returns the SHA-256 of weights as float16, which a preset may store them in.

    Args:
        weights: Dict of arrays or variables by path.
        dtypes: Names of the dtypes that the weights are rounded to, one after another.
    """
    digest = hashlib.sha256()
    for path in sorted(weights):
        array = np.asarray(keras.ops.convert_to_numpy(weights[path]), "float32")
        with np.errstate(over="ignore"):
            for dtype in dtypes:
                array = array.astype(_LITTLE_ENDIAN[dtype])
        digest.update(f"{path} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _is_preset(name, shapes, sha256):
    # Checking all files of a preset takes longer than reading the shapes in one.
    file = shipped.FOLDER / name / "model.safetensors"
    files = SafetensorsFiles([file], file)
    if any(files.shapes.get(path) != shape for path, shape in shapes.items()):
        return False
    if sha256_of_weights({path: files.read(path)[...] for path in shapes}) != sha256:
        return False
    return shipped_directory(name) is not None
