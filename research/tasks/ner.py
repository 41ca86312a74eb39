"""Fine-tunes a pretrained XLNet to find names in text: persons, places, products, groups.

    python research/tasks/ner.py

reads 600 training and 200 test sentences of WNUT-17, fine-tunes the preset xlnet_small_en on words
and tags, and compares it with a dictionary of the entities of the training sentences. It prints
precision, recall and F1 by type and the entities of a few strings, and writes the model,
`metrics.json` and `predictions.conll` to runs/ner. Preset and sentences are in this repository: it
needs no network, and takes one to two minutes on 2 cores. More ways to run it:

    python research/tasks/ner.py "Ann Lee moved from Nairobi to New York to work for Netflix"
    python research/tasks/ner.py --data wnut17train.conll --test emerging.test.annotated
    python research/tasks/ner.py --from_scratch                  # what the pretraining is good for
    python research/tasks/ner.py --lora_rank 8                   # or --freeze_backbone
    python research/tasks/ner.py --runs 3 --unfreeze_gradually --layer_decay 0.8
    python research/tasks/ner.py --preset xlnet_cased_L-12_H-768_A-12 --gradient_checkpointing

The sentences are tweets, comments and forum posts, and the names of the test were chosen to be new:
the best system of the shared task reached an F1 of 0.42, and in the bundled sample the dictionary
finds none of them. The sample is a sixth of the data, with a larger share of entities than the
whole: its scores show that the example works, and are no results of WNUT-17.

Source of the sample: WNUT-17, Derczynski, Nichols, van Erp and Limsopatham 2017, "Results of the
WNUT2017 Shared Task on Novel and Emerging Entity Recognition",
https://github.com/leondz/emerging_entities_17, licence CC BY 4.0
(https://creativecommons.org/licenses/by/4.0/). Changed: of wnut17train.conll the first 450
sentences with entities and the first 150 without, of emerging.test.annotated the first 130 and 70.
"""

import collections
import dataclasses
import pathlib

import fine_tuning
import keras
from absl import app, flags

from keras_xlnet.evaluation import entity_scores, entity_spans
from keras_xlnet.models import XLNetTokenClassifier
from keras_xlnet.preset_files import replace_files
from keras_xlnet.task_files import read_conll, write_conll

DATA = pathlib.Path(__file__).parents[2] / "examples" / "data"
SENTENCES = (
    "Justin Bieber is in London tonight, who else is going?",
    "just got the new iPhone from the Apple store in New York",
    "my sister watched Game of Thrones all weekend",
)

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "CoNLL file to train on. [the sample of WNUT-17]")
flags.DEFINE_string("test", None, "CoNLL file to test on. Needed with --data.")
fine_tuning.define_flags("runs/ner", batch_size=16, rows="Sentences")
flags.DEFINE_integer("sequence_length", 64, "Tokens that a sentence is cut to.", lower_bound=3)


def run(strings):
    """Trains and tests a model, writes everything, and finds the entities of strings."""
    if (FLAGS.data is None) != (FLAGS.test is None):
        raise ValueError("--data and --test need each other")
    train = read(FLAGS.data or DATA / "wnut17_sample.conll")
    test = read(FLAGS.test or DATA / "wnut17_sample_test.conll")
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
