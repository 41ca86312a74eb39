"""Writes adapters: the LoRA and the head of a task model, without its backbone."""

import math
import pathlib
from typing import Any

import keras

from keras_xlnet.arguments import check_choice
from keras_xlnet.preset_files.adapter import CARD, CONFIG, OF_LAYERS, WEIGHTS, without
from keras_xlnet.preset_files.adapter_weights import (
    check_not_quantized,
    check_only_lora_trains,
    describe_base,
    head_weights,
    lora_by_path,
    lora_matrices,
)
from keras_xlnet.preset_files.files import replace_files, write_json
from keras_xlnet.preset_files.model_card import check_card, format_adapter_card
from keras_xlnet.preset_files.trusted_config import trusted
from keras_xlnet.preset_files.weights import model_weights, write_weights
from keras_xlnet.types import PathLike


def save_adapter(
    model: Any,
    directory: PathLike,
    dtype: str | None = "float16",
    card: dict[str, Any] | None = None,
) -> None:
    """Writes the LoRA and the head of a model, as `Task.save_adapter` describes."""
    check_choice("dtype", dtype, (None, "float16", "bfloat16", "float32"))
    check_card(card)
    check_not_quantized(model)
    layers = lora_by_path(model.backbone)
    if not layers:
        raise ValueError(
            f"This {type(model).__name__} has no LoRA to save. Call `enable_lora(rank)` before the "
            "training"
        )
    check_only_lora_trains(model)
    weights = model_weights(model.backbone, merge_lora=False)
    base = describe_base(weights)
    lora = {path: [layer.lora_rank, layer.lora_alpha] for path, layer in layers.items()}
    config = {**_config(model), "lora": lora, "base": base}
    weights = {**head_weights(model), **lora_matrices(layers)}
    directory = pathlib.Path(directory)
    # As of a preset: a card that somebody may have edited stays, unless another one is given.
    writes_card = card is not None or not (directory / CARD).exists()
    with replace_files(directory, [CONFIG, WEIGHTS] + [CARD] * writes_card) as folder:
        write_json(folder / CONFIG, config)
        write_weights(weights, folder / WEIGHTS, dtype, model.trained_from)
        if writes_card:
            name, sizes = directory.resolve().name, _sizes_of_card(layers, weights)
            text = format_adapter_card(model, name, sizes, base["preset"], card)
            (folder / CARD).write_text(text, encoding="utf-8")


def _config(model):
    """The config of a model without what was changed in its layers, to be made again."""
    config = trusted(keras.saving.serialize_keras_object(model), type(model).__name__)
    backbone = config["config"]["backbone"]
    backbone["config"] = without(backbone["config"], OF_LAYERS)
    config["config"] = without(config["config"], OF_LAYERS)
    return config


def _sizes_of_card(layers, weights):
    ranks = sorted({layer.lora_rank for layer in layers.values()})
    return {
        "weights": f"{sum(math.prod(weight.shape) for weight in weights.values()):,}",
        "rank of LoRA": ", ".join(map(str, ranks)),
        "layers with LoRA": len(layers),
    }
