"""Log-probabilities of a long text under a causal language model, with memory or in windows."""

from typing import Any

import keras
import numpy as np

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.models import TransformerXLLanguageModel
from keras_xlnet.models.scoring import causal_scorer, last_token_scorer, predict


def corpus_log_probs(
    model: TransformerXLLanguageModel,
    token_ids: np.ndarray,
    segment_length: int = 64,
    batch_size: int = 8,
    verbose: str | int = "auto",
    **overrides: Any,
) -> np.ndarray:
    """Computes the log-probability of every token of a long text but the first.

    The text is read in segments, one after the other, with memory, as in the evaluation of the
    authors of Transformer-XL. Perplexity is `np.exp(-np.mean(log_probs))`. The rows of a batch read
    different parts of the text; each row first reads the text that its memory depends on, so the
    results do not depend on the batch size.

    Args:
        model: A `TransformerXLLanguageModel` that is not stateful.
        token_ids: Int array `(num_tokens,)`.
        segment_length: Int, the number of tokens of a segment.
        batch_size: Int, the number of parts that are read at the same time.
        verbose: `"auto"`, 0 or 1: whether there is a progress bar.
        **overrides: Arguments of the model to evaluate with, such as `memory_length`,
            `same_length` or `clamp_length`.

    Returns:
        Float32 array `(num_tokens - 1,)`, in nats.

    Raises:
        ValueError: If there are fewer than two tokens, or an argument is not as above.

    Example:

    >>> model = keras_xlnet.models.TransformerXLLanguageModel(50, 2, 2, 16, 32, memory_length=8)
    >>> tokens = np.random.default_rng(0).integers(0, 50, 100)
    >>> log_probs = keras_xlnet.evaluation.corpus_log_probs(
    ...     model, tokens, memory_length=20, verbose=0)
    >>> log_probs.shape
    (99,)

    Source: kimiyoung/transformer-xl, `eval.py`.
    """
    check_positive_int("segment_length", segment_length)
    check_positive_int("batch_size", batch_size)
    token_ids = _checked(token_ids)
    model = model.with_arguments(**overrides) if overrides else model
    num_segments = -(-(len(token_ids) - 1) // segment_length)
    rows, num_before = _schedule(model, num_segments, segment_length, batch_size)
    segments = [_segment(token_ids, i, segment_length) for i in range(num_segments)]
    nothing = {key: np.zeros_like(value) for key, value in segments[0].items()}
    found: list[Any] = [None] * num_segments
    memory = model.empty_memory(len(rows))
    progress = keras.utils.Progbar(rows.shape[1], verbose=_verbosity(verbose))
    for step, indices in enumerate(rows.T, 1):
        parts = [segments[i] if i >= 0 else nothing for i in indices]
        batch = {key: np.stack([part[key] for part in parts]) for key in nothing}
        memory = _forget(model, memory, indices == 0)
        outputs = predict(causal_scorer(model), {**batch, **memory})
        log_probs = outputs.pop("log_probs")
        memory = outputs
        for row, index in enumerate(indices):
            if index >= 0 and step > num_before:
                found[index] = log_probs[row]
        progress.update(step)
    return np.concatenate(found)[: len(token_ids) - 1]


def sliding_log_probs(
    model: TransformerXLLanguageModel,
    token_ids: np.ndarray,
    window: int,
    batch_size: int = 8,
    verbose: str | int = "auto",
) -> np.ndarray:
    """Computes the log-probability of every token of a text but the first, each from a window.

    Each token is predicted from the `window` tokens before it, which are read again each time,
    without memory. The authors call this the evaluation of vanilla Transformers. `corpus_log_probs`
    reads a text once.

    Args:
        model: A `TransformerXLLanguageModel` that is not stateful.
        token_ids: Int array `(num_tokens,)`.
        window: Int, the number of tokens from which a token is predicted; fewer at the start.
        batch_size: Int, the number of windows at a time.
        verbose: `"auto"`, 0 or 1: whether there is a progress bar.

    Returns:
        Float32 array `(num_tokens - 1,)`, in nats.

    Raises:
        ValueError: If there are fewer than two tokens, or an argument is not as above.

    Example:

    >>> model = keras_xlnet.models.TransformerXLLanguageModel(50, 2, 2, 16, 32)
    >>> tokens = np.random.default_rng(0).integers(0, 50, 20)
    >>> keras_xlnet.evaluation.sliding_log_probs(model, tokens, window=5, verbose=0).shape
    (19,)

    Source: Al-Rfou et al. 2018; Dai et al. 2019, sections 3.1 and 4.6.
    """
    check_positive_int("window", window)
    check_positive_int("batch_size", batch_size)
    token_ids = _checked(token_ids)
    model = model.with_arguments(memory_length=None, attend_to_empty_memory=False)
    scorer = last_token_scorer(model)
    padded = np.pad(token_ids, (window, 0))
    windows = np.lib.stride_tricks.sliding_window_view(padded, window + 1)[1:]
    is_token = np.lib.stride_tricks.sliding_window_view(
        np.arange(len(padded)) >= window, window + 1
    )[1:, :-1]
    num_windows, found = len(windows), []
    progress = keras.utils.Progbar(-(-num_windows // batch_size), verbose=_verbosity(verbose))
    for start in range(0, num_windows, batch_size):
        # The last batch is padded, so that all batches have one shape.
        rows = np.minimum(np.arange(start, start + batch_size), num_windows - 1)
        batch = {
            "token_ids": windows[rows, :-1],
            "padding_mask": is_token[rows],
            "labels": windows[rows, -1:],
        }
        found.append(predict(scorer, batch)[:, 0])
        progress.update(start // batch_size + 1)
    return np.concatenate(found)[:num_windows]


def _checked(token_ids):
    token_ids = np.asarray(token_ids, "int32")
    if token_ids.ndim != 1 or len(token_ids) < 2:
        raise ValueError(
            f"`token_ids` must be one row of at least 2 tokens. Received: shape {token_ids.shape}"
        )
    return token_ids


def _schedule(model, num_segments, segment_length, batch_size):
    """Which segment each row reads at each step, `(rows, steps)`, -1 for none; and the number of
    steps at the start in which rows only read what their memory depends on.
    """
    memory_length = model.memory_length or 0
    # The memory of each block holds outputs of the previous block, computed with its own memory.
    num_before = model.num_layers * -(-memory_length // segment_length)
    num_rows = max(1, min(batch_size, num_segments))
    per_row = -(-num_segments // num_rows)
    starts = np.arange(num_rows)[:, None] * per_row
    indices = starts + np.arange(-num_before, per_row)
    # The last row may end early.
    indices = np.where(indices < num_segments, np.maximum(indices, -1), -1)
    # No tokens precede the start of the text.
    is_used = np.any(indices >= 0, axis=0)
    return indices[:, is_used], int(is_used[:num_before].sum())


def _segment(token_ids, index, length):
    """The inputs of a segment and the tokens after each of its tokens, padded."""
    start = index * length
    tokens = token_ids[start : start + length + 1]
    size = len(tokens) - 1
    padding = (0, length - size)
    return {
        "token_ids": np.pad(tokens[:-1], padding),
        "labels": np.pad(tokens[1:], padding),
        "padding_mask": np.arange(length) < size,
    }


def _forget(model, memory, is_start):
    """The memory, emptied for rows at the start of the text."""
    if not memory or not is_start.any():
        return memory
    empty = model.empty_memory(len(is_start))
    rows = keras.ops.convert_to_tensor(is_start)
    return {
        key: keras.ops.where(
            keras.ops.reshape(rows, (-1, *[1] * (len(value.shape) - 1))), empty[key], value
        )
        for key, value in memory.items()
    }


def _verbosity(verbose):
    if verbose == "auto":
        return 1 if keras.config.is_interactive_logging_enabled() else 0
    return verbose
