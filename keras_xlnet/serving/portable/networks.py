"""The networks of models: from the arrays that `predict.py` makes of texts to outputs."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_xlnet.models.scoring import causal_scorer, permutation_scorer


def network_of(model: Any) -> keras.Model:
    """Returns a functional model of dicts, whose inputs are arrays that `predict.py` makes of text.

    They have the shape `(batch, length)`, or `(batch, texts, length)` of models whose rows have
    several texts.

    Args:
        model: A model with `signatures` among `NETWORKS`.
    """
    return NETWORKS[model.signatures](model)


def _network(graph, convert, names=None):
    """A network with copies of the inputs of a functional model, and the outputs of `convert`."""
    inputs = {
        name: keras.Input(value.shape[1:], dtype=value.dtype, name=name)
        for name, value in graph.input.items()
    }
    if names is not None:
        inputs |= {name: keras.Input((None,), dtype="int32", name=name) for name in names}
    return keras.Model(inputs, convert(graph(inputs)))


def _of_outputs(model):
    return _network(model, lambda outputs: {model.output_name: outputs})


def _of_texts(model):
    if len(model.input["token_ids"].shape) == 2:
        return _of_outputs(model)
    # The network of an embedder has one text in each row.
    inputs = {
        name: keras.Input((None,), dtype=value.dtype, name=name)
        for name, value in model.input.items()
    }
    rows = {name: ops.expand_dims(value, 1) for name, value in inputs.items()}
    return keras.Model(inputs, {model.output_name: model(rows)[:, 0]})


def _of_probabilities(model):
    is_linear = model.activation == "linear"
    return _network(model, lambda x: {"probabilities": ops.softmax(x) if is_linear else x})


def _of_permutations(model):
    # All tokens are predicted, and positions of targets would fix the length of an ONNX file.
    scorer = permutation_scorer(model.with_arguments(partial_prediction=False))
    return _network(scorer, lambda log_probs: {"log_probs": log_probs})


def _of_segments(model):
    # ONNX does not allow an output with the name of an input.
    return _network(
        causal_scorer(model),
        lambda outputs: {
            f"next_{name}" if name in model.input else name: x for name, x in outputs.items()
        },
    )


# What models declare as their `signatures`, and the function that makes their network.
NETWORKS: dict[str, Callable[[Any], keras.Model]] = {
    "texts": _of_texts,
    "classes": _of_outputs,
    "words": _of_outputs,
    "entities": _of_probabilities,
    "answers": lambda model: _network(model, dict, ["max_answer_length"]),
    "choices": _of_probabilities,
    "ranking": _of_outputs,
    "permutation_lm": _of_permutations,
    "causal_lm": _of_segments,
}
