"""A spam filter, from raw text to a served model, compared with TF-IDF.

    python examples/spam_classifier.py "You have won a prize, call now" "see you at six"
    python examples/spam_classifier.py --load runs/spam "see you at six"
    python examples/spam_classifier.py --data mine.csv --text_column body --label_column kind

trains on four fifths of the 5,574 messages of the UCI SMS Spam Collection, tests on the others, and
writes to runs/spam the model, its preset, a SavedModel that takes raw text, metrics and a plot. It
takes about three minutes of a processor, needs no network, and estimates its time at the start. The
preset is English only; docs/presets.md says which one to use.
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
from absl import app, flags, logging
from sklearn import metrics
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split

from keras_xlnet.models import XLNetTextClassifier
from keras_xlnet.preset_files import replace_files
from keras_xlnet.serving import export
from keras_xlnet.task_files import read_table
from keras_xlnet.training import fastest_dtype, training_cost

FLAGS = flags.FLAGS
MESSAGES = pathlib.Path(__file__).parent / "data" / "SMSSpamCollection"
flags.DEFINE_string("data", str(MESSAGES), "TSV or CSV; lines `label<TAB>message` need no header.")
flags.DEFINE_string("text_column", "text", "Name of the column of the messages.")
flags.DEFINE_string("label_column", "label", "Name of the column of the labels.")
flags.DEFINE_string("positive_label", "spam", "The label to look for.")
flags.DEFINE_string("preset", "xlnet_small_en", "Name or path of the preset to fine-tune.")
flags.DEFINE_integer("epochs", 2, "Passes over the training messages.", lower_bound=1)
flags.DEFINE_string("output_dir", "runs/spam", "Where everything is written.")
flags.DEFINE_string("load", None, "Only classify messages with the model in this folder.")


def main(arguments):
    logging.set_verbosity(logging.WARNING)  # TensorFlow logs details of every export.
    try:
        model = keras.saving.load_model(f"{FLAGS.load}/model.keras") if FLAGS.load else run()
        for message in arguments[1:]:
            (found,) = model.classify([message], verbose=0)
            print(f"{found.label:>8} {found.score:8.4f}  {message}")
    except (OSError, ValueError) as error:
        sys.exit(f"error: {' '.join(str(error).split())}")


def run():
    texts, labels = read_messages()
    names = sorted(set(labels), key=FLAGS.positive_label.__eq__)  # The label to look for is last.
    texts, test_texts, labels, test_labels = train_test_split(
        texts, labels, test_size=0.2, stratify=labels, random_state=1
    )
    with replace_files(FLAGS.output_dir) as folder:  # Nothing is left there if the run fails.
        keras.utils.set_random_seed(1)
        model = XLNetTextClassifier.from_preset(
            FLAGS.preset, num_classes=2, class_names=names, sequence_length=80,
            backbone_dropout=0.1, attention_dropout=0.1, dtype=fastest_dtype(),
        )  # fmt: skip
        encoded = model.preprocessor.encode(texts)
        print(training_cost(model, encoded, FLAGS.epochs), flush=True)
        model.fit(encoded, labels, batch_size=32, epochs=FLAGS.epochs)
        model.save_to_preset(folder / "preset")
        model = XLNetTextClassifier.from_preset(folder / "preset", dtype="float32")
        features = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
        linear = LogisticRegression(class_weight="balanced", solver="liblinear")
        linear = GridSearchCV(linear, {"C": [1, 10, 100, 1000]}).fit(
            features.fit_transform(texts), labels
        )
        found = {"model": [each.label for each in model.classify(test_texts, verbose=0)]}
        found["tfidf"] = linear.predict(features.transform(test_texts))
        report(folder, test_labels, found)
        model.save(folder / "model.keras")
        export(model, folder / "saved_model" / "1")
    return model


def read_messages():
    first_line = pathlib.Path(FLAGS.data).read_text(encoding="utf-8").partition("\n")[0]
    has_header = FLAGS.label_column in first_line.strip().replace(",", "\t").split("\t")
    names = {"text": FLAGS.text_column, "label": FLAGS.label_column}
    columns = names if has_header else {"text": 1, "label": 0}
    table = read_table(FLAGS.data, columns, has_header=has_header, allow_empty=["text"])
    if len(set(table["label"])) != 2 or FLAGS.positive_label not in table["label"]:
        raise ValueError(f"{FLAGS.data}: the labels must be two, with {FLAGS.positive_label!r}")
    return table["text"], table["label"]


def report(folder, labels, predictions):
    scores = {}
    for name, found in predictions.items():
        f1 = metrics.f1_score(labels, found, pos_label=FLAGS.positive_label)
        scores[name] = {"f1": f1, "mcc": metrics.matthews_corrcoef(labels, found)}
        print(f"\n{name}: {scores[name]}\n{metrics.classification_report(labels, found)}")
    (folder / "metrics.json").write_text(json.dumps(scores), encoding="utf-8")
    matrix = metrics.ConfusionMatrixDisplay.from_predictions(labels, predictions["model"])
    matrix.figure_.savefig(folder / "confusion_matrix.png")


if __name__ == "__main__":
    app.run(main)
