"""Makes `xlnet_mini_en`: converts a BERT of sentence-transformers, and trains what that loses.

    python research/heal_bert.py --teacher all-MiniLM-L6-v2 --data ../shared/data --output runs/mini

`--teacher` is the folder of `research/bert_conversion.py`; `--data` has `corpus` and `tasks/stsb`.
Pieces that the corpus does not use are left out, and the scores of the others are fitted to its
words. Then one `fit` has two targets. In the pass without masks, the states are to be those of the
teacher, and so is their mean. In the pass of the permutation language model, which the conversion
knows nothing of, words are to be predicted: the query stream and the softmax are new. Where the
tokenizer splits a text in another way than the teacher's, only the means are compared.

A run that was killed goes on after its last epoch. `log.csv` and `curves.png` have the losses and,
of held-out text, the bits per character and the correlation of STS-B (development) after each
epoch. It needs PyTorch and transformers, for the teacher.
"""

import argparse
import csv
import itertools
import lzma
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import bert_conversion
import keras
import matplotlib
import numpy as np
import tensorflow as tf
from scipy.stats import spearmanr

from keras_xlnet.checkpoints import load_bert
from keras_xlnet.checkpoints.bert import bert_ids
from keras_xlnet.checkpoints.bert_files import read_vocabulary
from keras_xlnet.evaluation import BitsPerCharacter
from keras_xlnet.layers import PermutationMaskGenerator, SpanMaskSampler
from keras_xlnet.models import XLNetPermutationLM
from keras_xlnet.preprocessing.packing import SEGMENT_A, SEGMENT_CLS, pack
from keras_xlnet.pretraining import ResumeBatches, word_start_table
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.training import ExactBackupAndRestore

# Rows of a batch, their length, and the most words of a text. Half of the texts are of each kind.
_SHAPES = {"short": (48, 48, 24), "long": (18, 128, 85)}
_MOST_TEXTS_OF_DOCUMENT = 6
_TEXTS_AT_ONCE = 2000
_PREDICTED = 3  # One token of so many.


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--teacher", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--start", help="a preset to go on from, instead of a conversion")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps_per_epoch", type=int, default=200)
    parser.add_argument("--learning_rate", type=float, default=3e-4)
    parser.add_argument("--lm_weight", type=float, default=0.1)
    parser.add_argument("--dtype", default="float32", help="or mixed_bfloat16")
    arguments = parser.parse_args()
    keras.utils.set_random_seed(0)
    train = documents(arguments.data / "corpus" / "redistributable.train.txt.xz")
    held_out = documents(arguments.data / "corpus" / "redistributable.valid.txt.xz")
    lm, tokenizer = starting_model(arguments, train)
    teacher = Teacher(arguments.teacher, tokenizer)
    batches = Batches(train, tokenizer, teacher, arguments.steps_per_epoch)
    model = heal(lm, tokenizer, teacher.variance, arguments)
    model.fit(
        batches.dataset(),
        epochs=arguments.epochs,
        steps_per_epoch=arguments.steps_per_epoch,
        validation_data=Batches(held_out, tokenizer, teacher, 16).dataset().take(16).cache(),
        callbacks=[
            PairCorrelation(lm.backbone, tokenizer, arguments.data),
            ExactBackupAndRestore(arguments.output / "backup"),
            ResumeBatches(batches),
            Log(arguments.output),
        ],
        verbose=2,
    )
    preset = arguments.output / "preset"
    lm.save_to_preset(preset, tokenizer)
    # The policy of training on this machine is not that of users.
    XLNetPermutationLM.from_preset(preset, dtype="float32").save_to_preset(preset, dtype="float16")


