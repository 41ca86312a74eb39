"""Log-probabilities of texts under a language model.

    log p(x) = sum over t of log p(x[z[t]] | x[z[1]], ..., x[z[t-1]])    for an order z

A permutation language model has such a factorization for every order z of the tokens; a causal one
for the order of the text.

Source: Yang et al. 2019 (XLNet), section 2.2.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.models.task_graph import check_backbone
from keras_xlnet.preprocessing.scores import (
    SPECIAL_SEGMENTS,
    SPECIALS,
    Scores,
    ordered_features,
    score_orders,
    score_segments,
    score_segments_of_batch,
)
from keras_xlnet.preprocessing.token_lists import as_token_lists
from keras_xlnet.types import Tensor


def predict(model: keras.Model, features: dict[str, Tensor]) -> Any:
    """Returns the predictions of a model for a batch as NumPy arrays.

    Args:
        model: A functional model.
        features: Dict of arrays and tensors.
    """
    if keras.backend.backend() == "openvino":
        return model.predict_on_batch(features)
    # PyTorch refuses a mix of arrays and tensors.
    return model.predict_on_batch({k: ops.convert_to_tensor(v) for k, v in features.items()})


def score_permutations(
    model: keras.Model,
    texts: Any,
    tokenizer: Callable[..., Any] | None = None,
    order: str | Sequence[Any] = "left_to_right",
    num_orders: int = 1,
    batch_size: int = 16,
    seed: int = 0,
) -> Scores:
    """Scores texts as `XLNetPermutationLM.score` describes."""
    check_orders(model)
    rows = as_token_lists(texts, model.backbone.vocabulary_size, tokenizer)
    run = functools.partial(predict, permutation_scorer(model))
    return score_orders(run, rows, order, num_orders, batch_size, seed, special_ids(model))


def score_with_ranks(
    model: keras.Model, rows: Sequence[np.ndarray], ranks: Sequence[np.ndarray]
) -> dict[str, list[np.ndarray]]:
    """Scores a batch of texts with a permutation language model.

    Args:
        model: The model.
        rows, ranks: As in `ordered_features`.

    Returns:
        A dict of lists with an array for each text: `log_probs` of its tokens, and `is_best`,
        whether each of them is the most probable one. The values of given tokens mean nothing.
    """
    features = ordered_features(rows, ranks, special_ids(model))
    outputs = predict(permutation_scorer(model, find_best=True), features)
    return {
        key: [found[: len(row)] for found, row in zip(values, rows, strict=True)]
        for key, values in outputs.items()
    }


def special_ids(model: keras.Model) -> tuple[int, int]:
    """Returns the ids of `<sep>` and `<cls>` in the vocabulary of a permutation language model."""
    tokenizer = model.tokenizer
    return SPECIALS if tokenizer is None else (tokenizer.sep_token_id, tokenizer.cls_token_id)


def left_to_right_features(
    model: keras.Model, token_ids: Tensor, padding_mask: Tensor
) -> dict[str, Tensor]:
    """Returns what `ordered_features` does for the order of the text, of tensors.

    Args:
        model: An `XLNetPermutationLM`.
        token_ids: `(rows, length)` int32, padded on the right.
        padding_mask: `(rows, length)` bool, `True` for real tokens.

    Returns:
        A dict of tensors `(rows, length + 2)`.
    """
    specials = special_ids(model)
    index = ops.arange(ops.shape(token_ids)[1] + len(specials), dtype="int32")[None]
    # Below 0 for tokens, 0 for `<sep>`, 1 for `<cls>`, and above for padding.
    place = index - ops.sum(ops.cast(padding_mask, "int32"), axis=1, keepdims=True)
    token_ids = ops.pad(token_ids, ((0, 0), (0, len(specials))))
    segment_ids = ops.zeros_like(token_ids)
    for i, (token_id, segment_id) in enumerate(zip(specials, SPECIAL_SEGMENTS, strict=True)):
        token_ids = ops.where(place == i, token_id, token_ids)
        segment_ids = ops.where(place == i, segment_id, segment_ids)
    return {
        "token_ids": token_ids,
        "segment_ids": segment_ids,
        "padding_mask": place < len(specials),
        "ranks": ops.where(place < 0, index, -1),
    }


def new_inputs() -> dict[str, keras.KerasTensor]:
    """Returns symbolic inputs for the arrays of `ordered_features`, by name."""
    return {
        key: keras.Input((None,), dtype="bool" if key == "padding_mask" else "int32", name=key)
        for key in ("token_ids", "segment_ids", "padding_mask", "ranks")
    }


def check_orders(model: keras.Model) -> None:
    """Raises `ValueError` if a permutation language model cannot predict in any order."""
    if model.objective != "permutation":
        raise ValueError(
            "Texts are scored with `objective='permutation'`: with 'denoising' a model has no "
            f"factorization. Received: a model with objective={model.objective!r}"
        )
    if model.stateful:
        raise ValueError(
            "Texts are scored without memory: use "
            "`model.with_arguments(stateful=False, batch_size=None)`"
        )
    check_backbone(model.backbone)


def visible(ranks: Tensor) -> Tensor:
    """Returns `(batch, length, length)` bool, `True` where a token may see another.

    Args:
        ranks: `(batch, length)`, as in `ordered_features`.
    """
    ranks_i, ranks_j = ops.expand_dims(ranks, 2), ops.expand_dims(ranks, 1)
    return ops.logical_or(ranks_j < ranks_i, ranks_j < 0)


def permutation_scorer(model: keras.Model, find_best: bool = False) -> keras.Model:
    """A functional model from the features of rows to the log-probabilities of their tokens.

    With `find_best`, its outputs are those of `score_with_ranks`.
    """
    name = "best_scorer" if find_best else "scorer"
    if name not in model.derived:
        inputs = new_inputs()
        others = {key: value for key, value in inputs.items() if key != "ranks"}
        ones = ops.ones_like(inputs["token_ids"])
        if model.partial_prediction:
            targets = {"target_positions": ops.cumsum(ones, axis=1) - 1}
        else:
            targets = {"target_mask": ops.cast(ones, "bool")}
        mask = visible(inputs["ranks"])
        logits = model({**others, "permutation_mask": mask, **targets})["logits"]
        outputs = _with_is_best(ops.log_softmax(logits), inputs["token_ids"])
        outputs = outputs if find_best else outputs["log_probs"]
        model.derived[name] = keras.Model(inputs, outputs)
    return model.derived[name]


def take_tokens(log_probs: Tensor, token_ids: Tensor) -> Tensor:
    """`(batch, length, vocabulary_size)` -> `(batch, length)`, the value of each token."""
    return ops.squeeze(ops.take_along_axis(log_probs, ops.expand_dims(token_ids, -1), axis=-1), -1)


def _with_is_best(log_probs, token_ids):
    """The values of the tokens, and whether no other token has a larger one."""
    of_tokens = take_tokens(log_probs, token_ids)
    return {"log_probs": of_tokens, "is_best": of_tokens >= ops.max(log_probs, axis=-1)}


# === Causal ===


def score_causally(
    model: keras.Model,
    texts: Any,
    tokenizer: Callable[..., Any] | None = None,
    start_token_id: int | None = None,
    segment_length: int = 512,
    batch_size: int = 16,
) -> Scores:
    """Scores texts as `TransformerXLLanguageModel.score` describes."""
    rows = as_token_lists(texts, model.vocabulary_size, tokenizer)
    run = functools.partial(predict, causal_scorer(model))
    return score_segments(
        *(run, rows, model.empty_memory, model.vocabulary_size),
        *(start_token_id, segment_length, batch_size),
    )


def score_in_segments(
    model: keras.Model,
    rows: Sequence[np.ndarray],
    start_token_id: int | None,
    segment_length: int,
    find_best: bool = False,
) -> dict[str, list[np.ndarray]]:
    """Scores a batch of texts with a causal language model.

    Args:
        model: A `TransformerXLLanguageModel` that is not stateful.
        rows: List of int arrays, the tokens.
        start_token_id, segment_length: As in `TransformerXLLanguageModel.score`.
        find_best: Bool, whether to find `is_best`, for which an adaptive softmax computes all
            clusters.

    Returns:
        What `score_with_ranks` does, but `is_best` only with `find_best`. Without a
        `start_token_id` the first token is given.
    """
    run, memory = functools.partial(predict, causal_scorer(model, find_best)), model.empty_memory
    return score_segments_of_batch(run, rows, memory(len(rows)), start_token_id, segment_length)


def causal_scorer(model: keras.Model, find_best: bool = False) -> keras.Model:
    """A functional model from a segment, its labels and memory to `log_probs` of the labels, the
    next memory and, with `find_best`, `is_best`.
    """
    name = "best_scorer" if find_best else "scorer"
    if name not in model.derived:
        inputs = {
            key: keras.Input(spec.shape[1:], dtype=spec.dtype, name=key)
            for key, spec in model.input.items()
        }
        labels = keras.Input((None,), dtype="int32", name="labels")
        outputs = model(inputs)
        if find_best:
            found = _with_is_best(outputs["log_probs"], labels)
        else:
            found = {"log_probs": model.label_log_probs(outputs["sequence_output"], labels)}
        memory = {key: outputs[key] for key in ("memory", "memory_mask") if key in outputs}
        model.derived[name] = keras.Model({**inputs, "labels": labels}, {**found, **memory})
    return model.derived[name]


def last_token_scorer(model: keras.Model) -> keras.Model:
    """Returns a functional model from segments without memory to the log-probabilities of the
    label after the last token, `(batch, 1)`.

    Args:
        model: A `TransformerXLLanguageModel` without memory.
    """
    if "last_token_scorer" not in model.derived:
        inputs = {
            "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
            "padding_mask": keras.Input((None,), dtype="bool", name="padding_mask"),
        }
        labels = keras.Input((1,), dtype="int32", name="labels")
        hidden = model(inputs)["sequence_output"][:, -1:]
        log_probs = model.label_log_probs(hidden, labels)
        model.derived["last_token_scorer"] = keras.Model({**inputs, "labels": labels}, log_probs)
    return model.derived["last_token_scorer"]
