"""Strings in, SavedModel out: trains a small spam filter on raw text and exports it for serving.

    python examples/quickstart.py        # about 25 seconds on 2 cores, no network

spam_classifier.py trains a better filter on the same messages and compares it with baselines.
"""

import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.serving import export_text_classifier
from keras_xlnet.text import XLNetPreprocessor, XLNetTokenizer

path = pathlib.Path(__file__).parent / "data" / "spam_messages.tsv"
header, *rows = path.read_text(encoding="utf-8").splitlines()
texts = [row.split("\t")[1] for row in rows]
labels = [int(row.startswith("spam")) for row in rows]

tokenizer = XLNetTokenizer.train(iter(texts), vocabulary_size=1000, lowercase=True)
backbone = XLNetBackbone(
    tokenizer.vocabulary_size(), num_layers=1, num_heads=2, hidden_dim=128, intermediate_dim=256
)
classifier = XLNetTextClassifier(
    backbone,
    num_classes=2,
    preprocessor=XLNetPreprocessor(tokenizer, sequence_length=64),
    pooling="mean",
    class_names=["ham", "spam"],
)
classifier.compile(keras.optimizers.AdamW(1e-3))
classifier.fit(texts, labels, validation_split=0.2, epochs=3)
messages = ["Congratulations! You have won a prize, call 0900 555 0123 now", "see you at six"]
print(classifier.predict(messages))

# TensorFlow Serving takes the highest number in a model's folder as its newest version.
directory = export_text_classifier(classifier, f"runs/quickstart/{int(time.time())}")
served = tf.saved_model.load(directory).signatures["serving_default"]
print(served(text=tf.constant(messages))["label"])
print(f"The SavedModel is in {directory}")
