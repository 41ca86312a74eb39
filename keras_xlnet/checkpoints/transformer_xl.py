"""Transformer-XL: `transfo-xl` directories of transformers, the authors' TensorFlow checkpoints."""

import re
from typing import Any

import keras

from keras_xlnet.checkpoints.family import Family
from keras_xlnet.checkpoints.huggingface_config import check_only, check_required
from keras_xlnet.checkpoints.opening import OpenCheckpoint, check_size
from keras_xlnet.checkpoints.transformer_xl_weights import transformer_xl_rows
from keras_xlnet.checkpoints.weight_mapping import layer_prefixes, match_weights
from keras_xlnet.models import TransformerXLLanguageModel
from keras_xlnet.preset_files.weights import WeightMatch, model_weights
from keras_xlnet.types import PathLike

MODEL_TYPE = "transfo-xl"
_FIXED = {
    "vocab_size": "vocabulary_size",
    "n_layer": "num_layers",
    "n_head": "num_heads",
    "d_model": "hidden_dim",
    "d_inner": "intermediate_dim",
    "d_head": "head_dim",
    "d_embed": "embedding_dim",
    "cutoffs": "cutoffs",
    "div_val": "div_val",
}
_DEFAULTS = {
    "dropout": "dropout",
    "dropatt": "attention_dropout",
    "mem_len": "memory_length",
    "same_length": "same_length",
    "layer_norm_epsilon": "layer_norm_epsilon",
}
# Defaults of `TransfoXLConfig` that differ from ours.
_THEIR_DEFAULTS = {"mem_len": 1600, "clamp_len": 1000, "same_length": True, "dropatt": 0.0}
_SUPPORTED = {"attn_type": 0, "sample_softmax": -1, "adaptive": True}
_TYPES: dict[str, Any] = {
    **dict.fromkeys(_FIXED, int),
    **dict.fromkeys(("mem_len", "clamp_len", "attn_type", "sample_softmax"), int),
    **dict.fromkeys(("cutoffs", "tie_projs"), list),
    **dict.fromkeys(("dropout", "dropatt", "layer_norm_epsilon", "init_std"), (int, float)),
    **dict.fromkeys(("untie_r", "pre_lnorm", "same_length", "tie_word_embeddings"), bool),
}


# === Hugging Face ===


