"""Trains a spam filter on short messages with XLNet, from raw text to a served model.

    python examples/spam_classifier.py

reads the bundled messages, trains a SentencePiece vocabulary and a small XLNet on them, compares
the model with baselines on the same test messages, and writes the model, a SavedModel that takes
raw text, `metrics.json` and plots to runs/spam. It needs no network and takes about a minute on 2
cores. TF-IDF is better on so few messages: a Transformer needs more messages, or a pretrained
checkpoint. More ways to run it:

    python examples/spam_classifier.py "WIN a free prize, text now" "see you at six"
    python examples/spam_classifier.py --load runs/spam "WIN a free prize, text now"
    python examples/spam_classifier.py --data uci
    python examples/spam_classifier.py --data mine.csv --text_column body --label_column kind
    python examples/spam_classifier.py --data SMSSpamCollection --folds 5
    python examples/spam_classifier.py --checkpoint xlnet_cased_L-12_H-768_A-12
    python examples/spam_classifier.py --strategy mirrored --num_replicas 2
"""

import json
import math
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import spam_data
import spam_report
from absl import app, flags, logging
from sklearn.model_selection import StratifiedKFold, train_test_split

from keras_xlnet.checkpoints import detect_task, load_checkpoint, load_tokenizer
from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.preset_files import replace_files
from keras_xlnet.serving import export_text_classifier
from keras_xlnet.text import XLNetPreprocessor, XLNetTokenizer
from keras_xlnet.training import STRATEGIES, make_strategy, worker_directory

FLAGS = flags.FLAGS
flags.DEFINE_string("data", "bundled", "bundled, uci (downloads it), or a file: UCI, TSV or CSV.")
flags.DEFINE_string("text_column", "text", "Column of the messages in a file with a header.")
flags.DEFINE_string("label_column", "label", "Column of the labels in a file with a header.")
flags.DEFINE_string("positive_label", "spam", "The label to look for.")
flags.DEFINE_string("output_dir", "runs/spam", "Where everything is written.")
flags.DEFINE_string("load", None, "Only classify the given messages with the model in this folder.")
flags.DEFINE_string("checkpoint", None, "Fine-tune this: original, Hugging Face or preset.")
flags.DEFINE_integer("folds", None, "Cross-validate with this many folds; writes no model.")
flags.DEFINE_integer("vocabulary_size", 1000, "Size of the vocabulary of a model from scratch.")
flags.DEFINE_integer("sequence_length", 64, "Tokens that a message is cut to.", lower_bound=3)
flags.DEFINE_integer("batch_size", 32, "Messages in a training step.", lower_bound=1)
flags.DEFINE_integer("epochs", None, "Maximum number of epochs. [15, with --checkpoint 3]")
flags.DEFINE_float("learning_rate", None, "Peak learning rate. [1e-3, with --checkpoint 3e-5]")
flags.DEFINE_integer("seed", 1, "Seed of the splits, the weights and the dropout.")
flags.DEFINE_enum("strategy", "one_device", STRATEGIES, "Devices to use: docs/distributed.md.")
flags.DEFINE_integer("num_replicas", None, "Devices of --strategy mirrored. [all GPUs]")


def main(arguments):
    logging.set_verbosity(logging.WARNING)  # TensorFlow logs details of every export.
    try:
        model, threshold = load(pathlib.Path(FLAGS.load)) if FLAGS.load else run()
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"error: {error}")
    messages = arguments[1:]
    if model is not None and messages:
        scores = model.predict(messages, verbose=0)[:, 1]
        for message, score in zip(messages, scores, strict=True):
            print(f"{model.class_names[int(score >= threshold)]:>8} {score:8.4f}  {message}")


def load(folder):
    """Loads the model that an earlier run wrote, and its threshold."""
    threshold = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["threshold"]
    return keras.saving.load_model(folder / "model.keras", compile=False), threshold


def run():
    """Trains and tests a model, writes everything, and returns the model and its threshold."""
    strategy = make_strategy(FLAGS.strategy, FLAGS.num_replicas)
    texts, labels = spam_data.read_messages(
        spam_data.find_file(FLAGS.data), FLAGS.text_column, FLAGS.label_column, FLAGS.positive_label
    )
    print(f"{len(texts)} messages, {labels.sum()} of them {FLAGS.positive_label}")
    output_dir = worker_directory(strategy, FLAGS.output_dir)
    # Entered before the training: if the folder cannot be written, the run fails at once.
    with replace_files(output_dir) as folder:
        if FLAGS.folds:
            cross_validate(texts, labels, strategy, folder)
            model, threshold = None, None
        else:
            model, threshold = train_and_test(texts, labels, strategy, folder)
    print(f"\nWritten to {output_dir}: {', '.join(sorted(os.listdir(output_dir)))}")
    return model, threshold


# === Train, compare, write ===


def train_and_test(texts, labels, strategy, folder):
    texts, test_texts, labels, test_labels = train_test_split(
        texts, labels, test_size=0.2, stratify=labels, random_state=FLAGS.seed
    )
    baselines = spam_report.fit_baselines(texts, labels)
    model, threshold, history = train(texts, labels, strategy)
    scores = {"XLNet": model.predict(test_texts, verbose=0)[:, 1]}
    scores |= {name: found.predict_proba(test_texts)[:, 1] for name, found in baselines.items()}

    spam_report.write_report(folder, test_labels, scores, threshold, history, model.class_names)
    model.save(folder / "model.keras")
    export_text_classifier(model, folder / "saved_model" / "1", threshold=threshold)
    return model, threshold


