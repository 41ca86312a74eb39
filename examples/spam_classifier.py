"""Trains a spam filter on short messages with XLNet, from raw text to a served model.

    python examples/spam_classifier.py

reads the bundled messages, trains a SentencePiece vocabulary and a small XLNet on them, compares
it with baselines on the same test messages, and writes the model, a SavedModel that takes raw
text, `metrics.json` and plots to runs/spam. It needs no network and about 2 minutes on 2 cores.
A few hundred messages are too few for a model that starts from nothing: TF-IDF is ahead of it
there. More data, or a pretrained checkpoint, is what it is for. More ways to run it:

    python examples/spam_classifier.py "WIN a free prize, text now" "see you at six"
    python examples/spam_classifier.py --load runs/spam "WIN a free prize, text now"
    python examples/spam_classifier.py --data uci
    python examples/spam_classifier.py --data mine.csv --text_column body --label_column kind
    python examples/spam_classifier.py --data SMSSpamCollection --folds 5
    python examples/spam_classifier.py --checkpoint xlnet_cased_L-12_H-768_A-12
    python examples/spam_classifier.py --strategy mirrored --num_replicas 2
"""

import json
import os
import pathlib
import shutil
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import spam_data
import spam_report
import tensorflow as tf
from absl import app, flags
from sklearn.model_selection import StratifiedKFold, train_test_split
from spam_data import DataError

from keras_xlnet.checkpoints import formats
from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.serving import export_text_classifier
from keras_xlnet.text import XLNetPreprocessor, XLNetTokenizer
from keras_xlnet.training import make_strategy, worker_directory
from keras_xlnet.training.make_strategy import STRATEGIES

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "data", "bundled", "bundled, uci (downloads it), or a file: UCI format, TSV or CSV."
)
flags.DEFINE_string("text_column", "text", "Column of the messages in a file with a header.")
flags.DEFINE_string("label_column", "label", "Column of the labels in a file with a header.")
flags.DEFINE_string("positive_label", "spam", "The label to look for.")
flags.DEFINE_string("output_dir", "runs/spam", "Where everything is written.")
flags.DEFINE_string("load", None, "Only classify the given messages with the model in this folder.")
flags.DEFINE_string("checkpoint", None, "Fine-tune this: original, Hugging Face or preset.")
flags.DEFINE_integer("folds", None, "Cross-validate with so many folds; no model is written.")
flags.DEFINE_integer("vocabulary_size", None, "Pieces to train; by default it fits the data.")
flags.DEFINE_integer("sequence_length", 64, "Tokens a message is cut to.", lower_bound=3)
flags.DEFINE_integer("num_layers", 1, "Layers of a model from scratch.", lower_bound=1)
flags.DEFINE_integer("hidden_dim", 128, "Width of a model from scratch.", lower_bound=2)
flags.DEFINE_integer("num_heads", 4, "Attention heads of a model from scratch.", lower_bound=1)
flags.DEFINE_float("dropout", None, "Dropout rate. [by the data]", lower_bound=0, upper_bound=0.9)
flags.DEFINE_float(
    "token_dropout",
    None,
    "Share of tokens hidden in training. [by the data]",
    lower_bound=0,
    upper_bound=0.9,
)
flags.DEFINE_bool("lowercase", None, "Whether a trained vocabulary is lower case. [by the data]")
flags.DEFINE_float("learning_rate", None, "Peak learning rate. [by the data]")
flags.DEFINE_integer("batch_size", 32, "Messages a step.", lower_bound=1)
flags.DEFINE_integer("epochs", None, "Epochs at most. [by the data]")
flags.DEFINE_integer("patience", 5, "Epochs without a better validation before it stops.")
flags.DEFINE_integer("seed", 1, "Of the splits, the weights and the dropout.")
flags.DEFINE_enum("strategy", "one_device", STRATEGIES, "What it trains on: docs/distributed.md.")
flags.DEFINE_integer("num_replicas", None, "Devices of --strategy mirrored. [all GPUs]")


