"""Tags and entities in the graph are those of the host, for all schemes and lengths."""

import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.preprocessing.tags import decode_tags, tag_spans
from keras_xlnet.serving.tag_sequences import entity_starts, most_probable_tags

TAGS = {
    "bio": ["O", "I-place", "B-person", "B-place", "I-person"],
    "bioes": ["S-x", "B-x", "O", "I-x", "E-x", "B-y", "E-y", "I-y", "S-y"],
    "io": ["NOUN", "VERB", "X"],
}
TAGS_OF_ENTITIES = {**TAGS, "io": ["O", "I-person", "I-place"]}
LENGTHS = [7, 0, 1, 2, 12, 12, 3]


@pytest.mark.parametrize("scheme", TAGS)
@pytest.mark.parametrize("is_certain", [False, True])
def test_tags_are_those_of_the_host(scheme, is_certain):
    tags = TAGS[scheme]
    rng = np.random.default_rng(3)
    for _ in range(10):
        log_probs = rng.normal(size=(len(LENGTHS), max(LENGTHS), len(tags)))
        if is_certain:  # Ties, and probabilities of 0.
            log_probs = np.where(log_probs > 0, 0.0, -np.inf)
        found = most_probable_tags(
            tf.constant(log_probs), tf.constant(LENGTHS, tf.int64), tags, scheme
        ).numpy()
        assert found.shape == (len(LENGTHS), max(LENGTHS))
        for row, length in enumerate(LENGTHS):
            expected, _ = decode_tags(log_probs[row, :length], tags, scheme)
            assert found[row, :length].tolist() == expected


def test_valid_tags_need_no_search():
    """The branch without a search has the tags, and they are not those of one row alone."""
    tags = TAGS["bio"]
    log_probs = np.log(np.eye(5)[[[2, 4, 0], [3, 1, 1]]] + 1e-3)
    lengths = tf.constant([3, 3], tf.int64)
    found = most_probable_tags(tf.constant(log_probs), lengths, tags, "bio")
    assert found.numpy().tolist() == [[2, 4, 0], [3, 1, 1]]


@pytest.mark.parametrize("scheme", TAGS_OF_ENTITIES)
def test_entities_are_those_of_the_host(scheme):
    """For random tags, valid or not, with sentences that end inside of an entity."""
    tags = TAGS_OF_ENTITIES[scheme]
    rng = np.random.default_rng(4)
    chosen = tf.RaggedTensor.from_row_lengths(
        rng.integers(0, len(tags), sum(LENGTHS)).astype("int32"), LENGTHS
    )
    starts, inside = (
        chosen.with_values(flags).to_list() for flags in entity_starts(chosen, tags, scheme)
    )
    for row, sequence in enumerate(chosen.to_list()):
        spans = tag_spans([tags[tag] for tag in sequence], scheme)
        words = range(len(sequence))
        assert starts[row] == [word in {start for _, start, _ in spans} for word in words]
        assert inside[row] == [any(a <= word < b for _, a, b in spans) for word in words]
