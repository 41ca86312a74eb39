"""Reads the SavedModel and the token records with TensorFlow, without this package."""

import numpy as np
from reading import DIRECTORY, LISTS, check_equal, difference, report


def read_saved_model():
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  Registers its kernels.

    served = tf.saved_model.load(str(DIRECTORY / "saved_model")).signatures["serving_default"]
    outputs = served(text=tf.constant(LISTS["texts"]))
    check_equal([label.decode() for label in outputs["label"].numpy()], "labels")
    return difference(outputs["probabilities"], "probabilities")


def read_records():
    import tensorflow as tf

    files = tf.data.Dataset.list_files(str(DIRECTORY / "records" / "*.tfrecord"), shuffle=False)
    features = {"tokens": tf.io.RaggedFeature(tf.int64)}
    records = tf.data.TFRecordDataset(files).map(lambda x: tf.io.parse_single_example(x, features))
    tokens = [record["tokens"].numpy() for record in records]
    return difference(np.concatenate(tokens), "record_tokens")


report(
    ["tensorflow", "tensorflow-text", "keras", "numpy"],
    saved_model=read_saved_model,
    records=read_records,
)
