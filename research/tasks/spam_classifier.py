"""Fine-tunes a pretrained XLNet into a spam filter, from raw text to a served model.

    python research/tasks/spam_classifier.py

reads the messages of the UCI SMS Spam Collection, fine-tunes the preset xlnet_small_en on four
fifths of them, compares it on the others with TF-IDF and logistic regression, tuned, and writes the
model, a SavedModel that takes raw text, `metrics.json` and plots to runs/spam. Preset and messages
are in this repository: it needs no network. It says how long it will
take before it starts: some minutes on 2 cores. More ways to run it:

    python research/tasks/spam_classifier.py "You have won a prize, call 09061701461 now" "see you at six"
    python research/tasks/spam_classifier.py --load runs/spam "You have won a prize, call 09061701461 now"
    python research/tasks/spam_classifier.py --from_scratch      # what the pretraining is good for
    python research/tasks/spam_classifier.py --lora_rank 8       # or --freeze_backbone
    python research/tasks/spam_classifier.py --folds 5
    python research/tasks/spam_classifier.py --data mine.csv --text_column body --label_column kind
    python research/tasks/spam_classifier.py --preset xlnet_cased_L-12_H-768_A-12
    python research/tasks/spam_classifier.py --strategy mirrored --num_replicas 2
"""

import math
import os
import pathlib
import sys

import expected_time
import fast_dtype
import fine_tuning
import keras
import spam_data
import spam_report
from absl import app, flags, logging
from sklearn.model_selection import StratifiedKFold, train_test_split

from keras_xlnet.checkpoints import detect_format, load_checkpoint, load_tokenizer
from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.preset_files import replace_files
from keras_xlnet.serving import export
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.training import STRATEGIES, make_strategy, worker_directory

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "A file: UCI, TSV or CSV. [the UCI messages in examples/data]")
flags.DEFINE_string("text_column", "text", "Column of the messages in a file with a header.")
flags.DEFINE_string("label_column", "label", "Column of the labels in a file with a header.")
flags.DEFINE_string("positive_label", "spam", "The label to look for.")
flags.DEFINE_string("output_dir", "runs/spam", "Where everything is written.")
flags.DEFINE_string("load", None, "Only classify the given messages with the model in this folder.")
flags.DEFINE_string(
    "preset",
    "xlnet_small_en",
    "Fine-tune this: a preset, or an original or Hugging Face checkpoint.",
)
fine_tuning.define_method_flags()
flags.DEFINE_integer("folds", None, "Cross-validate with this many folds; writes no model.")
flags.DEFINE_integer(
    "vocabulary_size", None, "With --from_scratch, train a vocabulary of this size. [the preset's]"
)
flags.DEFINE_integer("sequence_length", 80, "Tokens that a message is cut to.", lower_bound=3)
flags.DEFINE_integer("batch_size", 32, "Messages in a training step.", lower_bound=1)
flags.DEFINE_integer("epochs", None, "Number of epochs. [2; wide models 3; from scratch 6]")
flags.DEFINE_integer("seed", 1, "Seed of the splits, the weights and the dropout.")
flags.DEFINE_enum("strategy", "one_device", STRATEGIES, "Devices to use: docs/distributed.md.")
flags.DEFINE_integer("num_replicas", None, "Devices of --strategy mirrored. [all GPUs]")


def main(arguments):
    logging.set_verbosity(logging.WARNING)  # TensorFlow logs details of every export.
    try:
        model = load(pathlib.Path(FLAGS.load)) if FLAGS.load else run()
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"error: {error}")
    messages = arguments[1:]
    if model is not None and messages:
        for message, found in zip(messages, model.classify(messages, verbose=0), strict=True):
            print(f"{found.label:>8} {found.score:8.4f}  {message}")


def load(folder):
    """Loads the model that an earlier run wrote."""
    path = folder / "model.keras"
    if not path.exists():
        raise FileNotFoundError(f"--load {folder}: it has no model.keras")
    return keras.saving.load_model(path, compile=False)


def run():
    """Trains and tests a model, writes everything, and returns the model if there is one."""
    fine_tuning.check_method_flags()
    if FLAGS.vocabulary_size and not FLAGS.from_scratch:
        raise ValueError("--vocabulary_size needs --from_scratch: a preset has a vocabulary")
    strategy = make_strategy(FLAGS.strategy, FLAGS.num_replicas)
    texts, labels = spam_data.read_messages(
        FLAGS.data or spam_data.BUNDLED,
        FLAGS.text_column,
        FLAGS.label_column,
        FLAGS.positive_label,
    )
    print(f"{len(texts)} messages, {labels.sum()} of them {FLAGS.positive_label}")
    output_dir = worker_directory(strategy, FLAGS.output_dir)
    model = None
    # Entered before the training: if the folder cannot be written, the run fails at once.
    with replace_files(output_dir) as folder:
        if FLAGS.folds:
            cross_validate(texts, labels, strategy, folder)
        else:
            model = train_and_test(texts, labels, strategy, folder)
    print(f"\nWritten to {output_dir}: {', '.join(sorted(os.listdir(output_dir)))}")
    return model


# === Train, compare, write ===