def documents(file):
    """Returns the documents of a file of the corpus, lists of lines."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        groups = itertools.groupby(lines, key=lambda line: bool(line.strip()))
        return [list(map(str.strip, group)) for is_text, group in groups if is_text]


# === The model ===


def starting_model(arguments, train):
    """Returns an `XLNetPermutationLM` and its tokenizer: converted, or loaded."""
    directory = arguments.start or arguments.output / "converted"
    if not arguments.start and not directory.exists():
        convert(arguments, train).save_to_preset(directory)
    lm = XLNetPermutationLM.from_preset(directory, dtype=arguments.dtype)
    return lm, lm.tokenizer


def convert(arguments, train):
    rng = np.random.default_rng(0)
    texts = [text for _, text in itertools.islice(texts_of(train, rng), 60_000)]
    counts = read_vocabulary(arguments.teacher).counts(texts)
    print(f"{len(counts):,} tokens of the teacher occur in {len(texts):,} texts", flush=True)
    samples = bert_conversion.corpus_texts(arguments.data)
    backbone = load_bert(
        arguments.teacher, sample_texts=samples, keep=counts, dropout=0.0, attention_dropout=0.0
    )
    vocabulary = read_vocabulary(arguments.teacher, keep=counts)
    tokenizer = XLNetTokenizer(vocabulary.to_sentencepiece(texts))
    lm = XLNetPermutationLM(backbone, tokenizer)
    mask = backbone.token_embedding.embeddings[tokenizer.token_to_id("<mask>")]
    lm.mask_embedding.weights[0].assign(keras.ops.reshape(mask, lm.mask_embedding.weights[0].shape))
    return lm


def heal(lm, tokenizer, variance, arguments):
    """Returns the model that is trained: the two passes of one XLNet."""
    inputs = lm.input
    text = {key: inputs[key] for key in ("token_ids", "segment_ids", "padding_mask")}
    states = lm.backbone(text)["sequence_output"]
    mean = keras.layers.GlobalAveragePooling1D()(states, mask=inputs["padding_mask"])
    logits = lm(inputs)["logits"]
    model = keras.Model(inputs, {"states": states, "mean": mean, "logits": logits})
    steps = arguments.epochs * arguments.steps_per_epoch
    warmup = min(200, steps // 10)
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, steps - warmup, warmup_target=arguments.learning_rate, warmup_steps=warmup
    )
    weighted = "mean_with_sample_weight"
    model.compile(
        keras.optimizers.AdamW(rate, weight_decay=0.01, global_clipnorm=1.0),
        loss={
            "states": keras.losses.MeanSquaredError(reduction=weighted),
            "mean": keras.losses.CosineSimilarity(),
            "logits": keras.losses.SparseCategoricalCrossentropy(True, reduction=weighted),
        },
        loss_weights={"states": 2 / variance, "mean": 1.0, "logits": arguments.lm_weight},
        weighted_metrics={"logits": [BitsPerCharacter.of(tokenizer)]},
        jit_compile=False,
    )
    return model


class Teacher:
    """The BERT.

    Attributes:
        variance: Float, the mean square of what its states differ from their mean.
    """

    def __init__(self, directory, tokenizer):
        import transformers

        self.vocabulary = read_vocabulary(directory)
        self._model = transformers.BertModel.from_pretrained(directory, add_pooling_layer=False)
        kept = read_vocabulary(directory, keep=set(map(_as_token, tokenizer_pieces(tokenizer))))
        self.ids = bert_ids(kept)
        self._end, self._cls = (self.vocabulary.id_of(name) for name in ("[SEP]", "[CLS]"))
        sample = self.states([list(range(2000 + i, 2030 + i)) for i in range(0, 1900, 50)])
        self.variance = float(np.concatenate(sample).var(axis=0).mean())

    def states(self, rows):
        """Returns the last states of each text, in the order of XLNet: text, `[SEP]`, `[CLS]`."""
        import torch

        rows = [[self._cls, *row, self._end] for row in rows]
        length = max(map(len, rows))
        ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows])
        with torch.inference_mode():
            states = self._model(ids, attention_mask=mask).last_hidden_state.numpy()
        return [np.roll(s[: len(row)], -1, axis=0) for s, row in zip(states, rows, strict=True)]


# === Batches ===


def texts_of(docs, rng):
    """Yields texts, each with its kind, without end."""
    while True:
        for index in rng.permutation(len(docs)):
            kind = "long" if rng.random() < 0.5 else "short"
            most = _SHAPES[kind][-1]
            lines = docs[index] if kind == "short" else [" ".join(docs[index])]
            chunks = [
                words[start : start + most]
                for words in map(str.split, lines)
                for start in range(0, len(words), most)
            ]
            chosen = rng.permutation(len(chunks))[:_MOST_TEXTS_OF_DOCUMENT]
            yield from ((kind, " ".join(chunks[i])) for i in chosen)


class Batches:
    """Batches of texts, with the teacher's states and the targets of a permutation."""

    def __init__(self, docs, tokenizer, teacher, steps_per_round):
        self.first_step = 0
        self._docs, self._tokenizer, self._teacher = docs, tokenizer, teacher
        self._steps = steps_per_round
        self._word_starts = word_start_table(tokenizer)

    def dataset(self):
        return tf.data.Dataset.from_generator(
            self._generate, output_signature=signature(self._teacher.states([[7]])[0].shape[-1])
        ).prefetch(2)

    def _generate(self):
        """Batches of a round depend on its number alone; a run begins again at its start."""
        for number in itertools.count(self.first_step // self._steps):
            rng = np.random.default_rng(number)
            yield from itertools.islice(self._round(rng), self._steps)

    def _round(self, rng):
        pools = {kind: [] for kind in _SHAPES}
        texts = texts_of(self._docs, rng)
        while True:
            some = [*itertools.islice(texts, _TEXTS_AT_ONCE)]
            ids = self._tokenizer.encode([text for _, text in some])
            for (_, text), row in zip(some, ids, strict=True):
                kind = "short" if len(row) <= _SHAPES["short"][1] - 2 else "long"
                expected = self._teacher.vocabulary.encode(text)
                if 3 <= max(len(row), len(expected)) <= _SHAPES[kind][1] - 2:
                    pools[kind].append((row, expected))
            ready = [
                (kind, start)
                for kind, (size, *_) in _SHAPES.items()
                for start in range(0, len(pools[kind]) - size + 1, size)
            ]
            used = dict.fromkeys(_SHAPES, 0)
            for place in rng.permutation(len(ready)):
                kind, start = ready[place]
                size, length, _ = _SHAPES[kind]
                yield self._batch(pools[kind][start : start + size], length, rng)
                used[kind] = max(used[kind], start + size)
            pools = {kind: pool[used[kind] :] for kind, pool in pools.items()}

    def _batch(self, rows, length, rng):
        tokenizer = self._tokenizer
        end = np.array([tokenizer.sep_token_id]), SEGMENT_A
        cls = np.array([tokenizer.cls_token_id]), SEGMENT_CLS
        parts = [[(np.array(row), SEGMENT_A), end, cls] for row, _ in rows]
        text = pack(parts, length, "left", tokenizer.pad_token_id, 4, shorten=False)
        ids, mask = text["token_ids"], text["padding_mask"]
        special = [tokenizer.sep_token_id, tokenizer.cls_token_id]
        sampler = SpanMaskSampler(None, alpha=_PREDICTED)
        is_target = sampler.sample(self._word_starts[ids], mask & ~np.isin(ids, special), draws=rng)
        generator = PermutationMaskGenerator(length // _PREDICTED)
        targets = generator.generate(ids, is_target, mask, draws=rng)
        y, weights = self._of_teacher(rows, mask)
        y["logits"], weights["logits"] = targets["labels"], targets["sample_weight"]
        names = ("permutation_mask", "target_positions")
        return text | {name: targets[name] for name in names}, y, weights

    def _of_teacher(self, rows, mask):
        states = self._teacher.states([expected for _, expected in rows])
        y = np.zeros((*mask.shape, states[0].shape[-1]), "float32")
        weights = np.zeros(mask.shape, "float32")
        for row, ((ids, expected), state) in enumerate(zip(rows, states, strict=True)):
            if np.array_equal(self._teacher.ids[ids], expected):
                y[row, -len(state) :], weights[row, -len(state) :] = state, 1.0
        mean = np.array([state.mean(axis=0) for state in states])
        return {"states": y, "mean": mean}, {"states": weights, "mean": np.ones(len(mean), "f")}


def signature(width):
    def rows(dtype, *shape):
        return tf.TensorSpec((None, *shape), dtype)

    ids, flags, numbers = rows(tf.int32, None), rows(tf.bool, None), rows(tf.float32, None)
    x = {"token_ids": ids, "segment_ids": ids, "padding_mask": flags}
    x |= {"permutation_mask": rows(tf.bool, None, None), "target_positions": ids}
    y = {"states": rows(tf.float32, None, width), "mean": rows(tf.float32, width), "logits": ids}
    return x, y, {"states": numbers, "mean": rows(tf.float32), "logits": numbers}


def tokenizer_pieces(tokenizer):
    return [tokenizer.id_to_token(i) for i in range(9, tokenizer.vocabulary_size())]


def _as_token(piece):
    """The token of BERT that a piece stands for."""
    return piece[1:] if piece.startswith("\u2581") else f"##{piece}"


# === Reports ===


class PairCorrelation(keras.callbacks.Callback):
    """Adds to the logs of an epoch the Spearman correlation of STS-B, development."""

    def __init__(self, backbone, tokenizer, data):
        super().__init__()
        self._backbone, self._tokenizer = backbone, tokenizer
        self._file = data / "tasks" / "stsb" / "sts-dev.csv"

    def on_epoch_end(self, epoch, logs=None):
        first, second = (
            bert_conversion.encode(self, bert_conversion.table(self._file, i)) for i in (5, 6)
        )
        judged = np.array(bert_conversion.table(self._file, 4), float)
        logs["stsb"] = float(spearmanr((first * second).sum(axis=1), judged)[0])

    # What `bert_conversion.encode` reads.
    backbone = property(lambda self: self._backbone)
    tokenizer = property(lambda self: self._tokenizer)


class Log(keras.callbacks.Callback):
    """Writes a line for each epoch, with its processor time, and draws the curves."""

    def __init__(self, directory):
        super().__init__()
        self._file, self._picture = directory / "log.csv", directory / "curves.png"

    def on_train_begin(self, logs=None):
        self._start = time.process_time()

    def on_epoch_end(self, epoch, logs=None):
        rows = list(csv.DictReader(self._file.open())) if self._file.exists() else []
        rows = [row for row in rows if int(row["epoch"]) < epoch]
        hours = (time.process_time() - self._start) / 3600
        self._start = time.process_time()
        rows.append({"epoch": epoch, "cpu_hours": f"{hours:.4f}", **logs})
        with self._file.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[-1].keys())
            writer.writeheader()
            writer.writerows(rows)
        draw(rows, self._picture)


def draw(rows, file):
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    hours = np.cumsum([float(row["cpu_hours"]) for row in rows])
    names = {
        "val_logits_bits_per_character": "bits per character",
        "val_states_loss": "squared difference of states",
        "stsb": "STS-B development, Spearman",
    }
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
    for axis, (name, label) in zip(axes, names.items(), strict=True):
        axis.plot(hours, [float(row[name]) for row in rows], marker=".")
        axis.set(title=label, xlabel="hours of one CPU core")
        axis.grid(alpha=0.3)
    figure.savefig(file, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
