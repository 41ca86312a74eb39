"""Signatures of models that compare several texts: multiple choice and ranking."""

import tensorflow as tf

from keras_xlnet.models import XLNetMultipleChoice, XLNetRanker
from keras_xlnet.preprocessing.choices import fill_blanks
from keras_xlnet.serving.signature import Signature, strings
from keras_xlnet.serving.token_reader import TokenReader


def multiple_choice_signatures(
    model: XLNetMultipleChoice, batch_size: int | None
) -> dict[str, Signature]:
    """Returns the signatures of a multiple-choice model. `batch_size` is as in `export`.

    Empty strings are not choices, so that rows can have different numbers of choices.
    """
    reader = TokenReader(model, batch_size, lambda x, _: {"scores": x})

    def choose(text, choices, question=None):
        filled = choices if question is None else fill_blanks(question, choices)
        features = model.preprocessor({"text": text, "choices": filled})
        scores = reader(**_without(features, choices == ""))["scores"]
        best = tf.argmax(scores, axis=1, output_type=tf.int32)
        choice = tf.gather(choices, best, batch_dims=1)
        return {model.output_name: scores, "index": best, "choice": choice}

    text, question = strings("text", "question", batch_size=batch_size)
    choices = tf.TensorSpec((batch_size, None), tf.string, "choices")
    return {
        "serving_default": Signature(choose, [text, choices]),
        "serving_question": Signature(choose, [text, choices, question]),
        "serving_tokens": Signature(
            lambda **features: {model.output_name: reader(**features)["scores"]}, reader.inputs
        ),
    }


def ranker_signatures(model: XLNetRanker, batch_size: int | None) -> dict[str, Signature]:
    """Returns the signatures of a ranker. `batch_size` is as in `export`.

    Empty strings are not documents, so that queries can have different numbers of
    documents.
    """
    reader = TokenReader(model, None, lambda x, _: {"scores": x[:, 0]})

    def rank(query, documents):
        # Rows of one document: the documents of a query are read in batches of similar length.
        queries = tf.repeat(query, tf.shape(documents)[1])
        features = model.preprocessor((queries, tf.reshape(documents, [-1])))
        features = {key: value[:, tf.newaxis] for key, value in features.items()}
        features = _without(features, tf.reshape(documents, (-1, 1)) == "")
        scores = tf.reshape(reader(**features)["scores"], tf.shape(documents))
        order = tf.argsort(scores, axis=1, direction="DESCENDING", stable=True)
        return {"scores": scores, "order": order}

    (query,) = strings("query", batch_size=batch_size)
    documents = tf.TensorSpec((batch_size, None), tf.string, "documents")
    return {"serving_default": Signature(rank, [query, documents])}


def _without(features, is_absent):
    """Features in which some texts, `(batch, texts)`, have no tokens."""
    is_choice = tf.logical_not(is_absent)[..., tf.newaxis]
    return {**features, "padding_mask": features["padding_mask"] & is_choice}
