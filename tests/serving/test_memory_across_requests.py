"""Segments of texts in several requests, with the memory between them: equal to one long pass."""

import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.serving import export
from keras_xlnet.serving.causal_segments import CausalReader
from keras_xlnet.serving.memory_strings import MemoryStrings
from tests.serving.test_language_model_signatures import START, causal_model

# As pieces of a text begin with a space, a text has the pieces of its segments.
SEGMENTS = [["win a free prize", "see"], ["now", ""], ["call now, or see", "you at lunch"]]
WHOLE = ["win a free prize now call now, or see", "see you at lunch"]


@pytest.fixture(scope="module")
def model(tokenizer):
    # With memory for all tokens, so that one long pass sees what a segment sees.
    return causal_model(tokenizer, memory_length=60)


@pytest.fixture(scope="module")
def directory(model, tmp_path_factory):
    return export(model, tmp_path_factory.mktemp("models") / "1", start_token_id=START)


@pytest.fixture(scope="module")
def signatures(directory):
    return tf.saved_model.load(str(directory)).signatures


@pytest.fixture(scope="module")
def read(signatures):
    return signatures["serving_segment"]


def read_all(read, segments):
    """The outputs of segments, one after the other."""
    memory, found = tf.constant([""] * len(segments[0])), []
    for texts in segments:
        found.append(read(text=tf.constant(texts), memory=memory))
        memory = found[-1]["memory_bytes"]
    return found


def test_segments_score_as_one_text(model, read):
    expected = model.score(WHOLE, start_token_id=START)
    found = read_all(read, SEGMENTS)
    total = sum(outputs["log_prob"].numpy() for outputs in found)
    np.testing.assert_allclose(total, expected.totals, rtol=1e-5)
    tokens = np.concatenate([x["token_log_probs"][0, : x["num_tokens"][0]] for x in found])
    np.testing.assert_allclose(tokens, expected.log_probs[0], atol=1e-5)


def test_rows_do_not_depend_on_what_they_are_read_with(read):
    together = read_all(read, SEGMENTS)
    alone = read_all(read, [[texts[1]] for texts in SEGMENTS])
    for both, one in zip(together, alone, strict=True):
        np.testing.assert_allclose(both["log_prob"][1], one["log_prob"][0], rtol=1e-5)
    # A client that has just begun, beside one that goes on.
    memory = tf.stack([together[0]["memory_bytes"][0], ""])
    mixed = read(text=tf.constant(["now", "see"]), memory=memory)
    np.testing.assert_allclose(mixed["log_prob"][0], together[1]["log_prob"][0], rtol=1e-5)
    np.testing.assert_allclose(mixed["log_prob"][1], together[0]["log_prob"][1], rtol=1e-5)


def test_memory_is_that_of_the_newest_tokens(tokenizer, tmp_path):
    model = causal_model(tokenizer, 1, memory_length=5, attend_to_empty_memory=True)
    path = export(model, tmp_path / "1", start_token_id=START)
    segments = [["win a prize"], ["see you now"], ["call at six"]]
    found = read_all(tf.saved_model.load(str(path)).signatures["serving_segment"], segments)
    rows = [tokenizer.encode(texts)[0] for texts in segments]
    # Each segment is read from the last token of the one before.
    tokens = np.concatenate([[START], *rows])
    memory, first = model.empty_memory(1), 0
    for row, outputs in zip(rows, found, strict=True):
        inputs = {"token_ids": tokens[np.newaxis, first : first + len(row)], **memory}
        expected = model(inputs)
        log_probs = np.asarray(expected["log_probs"])[0, np.arange(len(row)), row]
        np.testing.assert_allclose(outputs["token_log_probs"][0], log_probs, atol=1e-5)
        memory = {key: expected[key] for key in ("memory", "memory_mask")}
        first += len(row)


def damaged(memory):
    yield "abc", "`memory` must be empty, or `memory_bytes`"
    yield b"x" + memory, "`memory` must be empty, or `memory_bytes`"
    yield memory.replace(b"memory 1", b"memory 2"), "`memory` must be empty, or `memory_bytes`"
    yield memory[:60], ""
    yield memory[:-3], ""


def test_damaged_memory_is_refused(read):
    (memory,) = read_all(read, [["see you"]])[0]["memory_bytes"].numpy()
    for value, message in damaged(memory):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            read(text=tf.constant(["now"]), memory=tf.constant([value]))


def test_memory_of_other_weights_is_refused(tokenizer, model, read):
    other = causal_model(tokenizer, memory_length=60)
    other.weights[0].assign(other.weights[0] * 1.01)

    def read_with_memory_of(writer):
        reader = CausalReader(writer, START)
        memory = MemoryStrings(reader).encode(reader.empty_memory(1))
        return read(text=tf.constant(["now"]), memory=memory)

    assert np.isfinite(read_with_memory_of(model)["log_prob"]).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="checksum of the model"):
        read_with_memory_of(other)


# === Conversations ===


def replies(signatures, turns, temperature=0.0, seed=0):
    """The outputs of turns, each a list of prompts, one after the other."""
    reply = signatures["serving_reply"]
    size = len(turns[0])
    memory, found = tf.constant([""] * size), []
    for prompts in turns:
        found.append(
            reply(
                prompt=tf.constant(prompts),
                memory=memory,
                max_new_tokens=tf.constant([3, 2][:size]),
                temperature=tf.fill((size,), temperature),
                top_k=tf.fill((size,), 0),
                top_p=tf.fill((size,), 1.0),
                seed=tf.constant([seed] * size, tf.int64),
            )
        )
        memory = found[-1]["memory_bytes"]
    return [{key: value.numpy() for key, value in outputs.items()} for outputs in found]


def test_replies_continue_all_that_was_said(model, tokenizer, signatures):
    turns = [["win a free prize", "see"], ["now", "you at lunch"], ["call now", ""]]
    found = replies(signatures, turns)
    for row in range(2):
        said = [START]
        for prompts, outputs in zip(turns, found, strict=True):
            said += tokenizer.encode([prompts[row]])[0].tolist()
            count = [3, 2][row]
            expected = model.generate([said], max_new_tokens=count)
            tokens = outputs["token_ids"][row, :count]
            assert tokens.tolist() == expected.token_ids[0].tolist()
            log_probs = outputs["token_log_probs"][row, :count]
            np.testing.assert_allclose(log_probs, expected.log_probs[0], atol=1e-5)
            assert outputs["text"][row].decode() == tokenizer.decode(tokens)
            said += tokens.tolist()


def test_replies_are_drawn_with_the_seed(signatures):
    first, again, other = (
        replies(signatures, [["see you"]], 1.0, seed)[0]["token_ids"].tolist() for seed in (3, 3, 4)
    )
    assert first == again != other