def main(argv):
    try:
        messages = [argument for argument in argv[1:] if argument.strip()]
        strategy = find_strategy()
        if FLAGS.load:
            classify(*load(FLAGS.load), messages)
            return 0
        texts, labels = read_data()
        if FLAGS.folds:
            # Made first: a folder that cannot be written shall not cost the training.
            with Staging(FLAGS.output_dir) as folder:
                cross_validate(texts, labels, folder, strategy)
            return 0
        model, threshold = train_and_report(texts, labels, strategy)
        classify(model, threshold, messages)
        return 0
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def find_strategy():
    """The strategy to train with; workers write to folders of their own."""
    try:
        strategy = make_strategy(FLAGS.strategy, FLAGS.num_replicas)
    except (RuntimeError, ValueError) as error:
        raise DataError(f"--strategy {FLAGS.strategy}: {error}") from error
    if FLAGS.batch_size % strategy.num_replicas_in_sync:
        raise DataError(
            f"--batch_size {FLAGS.batch_size}: {strategy.num_replicas_in_sync} replicas cannot "
            "share it equally"
        )
    FLAGS.output_dir = worker_directory(strategy, FLAGS.output_dir)
    return strategy


def read_data():
    paths = {"bundled": lambda: spam_data.BUNDLED, "uci": spam_data.download_uci}
    path = paths.get(FLAGS.data, lambda: FLAGS.data)()
    texts, labels = spam_data.read_messages(
        path, FLAGS.text_column, FLAGS.label_column, FLAGS.positive_label
    )
    print(f"{len(texts)} messages from {path}, {labels.sum()} of them {FLAGS.positive_label}")
    return texts, labels


# === One run: split, train, compare, write ===


def train_and_report(texts, labels, strategy):
    with Staging(FLAGS.output_dir) as folder:
        parts = train_test_split(
            texts, labels, test_size=0.2, stratify=labels, random_state=FLAGS.seed
        )
        texts, test_texts, labels, test_labels = parts
        baselines = spam_report.fit_baselines(texts, labels)
        model, threshold, history = train(texts, labels, strategy, verbose="auto")
        scores = model.predict(test_texts, verbose=0)[:, 1]
        predicted = (scores >= threshold).astype(int)
        results = {
            "model": spam_report.compute_metrics(test_labels, predicted),
            "baselines": {
                name: spam_report.compute_metrics(test_labels, baseline.predict(test_texts))
                for name, baseline in baselines.items()
            },
        }
        print(f"\nOn {len(test_texts)} test messages that no model has seen:\n")
        print(spam_report.format_table({"XLNet": results["model"], **results["baselines"]}))
        print(f"\n{spam_report.format_confusion(test_labels, predicted, model.class_names)}")

        tfidf = {
            name: baselines[name].predict_proba(test_texts)[:, 1]
            for name in ("tfidf_logistic_regression", "tfidf_tuned")
        }
        write(folder, model, threshold, results, history)
        spam_report.plot_training_curves(history, folder / "training_curves.png")
        spam_report.plot_confusion(
            test_labels, predicted, model.class_names, folder / "confusion_matrix.png"
        )
        spam_report.plot_precision_recall(
            test_labels,
            {"XLNet": scores, **tfidf},
            threshold,
            folder / "precision_recall.png",
        )
    print(f"\nWritten to {FLAGS.output_dir}: {', '.join(sorted(os.listdir(FLAGS.output_dir)))}")
    return model, threshold


