"""Signatures of models that classify the words of texts: entities, or other tags."""

from collections.abc import Callable

import tensorflow as tf

from keras_xlnet.models import XLNetTokenClassifier
from keras_xlnet.preprocessing.tags import detect_scheme, split_tag
from keras_xlnet.serving.ragged_rows import decode_characters, parts_of_texts, with_batch_size
from keras_xlnet.serving.signature import Signature, strings
from keras_xlnet.serving.tag_sequences import entity_starts, most_probable_tags
from keras_xlnet.serving.text_words import split_words
from keras_xlnet.serving.token_reader import TokenReader

# The smallest probability, as on the host.
_EPSILON = 1e-30


def token_classifier_signatures(
    model: XLNetTokenClassifier, batch_size: int | None
) -> dict[str, Signature]:
    """Returns the signatures of a token classifier. `batch_size` is as in `export`.

    `serving_default` finds entities if the class names are entity tags. Otherwise it
    returns the words of texts with their tags.
    """
    reader = TokenReader(model, batch_size, _finish(model), of_tokens=["probabilities"])
    tag_words = _tagger(model, reader)
    names = tf.constant(model.label_names)
    finds_entities = all(split_tag(name) is not None for name in model.label_names)

    def read_words(words):
        chosen, scores = tag_words(tf.RaggedTensor.from_tensor(words, padding=""))
        # As wide as the request, which may have columns of padding.
        shape = tf.stack([-1, tf.shape(words)[1]])
        outputs = {
            "tag": tf.gather(names, chosen).to_tensor(shape=shape),
            "tag_probability": scores.to_tensor(shape=shape),
        }
        return with_batch_size(outputs, batch_size)

    def read_text(text):
        words, start, end = split_words(text)
        chosen, scores = tag_words(words)
        if finds_entities:
            found = _entities(model.label_names, text, start, end, chosen, scores)
        else:
            found = {
                "word": words,
                "word_start": tf.cast(start, tf.int32),
                "word_end": tf.cast(end, tf.int32),
                "tag": tf.gather(names, chosen),
                "tag_probability": scores,
            }
        (count, *_) = (tf.cast(rows.row_lengths(), tf.int32) for rows in found.values())
        outputs = {name: rows.to_tensor() for name, rows in found.items()}
        return with_batch_size(
            {f"num_{'entities' if finds_entities else 'words'}": count, **outputs}, batch_size
        )

    words = tf.TensorSpec((batch_size, None), tf.string, "words")
    return {
        "serving_default": Signature(read_text, strings("text", batch_size=batch_size)),
        "serving_words": Signature(read_words, [words]),
        "serving_tokens": reader.signature,
    }


def _finish(model):
    is_logits = model.activation == "linear"
    return lambda x, _: {"probabilities": tf.nn.softmax(x) if is_logits else x}


def _tagger(
    model: XLNetTokenClassifier, reader: TokenReader
) -> Callable[[tf.RaggedTensor], tuple[tf.RaggedTensor, tf.RaggedTensor]]:
    """Returns a function of words that returns their tags, as indices, and probabilities."""
    names = model.label_names
    scheme = detect_scheme(names)

    def tag_words(words):
        features, _ = model.preprocessor.windows(words)
        word_index = features.pop("word_index")
        probabilities = reader.read_windows(**features)["probabilities"]
        before = tf.pad(word_index[:, :-1], [(0, 0), (1, 0)], constant_values=-1)
        is_first = (word_index >= 0) & (word_index != before)
        # Windows have the words of all sentences in order.
        of_words = words.with_values(probabilities[is_first])
        log_probs = tf.cast(tf.math.log(tf.maximum(of_words.values, _EPSILON)), tf.float64)
        lengths = words.row_lengths()
        chosen = most_probable_tags(
            words.with_values(log_probs).to_tensor(), lengths, names, scheme
        )
        chosen = tf.RaggedTensor.from_tensor(chosen, lengths)
        return chosen, chosen.with_values(tf.gather(of_words.values, chosen.values, batch_dims=1))

    return tag_words


def _entities(names, text, start, end, chosen, scores):
    """The entities of texts: a dict of ragged tensors `(batch, None)`."""
    is_start, is_inside = entity_starts(chosen, names, detect_scheme(names))
    count = tf.reduce_sum(tf.cast(chosen.with_values(is_start), tf.int64), axis=1)
    entity = (tf.cumsum(tf.cast(is_start, tf.int32)) - 1)[is_inside]
    total = tf.reduce_sum(tf.cast(is_start, tf.int32))
    first = start.values[is_start]
    last = tf.math.unsorted_segment_max(end.values[is_inside], entity, total)
    row = chosen.value_rowids()[is_start]
    types = tf.constant([part[1] for part in map(split_tag, names) if part])
    found = {
        "entity_type": tf.gather(types, chosen.values[is_start]),
        "entity_text": parts_of_texts(decode_characters(text), row, first, last),
        "entity_start": tf.cast(first, tf.int32),
        "entity_end": tf.cast(last, tf.int32),
        "entity_score": tf.math.unsorted_segment_mean(scores.values[is_inside], entity, total),
    }
    return {
        name: tf.RaggedTensor.from_row_lengths(values, count, validate=False)
        for name, values in found.items()
    }
