"""Compares recipes for pretraining a small model with the same processor time, in one table.

    python research/pretraining/small_model/compare_recipes.py --corpus runs/xlnet_small_en/corpus

The corpus is the output of make_model.py (corpus.py) for a folder; a vocabulary of each size
is trained on a sample of it. Finished runs are not repeated. The table is also written to
`table.md`: all runs are compared on the same task, 1/6 of the tokens of held-out rows of 64.
"""

import argparse
import json
import os
import pathlib
import statistics

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from pretraining_runs import RECIPE, read_json, run_pretraining, train_vocabulary

from keras_xlnet.evaluation import BitsPerCharacter
from keras_xlnet.models import XLNetPermutationLM
from keras_xlnet.pretraining import PermutationBatches, TokenRecords

BASE = RECIPE | {"num_layers": 4, "bidirectional_data": True, "vocabulary_size": 8000}
BASE |= {"steps_per_epoch": 200, "validation_steps": 5}
VARIANTS = {
    "4 x 256": {},
    "Muon": {"optimizer": "muon"},
    "6 x 256": {"num_layers": 6},
    "8 x 256": {"num_layers": 8},
    "6 x 320": {"num_layers": 6, "hidden_dim": 320},
    "1/6 predicted": {"predicted_share": 0.17},
    "1/2 predicted": {"predicted_share": 0.5},
    "single tokens": {"unit": "token"},
    "no memory": {"memory_length": 0},
    "memory forgotten after documents": {"reset_at_documents": True},
    "one segment": {"segment_pairs": False},
    "16000 pieces": {"vocabulary_size": 16000},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    corpus = "folder with train.txt and held_out/"
    parser.add_argument("--corpus", type=pathlib.Path, required=True, help=corpus)
    parser.add_argument("--output_dir", type=pathlib.Path, default=pathlib.Path("runs/search"))
    parser.add_argument("--cpu_minutes", type=float, default=5, help="processor time of each run")
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    options = parser.parse_args()
    train, held_out = options.corpus / "train.txt", sorted(options.corpus.glob("held_out/*.txt"))
    results = {}
    for name in options.only:
        run = options.output_dir / name.replace("/", " of ").replace(" ", "_")
        if not (run / "result.json").is_file():
            recipe = BASE | VARIANTS[name]
            size = recipe.pop("vocabulary_size")
            vocabulary = options.output_dir / f"vocabulary_{size}"
            recipe["tokenizer"] = train_vocabulary(vocabulary, train, size)
            recipe["records_dir"] = vocabulary / "records"
            run_pretraining(run, train, held_out, options.cpu_minutes, recipe)
            found = json.dumps(evaluate(run, recipe))
            (run / "result.json").write_text(found, encoding="utf-8")
        results[name] = read_json(run, "result")
    table = format_table(results)
    (options.output_dir / "table.md").write_text(table, encoding="utf-8")
    print(table)


def evaluate(run, recipe):
    """Returns the size of a model and its bits per character on the targets all runs have."""
    model = XLNetPermutationLM.from_preset(run / "permutation_lm")
    model.compile(weighted_metrics={"logits": [BitsPerCharacter.of(model.tokenizer)]})
    bits, rows = {}, recipe["batch_size"]
    for records in sorted((run / "held_out").iterdir()):
        batches = PermutationBatches(
            TokenRecords(records), rows, sequence_length=64, num_predictions=10,
            bidirectional_data=model.backbone.bidirectional_data,
        ).evaluation_dataset()  # fmt: skip
        scores = model.evaluate(batches.take(480 // rows), verbose=0, return_dict=True)
        bits[records.name] = scores["bits_per_character"]
    steps = read_json(run, "budget")["steps"]
    tokens = steps * rows * recipe["sequence_length"]
    return {"weights": model.count_params(), "steps": steps, "tokens": tokens, "bits": bits}


def format_table(results):
    """Returns a Markdown table of the runs, the best one first."""
    first = next(iter(results.values()))
    titles = ["run", "weights", "steps", "tokens", "bits per character", *first["bits"]]
    lines = [titles, ["---"] * len(titles)]
    mean = {name: statistics.mean(found["bits"].values()) for name, found in results.items()}
    for name in sorted(results, key=mean.get):
        found = results[name]
        sizes = (f"{found['weights'] / 1e6:.1f} M", f"{found['steps']:,}")
        bits = (f"{bits:.3f}" for bits in (mean[name], *found["bits"].values()))
        lines.append([name, *sizes, f"{found['tokens'] / 1e6:.1f} M", *bits])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    main()
