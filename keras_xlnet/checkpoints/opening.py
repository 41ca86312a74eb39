"""A checkpoint of another implementation, and the model that its weights go into."""

import dataclasses
import math
import warnings
from typing import Any

import keras
import numpy as np

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.checkpoints.tasks import BACKBONE, get_task
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.models.vocabulary import check_vocabulary
from keras_xlnet.preset_files.weights import WeightMatch, assign_matches, check_matches
from keras_xlnet.tokenizers import XLNetTokenizer

_SMALL = 10**6  # Parameters.


@dataclasses.dataclass(frozen=True)
class OpenCheckpoint:
    """A checkpoint, and the model to load it into.

    Args:
        model: The model, with initial weights.
        files: Object with `shapes` and `dtypes` (dicts by name), `read(name)` and `file_of(name)`;
            errors name it by its `str`.
        matches: The `WeightMatch`es of the model.
        layer_prefixes: Prefixes of names of weights in layers, up to the layer's index.
        declared_dtype: Name of the dtype of the weights that the configuration states, or `None`.
    """

    model: Any
    files: Any
    matches: list[WeightMatch]
    layer_prefixes: set[str]
    declared_dtype: str | None = None

    def load(self) -> Any:
        """Returns the model with the weights of the checkpoint, after all have been checked.

        Weights of a head that are not in the checkpoint keep their initial values, with a warning.

        Raises:
            ValueError: If a weight of the encoder is missing, a weight is of another shape or
                dtype, or the checkpoint has more layers than its configuration states.
        """
        missing = self.missing_of_head()
        matches = [match for match in self.matches if match.name not in missing]
        check_matches(
            matches,
            self.files,
            other_dtypes={"float32", self.declared_dtype or "float32"},
            unexpected=self._of_other_layers(),
        )
        self._check_repeated(matches)
        if missing:
            warnings.warn(
                f"{self.files} has no fine-tuned {', '.join(map(repr, missing))}: these weights of "
                "the model start from their initial values",
                stacklevel=3,
            )
        assign_matches(matches, self.files)
        return self.model

    def missing_of_encoder(self) -> list[str]:
        """Returns the names of weights of the encoder that the checkpoint does not have."""
        return self._missing(of_encoder=True)

    def missing_of_head(self) -> list[str]:
        """Returns the names of other weights that the checkpoint does not have."""
        return self._missing(of_encoder=False)

    def unused(self) -> list[str]:
        """Returns the names of arrays that only the checkpoint has."""
        return sorted(set(self.files.shapes) - {match.name for match in self.matches})

    def _missing(self, of_encoder):
        encoder = {id(weight) for weight in backbone_of(self.model).weights}
        names = [m.name for m in self.matches if (id(m.weight) in encoder) == of_encoder]
        return list(dict.fromkeys(name for name in names if name not in self.files.shapes))

    def _of_other_layers(self):
        """Returns the names of weights in layers that the model does not have."""
        known = {match.name for match in self.matches}
        return [
            name
            for name in self.unused()
            if any(_is_in_layer(name, prefix) for prefix in self.layer_prefixes)
            # An optimizer's variables are named after the weight: NAME/adam_m.
            and not any(name.startswith(f"{weight}/") for weight in known)
        ]

    def _check_repeated(self, matches):
        """Refuses weights that the model shares if they differ between the checkpoint's layers."""
        first: dict[str, WeightMatch] = {}
        for match in matches:
            other = first.setdefault(match.path, match)
            if other is not match:
                values = [self.files.read(m.name)[...] for m in (other, match)]
                if not np.array_equal(*values):
                    raise ValueError(
                        f"{match.path!r} is one weight of the model, but {other.name!r} and "
                        f"{match.name!r} in {self.files.file_of(match.name)} differ"
                    )


def _is_in_layer(name, prefix):
    return name.startswith(prefix) and name[len(prefix) :][:1].isdecimal()


def build(
    task: str | None,
    fixed: dict[str, Any],
    overrides: dict[str, Any],
    head: dict[str, Any],
    defaults: dict[str, Any] | None = None,
    *,
    config_file: Any,
    files: Any,
) -> Any:
    """Builds a backbone, or the model of a task around one, with initial weights.

    Args:
        task: Name of a task, or `None`.
        fixed: Arguments of the backbone that the checkpoint fixes.
        overrides: Other arguments of the backbone and of the task's model, from the caller.
        head: Arguments of the task's model that the checkpoint suggests.
        defaults: Arguments of the backbone that the checkpoint suggests.
        config_file: Path of the file with these arguments, or its name in errors.
        files: The checkpoint, as in `OpenCheckpoint`.

    Raises:
        ValueError: If an override is fixed by the checkpoint, there is no such argument, or the
            arguments are invalid or describe a far larger model than the checkpoint holds.
    """
    of_task = get_task(task).arguments if task else set()
    free = BACKBONE.arguments - set(fixed)
    refused = sorted(set(overrides) - free - of_task)
    if refused:
        raise ValueError(
            f"{refused} are fixed by the checkpoint, or are not arguments of the model. Arguments "
            f"that can be passed: {sorted(free | of_task)}"
        )
    for_backbone = {key: value for key, value in overrides.items() if key in free}
    # An argument that both have is the backbone's (`activation`), with two exceptions: the original
    # has one `dropout` for the encoder and the head, and `name` is the task model's.
    both = {"dropout", "name"} & of_task
    for_task = {key: value for key, value in overrides.items() if key not in free or key in both}
    if task:
        for_backbone.pop("name", None)
    try:
        check_size(fixed, files)
        backbone = BACKBONE.model(**{**fixed, **(defaults or {}), **for_backbone})
        return get_task(task).model(backbone, **{**head, **for_task}) if task else backbone
    except ValueError as error:
        given = f" with {sorted(overrides)}" if overrides else ""
        raise ValueError(f"{config_file}{given}: {error}") from error


def check_size(fixed: dict[str, Any], files: Any) -> None:
    """Refuses a model that would take far more memory than the checkpoint, before it is built."""
    sizes = "vocabulary_size", "hidden_dim", "num_layers", "num_heads", "intermediate_dim"
    for name in sizes:
        check_positive_int(name, fixed[name])
    vocabulary_size, hidden_dim, num_layers, num_heads, intermediate_dim = (
        fixed[name] for name in sizes
    )
    head_dim = fixed["head_dim"]
    heads_dim = (
        hidden_dim if head_dim is None else num_heads * check_positive_int("head_dim", head_dim)
    )
    of_layer = hidden_dim * (5 * heads_dim + 2 * intermediate_dim)
    # The narrowest embedding of any cluster of tokens.
    width = fixed.get("embedding_dim") or hidden_dim
    width //= fixed.get("div_val", 1) ** len(fixed.get("cutoffs", ()))
    described = vocabulary_size * width + num_layers * of_layer
    held = sum(map(math.prod, files.shapes.values()))
    if described > 2 * held + _SMALL:
        raise ValueError(
            f"it describes a model of {described:,} parameters, but {files} has only {held:,}"
        )


def tokenizer_to_save(
    model: keras.Model, tokenizer: XLNetTokenizer | None
) -> XLNetTokenizer | None:
    """Returns the tokenizer to write with a model: the given one, its preprocessor's, or `None`.

    Raises:
        ValueError: If it has more ids than the model.
    """
    tokenizer = tokenizer or getattr(getattr(model, "preprocessor", None), "tokenizer", None)
    if tokenizer is not None:
        check_vocabulary(tokenizer, model)
    return tokenizer
