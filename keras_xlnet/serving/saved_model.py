"""Writes SavedModels whose signatures take text."""

import inspect
import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf
import tensorflow_text

from keras_xlnet.preset_files.export_details import FILE
from keras_xlnet.serving.answer_signatures import question_answering_signatures
from keras_xlnet.serving.choice_signatures import multiple_choice_signatures, ranker_signatures
from keras_xlnet.serving.entity_signatures import token_classifier_signatures, word_signatures
from keras_xlnet.serving.language_model_signatures import (
    permutation_lm_signatures,
    transformer_xl_signatures,
)
from keras_xlnet.serving.model_details import write_model_details
from keras_xlnet.serving.saved_model_signatures import saved_model_signatures
from keras_xlnet.serving.signature import Signature
from keras_xlnet.serving.text_signatures import (
    classifier_signatures,
    multi_task_signatures,
    text_signatures,
)
from keras_xlnet.serving.warmup import make_warmup_requests, write_warmup_requests

# What models declare as their `signatures`, and the function that makes these.
SIGNATURES: dict[str, Callable[..., dict[str, Signature]]] = {
    "texts": text_signatures,
    "classes": classifier_signatures,
    "tasks": multi_task_signatures,
    "words": word_signatures,
    "entities": token_classifier_signatures,
    "answers": question_answering_signatures,
    "choices": multiple_choice_signatures,
    "ranking": ranker_signatures,
    "permutation_lm": permutation_lm_signatures,
    "causal_lm": transformer_xl_signatures,
}
# Inputs of `serving_default`, for a request to try it.
_SAMPLES = {
    "text": "It is a fine day.",
    "question": "What is the day like?",
    "context": "It is a fine day.",
    "query": "weather",
    "documents": ["It is a fine day.", "A cat sleeps."],
    "choices": ["We stay at home.", "We go for a walk."],
}


def saved_model_writer(
    models: Mapping[str, Any],
    batch_size: int | None = None,
    warmup: Mapping[str, Any] | None = None,
    trained_on: str | None = None,
    **options: Any,
) -> Callable[[pathlib.Path], None]:
    """Returns a function that writes a SavedModel to a directory.

    Args:
        models: Dict of models by the prefix of their signatures.
        batch_size, trained_on: As in `export`.
        warmup: Optional dict of the `warmup` of `export` by prefix.
        **options: As in `export`. All models have them.

    Raises:
        ValueError: If an argument is not as in `export`.
    """
    signatures: dict[str, Signature] = {}
    requests: list[Any] = []
    for prefix, model in models.items():
        make = SIGNATURES[model.signatures]
        _check_options(options, make, model)
        found = make(model, batch_size, **options)
        signatures |= {prefix + name: signature for name, signature in found.items()}
        if warmup and prefix in warmup:
            name = f"{prefix}serving_default"
            inputs = signatures[name].inputs
            requests += make_warmup_requests(warmup[prefix], inputs, batch_size, name)

    def write(directory):
        archive = keras.export.ExportArchive()
        # For its vocabulary. The archive finds the model's variables in the signatures;
        # `track(model)` would write each of them twice.
        for model in models.values():
            archive.track(text_layer_of(model)[0])
        for name, signature in signatures.items():
            archive.add_endpoint(name, _of_dict(signature.function), [signature.specs])
        archive.write_out(str(directory), verbose=False)
        for prefix, model in models.items():
            used = _options_used(options, SIGNATURES[model.signatures], model)
            write_details(model, directory, used, batch_size, trained_on, prefix)
        if requests:
            write_warmup_requests(requests, directory)

    return write


def text_layer_of(model: Any) -> tuple[Any, str]:
    """Returns what converts text to ids, and its name: `"preprocessor"` or `"tokenizer"`."""
    name = "preprocessor" if hasattr(model, "preprocessor") else "tokenizer"
    return getattr(model, name), name


def _of_dict(function):
    """`function` of a dict of tensors, which keeps their names for clients."""
    return lambda inputs: function(**inputs)


def _options_of(make):
    """The defaults of the options, by name."""
    parameters = list(inspect.signature(make).parameters.values())[2:]
    return {parameter.name: parameter.default for parameter in parameters}


def _options_used(options, make, model):
    """The values of all options. Those that are `None` are attributes of the model."""
    values = {**_options_of(make), **options}
    return {k: getattr(model, k, None) if v is None else v for k, v in values.items()}


def _check_options(options, make, model):
    known = list(_options_of(make))
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ValueError(
            f"`export` has no argument {unknown[0]!r} for {type(model).__name__}"
            f"{' but ' + ', '.join(known) if known else ''}"
        )


def write_details(
    model: Any,
    directory: pathlib.Path,
    options: Mapping[str, Any],
    batch_size: int | None = None,
    trained_on: str | None = None,
    prefix: str = "",
) -> None:
    """Writes the details of a model of a SavedModel, as `write_model_details` does.

    With the prefix of its signatures they are in a folder of this name.
    """
    signatures = {
        name.removeprefix(prefix): signature
        for name, signature in saved_model_signatures(directory)["signatures"].items()
        if name.startswith(prefix)
    }
    file = directory / FILE
    write_model_details(
        model,
        file.parent / prefix / file.name,
        options,
        signatures=signatures,
        versions={"tensorflow": tf.__version__, "tensorflow_text": tensorflow_text.__version__},
        run=_run(signatures["serving_default"]["inputs"], batch_size),
        batch_size=batch_size,
        trained_on=trained_on,
    )


def _run(inputs, batch_size):
    """A request to `serving_default`, and the commands to serve the model and to send it."""
    request = {"instances": [{name: _SAMPLES[name] for name in inputs}] * (batch_size or 1)}
    return {
        "directory": "MODELS/NAME/1",
        "serve": "xlnet serve MODELS",
        "ask": f"curl http://127.0.0.1:8501/v1/models/NAME:predict -d '{json.dumps(request)}'",
        "request": request,
    }
