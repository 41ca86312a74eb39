"""Precision, recall and F1 of the entities in sequences of tags, as seqeval counts them."""

import collections
import dataclasses
from collections.abc import Sequence

from keras_xlnet.arguments import check_choice
from keras_xlnet.preprocessing.tags import SCHEMES, split_tag, tag_spans


@dataclasses.dataclass(frozen=True)
class EntitySpan:
    """The words of an entity.

    Args:
        type: String, such as `"person"` of the tags `"B-person"` and `"I-person"`.
        start: Int, the first word.
        end: Int, the word after the last one.
    """

    type: str
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class EntityScores:
    """Scores of entities, from 0 to 1. `str` makes a table of them.

    An entity is correct if its type and both of its ends are correct. Scores whose divisor is zero
    are 0.

    Args:
        precision: Float, the share of the predicted entities that are correct.
        recall: Float, the share of the true entities that are found.
        f1: Float, the harmonic mean of `precision` and `recall`.
        support: Int, the number of true entities.
        by_type: Dict from types, in alphabetical order, to their `EntityScores`. A type that is
            only predicted is included, with a support of 0.
    """

    precision: float
    recall: float
    f1: float
    support: int
    by_type: dict[str, "EntityScores"] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        rows = [*self.by_type.items(), ("micro average", self)]
        width = max(len(name) for name, _ in rows)
        lines = [f"{'':{width}}  precision  recall      f1  support"]
        lines += [
            f"{name:{width}}  {row.precision:9.4f}  {row.recall:6.4f}  {row.f1:6.4f}  "
            f"{row.support:7d}"
            for name, row in rows
        ]
        return "\n".join(lines)


def entity_spans(tags: Sequence[str], scheme: str = "bio") -> list[EntitySpan]:
    """Returns the entities of a sequence of tags, valid or not.

    A word continues the previous entity if its tag is an I or an E, the previous tag is a B or an
    I, and both have the same type. Otherwise all tags but O begin an entity.

    Args:
        tags: Strings, one per word: O, or one of B, I, E and S with a type, as `"B-person"`.
        scheme: `"bio"` and `"bioes"` for the rule above. With `"io"` letters do not matter:
            neighbours of the same type are one entity.

    Returns:
        A list of `EntitySpan`, in their order.

    Raises:
        ValueError: If a tag has another form, or the scheme is unknown.

    Example:

    >>> keras_xlnet.evaluation.entity_spans(["B-person", "I-person", "O", "I-place"])
    [EntitySpan(type='person', start=0, end=2), EntitySpan(type='place', start=3, end=4)]

    Source: `get_entities` of seqeval 1.2.2 in its default mode, which counts as `conlleval` does.
    """
    return [EntitySpan(*span) for span in tag_spans(tags, scheme)]


def entity_scores(
    true_tags: Sequence[Sequence[str]],
    predicted_tags: Sequence[Sequence[str]],
    scheme: str = "bio",
) -> EntityScores:
    """Computes precision, recall and F1 of predicted entities, over all types and by type.

    Args:
        true_tags: List of lists of strings, the tags of each word of each sentence. A sentence can
            be empty.
        predicted_tags: The same for the predictions.
        scheme: `"bio"`, `"bioes"` or `"io"`, as in `entity_spans`.

    Returns:
        `EntityScores`, the micro average over all types, with the scores of each type in `by_type`.

    Raises:
        ValueError: If there are no sentences, the numbers of sentences or of words differ, a tag is
            not O or one of B, I, E and S with a type, or the scheme is unknown. The message names
            the row.

    Example:

    >>> scores = keras_xlnet.evaluation.entity_scores(
    ...     [["B-person", "I-person", "O"], ["B-place", "O"]],
    ...     [["B-person", "I-person", "O"], ["B-person", "O"]])
    >>> scores.precision, scores.recall, scores.by_type["place"].support
    (0.5, 0.5, 1)
    >>> print(scores)
                   precision  recall      f1  support
    person            0.5000  1.0000  0.6667        1
    place             0.0000  0.0000  0.0000        1
    micro average     0.5000  0.5000  0.5000        2

    Source: `precision_score`, `recall_score`, `f1_score` and `classification_report` of seqeval
    1.2.2; Tjong Kim Sang and De Meulder 2003, "Introduction to the CoNLL-2003 Shared Task".
    """
    check_choice("scheme", scheme, SCHEMES)
    _check_sentences(true_tags, predicted_tags)
    correct: collections.Counter[str] = collections.Counter()
    predicted: collections.Counter[str] = collections.Counter()
    support: collections.Counter[str] = collections.Counter()
    for true_row, predicted_row in zip(true_tags, predicted_tags, strict=True):
        true, found = (set(tag_spans(tags, scheme)) for tags in (true_row, predicted_row))
        correct.update(type_ for type_, _, _ in true & found)
        predicted.update(type_ for type_, _, _ in found)
        support.update(type_ for type_, _, _ in true)
    by_type = {
        type_: _scores(correct[type_], predicted[type_], support[type_])
        for type_ in sorted(support | predicted)
    }
    return dataclasses.replace(
        _scores(correct.total(), predicted.total(), support.total()), by_type=by_type
    )


def _scores(correct, predicted, support):
    """`EntityScores` of the numbers of entities."""
    precision = correct / predicted if predicted else 0.0
    recall = correct / support if support else 0.0
    f1 = 2 * precision * recall / (precision + recall) if correct else 0.0
    return EntityScores(precision, recall, f1, support)


def _check_sentences(true_tags, predicted_tags):
    if len(true_tags) != len(predicted_tags) or not len(true_tags):
        raise ValueError(
            "`true_tags` and `predicted_tags` must have the same number of sentences, at least "
            f"one. Received: {len(true_tags)} and {len(predicted_tags)}"
        )
    for row, (true_row, predicted_row) in enumerate(zip(true_tags, predicted_tags, strict=True)):
        _check_tags("true_tags", row, true_row)
        _check_tags("predicted_tags", row, predicted_row)
        if len(true_row) != len(predicted_row):
            raise ValueError(
                "`predicted_tags` must have as many words as `true_tags` in each sentence. "
                f"Received in row {row}: {len(predicted_row)} and {len(true_row)}"
            )


def _check_tags(name, row, tags):
    if isinstance(tags, (str, bytes)) or not hasattr(tags, "__len__"):
        raise ValueError(f"`{name}` must be lists of tags. Received in row {row}: {tags!r}")
    for word, tag in enumerate(tags):
        if split_tag(tag) is None:
            raise ValueError(
                f"`{name}` must be O, or one of B, I, E and S with a type, as B-person. Received "
                f"in row {row}, word {word}: {tag!r}"
            )
