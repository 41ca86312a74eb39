"""The best valid sequence of tags is that of a search through all sequences."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keras_xlnet.preprocessing.tags import (
    allowed_transitions,
    decode_tags,
    detect_scheme,
    split_tag,
    tag_spans,
)

# What valid sequences are, a tag and a space at a time.
GRAMMARS = {
    "bio": r"(O |B-(\w+) (I-\2 )*)*",
    "bioes": r"(O |S-\w+ |B-(\w+) (I-\2 )*E-\2 )*",
    "io": r".*",
}
TAGS = {
    "bio": ["O", "B-x", "I-x", "B-y", "I-y"],
    "bioes": ["O", "B-x", "I-x", "E-x", "S-x", "B-y", "E-y", "S-y"],
    "io": ["O", "I-x", "I-y", "NOUN"],
}
SCHEMES = sorted(TAGS)


def is_valid(tags, scheme):
    return re.fullmatch(GRAMMARS[scheme], "".join(f"{tag} " for tag in tags)) is not None


def sequences(tags, num_words):
    return itertools.product(range(len(tags)), repeat=num_words)


def search(log_probabilities, tags, scheme):
    """The best valid sequence of all and the sum of its log-probabilities, `None` without one."""
    found = [
        (sum(log_probabilities[i, tag] for i, tag in enumerate(sequence)), list(sequence))
        for sequence in sequences(tags, len(log_probabilities))
        if is_valid([tags[i] for i in sequence], scheme)
    ]
    return max(found, default=None)


@st.composite
def problems(draw, max_words=4):
    """Log-probabilities without equal sums, a scheme, and some of its tags in any order."""
    scheme = draw(st.sampled_from(SCHEMES))
    tags = draw(st.permutations(TAGS[scheme]).flatmap(prefixes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    num_words = draw(st.integers(1, max_words))
    return rng.normal(scale=3.0, size=(num_words, len(tags))), tags, scheme


def prefixes(tags):
    return st.integers(1, len(tags)).map(lambda size: list(tags)[:size])


@settings(max_examples=150)
@given(problems())
def test_decodes_the_best_of_all_valid_sequences(problem):
    log_probabilities, tags, scheme = problem
    expected = search(log_probabilities, tags, scheme)
    if expected is None:
        with pytest.raises(ValueError, match="`tags` must allow a sequence of"):
            decode_tags(log_probabilities, tags, scheme)
        return
    chosen, log_prob = decode_tags(log_probabilities, tags, scheme)
    assert chosen == expected[1]
    assert log_prob == pytest.approx(expected[0])


@settings(max_examples=80)
@given(st.sampled_from(SCHEMES), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_long_sequences_are_valid(scheme, num_words, seed):
    tags = TAGS[scheme]
    scores = np.random.default_rng(seed).normal(size=(num_words, len(tags)))
    chosen, _ = decode_tags(scores, tags, scheme)
    assert len(chosen) == num_words
    assert is_valid([tags[i] for i in chosen], scheme)


@settings(max_examples=80)
@given(st.sampled_from(SCHEMES), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_probabilities_of_0_give_valid_sequences(scheme, num_words, seed):
    tags = TAGS[scheme]
    scores = np.random.default_rng(seed).normal(size=(num_words, len(tags)))
    scores[scores < 0.5] = -np.inf
    chosen, log_prob = decode_tags(scores, tags, scheme)
    assert is_valid([tags[i] for i in chosen], scheme)
    assert log_prob == scores[np.arange(num_words), chosen].sum()


def test_probabilities_of_0_are_avoided():
    # `O I-x` is not valid: the I needs a B, which is impossible for the first word.
    scores = np.log([[0.9, 1e-300, 0.1], [0.2, 0.1, 0.7]])
    scores[0, 1] = -np.inf
    chosen, log_prob = decode_tags(scores, ["O", "B-x", "I-x"], "bio")
    assert chosen == [0, 0] and log_prob == pytest.approx(np.log(0.9 * 0.2))


@settings(max_examples=80)
@given(st.sampled_from(SCHEMES), st.data())
def test_the_most_probable_tags_stay_if_they_are_valid(scheme, data):
    # Few different values: also among equal ones the first tags stay.
    tags, num_words = TAGS[scheme], data.draw(st.integers(1, 4))
    valid = [s for s in sequences(tags, num_words) if is_valid([tags[i] for i in s], scheme)]
    chosen = list(data.draw(st.sampled_from(valid)))
    values = st.lists(st.sampled_from([0.0, 1.0]), min_size=len(tags), max_size=len(tags))
    scores = np.array([data.draw(values) for _ in chosen])
    # The chosen tags are the first ones with the highest value.
    for word, tag in enumerate(chosen):
        scores[word, :tag] = 0.0
        scores[word, tag] = 1.0
    assert decode_tags(scores, tags, scheme)[0] == chosen


@settings(max_examples=50)
@given(problems(), st.floats(-50, 50))
@example((np.array([[0.0, 2.0], [0.0, 2.0]]), ["B-x", "I-x"], "bio"), 3.0)
def test_logits_give_the_same_sequence(problem, offset):
    scores, tags, scheme = problem
    if search(scores, tags, scheme) is None:
        return
    offsets = offset * np.arange(1, len(scores) + 1)[:, None]
    assert decode_tags(scores + offsets, tags, scheme)[0] == decode_tags(scores, tags, scheme)[0]


def test_a_sentence_without_words_has_no_tags():
    assert decode_tags(np.zeros((0, 2)), ["O", "B-x"], "bio") == ([], 0.0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_allowed_transitions_are_those_of_valid_sequences(scheme):
    tags = TAGS[scheme]
    start, transitions, end = (np.zeros_like(x) for x in allowed_transitions(tags, scheme))
    # With 4 words each pair is there, as `I I` in `B I I E`.
    for sequence in itertools.chain.from_iterable(sequences(tags, n) for n in range(1, 5)):
        if is_valid([tags[i] for i in sequence], scheme):
            start[sequence[0]] = end[sequence[-1]] = True
            transitions[list(sequence[:-1]), list(sequence[1:])] = True
    for found, expected in zip(
        allowed_transitions(tags, scheme), (start, transitions, end), strict=True
    ):
        assert found.dtype == bool
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["O", "B-x", "I-x"], "bio"),
        (["B-x", "B-y", "I-y"], "bio"),
        (["O", "S-x", "B-y", "I-y", "E-y"], "bioes"),
        (["S-x"], "bioes"),
        (["B-x", "E-x"], "bioes"),
        (["O", "I-x", "I-y"], "io"),
        (["O"], "io"),
        (["NOUN", "VERB", "S-bar"], "io"),
        # IOB1: an I without a B of its type could not be predicted.
        (["O", "I-x", "B-y", "I-y"], "io"),
        (["O", "B-x", "I-x", "S-x"], "io"),
        (["O", "E-x"], "io"),
        (["O", "I-x", "S-x"], "io"),
    ],
)
def test_detects_the_scheme(tags, scheme):
    assert detect_scheme(tags) == scheme


@settings(max_examples=100)
@given(st.lists(st.sampled_from([f"{a}-{b}" for a in "BIES" for b in "xy"] + ["O"]), max_size=7))
def test_every_tag_is_in_a_valid_sequence_of_the_detected_scheme(tags):
    if not tags:
        return
    scheme = detect_scheme(tags)
    start, transitions, end = allowed_transitions(tags, scheme)
    before, after = start, end
    for _ in tags:
        before = before | (before[:, None] & transitions).any(axis=0)
        after = after | (after[None, :] & transitions).any(axis=1)
    assert (before & after).all()


# Types and numbers of words.
SPANS = st.lists(st.tuples(st.sampled_from("xyO"), st.integers(1, 4)), max_size=6)


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(max_examples=60)
@given(parts=SPANS)
def test_spans_of_a_valid_sequence_are_what_it_was_made_of(scheme, parts):
    if scheme == "io":
        # Neighbours of the same type cannot be told apart.
        parts = [next(group) for _, group in itertools.groupby(parts, key=lambda part: part[0])]
    tags, spans = [], []
    for type_, size in parts:
        if type_ != "O":
            spans.append((type_, len(tags), len(tags) + size))
        tags += written(type_, size, scheme)
    assert is_valid(tags, scheme)
    assert tag_spans(tags, scheme) == spans
    assert tag_spans(tags) == spans


def written(type_, size, scheme):
    """The tags of the words of an entity."""
    if type_ == "O":
        return ["O"] * size
    letters = "I" * size if scheme == "io" else "B" + "I" * (size - 1)
    if scheme == "bioes":
        letters = "S" if size == 1 else letters[:-1] + "E"
    return [f"{letter}-{type_}" for letter in letters]


@pytest.mark.parametrize(
    ("tag", "parts"),
    [
        ("O", ("O", "")),
        ("I-a-b", ("I", "a-b")),
        ("S-_", ("S", "_")),
        ("B-", None),
        ("B", None),
        ("o", None),
        ("L-x", None),
        ("XB-x", None),
        (0, None),
        (None, None),
    ],
)
def test_parts_of_a_tag(tag, parts):
    assert split_tag(tag) == parts


ZEROS = np.zeros((2, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ZEROS, ["O", "E-x"], "bio"), "must be O, B-type or I-type for scheme='bio'. .* 1: 'E-x'"),
        ((ZEROS, ["O", "X"], "bioes"), "`tags` must be O or .BIES.-type .* at index 1: 'X'"),
        ((ZEROS, ["O", "B-x"], "iob"), "`scheme` must be one of .*'iob'"),
        ((ZEROS, ["O"], "bio"), r"must have shape \(words, 1\).* Received: shape \(2, 2\)"),
        ((ZEROS[0], ["O", "B-x"], "bio"), r"shape \(words, 2\).* Received: shape \(2,\)"),
        ((np.zeros((2, 0)), [], "bio"), "`tags` must have at least one tag"),
        ((ZEROS, ["I-x", "I-y"], "bio"), "`tags` must allow a sequence of 2 words .*'I-y'"),
        ((np.zeros((3, 2)), ["B-x", "E-x"], "bioes"), "must allow a sequence of 3 words"),
        (([[0, 0], [0, np.nan]], ["O", "B-x"], "bio"), "be numbers, or -inf. .* in row 1: nan"),
        (([[0, np.inf], [0, 0]], ["O", "B-x"], "bio"), "be numbers, or -inf. .* in row 0: inf"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message) as error:
        decode_tags(*arguments)
    assert "\n" not in str(error.value)
