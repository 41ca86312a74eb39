"""Compares ways of pretraining a small model, each given the same processor time, in one table.

    python research/pretraining/small_model/search.py --corpus runs/xlnet_small_en/corpus

The corpus is what make_model.py (corpus.py) made of a folder of text; a vocabulary of each size is
trained on a sample of it. A run that is done is not repeated. The table is also written to
`table.md`: all runs are compared on the same task, 1/6 of the tokens of held-out rows of 64. With
`--data` (docs/results.md), each model is also fine-tuned on a thousand sentences of SST-2, and
measured on its validation sentences.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags
from pretraining_runs import run_pretraining, train_vocabulary

from keras_xlnet.evaluation import BitsPerCharacter
from keras_xlnet.models import XLNetPermutationLM
from keras_xlnet.pretraining import PermutationBatches, TokenRecords
from keras_xlnet.tokenizers import XLNetTokenizer

RESULTS = pathlib.Path(__file__).parents[2] / "tasks" / "results.py"

FLAGS = flags.FLAGS
flags.DEFINE_string("corpus", None, "Folder with train.txt and held_out/.", required=True)
flags.DEFINE_string("output_dir", "runs/search", "Where everything is written.")
flags.DEFINE_string("data", None, "Folder of the tasks to fine-tune on. [no fine-tuning]")
flags.DEFINE_float("cpu_minutes", 5, "Processor time of each run.", lower_bound=0.1)
flags.DEFINE_list("only", None, "Names of the runs. [all]")

BASE = {
    "num_layers": 4,
    "hidden_dim": 256,
    "sequence_length": 64,
    "memory_length": 32,
    "predicted_share": 0.33,
    "batch_size": 32,
    "learning_rate": 1e-3,
    "optimizer": "adamw",
    "embeddings": "cooccurrence",
    "dtype": "mixed_bfloat16",
    "lines": "paragraphs",
    "steps_per_epoch": 200,
    "validation_steps": 5,
    "vocabulary_size": 8000,
}
VARIANTS = {
    "4 x 256": {},
    "random embeddings": {"embeddings": "random"},
    "XLNet's own Adam": {"optimizer": "original"},
    "Muon": {"optimizer": "muon"},
    "6 x 256": {"num_layers": 6},
    "8 x 256": {"num_layers": 8},
    "6 x 320": {"num_layers": 6, "hidden_dim": 320},
    "1/6 predicted": {"predicted_share": 0.17},
    "1/2 predicted": {"predicted_share": 0.5},
    "single tokens": {"unit": "token"},
    "no memory": {"memory_length": 0},
    "memory forgotten after documents": {"reset_at_documents": True},
    "forward only": {"bidirectional_data": False},
    "one segment": {"segment_pairs": False},
    "learning rate 2e-3": {"learning_rate": 2e-3},
    "batches of 16": {"batch_size": 16},
    "12000 pieces": {"vocabulary_size": 12000},
    "16000 pieces": {"vocabulary_size": 16000},
}
TASKS = {"sst2": "SST-2 accuracy"}
MILLION = 1_000_000


def main(arguments):
    if len(arguments) > 1:
        raise app.UsageError(f"unknown arguments {arguments[1:]}")
    output_dir, corpus = pathlib.Path(FLAGS.output_dir), pathlib.Path(FLAGS.corpus)
    train, held_out = corpus / "train.txt", sorted((corpus / "held_out").glob("*.txt"))
    results = {}
    for name, changes in VARIANTS.items():
        if FLAGS.only and name not in FLAGS.only:
            continue
        run = output_dir / name.replace("/", " of ").replace(" ", "_")
        result = run / "result.json"
        if not result.is_file():
            recipe = BASE | changes
            size = recipe.pop("vocabulary_size")
            vocabulary = output_dir / f"vocabulary_{size}"
            recipe["tokenizer"] = train_vocabulary(vocabulary, train, size)
            recipe["records_dir"] = vocabulary / "records"
            run_pretraining(run, train, held_out, FLAGS.cpu_minutes, recipe)
            found = evaluate(run, recipe) | {"fine_tuned": fine_tune(run)}
            result.write_text(json.dumps(found), encoding="utf-8")
        results[name] = json.loads(result.read_text(encoding="utf-8"))
    table = format_table(results)
    (output_dir / "table.md").write_text(table, encoding="utf-8")
    print(table)


def evaluate(run, recipe):
    """Returns the size of a model and its bits per character on the targets all runs have."""
    model = XLNetPermutationLM.from_preset(run / "permutation_lm")
    tokenizer = XLNetTokenizer.from_preset(run / "permutation_lm")
    metric = BitsPerCharacter.of(tokenizer)
    model.compile(weighted_metrics={"logits": [metric]})
    bits = {}
    for records in sorted((run / "held_out").iterdir()):
        batches = PermutationBatches(
            TokenRecords(records),
            recipe["batch_size"],
            sequence_length=64,
            num_predictions=10,
            bidirectional_data=model.backbone.bidirectional_data,
        ).evaluation_dataset()
        batches = batches.take(480 // recipe["batch_size"])
        scores = model.evaluate(batches, verbose=0, return_dict=True)
        bits[records.name] = scores["bits_per_character"]
    spent = json.loads((run / "budget.json").read_text(encoding="utf-8"))
    tokens = spent["steps"] * recipe["batch_size"] * recipe["sequence_length"]
    return {
        "weights": model.count_params(),
        "steps": spent["steps"],
        "tokens": tokens,
        "bits": bits,
    }


def fine_tune(run):
    """Returns the mean first metric of each task, fine-tuned on 1,000 examples with two seeds."""
    if not FLAGS.data:
        return {}
    values = {
        "data": FLAGS.data,
        "output_dir": run / "results",
        "tasks": ",".join(TASKS),
        "methods": run / "permutation_lm",
        "sizes": 1000,
        "seeds": 2,
        "split": "validation",
        "dtype": "mixed_bfloat16",
    }
    command = [sys.executable, RESULTS, *(f"--{name}={value}" for name, value in values.items())]
    subprocess.run(command, check=True)
    lines = (run / "results" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    found = {}
    for row in map(json.loads, lines):
        metric = next(iter(row["metrics"].values()))
        found.setdefault(row["run"]["task"], []).append(metric)
    return {task: statistics.mean(values) for task, values in found.items()}


def format_table(results):
    """Returns a Markdown table of the runs, the best one first."""
    first = next(iter(results.values()))
    titles = ["run", "weights", "steps", "tokens", "bits per character", *first["bits"]]
    titles += [TASKS[task] for task in first["fine_tuned"]]
    lines = [format_row(titles), format_row(["---"] * len(titles))]
    mean = {name: statistics.mean(found["bits"].values()) for name, found in results.items()}
    for name in sorted(results, key=mean.get):
        found = results[name]
        cells = [
            name,
            f"{found['weights'] / MILLION:.1f} M",
            f"{found['steps']:,}",
            f"{found['tokens'] / MILLION:.1f} M",
            *(f"{bits:.3f}" for bits in (mean[name], *found["bits"].values())),
            *(f"{metric:.1f}" for metric in found["fine_tuned"].values()),
        ]
        lines.append(format_row(cells))
    return "\n".join(lines) + "\n"


def format_row(cells):
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    app.run(main)
