"""Signatures of models that answer questions with parts of contexts."""

import tensorflow as tf

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.models import XLNetQuestionAnswering
from keras_xlnet.preprocessing.packing import Rows, ranges, window_of_most_context
from keras_xlnet.serving.ragged_rows import decode_characters, parts_of_texts, with_batch_size
from keras_xlnet.serving.signature import Signature, strings
from keras_xlnet.serving.token_reader import TokenReader
from keras_xlnet.tokenizers.normalization import strip_right


def question_answering_signatures(
    model: XLNetQuestionAnswering,
    batch_size: int | None,
    num_answers: int = 5,
    max_answer_length: int = 64,
    null_threshold: float | None = None,
) -> dict[str, Signature]:
    """Returns the signatures of a question-answering model.

    Args:
        model: An `XLNetQuestionAnswering`.
        batch_size: As in `export`.
        num_answers: Int, the number of answers to a question. A question with fewer has answers
            with an empty text and the probability 0.
        max_answer_length, null_threshold: As in `XLNetQuestionAnswering.answer`. `None`: the
            `null_threshold` of the model.

    Raises:
        ValueError: If an argument is not as above.
    """
    check_positive_int("num_answers", num_answers)
    check_positive_int("max_answer_length", max_answer_length)
    if null_threshold is None:
        null_threshold = model.null_threshold

    def limits(features):
        limit = model.preprocessor.answer_limits(features["token_ids"], max_answer_length, tf)
        return {"max_answer_length": limit}

    # Windows are full but for the last one, and of equal windows the first has the answer.
    reader = TokenReader(model, batch_size, _beams, inputs=limits, packs=False)

    def answer(question, context):
        features, places = model.preprocessor({"question": question, "context": context})
        beams = reader.read_windows(**features)
        null_score = tf.math.unsorted_segment_min(
            beams.pop("null_score"), places.question, tf.size(question)
        )
        found = _answers(beams, places, context, max_answer_length)
        outputs = _best(found, num_answers)
        best = outputs["answers"][:, 0]
        if null_threshold is not None:
            best = tf.where(null_score > null_threshold, "", best)
        outputs = {"answer": best, "null_score": null_score, **outputs}
        return with_batch_size(outputs, batch_size)

    return {
        "serving_default": Signature(answer, strings("question", "context", batch_size=batch_size)),
        "serving_tokens": reader.signature,
    }


def _beams(outputs, features):
    """The beams of windows: their tokens, counted from the first one of the window, and scores."""
    starts, ends = outputs["start_top_index"], outputs["end_top_index"]
    num_ends = ends.shape[1] // starts.shape[1]
    # Positions in a row depend on its padding.
    begin = tf.argmax(features["padding_mask"], axis=1, output_type=tf.int32)[:, tf.newaxis]
    start_log_probs = tf.repeat(outputs["start_top_log_probs"], num_ends, axis=1)
    return {
        "start": tf.repeat(starts, num_ends, axis=1) - begin,
        "end": ends - begin,
        # As on the host: sums in float32 would tie different pairs.
        "score": tf.cast(start_log_probs, tf.float64)
        + tf.cast(outputs["end_top_log_probs"], tf.float64),
        "null_score": outputs["cls_logits"],
    }


def _answers(beams, places, context, max_answer_length):
    """The answers of all beams: ragged tensors `(questions, None)`. See `decode_answers`."""
    window = tf.range(tf.size(places.question, tf.int64))
    window = tf.repeat(window[:, tf.newaxis], beams["start"].shape[1], axis=1)
    start, end = (tf.cast(beams[name], tf.int64) for name in ("start", "end"))
    is_answer = (start >= 0) & (start <= end) & (end - start < max_answer_length)
    is_answer &= end < tf.gather(places.num_tokens, window)
    window, start, end, score = (x[is_answer] for x in (window, start, end, beams["score"]))

    row = tf.gather(places.question, window)
    first_token = tf.gather(places.first_token, window)
    first_of_row = tf.gather(places.token_start.row_starts(), row)
    start, end = (first_of_row + first_token + token for token in (start, end))
    has_most_context = tf.gather(_window_of_token(places), start) == window
    row, start, end, score = (x[has_most_context] for x in (row, start, end, score))

    start = tf.cast(tf.gather(places.token_start.values, start), tf.int64)
    end = tf.cast(tf.gather(places.token_end.values, end), tf.int64)
    text = parts_of_texts(decode_characters(context), row, start, end)
    # A space at the end is not part of the answer.
    text = strip_right(text)
    end = start + tf.cast(tf.strings.length(text, "UTF8_CHAR"), tf.int64)
    has_text = text != ""
    splits = tf.RaggedTensor.from_value_rowids(
        tf.where(has_text)[:, 0], row[has_text], tf.size(context, tf.int64), validate=False
    )
    found = {"text": text, "start": start, "end": end, "score": score}
    return {name: splits.with_values(tf.gather(x, splits.values)) for name, x in found.items()}


def _window_of_token(places):
    """The window in which each token of the contexts has the most context."""
    first = tf.gather(places.token_start.row_starts(), places.question) + places.first_token
    token = ranges(first, places.num_tokens, tf)
    total = tf.size(places.token_start.values)
    return window_of_most_context(Rows(token, places.num_tokens), total, tf)


def _best(answers, num_answers):
    """The most probable answers with different texts, `(questions, num_answers)`."""
    # One more column, so that `argmax` always has one.
    text, start, end = (
        tf.pad(answers[name].to_tensor(), [(0, 0), (0, 1)]) for name in ("text", "start", "end")
    )
    absent = tf.constant(float("-inf"), tf.float64)
    score = tf.pad(
        answers["score"].to_tensor(absent), [(0, 0), (0, 1)], constant_values=float("-inf")
    )
    chosen = []
    for _ in range(num_answers):
        # The first of equal scores, as on the host.
        best = tf.argmax(score, axis=1)
        chosen.append((best, tf.gather(score, best, batch_dims=1)))
        is_same = text == tf.gather(text, best, batch_dims=1)[:, tf.newaxis]
        score = tf.where(is_same, absent, score)
    best, scores = (tf.stack(values, axis=1) for values in zip(*chosen, strict=True))
    is_answer = scores > absent
    weights = tf.exp(scores - tf.where(is_answer, scores, 0.0)[:, :1])
    total = tf.maximum(tf.reduce_sum(weights, axis=1, keepdims=True), 1.0)

    def of_answers(values):
        return tf.where(
            is_answer, tf.gather(values, best, batch_dims=1), tf.zeros_like(values[:1, :1])
        )

    return {
        "answers": of_answers(text),
        "answer_start": tf.cast(of_answers(start), tf.int32),
        "answer_end": tf.cast(of_answers(end), tf.int32),
        "answer_probability": tf.cast(weights / total, tf.float32),
    }