def write(folder, model, threshold, results, history):
    model.save(folder / "model.keras")
    export_text_classifier(model, folder / "saved_model" / "1", threshold=threshold)
    report = {**results, "threshold": threshold, "history": history}
    (folder / "metrics.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def cross_validate(texts, labels, folder, strategy):
    folds = StratifiedKFold(FLAGS.folds, shuffle=True, random_state=FLAGS.seed)
    results = {"XLNet": []}
    for number, (rest, test) in enumerate(folds.split(texts, labels), 1):
        print(f"\nFold {number} of {FLAGS.folds}")
        predictions = {
            name: baseline.predict(texts[test])
            for name, baseline in spam_report.fit_baselines(texts[rest], labels[rest]).items()
        }
        model, threshold, _ = train(texts[rest], labels[rest], strategy, verbose=2)
        predictions["XLNet"] = model.predict(texts[test], verbose=0)[:, 1] >= threshold
        for name, predicted in predictions.items():
            metrics = spam_report.compute_metrics(labels[test], predicted)
            results.setdefault(name, []).append(metrics)
        print(spam_report.format_table({name: found[-1] for name, found in results.items()}))
        keras.backend.clear_session()
    summary = {
        name: {
            metric: (float(np.mean(values)), float(np.std(values)))
            for metric in spam_report.METRICS
            for values in [[fold[metric] for fold in found]]
        }
        for name, found in results.items()
    }
    print(f"\nMean and standard deviation over {FLAGS.folds} folds:\n")
    print(spam_report.format_table(summary))
    report = json.dumps({"summary": summary, "folds": results}, indent=2)
    (folder / "cross_validation.json").write_text(report + "\n", encoding="utf-8")


# === The model ===


def train(texts, labels, strategy, verbose):
    """Returns a trained classifier, its threshold, and the history of every epoch."""
    keras.utils.set_random_seed(FLAGS.seed)
    texts, held_out, labels, held_out_labels = train_test_split(
        texts, labels, test_size=0.1, stratify=labels, random_state=FLAGS.seed
    )
    epochs = option("epochs", len(texts))
    steps = epochs * -(-len(texts) // FLAGS.batch_size)
    with strategy.scope():
        model = make_model(texts)
        model.compile(
            make_optimizer(steps, option("learning_rate", len(texts))),
            # Smoothed, so that the model is not surer than so few messages allow.
            loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.1),
            metrics=["accuracy", PositiveClassAUC()],
        )
    is_alone = strategy.num_replicas_in_sync == 1
    history = model.fit(
        training_batches(
            model.preprocessor, texts, keras.utils.to_categorical(labels, 2), is_alone
        ),
        epochs=epochs,
        shuffle=False,  # they are shuffled already
        validation_data=(held_out, keras.utils.to_categorical(held_out_labels, 2)),
        # Spam is the smaller class. Half way (the root) to an equal say for both: the threshold
        # does the rest.
        class_weight={c: float(np.sqrt(len(labels) / (2 * np.sum(labels == c)))) for c in (0, 1)},
        callbacks=[
            keras.callbacks.EarlyStopping(
                "val_loss", patience=FLAGS.patience, restore_best_weights=True
            )
        ],
        verbose=verbose,
    ).history
    model = model if is_alone else on_one_device(model)
    scores = model.predict(held_out, verbose=0)[:, 1]
    return model, spam_report.best_threshold(held_out_labels, scores), history


def on_one_device(model):
    """Workers predict in turn, not in order; and what is served has one device."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_to_preset(folder)
        return XLNetTextClassifier.from_preset(folder)


def training_batches(preprocessor, texts, labels, is_alone):
    """Shuffled batches in which some tokens are hidden, others in every epoch.

    `model.fit(texts, labels)` would do without that; but a small data set is soon known by heart,
    and a message with holes is a new message.
    """

    token_dropout = option("token_dropout", len(texts))

    def hide_tokens(features, labels):
        ids = features["token_ids"]
        is_word = ids > preprocessor.tokenizer.eop_token_id  # the special ids come first
        hidden = (tf.random.uniform(tf.shape(ids)) < token_dropout) & is_word
        mask_id = preprocessor.tokenizer.mask_token_id
        return {**features, "token_ids": tf.where(hidden, mask_id, ids)}, labels

    tokenized = (
        tf.data.Dataset.from_tensor_slices((texts, labels))
        .batch(256)
        .map(lambda texts, labels: (preprocessor(texts), labels))
        .unbatch()
        .cache()
    )
    # Replicas share full batches, each worker its part of them.
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    steps = len(texts) // FLAGS.batch_size
    if is_alone and len(texts) % FLAGS.batch_size:
        steps += 1
    return (
        tokenized.shuffle(len(texts), seed=FLAGS.seed)
        .batch(FLAGS.batch_size, drop_remainder=not is_alone)
        .apply(tf.data.experimental.assert_cardinality(steps))
        .with_options(options)
        .map(hide_tokens)
        .prefetch(tf.data.AUTOTUNE)
    )


def make_model(texts):
    dropout = option("dropout", len(texts))
    backbone, tokenizer = (
        load_checkpoint(dropout) if FLAGS.checkpoint else from_scratch(texts, dropout)
    )
    return XLNetTextClassifier(
        backbone,
        num_classes=2,
        preprocessor=XLNetPreprocessor(tokenizer, FLAGS.sequence_length),
        # A pretrained <cls> knows the whole message; an untrained one learns that too slowly.
        pooling="last" if FLAGS.checkpoint else "mean",
        dropout=dropout,
        class_names=[f"not {FLAGS.positive_label}", FLAGS.positive_label]
        if FLAGS.positive_label != "spam"
        else ["ham", "spam"],
    )


def from_scratch(texts, dropout):
    # About one piece for 20 characters: enough for words that come often, and no more.
    size = FLAGS.vocabulary_size or int(np.clip(sum(map(len, texts)) // 20, 200, 4000))
    try:
        tokenizer = XLNetTokenizer.train(
            iter(texts), size, lowercase=option("lowercase", len(texts))
        )
    except ValueError as error:
        raise DataError(f"--vocabulary_size: {error}") from error
    backbone = XLNetBackbone(
        vocabulary_size=tokenizer.vocabulary_size(),
        num_layers=FLAGS.num_layers,
        num_heads=FLAGS.num_heads,
        hidden_dim=FLAGS.hidden_dim,
        intermediate_dim=2 * FLAGS.hidden_dim,
        dropout=dropout,
        attention_dropout=0.1,
        # Larger than XLNet's own, which is made for long pretraining.
        kernel_initializer="glorot_normal",
    )
    return backbone, tokenizer


def load_checkpoint(dropout):
    """The backbone and tokenizer of `--checkpoint`, in any format that `xlnet inspect` knows."""
    folder = pathlib.Path(FLAGS.checkpoint)
    dropout = {"dropout": dropout, "attention_dropout": dropout}
    # Pretraining may read half of a batch backwards, and remember.
    no_pretraining = {"bidirectional_data": False, "memory_length": None, "reuse_length": None}
    try:
        format = formats.detect_format(folder)
        tokenizer = formats.load_tokenizer(folder, format)
        if tokenizer is None:
            raise ValueError("it has no tokenizer files")
        if format == "preset" and formats.detect_task(folder, format):
            return formats.load(folder, format, task=None), tokenizer
        backbone = formats.load(folder, format, task=None, **no_pretraining, **dropout)
        return backbone, tokenizer
    except (OSError, ValueError) as error:
        raise DataError(f"--checkpoint {folder}: {error}") from error


def option(name, num_messages):
    """A flag, or what it should be for so much data where it is not given."""
    if FLAGS[name].value is not None:
        return FLAGS[name].value
    if FLAGS.checkpoint:
        defaults = {"epochs": 3, "learning_rate": 3e-5, "dropout": 0.1, "token_dropout": 0.0}
    elif num_messages < 2000:
        # Few messages are soon known by heart: fewer words to tell apart, and more is hidden.
        defaults = {
            "epochs": 25,
            "learning_rate": 5e-4,
            "dropout": 0.3,
            "token_dropout": 0.3,
            "lowercase": True,
        }
    else:
        defaults = {
            "epochs": 10,
            "learning_rate": 1e-3,
            "dropout": 0.2,
            "token_dropout": 0.2,
            "lowercase": False,
        }
    return defaults[name]


def make_optimizer(steps, learning_rate):
    warmup = max(1, steps // 10)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, steps - warmup), warmup_target=learning_rate, warmup_steps=warmup
    )
    return keras.optimizers.AdamW(schedule, weight_decay=0.01, global_clipnorm=1.0)


class PositiveClassAUC(keras.metrics.AUC):
    """Area under the precision-recall curve of class 1, from the probabilities of two classes."""

    def __init__(self, name="pr_auc", **kwargs):
        super().__init__(curve="PR", name=name, **kwargs)

    def update_state(self, y_true, y_pred, sample_weight=None):
        # Class weights are for the loss; the metric is of the messages as they are.
        super().update_state(y_true[:, 1], y_pred[:, 1])


# === Using it ===


def load(folder):
    folder = pathlib.Path(folder)
    try:
        model = keras.saving.load_model(folder / "model.keras", compile=False)
        threshold = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["threshold"]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"--load {folder}: there is no model of this example: {error}") from error
    return model, threshold


def classify(model, threshold, messages):
    if not messages:
        return
    print()
    for message, score in zip(messages, model.predict(messages, verbose=0)[:, 1], strict=True):
        print(f"{model.class_names[int(score >= threshold)]:>8} {score:8.4f}  {message}")


class Staging:
    """A folder that takes its place beside what is in `output_dir` only if all went well."""

    def __init__(self, output_dir):
        self.target = pathlib.Path(output_dir)

    def __enter__(self):
        try:
            self.target.mkdir(parents=True, exist_ok=True)
            self.folder = pathlib.Path(tempfile.mkdtemp(prefix=".partial-", dir=self.target))
        except OSError as error:
            raise DataError(f"--output_dir {self.target}: {error.strerror}") from error
        return self.folder

    def __exit__(self, error_type, error, traceback):
        try:
            if error_type is None:
                for new in self.folder.iterdir():
                    old = self.target / new.name
                    shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
                    new.rename(old)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


if __name__ == "__main__":
    app.run(main)
