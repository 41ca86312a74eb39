"""SavedModels of a few operations, with the signatures that the tests need."""

import tensorflow as tf


def save_half_plus(directory, addend=3.0):
    """TF Serving's example: x / 2 + 3. A negative number is refused as a model refuses inputs."""
    model = tf.Module()
    model.addend = tf.Variable(addend)

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.float32, "x")])
    def add(x):
        tf.debugging.assert_non_negative(x, "x must not be negative")
        return {"y": x / 2 + model.addend}

    tf.saved_model.save(model, str(directory), {"serving_default": add})


def save_texts(directory):
    """Signatures of strings and numbers, of all the kinds of shapes that a batch can have."""
    model = tf.Module()
    text = tf.TensorSpec((None,), tf.string, "text")
    pair = tf.TensorSpec((None,), tf.string, "pair")
    choices = tf.TensorSpec((None, None), tf.string, "choices")

    @tf.function(input_signature=[text])
    def measure(text):
        length = tf.strings.length(text)
        size = tf.cast(length, tf.float32)
        return {
            "label": text,
            "size": size,
            "rows": tf.fill(tf.shape(text), tf.size(text)),
            "raw_bytes": text,
        }

    @tf.function(input_signature=[text, pair])
    def join(text, pair):
        return {"joined": tf.strings.join([text, pair], "|")}

    @tf.function(input_signature=[text, choices])
    def choose(text, choices):
        return {"scores": tf.cast(tf.strings.length(choices), tf.float32)}

    @tf.function(input_signature=[text])
    def split(text):
        return {"words": tf.strings.split(text).to_tensor(), "rows": tf.fill([1], tf.size(text))}

    @tf.function(input_signature=[tf.TensorSpec((2,), tf.string, "text")])
    def static(text):
        return {"length": tf.strings.length(text)}

    @tf.function(
        input_signature=[
            tf.TensorSpec((None,), tf.bool, "flag"),
            tf.TensorSpec((None, 2), tf.int32, "ids"),
            tf.TensorSpec((None,), tf.float32, "number"),
        ]
    )
    def types(flag, ids, number):
        return {"flag": flag, "ids": ids, "number": number}

    signatures = {
        "serving_default": measure,
        "pair": join,
        "choices": choose,
        "split": split,
        "static": static,
        "types": types,
    }
    tf.saved_model.save(model, str(directory), signatures)