def train_and_test(texts, labels, strategy, folder):
    texts, test_texts, labels, test_labels = train_test_split(
        texts, labels, test_size=0.2, stratify=labels, random_state=FLAGS.seed
    )
    model, history = train(texts, labels, strategy)
    baselines = spam_report.fit_baselines(texts, labels)
    scores = {fine_tuning.model_name(): model.predict(test_texts, verbose=0)[:, 1]}
    scores |= {name: found.predict_proba(test_texts)[:, 1] for name, found in baselines.items()}

    spam_report.write_report(folder, test_labels, scores, history, model.class_names)
    model.save(folder / "model.keras")
    export(model, folder / "saved_model" / "1")
    return model


def cross_validate(texts, labels, strategy, folder):
    folds = StratifiedKFold(FLAGS.folds, shuffle=True, random_state=FLAGS.seed)
    results = []
    for number, (rest, test) in enumerate(folds.split(texts, labels), 1):
        print(f"\nFold {number} of {FLAGS.folds}")
        model, _ = train(texts[rest], labels[rest], strategy, verbose=2)
        predicted = {fine_tuning.model_name(): model.predict(texts[test], verbose=0).argmax(axis=1)}
        for name, baseline in spam_report.fit_baselines(texts[rest], labels[rest]).items():
            predicted[name] = baseline.predict(texts[test])
        results.append(
            {name: spam_report.compute_metrics(labels[test], p) for name, p in predicted.items()}
        )
        print(spam_report.format_table(results[-1]))
        keras.backend.clear_session()
    spam_report.write_cross_validation(folder, results)


# === The model ===


def train(texts, labels, strategy, verbose=None):
    """Returns a trained classifier, and the history of its epochs."""
    keras.utils.set_random_seed(FLAGS.seed)
    steps = math.ceil(len(texts) / FLAGS.batch_size)
    with strategy.scope():
        model = make_model(texts)
        is_wide = model.backbone.hidden_dim >= fine_tuning.WIDE
        epochs = FLAGS.epochs or (6 if FLAGS.from_scratch else 3 if is_wide else 2)
        model.compile(fine_tuning.make_optimizer(model, 5e-4, epochs * steps))
    encoded = model.preprocessor.encode(list(texts))
    expected_time.announce(model, encoded, epochs)
    history = model.fit(
        encoded,
        labels.astype("int32"),
        FLAGS.batch_size,
        epochs,
        callbacks=fine_tuning.unfreezing(),
        verbose=progress_verbosity() if verbose is None else verbose,
    ).history
    if strategy.num_replicas_in_sync > 1:
        return fine_tuning.copy_in_float32(model), history
    return fine_tuning.to_float32(model), history


def progress_verbosity():
    """A bar that is drawn again and again is for terminals; a file gets a line an epoch."""
    return "auto" if sys.stdout.isatty() else 2


def make_model(texts):
    backbone, tokenizer = load_pretrained()
    if FLAGS.from_scratch:
        backbone, tokenizer = start_again(backbone, tokenizer, texts)
    model = XLNetTextClassifier(
        backbone,
        num_classes=2,
        preprocessor=XLNetTextClassifierPreprocessor(tokenizer, FLAGS.sequence_length),
        # The released models summarize a text in <cls>, the last token. With less pretraining,
        # the mean learns faster.
        pooling="last" if backbone.hidden_dim >= fine_tuning.WIDE else "mean",
        class_names=["ham", "spam"]
        if FLAGS.positive_label == "spam"
        else [f"not {FLAGS.positive_label}", FLAGS.positive_label],
    )
    return fine_tuning.freeze(model)


def load_pretrained():
    """Returns the backbone and the tokenizer of --preset."""
    arguments = {
        "dtype": fast_dtype.choose(FLAGS.dtype),
        "gradient_checkpointing": FLAGS.gradient_checkpointing,
    }
    if is_other_format(FLAGS.preset):
        backbone = load_checkpoint(FLAGS.preset, **arguments)
        tokenizer = load_tokenizer(FLAGS.preset)
        if tokenizer is None:
            raise ValueError(f"--preset {FLAGS.preset}: it has no tokenizer files")
        return backbone, tokenizer
    backbone = XLNetBackbone.from_preset(
        FLAGS.preset, dropout=0.1, attention_dropout=0.1, **arguments
    )
    return backbone, XLNetTokenizer.from_preset(FLAGS.preset)


def is_other_format(location):
    """Whether a location is an original checkpoint or one of Hugging Face, not a preset."""
    path = pathlib.Path(location)
    exists = path.exists() or path.with_name(f"{path.name}.index").exists()
    return exists and detect_format(path) != "preset"


def start_again(backbone, tokenizer, texts):
    """Returns a backbone of the same architecture with random weights, and its tokenizer."""
    if not FLAGS.vocabulary_size:
        return fine_tuning.untrained(backbone), tokenizer
    tokenizer = XLNetTokenizer.train(iter(texts), FLAGS.vocabulary_size)
    return fine_tuning.untrained(backbone, vocabulary_size=tokenizer.vocabulary_size()), tokenizer


if __name__ == "__main__":
    app.run(main)