def cross_validate(texts, labels, strategy, folder):
    folds = StratifiedKFold(FLAGS.folds, shuffle=True, random_state=FLAGS.seed)
    results = []
    for number, (rest, test) in enumerate(folds.split(texts, labels), 1):
        print(f"\nFold {number} of {FLAGS.folds}")
        model, threshold, _ = train(texts[rest], labels[rest], strategy, verbose=2)
        predicted = {"XLNet": model.predict(texts[test], verbose=0)[:, 1] >= threshold}
        for name, baseline in spam_report.fit_baselines(texts[rest], labels[rest]).items():
            predicted[name] = baseline.predict(texts[test])
        results.append(
            {name: spam_report.compute_metrics(labels[test], p) for name, p in predicted.items()}
        )
        print(spam_report.format_table(results[-1]))
        keras.backend.clear_session()
    spam_report.write_cross_validation(folder, results)


# === The model ===


def train(texts, labels, strategy, verbose="auto"):
    """Returns a trained classifier, its threshold, and the history of all epochs."""
    keras.utils.set_random_seed(FLAGS.seed)
    texts, held_out, labels, held_out_labels = train_test_split(
        texts, labels, test_size=0.1, stratify=labels, random_state=FLAGS.seed
    )
    if strategy.num_replicas_in_sync > 1:  # Replicas share full batches.
        num_texts = len(texts) - len(texts) % FLAGS.batch_size
        texts, labels = texts[:num_texts], labels[:num_texts]
    epochs = FLAGS.epochs or (3 if FLAGS.checkpoint else 15)
    with strategy.scope():
        model = make_model(texts)
        # Of class 1 alone.
        auc = keras.metrics.AUC(curve="PR", name="pr_auc", multi_label=True, label_weights=[0, 1])
        model.compile(
            make_optimizer(epochs * math.ceil(len(texts) / FLAGS.batch_size)),
            # Label smoothing keeps the model from growing overconfident on few messages.
            loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.1),
            metrics=["accuracy", auc],
        )
    history = model.fit(
        texts,
        keras.utils.to_categorical(labels, 2),
        batch_size=FLAGS.batch_size,
        epochs=epochs,
        validation_data=(held_out, keras.utils.to_categorical(held_out_labels, 2)),
        # Spam is the rarer class. The square root is half of the way to equal influence of both.
        class_weight={c: math.sqrt(len(labels) / (2 * np.sum(labels == c))) for c in (0, 1)},
        callbacks=[keras.callbacks.EarlyStopping(patience=5, restore_best_weights=True)],
        verbose=verbose,
    ).history
    if strategy.num_replicas_in_sync > 1:
        model = on_one_device(model)
    scores = model.predict(held_out, verbose=0)[:, 1]
    return model, spam_report.best_threshold(held_out_labels, scores), history


def make_model(texts):
    backbone, tokenizer = pretrained() if FLAGS.checkpoint else from_scratch(texts)
    return XLNetTextClassifier(
        backbone,
        num_classes=2,
        preprocessor=XLNetPreprocessor(tokenizer, FLAGS.sequence_length),
        # Pretraining has taught <cls>, the last token, to summarize. From scratch, the mean learns
        # faster.
        pooling="last" if FLAGS.checkpoint else "mean",
        class_names=["ham", "spam"]
        if FLAGS.positive_label == "spam"
        else [f"not {FLAGS.positive_label}", FLAGS.positive_label],
    )


def from_scratch(texts):
    tokenizer = XLNetTokenizer.train(iter(texts), FLAGS.vocabulary_size, lowercase=True)
    backbone = XLNetBackbone(
        vocabulary_size=tokenizer.vocabulary_size(),
        num_layers=1,
        num_heads=4,
        hidden_dim=128,
        intermediate_dim=256,
        dropout=0.3,
        # Larger initial weights than XLNet's, which are meant for long pretraining.
        kernel_initializer="glorot_normal",
    )
    return backbone, tokenizer


def pretrained():
    tokenizer = load_tokenizer(FLAGS.checkpoint)
    if tokenizer is None:
        raise ValueError(f"--checkpoint {FLAGS.checkpoint}: it has no tokenizer files")
    # The backbone of examples/pretrain.py has settings that are for pretraining only.
    fine_tuning = {"bidirectional_data": False, "memory_length": None, "reuse_length": None}
    overrides = {} if detect_task(FLAGS.checkpoint) else {**fine_tuning, "dropout": 0.1}
    return load_checkpoint(FLAGS.checkpoint, **overrides), tokenizer


def make_optimizer(steps):
    warmup = max(1, steps // 10)
    peak = FLAGS.learning_rate or (3e-5 if FLAGS.checkpoint else 1e-3)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, steps - warmup), warmup_target=peak, warmup_steps=warmup
    )
    return keras.optimizers.AdamW(schedule, weight_decay=0.01, global_clipnorm=1.0)


def on_one_device(model):
    """A copy outside of the strategy: workers predict in turn, and serving has one device."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_to_preset(folder)
        return XLNetTextClassifier.from_preset(folder)


if __name__ == "__main__":
    app.run(main)
