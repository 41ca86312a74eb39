"""SavedModels of a few operations, with the signatures that the tests need."""

import json

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


def save_embedder(directory):
    """The numbers of the letters a and b."""
    model = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, "text")])
    def embed(text):
        letters = tf.strings.unicode_split(text, "UTF-8").to_tensor()
        counts = [tf.reduce_sum(tf.cast(letters == x, tf.float32), axis=1) for x in "ab"]
        return {"embedding": tf.stack(counts, axis=1)}

    tf.saved_model.save(model, str(directory), {"serving_default": embed})


def save_classifier(directory):
    """Texts with "good" are good, with "very good" more so. One word has no effect on the other."""
    model = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, "text")])
    def classify(text):
        def has(word):
            found = tf.strings.regex_full_match(text, f"(?s).*{word}.*")
            return tf.cast(found, tf.float32)

        good = 0.25 + 0.5 * has("good") + 0.125 * has("very") - 0.125 * has("not")
        probabilities = tf.stack([1 - good, good], axis=1)
        label = tf.gather(["bad", "good"], tf.argmax(probabilities, axis=1))
        return {"probabilities": probabilities, "label": label}

    tf.saved_model.save(model, str(directory), {"serving_default": classify})


def save_pair_classifier(directory):
    """Pairs of texts are equal or not; a text alone is never."""
    model = tf.Module()
    text, pair = (tf.TensorSpec((None,), tf.string, name) for name in ("text", "pair"))

    def classify(text, pair):
        equal = tf.cast(text == pair, tf.float32)
        label = tf.where(text == pair, "equal", "different")
        return {"probabilities": tf.stack([1 - equal, equal], axis=1), "label": label}

    @tf.function(input_signature=[text])
    def alone(text):
        return classify(text, tf.zeros_like(text))

    both = tf.function(classify, input_signature=[text, pair])
    signatures = {"serving_default": alone, "serving_pair": both}
    tf.saved_model.save(model, str(directory), signatures)


def save_named_classifier(directory):
    """The classifier, with names of classes beside it, as `export` writes them."""
    save_classifier(directory)
    write_details(directory, json.dumps({"class_names": ["bad", "<good>"]}))


def write_details(directory, text):
    """Writes the file of details into a SavedModel."""
    file = directory / "assets.extra" / "model_details.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")


def save_tagger(directory):
    """The same two entities in each text, the second of them only in long texts."""
    model = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, "text")])
    def tag(text):
        def repeated(values):
            return tf.repeat(tf.constant([values]), tf.size(text), axis=0)

        start, end = [0, 16], [4, 22]
        parts = [
            tf.strings.substr(text, a, b - a, unit="UTF8_CHAR")
            for a, b in zip(start, end, strict=True)
        ]
        return {
            "entity_type": repeated(["PER", "LOC"]),
            "entity_text": tf.stack(parts, axis=1),
            "entity_start": repeated(start),
            "entity_end": repeated(end),
            "entity_score": repeated([0.9, 0.75]),
            "num_entities": tf.fill([tf.size(text)], 2),
        }

    tf.saved_model.save(model, str(directory), {"serving_default": tag})


def save_answerer(directory):
    """The first word of a context is the answer."""
    model = tf.Module()
    inputs = [tf.TensorSpec((None,), tf.string, name) for name in ("question", "context")]

    @tf.function(input_signature=inputs)
    def answer(question, context):
        first = tf.strings.regex_replace(context, "(?s) .*", "")
        return {
            "answer": first,
            "answers": tf.stack([first, tf.fill(tf.shape(first), "")], axis=1),
            "answer_start": tf.repeat([[0, 0]], tf.size(first), axis=0),
            "answer_end": tf.stack([tf.strings.length(first, "UTF8_CHAR")] * 2, axis=1),
            "answer_probability": tf.repeat([[0.8, 0.2]], tf.size(first), axis=0),
            "null_score": tf.fill(tf.shape(first), -1.0),
        }

    tf.saved_model.save(model, str(directory), {"serving_default": answer})


def save_ranker(directory):
    """The longest document first."""
    model = tf.Module()
    query = tf.TensorSpec((None,), tf.string, "query")
    documents = tf.TensorSpec((None, None), tf.string, "documents")

    @tf.function(input_signature=[query, documents])
    def rank(query, documents):
        scores = tf.cast(tf.strings.length(documents), tf.float32)
        return {"scores": scores, "order": tf.argsort(scores, direction="DESCENDING", stable=True)}

    tf.saved_model.save(model, str(directory), {"serving_default": rank})
