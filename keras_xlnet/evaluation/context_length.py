"""How much context a language model uses: the relative effective context length (RECL)."""

import numpy as np

from keras_xlnet.arguments import check_number


def effective_context_lengths(
    losses: dict[str, dict[int, np.ndarray]], r: float = 1.0, threshold: float = 0.01
) -> dict[str, int]:
    """Computes the relative effective context length of each model of a group.

    This is the length beyond which a longer context lowers the perplexity of a model by less than
    `threshold`. Models are compared on the same tokens and against the same baseline: with losses
    `l_i(c, t)` of model `i` for token `t` with the context length `c`,

        b(c, t)    = min over i of l_i(c, t)
        f_i(c, c') = mean over t of min(b(c, t), l_i(c', t))
        g_i(c, c') = (exp f_i(c, c) - exp f_i(c, c')) / exp f_i(c, c)

    where `t` are the `r` hardest tokens: those with the largest `b(c, t)`. From the shortest length
    on, `c` grows to the next one as long as `g_i(c, c')` is at least `threshold`.

    Args:
        losses: `{model: {context length: array (tokens,)}}`, the negative log-likelihood of the
            same tokens for every model and length. The lengths of all models are the same.
        r: Float, the share of the tokens that count, above 0 and at most 1.
        threshold: Float, the smallest relative gain.

    Returns:
        `{model: context length}`. The longest given length stands for at least this length.

    Raises:
        ValueError: If `losses` are not as above.

    Example:

    >>> tokens = np.arange(1000)
    >>> near = {c: np.full(1000, 5.0 - min(c, 20) / 10) for c in (10, 20, 30, 40)}
    >>> far = {c: np.full(1000, 5.0 - min(c, 30) / 10) for c in (10, 20, 30, 40)}
    >>> keras_xlnet.evaluation.effective_context_lengths({"near": near, "far": far})
    {'near': 20, 'far': 30}

    Source: Dai et al. 2019 (Transformer-XL), section 4.4 and appendix C.
    """
    if check_number("r", r, 0, 1) == 0:
        raise ValueError("`r` must be above 0. Received: r=0")
    check_number("threshold", threshold)
    lengths, table = _table(losses)
    count = max(1, round(r * table.shape[-1]))
    found = {}
    for i, model in enumerate(losses):
        index = 0
        while index + 1 < len(lengths):
            baseline = table[:, index].min(axis=0)
            hardest = np.argsort(-baseline, kind="stable")[:count]
            shorter, longer = (
                np.exp(np.minimum(baseline, table[i, k])[hardest].mean())
                for k in (index, index + 1)
            )
            if (shorter - longer) / shorter < threshold:
                break
            index += 1
        found[model] = lengths[index]
    return found


def _table(losses):
    """The lengths in order, and the losses `(models, lengths, tokens)`."""
    if not losses:
        raise ValueError("`losses` must have at least one model. Received: none")
    lengths = {tuple(sorted(by_length)) for by_length in losses.values()}
    if len(lengths) > 1 or not min(lengths):
        raise ValueError(
            "`losses` must have the same context lengths for every model. Received: "
            f"{ {model: sorted(by_length) for model, by_length in losses.items()} }"
        )
    (lengths,) = lengths
    sizes = {np.shape(row) for by_length in losses.values() for row in by_length.values()}
    if len(sizes) > 1 or len(min(sizes)) != 1 or min(sizes)[0] == 0:
        raise ValueError(
            "`losses` must have a loss for each of the same tokens, arrays `(tokens,)`. Received: "
            f"shapes {sorted(sizes)}"
        )
    table = np.array([[by_length[c] for c in lengths] for by_length in losses.values()], "float64")
    return lengths, table