def arguments_of_config(
    config: dict[str, Any], file: PathLike
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the arguments of the model that `config.json` fixes, and those that it suggests.

    Raises:
        ValueError: If an entry is missing or invalid, or the model is not supported.
    """
    config = _THEIR_DEFAULTS | config
    for key, kind in _TYPES.items():
        if key in config and not isinstance(config[key], kind):
            raise ValueError(f"{file} has `{key}` {config[key]!r}")
    check_required(config, _FIXED, file)
    check_only(config, _SUPPORTED, file)
    fixed = {ours: config[theirs] for theirs, ours in _FIXED.items()}
    fixed["tie_attention_biases"] = not config.get("untie_r", True)
    fixed["normalize_first"] = config.get("pre_lnorm", False)
    fixed["tie_embeddings"] = config.get("tie_word_embeddings", True)
    fixed["tie_projections"] = _tied_projections(config)
    defaults = {ours: config[theirs] for theirs, ours in _DEFAULTS.items() if theirs in config}
    clamp_length = config.get("clamp_len", -1)
    defaults["clamp_length"] = clamp_length if clamp_length > 0 else None
    defaults["attend_to_empty_memory"] = bool(defaults.get("memory_length"))
    deviation = config.get("init_std", 0.02)
    defaults["kernel_initializer"] = keras.initializers.RandomNormal(stddev=deviation)
    return fixed, defaults


def _tied_projections(config):
    """A bool for each cluster. Files may have more entries, or none."""
    num_clusters = len(config["cutoffs"]) + 1
    share_others = config.get("proj_share_all_but_first", True)
    entries = config.get("tie_projs") or [False] + [share_others] * (num_clusters - 1)
    entries = [bool(entry) for entry in entries[:num_clusters]]
    return entries + [False] * (num_clusters - len(entries))


def config_of(model: keras.Model) -> dict[str, Any]:
    """Returns the entries of `config.json` for a `TransformerXLLanguageModel`.

    Raises:
        ValueError: If transformers has no model that computes the same.
    """
    activation = getattr(model.activation, "__name__", None)
    if activation != "relu":
        raise ValueError(
            "transformers' TransfoXL has the activation relu. Received: a model with "
            f"{activation!r}"
        )
    same_length = model.same_length
    if not isinstance(same_length, bool) and same_length != model.memory_length:
        raise ValueError(
            "transformers' TransfoXL with `same_length` attends to `memory_length` tokens. "
            f"Received: same_length={same_length}, memory_length={model.memory_length}"
        )
    return {
        "architectures": ["TransfoXLLMHeadModel"],
        "model_type": MODEL_TYPE,
        **{theirs: getattr(model, ours) for theirs, ours in (_FIXED | _DEFAULTS).items()},
        "cutoffs": list(model.cutoffs),
        "mem_len": model.memory_length or 0,
        "same_length": bool(same_length),
        "clamp_len": model.clamp_length or -1,
        "untie_r": not model.tie_attention_biases,
        "pre_lnorm": model.normalize_first,
        "tie_word_embeddings": model.tie_embeddings,
        "tie_projs": list(model.tie_projections),
        "proj_share_all_but_first": False,
        **_SUPPORTED,
        "dtype": "float32",
    }


# === The authors' TensorFlow checkpoints ===


def arguments_of_variables(files: Any) -> dict[str, Any]:
    """Returns the arguments of the model that follow from the shapes of TensorFlow variables.

    Args:
        files: An `OriginalCheckpoint`.

    Returns:
        A dict. `same_length`, `clamp_length`, `memory_length` and the activation were flags of the
        authors' scripts: they are not in the files.

    Raises:
        ValueError: If a variable is missing.
    """
    shapes = files.shapes
    try:
        sizes = _cluster_sizes(shapes)
        hidden_dim, width = shapes["transformer/layer_0/rel_attn/r/kernel"]
        *layers, num_heads, head_dim = shapes["transformer/r_w_bias"]
        num_layers = 1 + max(
            int(match[1])
            for match in (re.match(r"transformer/layer_(\d+)/", name) for name in shapes)
            if match
        )
        is_divided = "transformer/adaptive_embed/cutoff_0/lookup_table" in shapes
        scope = "transformer/adaptive_embed/" + ("cutoff_{}/" if is_divided else "")
        widths = [
            shapes[scope.format(i) + "lookup_table"][1]
            for i in range(len(sizes) if is_divided else 1)
        ]
        intermediate_dim = shapes["transformer/layer_0/ff/layer_1/kernel"][1]
    except KeyError as error:
        raise ValueError(f"{files} has no variable {error}") from error
    return {
        "vocabulary_size": sum(sizes),
        "num_layers": num_layers,
        "num_heads": num_heads,
        "head_dim": head_dim,
        "hidden_dim": hidden_dim,
        "intermediate_dim": intermediate_dim,
        "embedding_dim": widths[0],
        "cutoffs": [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)],
        "div_val": widths[0] // widths[1] if is_divided else 1,
        "tie_attention_biases": not layers,
        "tie_embeddings": True,
        "tie_projections": _tied_in_original(shapes, sizes, widths, hidden_dim),
        "layer_norm_epsilon": 1e-12,
    }


def _cluster_sizes(shapes):
    """The number of tokens of each cluster."""
    scope = "transformer/adaptive_softmax/"
    if f"{scope}bias" in shapes:
        return [shapes[f"{scope}bias"][0]]
    biases = [name for name in shapes if re.fullmatch(rf"{scope}cutoff_\d+/b", name)]
    return [shapes[f"{scope}cutoff_{i}/b"][0] for i in range(max(1, len(biases)))]


def _tied_in_original(shapes, sizes, widths, hidden_dim):
    """Whether each cluster shares the projection of the embedding, which the files then lack."""
    if len(sizes) == 1:
        # Without cutoffs the original always shares it.
        return [widths[0] != hidden_dim]
    scope = "transformer/adaptive_softmax/cutoff_{}/proj"
    tied = []
    for i in range(len(sizes)):
        width = widths[i if len(widths) > 1 else 0]
        is_stored = scope.format(i) in shapes
        # A projection between equal widths can be missing on both sides: it is the identity.
        tied.append(not is_stored and not (width == hidden_dim and len(widths) > 1 and i == 0))
    return tied if len(widths) > 1 or widths[0] != hidden_dim else [False] * len(sizes)


# === Both ===


def open_language_model(
    fixed: dict[str, Any],
    defaults: dict[str, Any],
    overrides: dict[str, Any],
    family: Family,
    *,
    config_file: Any,
    files: Any,
    dtype: str | None = None,
) -> OpenCheckpoint:
    """Builds the model, and returns it as an `OpenCheckpoint`.

    Args:
        fixed: Dict of the arguments that no override may change.
        defaults: Dict of other arguments.
        overrides: Dict of arguments of the caller.
        family: `Family` of the format.
        config_file: What errors name.
        files: The checkpoint, as in `OpenCheckpoint`.
        dtype: Name of the dtype of the weights that the configuration states, or `None`.

    Raises:
        ValueError: If an override is fixed by the checkpoint, or an argument is invalid.
    """
    if set(overrides) & set(fixed):
        raise ValueError(f"{sorted(set(overrides) & set(fixed))} are fixed by the checkpoint")
    try:
        check_size(fixed, files)
        model = TransformerXLLanguageModel(**{**defaults, **overrides, **fixed})
    except (TypeError, ValueError) as error:
        given = f" with {sorted(overrides)}" if overrides else ""
        raise ValueError(f"{config_file}{given}: {error}") from error
    rows = transformer_xl_rows(model)
    matches = match_weights(model_weights(model), rows, family, found=files.shapes)
    return OpenCheckpoint(model, files, matches, layer_prefixes(rows, family), dtype)


def without_identities(matches: list[WeightMatch], files: Any) -> list[WeightMatch]:
    """Sets projections that the original leaves out, because they change nothing, to 1.

    Returns:
        The `WeightMatch`es of the other weights.
    """
    kept = []
    for match in matches:
        is_projection = "/projection_" in match.path
        if is_projection and match.name not in files.shapes and len(set(match.shape)) == 1:
            match.weight.assign(keras.ops.eye(match.shape[0]))
        else:
            kept.append(match)
    return kept
