"""Signatures of models that classify the words of texts: entities, or other tags."""

import tensorflow as tf

from keras_xlnet.models import Task, XLNetTokenClassifier
from keras_xlnet.preprocessing.tags import detect_scheme, split_tag
from keras_xlnet.preprocessing.words import is_first_piece
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
    is_logits = model.activation == "linear"
    reader = TokenReader(
        model,
        batch_size,
        lambda x, _: {"probabilities": tf.nn.softmax(x) if is_logits else x},
        of_tokens=["probabilities"],
    )
    label_names = model.label_names
    names, scheme = tf.constant(label_names), detect_scheme(label_names)

    def choose(probabilities):
        """The tags of words, as indices, and their probabilities."""
        log_probs = tf.cast(tf.math.log(tf.maximum(probabilities.values, _EPSILON)), tf.float64)
        lengths = probabilities.row_lengths()
        chosen = most_probable_tags(
            probabilities.with_values(log_probs).to_tensor(), lengths, label_names, scheme
        )
        chosen = tf.RaggedTensor.from_tensor(chosen, lengths)
        scores = tf.gather(probabilities.values, chosen.values, batch_dims=1)
        return chosen, chosen.with_values(scores)

    def tag(probabilities):
        chosen, scores = choose(probabilities)
        return {"tag": tf.gather(names, chosen), "tag_probability": scores}

    def find_entities(text, start, end, probabilities):
        return _entities(label_names, text, start, end, *choose(probabilities))

    are_entities = all(split_tag(name) is not None for name in label_names)
    return _of_words(model, reader, tag, find_entities if are_entities else None)


def word_signatures(model: Task, batch_size: int | None) -> dict[str, Signature]:
    """Returns the signatures of a model with an output for each word, its `output_name`.

    `batch_size` is as in `export`.
    """
    name = model.output_name
    reader = TokenReader(model, batch_size, lambda x, _: {name: x}, of_tokens=[name])
    return _of_words(model, reader, lambda outputs: {name: outputs})


def _of_words(model, reader, convert, find_entities=None):
    """The signatures of a model of words.

    `convert` makes outputs for words, ragged `(batch, None, ...)`, of the outputs for their first
    tokens. `find_entities` makes the outputs for a text instead.
    """

    def outputs_of(words):
        features, _ = model.preprocessor.windows(words)
        word_index = features.pop("word_index")
        (outputs,) = reader.read_windows(**features).values()
        # Windows have the words of all sentences in order.
        return words.with_values(outputs[is_first_piece(word_index, tf)])

    def read_words(words):
        found = convert(outputs_of(tf.RaggedTensor.from_tensor(words, padding="")))
        # As wide as the request, which may have columns of padding.
        width = tf.shape(words)[1]
        outputs = {
            name: rows.to_tensor(shape=tf.stack([-1, width, *rows.shape[2:]]))
            for name, rows in found.items()
        }
        return with_batch_size(outputs, reader.batch_size)

    def read_text(text):
        words, start, end = split_words(text)
        if find_entities:
            found = find_entities(text, start, end, outputs_of(words))
        else:
            found = {
                "word": words,
                "word_start": tf.cast(start, tf.int32),
                "word_end": tf.cast(end, tf.int32),
                **convert(outputs_of(words)),
            }
        (count, *_) = (tf.cast(rows.row_lengths(), tf.int32) for rows in found.values())
        outputs = {name: rows.to_tensor() for name, rows in found.items()}
        return with_batch_size(
            {f"num_{'entities' if find_entities else 'words'}": count, **outputs},
            reader.batch_size,
        )

    words = tf.TensorSpec((reader.batch_size, None), tf.string, "words")
    return {
        "serving_default": Signature(read_text, strings("text", batch_size=reader.batch_size)),
        "serving_words": Signature(read_words, [words]),
        "serving_tokens": reader.signature,
    }


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
