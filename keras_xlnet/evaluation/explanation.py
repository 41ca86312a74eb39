"""Explains an output for a text by Shapley values of its words."""

import dataclasses
from typing import Any

import numpy as np

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.models import XLNetTextClassifier, XLNetTextRegressor
from keras_xlnet.preprocessing.texts import as_texts
from keras_xlnet.preprocessing.words import word_places
from keras_xlnet.results import Result, marked_html, short, table, titled

_FOR, _AGAINST = "51, 114, 196", "238, 119, 51"  # Blue and orange.


@dataclasses.dataclass(frozen=True, repr=False)
class Explanation(Result):
    """How much each part of a text changed the output of a model.

    Args:
        text: String.
        label: The name of the class, `None` for a number.
        score: Float, the output for the text: the probability of the class, or the number.
        empty_score: Float, the output for a text without words.
        places: List of the `(start, end)` of the parts in the text, in characters.
        values: Float array, one for each part. They add up to `score - empty_score`.
    """

    text: str
    label: str | None
    score: float
    empty_score: float
    places: list[tuple[int, int]]
    values: np.ndarray

    @property
    def parts(self) -> list[str]:
        """List of strings, the words or runs of words, one for each value."""
        return [self.text[start:end] for start, end in self.places]

    def __repr__(self) -> str:
        order = np.argsort(-np.abs(self.values), kind="stable")
        columns = {
            "value": [float(self.values[i]) for i in order],
            "text": [self.parts[i] for i in order],
        }
        title = f"Explanation of {self.label or 'the output'}, {short(self.score)}"
        title += f" ({short(self.empty_score)} without words)"
        return titled(title, table(columns))

    def _repr_html_(self) -> str:
        largest = max(np.abs(self.values), default=0.0) or 1.0
        colors = [
            f"rgba({_FOR if value > 0 else _AGAINST}, {abs(value) / largest:.2f})"
            for value in self.values
        ]
        spans = [(*place, "", color) for place, color in zip(self.places, colors, strict=True)]
        return marked_html(self.text, spans)


def explain(
    model: Any,
    texts: Any,
    label: str | None = None,
    num_orders: int = 8,
    max_parts: int = 40,
    seed: int = 0,
    batch_size: int | None = None,
    verbose: str | int = "auto",
) -> list[Explanation]:
    """Computes how much each word changed the output of a classifier or regressor.

    The words of a text are left out one after another, in several random orders. The value of a
    word is the mean change of the output when the word is left out, an estimate of its Shapley
    value

        v_i = mean over orders of f(words before i and i) - f(words before i),

    and the values of a text add up to the output for the text minus the output without words. A
    text of `n` words needs up to `n * num_orders` predictions.

    Args:
        model: An `XLNetTextClassifier` or `XLNetTextRegressor` with a preprocessor.
        texts: List, array or column of a table of strings.
        label: Name of the class to explain; of a regressor with several outputs, `"value_0"` and so
            on. `None` for the class that `classify` returns, by the `threshold` of the model; with
            `"sigmoid"` for the most probable class of each text.
        num_orders: Int, number of orders. Every second order is the reverse of the previous one.
        max_parts: Int. A text with more words is divided into this number of runs of words.
        seed: Int, seed of the orders of each text: its values do not depend on the other texts.
        batch_size, verbose: As in `keras.Model.predict`.

    Returns:
        A list of `Explanation`, which notebooks show in color: blue words are for the class,
        orange ones against it.

    Raises:
        ValueError: If the model is of another class, a text is not a string, `label` is not a
            class of the model, or the outputs are several numbers and `label` is not given.

    Example:

    >>> model = keras_xlnet.models.Task.from_preset(adapter="sentiment")
    >>> (found,) = keras_xlnet.evaluation.explain(model, ["A dull film."], verbose=0)
    >>> found.parts, found.parts[found.values.argmax()]
    (['A', 'dull', 'film', '.'], 'dull')

    Source: Strumbelj and Kononenko 2014, "Explaining prediction models and individual predictions
    with feature contributions"; Shapley 1953.
    """
    if not isinstance(model, (XLNetTextClassifier, XLNetTextRegressor)):
        raise ValueError(
            "`model` must be an XLNetTextClassifier or XLNetTextRegressor. Received: "
            f"{type(model).__name__}"
        )
    check_positive_int("num_orders", num_orders)
    check_positive_int("max_parts", max_parts)
    texts = as_texts(texts, "texts")
    names = model.label_names
    given = None
    if label is not None:
        if label not in names:
            raise ValueError(f"`label` must be one of {names}. Received: label={label!r}")
        given = names.index(label)
    elif len(names) > 1 and model.output_name == "values":
        raise ValueError(f"`label` must say which of the outputs {names} to explain")
    parts = [_parts(text, max_parts) for text in texts]
    orders = [_orders(len(places), num_orders, seed) for places in parts]
    rows: dict[str, int] = {}  # Each different text is read once.
    for text, places, permutations in zip(texts, parts, orders, strict=True):
        for kept in _kept(permutations):
            rows.setdefault(_text_of(text, places, kept), len(rows))
    outputs = np.asarray(model.predict(list(rows), batch_size=batch_size, verbose=verbose))
    found = []
    for text, places, permutations in zip(texts, parts, orders, strict=True):
        row = outputs[rows[_text_of(text, places, range(len(places)))]]
        column = _column(model, row) if given is None else given
        kept = _kept(permutations)
        scores = np.array(
            [outputs[rows[_text_of(text, places, each)], column] for each in kept], "float64"
        )
        values = np.zeros(len(places))
        # Each order has one more score than words.
        for order, along in zip(permutations, np.split(scores, num_orders), strict=True):
            values[order] += np.diff(along) / num_orders
        name = None if names == ["value"] else names[column]
        found.append(Explanation(text, name, float(scores[-1]), float(scores[0]), places, values))
    return found


def _parts(text, max_parts):
    """The places of the words of a text, or of `max_parts` runs of words."""
    places = word_places(text)
    if not places:
        return []
    runs = np.array_split(np.arange(len(places)), min(max_parts, len(places)))
    return [(places[run[0]][0], places[run[-1]][1]) for run in runs]


def _column(model, outputs):
    """The output to explain: for exclusive classes, the class that `classify` returns."""
    if len(outputs) == 1 or model.activation == "sigmoid":
        return int(outputs.argmax())
    return int(model.classes.indices(outputs[np.newaxis], model.threshold)[0])


def _orders(count, num_orders, seed):
    """Random orders of numbers, each followed by its reverse."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(count) for _ in range(-(-num_orders // 2))]
    return [each for order in orders for each in (order, order[::-1])][:num_orders]


def _kept(orders):
    """The parts that are kept: for each order, none, the first one, the first two, ..."""
    return [sorted(order[:count]) for order in orders for count in range(len(order) + 1)]


def _text_of(text, places, kept):
    """A text without the parts that are not kept. Spaces belong to the part before them."""
    if len(kept) == len(places):
        return text
    ends = [*(start for start, _ in places[1:]), len(text)]
    return "".join(text[places[i][0] : ends[i]] for i in kept)
