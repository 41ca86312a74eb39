"""Compares ways of pretraining a small model, each given the same processor time, in one table.

    python examples/small_model/search.py --corpus runs/xlnet_small_en/corpus

The corpus is what make_model.py (corpus.py) made of a folder of text; a vocabulary of each size is
trained on a sample of it. A run that is done is not repeated. The table is also written to
`table.md`: all runs are compared on the same task, 1/6 of the tokens of held-out rows of 64.
"""

import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags
from pretraining_runs import run_pretraining, train_vocabulary

from keras_xlnet.evaluation import BitsPerCharacter
from keras_xlnet.models import XLNetPermutationLM
from keras_xlnet.pretraining import PermutationBatches, TokenRecords
from keras_xlnet.text import XLNetTokenizer

FLAGS = flags.FLAGS
flags.DEFINE_string("corpus", None, "Folder with train.txt and held_out/.", required=True)
flags.DEFINE_string("output_dir", "runs/search", "Where everything is written.")
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
    "6 x 256": {"num_layers": 6},
    "8 x 256": {"num_layers": 8},
    "6 x 320": {"num_layers": 6, "hidden_dim": 320},
    "1/6 predicted": {"predicted_share": 0.17},
    "1/2 predicted": {"predicted_share": 0.5},
    "single tokens, no spans": {"unit": "token"},
    "no memory": {"memory_length": 0},
    "forward only": {"bidirectional_data": False},
    "one segment": {"segment_pairs": False},
    "learning rate 2e-3": {"learning_rate": 2e-3},
    "batches of 16": {"batch_size": 16},
    "12,000 pieces": {"vocabulary_size": 12000},
    "16,000 pieces": {"vocabulary_size": 16000},
}
HEADER = "| run | weights | steps | tokens, millions | bits per character | {sources} |"
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
        run = output_dir / name.replace("/", " of ").replace(" ", "_").replace(",", "")
        result = run / "result.json"
        if not result.is_file():
            recipe = BASE | changes
            size = recipe.pop("vocabulary_size")
            recipe["tokenizer"] = train_vocabulary(output_dir / f"vocabulary_{size}", train, size)
            run_pretraining(run, train, held_out, FLAGS.cpu_minutes, recipe)
            result.write_text(json.dumps(evaluate(run, recipe)), encoding="utf-8")
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


def format_table(results):
    """Returns a Markdown table of the runs, the best one first."""
    sources = list(next(iter(results.values()))["bits"])
    lines = [HEADER.format(sources=" | ".join(sources)), "| --- |" + " --- |" * (4 + len(sources))]
    mean = {name: sum(r["bits"].values()) / len(sources) for name, r in results.items()}
    for name in sorted(results, key=mean.get):
        found = results[name]
        bits = " | ".join(f"{found['bits'][source]:.3f}" for source in sources)
        lines.append(
            f"| {name} | {found['weights'] / MILLION:.1f} M | {found['steps']:,} "
            f"| {found['tokens'] / MILLION:.1f} | {mean[name]:.3f} | {bits} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    app.run(main)
