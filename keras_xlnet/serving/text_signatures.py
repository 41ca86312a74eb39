"""Signatures of models that read texts or pairs of texts, with one output per text."""

import tensorflow as tf

from keras_xlnet.models import XLNetTextClassifier, XLNetTextEmbedder, XLNetTextRegressor
from keras_xlnet.preprocessing.labels import check_threshold
from keras_xlnet.serving.signature import Signature, strings
from keras_xlnet.serving.token_reader import TokenReader

# The preprocessor needs one token of each text, two <sep> and <cls> for a pair.
_MIN_LENGTH_PAIR = 5


def classifier_signatures(
    model: XLNetTextClassifier, batch_size: int | None, threshold: float | None = None
) -> dict[str, Signature]:
    """Returns the signatures of a classifier.

    Args:
        model: An `XLNetTextClassifier`.
        batch_size: As in `export`.
        threshold: As in `XLNetTextClassifier.classify`.

    Raises:
        ValueError: If `threshold` is invalid or has no effect.
    """
    threshold = model.threshold if threshold is None else threshold
    check_threshold(threshold, model.num_classes, model.activation)

    def finish(predictions, features):
        if model.activation == "linear":
            return {"values": predictions}
        return {"probabilities": predictions}

    def with_labels(outputs):
        if model.activation == "linear":
            return outputs
        found = model.classes.indices(outputs["probabilities"], threshold)
        if model.activation != "sigmoid":
            found = tf.gather(tf.constant(model.label_names), found)
        return {**outputs, "label": found}

    return _of_texts(model, TokenReader(model, batch_size, finish), with_labels)


def regressor_signatures(model: XLNetTextRegressor, batch_size: int | None) -> dict[str, Signature]:
    """Returns the signatures of a regressor. `batch_size` is as in `export`."""
    return _of_texts(model, TokenReader(model, batch_size, lambda x, _: {"values": x}))


def embedder_signatures(model: XLNetTextEmbedder, batch_size: int | None) -> dict[str, Signature]:
    """Returns the signatures of an embedder. `batch_size` is as in `export`."""
    reader = TokenReader(model, batch_size, lambda x, _: {"embedding": x[:, 0]}, rank=3)

    def embed(text):
        return reader(**model.preprocessor(text))

    return {
        "serving_default": Signature(embed, strings("text", batch_size=batch_size)),
        "serving_tokens": reader.signature,
    }


def _of_texts(model, reader, finish=lambda outputs: outputs):
    def read(text, pair=None):
        features = model.preprocessor(text if pair is None else (text, pair))
        return finish(reader(**features))

    def read_tokens(**features):
        return finish(reader(**features))

    text, pair = strings("text", "pair", batch_size=reader.batch_size)
    found = {"serving_default": Signature(read, [text])}
    if model.preprocessor.sequence_length >= _MIN_LENGTH_PAIR:
        found["serving_pair"] = Signature(read, [text, pair])
    return {**found, "serving_tokens": Signature(read_tokens, reader.inputs)}
