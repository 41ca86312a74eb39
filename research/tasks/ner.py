"""Named entities (WNUT-17) by a fine-tuned preset, in several runs, beside a dictionary.

    python research/tasks/ner.py --data wnut17train.conll --test emerging.test.annotated
    python research/tasks/ner.py --data wnut17train.conll --test emerging.test.annotated --runs 3

The dictionary has the entities of the training sentences. It writes the model, `metrics.json` and
`predictions.conll`, and prints the entities of the strings of the command line.
"""

import collections
import dataclasses

import fine_tuning
import keras
from absl import app, flags

from keras_xlnet.evaluation import entity_scores, entity_spans
from keras_xlnet.models import XLNetTokenClassifier
from keras_xlnet.preset_files import replace_files
from keras_xlnet.task_files import read_conll, write_conll

SENTENCES = (
    "Justin Bieber is in London tonight, who else is going?",
    "just got the new iPhone from the Apple store in New York",
    "my sister watched Game of Thrones all weekend",
)

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "CoNLL file to train on.", required=True)
flags.DEFINE_string("test", None, "CoNLL file to test on.", required=True)
fine_tuning.define_flags("runs/ner", batch_size=16, rows="Sentences")
flags.DEFINE_integer("sequence_length", 64, "Tokens that a sentence is cut to.", lower_bound=3)


def run(strings):
    """Trains and tests a model, writes everything, and finds the entities of strings."""
    train, test = read(FLAGS.data), read(FLAGS.test)
    print(f"{len(train['words'])} sentences to train on, {len(test['words'])} to test")
    # Entered before the training: if the folder cannot be written, the run fails at once.
    with replace_files(FLAGS.output_dir) as folder:
        model, tags, all_runs = fine_tuning.repeat(lambda seed: train_and_test(seed, train, test))
        write_report(folder, train, test, tags, all_runs)
        write_conll(folder / "predictions.conll", test["words"], tags)
        model = save_and_load(model, folder / "model.keras", test["words"], tags)
    print_entities(model, strings or SENTENCES)
    fine_tuning.print_written()


def read(path):
    """Returns the words and tags of a file, of the first --num_examples sentences."""
    return {name: rows[: FLAGS.num_examples] for name, rows in read_conll(path).items()}


# === The model ===


def train_and_test(seed, train, test):
    """Returns a trained model, the tags of the test sentences, and their scores."""
    class_names = sorted({"O"}.union(*train["tags"]))
    if len(class_names) == 1:
        raise ValueError("the sentences to train on have no entities")
    model = fine_tuning.load_model(
        XLNetTokenClassifier,
        seed,
        num_classes=len(class_names),
        class_names=class_names,
        sequence_length=FLAGS.sequence_length,
    )
    model = fine_tuning.fit(
        model, train["words"], train["tags"], len(train["tags"]), epochs=6, learning_rate=5e-4
    )
    tags = model.tag(test["words"], verbose=0)
    scores = entity_scores(test["tags"], tags, scheme_of([*train["tags"], *test["tags"]]))
    metrics = {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1}
    return model, tags, metrics


def save_and_load(model, path, words, tags):
    """Saves a model and returns the loaded one, if it gives the same tags."""
    model.save(path)
    model = keras.saving.load_model(path)
    if model.tag(words, verbose=0) != tags:
        raise RuntimeError(f"{path.name}: the model gives other tags after loading")
    print(f"\n{path.name}, loaded again, gives the same tags")
    return model


# === What it is compared with ===


def dictionary_tags(train, sentences, scheme):
    """Tags the word sequences that are entities in `train`, the longest ones first."""
    types = collections.defaultdict(collections.Counter)
    for words, tags in zip(train["words"], train["tags"], strict=True):
        for span in entity_spans(tags, scheme):
            types[tuple(words[span.start : span.end])][span.type] += 1
    longest = max(map(len, types))
    rows = []
    for words in sentences:
        tags = []
        while len(tags) < len(words):
            start = len(tags)
            ends = range(min(len(words), start + longest), start, -1)
            end = next((end for end in ends if tuple(words[start:end]) in types), None)
            if end is None:
                tags.append("O")
                continue
            ((type_, _),) = types[tuple(words[start:end])].most_common(1)
            tags += [f"B-{type_}"] + [f"I-{type_}"] * (end - start - 1)
        rows.append(tags)
    return rows


# === What is printed and written ===


def write_report(folder, train, test, tags, all_runs):
    """Prints the scores of the model and of the dictionary, and writes metrics.json."""
    scheme = scheme_of([*train["tags"], *test["tags"]])
    name = fine_tuning.model_name()
    predictions = {name: tags, "dictionary": dictionary_tags(train, test["words"], scheme)}
    scores = {key: entity_scores(test["tags"], rows, scheme) for key, rows in predictions.items()}
    for key, row in scores.items():
        print(f"\n{key}\n{row}")
    baseline = dataclasses.asdict(scores.pop("dictionary"))
    report = {
        "sentences": {"train": len(train["words"]), "test": len(test["words"])},
        "model": dataclasses.asdict(scores[name]),
        "baselines": {"dictionary": baseline},
        "all_runs": all_runs,
    }
    fine_tuning.write_json(folder / "metrics.json", report)


def scheme_of(rows):
    """The `scheme` of `entity_scores`: `"io"` for tags that do not mark the begin of entities."""
    return "bio" if {tag[0] for tags in rows for tag in tags} & set("BS") else "io"


def print_entities(model, strings):
    for text, entities in zip(strings, model.find_entities(list(strings), verbose=0), strict=True):
        print(f"\n{text}")
        for found in entities:
            place = f"{found.start}-{found.end}"
            print(f"  {found.type:14} {found.text:24} {place:>8} {found.score:7.4f}")
        if not entities:
            print("  no entities")


if __name__ == "__main__":
    app.run(fine_tuning.main(run))
