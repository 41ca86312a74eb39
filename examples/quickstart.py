"""Strings in, SavedModel out: fine-tunes the small preset into a spam filter and exports it.

    python examples/quickstart.py        # about half a minute on 2 cores, no network

The preset is English only: docs/presets.md compares it with the other one, and names other ways.
spam_classifier.py trains on all of the messages and compares the filter with baselines.
"""

import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from keras_xlnet.models import XLNetTextClassifier
from keras_xlnet.serving import export
from keras_xlnet.task_files import read_table

path = pathlib.Path(__file__).parent / "data" / "SMSSpamCollection"
table = read_table(path, {"label": 0, "text": 1}, has_header=False)
texts, labels = table["text"][:500], [int(label == "spam") for label in table["label"][:500]]

classifier = XLNetTextClassifier.from_preset(
    "xlnet_mini_en", num_classes=2, sequence_length=64, class_names=["ham", "spam"]
)
# The last layer first, on frozen features: from a random one, two epochs sometimes learn nothing.
classifier.fit_head(texts, labels)
classifier.fit(texts, labels, batch_size=16, epochs=2)
messages = ["Congratulations! You have won a prize, call 09061701461 now", "see you at six"]
print(classifier.predict(messages))

# TensorFlow Serving takes the highest number in a model's folder as its newest version.
directory = export(classifier, f"runs/quickstart/{int(time.time())}")
served = tf.saved_model.load(directory).signatures["serving_default"]
print(served(text=tf.constant(messages))["label"])
print(f"The SavedModel is in {directory}")
