"""Language models in lm-eval, on files that are here, next to the scores of their own methods.

    python examples/language_model.py
    python research/language_models/harness_tasks.py --data ../shared/data \\
        --load runs/language_model

`--data` has `tasks/mctest` and `wikitext-2`. The preset `--preset` answers the questions of the
development set of MCTest 160, and predicts paragraphs of WikiText-2. The model in `--load` predicts
the last tenth of tiny Shakespeare. Nothing is downloaded. It needs the extra `integrations`.
"""

import argparse
import json
import lzma
import math
import pathlib
import re
import tempfile

import keras
import lm_eval
from lm_eval.utils import make_table

from keras_xlnet.evaluation import corpus_log_probs
from keras_xlnet.integrations import HarnessLM
from keras_xlnet.models import TransformerXLLanguageModel, XLNetPermutationLM
from keras_xlnet.task_files import read_mctest

SHAKESPEARE = pathlib.Path(__file__).parents[2] / "examples" / "data" / "tiny_shakespeare.txt.xz"
_SEGMENT = 64


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="xlnet_small_en")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--load", type=pathlib.Path, help="Folder of examples/language_model.py.")
    parser.add_argument("--paragraphs", type=int, default=50, help="Of WikiText-2.")
    parser.add_argument("--questions", type=int, help="Of MCTest. [all]")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        permutation(arguments, folder)
        if arguments.load is not None:
            causal(arguments.load, folder)


def permutation(arguments, folder):
    overrides = {"stateful": False, "batch_size": None}
    model = XLNetPermutationLM.from_preset(arguments.preset, **overrides)
    lines = (arguments.data / "wikitext-2" / "valid.txt").read_text(encoding="utf-8").split("\n")
    texts = [line.strip() for line in lines if len(line.split()) > 20][: arguments.paragraphs]
    columns = read_mctest(arguments.data / "tasks" / "mctest" / "mc160.dev.tsv")
    names = ("text", "question", "choices", "label")
    rows = [
        dict(zip(names, row, strict=True)) for row in zip(*map(columns.get, names), strict=True)
    ]
    questions = {
        "output_type": "multiple_choice",
        "doc_to_text": "{{text}} {{question}}",
        "doc_to_choice": "choices",
        "doc_to_target": "label",
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
    }
    tasks = [
        task(folder, "mctest", rows[: arguments.questions], **questions),
        perplexity_task(folder, "wikitext_2", texts),
    ]
    print_results(HarnessLM(model, max_length=1024), tasks)
    print_own("wikitext_2", sum(model.score(texts, batch_size=4).totals), texts)


def causal(folder, temporary):
    model = TransformerXLLanguageModel.from_preset(
        folder / "preset", stateful=False, batch_size=None
    )
    (model.tokenizer,) = keras.saving.load_model(folder / "tokenizer.keras").layers
    text = lzma.open(SHAKESPEARE, "rt", encoding="utf-8").read()
    text = text[-(len(text) // 10) :]
    start = model.tokenizer.token_to_id("\n")
    lm = HarnessLM(model, max_length=_SEGMENT, start_token_id=start)
    print_results(lm, [perplexity_task(temporary, "shakespeare", [text])])
    (tokens,) = model.tokenizer.encode(["\n" + text])
    log_probs = corpus_log_probs(model, tokens, _SEGMENT, verbose=0)
    print_own("shakespeare", log_probs.sum(dtype="float64"), [text])


def task(folder, name, rows, **config):
    """Returns a task of lm-eval, whose examples are in a file."""
    file = pathlib.Path(folder) / f"{name}.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    data = {"data_files": {"test": str(file)}, "cache_dir": str(folder)}
    source = {"dataset_path": "json", "dataset_kwargs": data, "test_split": "test"}
    return {"task": name, **source, **config}


def perplexity_task(folder, name, texts):
    return task(
        folder,
        name,
        [{"text": text} for text in texts],
        output_type="loglikelihood_rolling",
        doc_to_text="",
        doc_to_target="{{text}}",
        metric_list=[{"metric": "word_perplexity"}, {"metric": "bits_per_byte"}],
    )


def print_results(lm, tasks):
    print(make_table(lm_eval.simple_evaluate(lm, tasks=tasks, bootstrap_iters=100)), flush=True)


def print_own(name, total, texts):
    """Prints the perplexities of a log-likelihood, as lm-eval defines them."""
    words = sum(len(re.split(r"\s+", text)) for text in texts)
    num_bytes = sum(len(text.encode()) for text in texts)
    word, bits = math.exp(-total / words), -total / num_bytes / math.log(2)
    print(f"{name} with methods of the model: word_perplexity {word:.4f}, bits_per_byte {bits:.4f}")


if __name__ == "__main__":
    main()
