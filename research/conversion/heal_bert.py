"""Makes `xlnet_mini_en`: converts a BERT of sentence-transformers, and heals it by training.

    python research/conversion/heal_bert.py --teacher all-MiniLM-L6-v2 --data ../shared/data \\
        --output runs/mini

`--teacher` is the folder of `bert_conversion.py`; `--data` has `corpus`. Pieces that the corpus
does not use are left out, and the scores of the others are fitted to its words. Then one `fit`
trains for two targets. The pass without masks learns to reproduce the teacher: its states at the
tokens that both tokenizers share, and the mean of its states. The pass of the permutation language
model learns to predict words, because the conversion has no query stream and no softmax. Batches of
single lines and of long parts of documents alternate.

It trains for `--hours`, and `--start` continues from a preset. `log.csv` and `curves.png` have the
losses and the bits per character of held-out text after each epoch. It needs PyTorch and
transformers for the teacher, and runs on every backend.
"""

import argparse
import collections
import concurrent.futures
import itertools
import lzma
import math
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import bert_conversion
import keras
import matplotlib
import numpy as np
from aligned_texts import AlignedTexts

from keras_xlnet.checkpoints import load_bert
from keras_xlnet.checkpoints.bert_files import read_vocabulary
from keras_xlnet.conversion.bert_vocabulary import bert_ids
from keras_xlnet.evaluation import BitsPerCharacter
from keras_xlnet.layers import PermutationMaskGenerator, SpanMaskSampler
from keras_xlnet.models import XLNetPermutationLM
from keras_xlnet.preprocessing.packing import SEGMENT_A, SEGMENT_CLS, SEGMENT_PADDING
from keras_xlnet.task_files import read_table
from keras_xlnet.tokenizers import XLNetTokenizer

# Row length, smallest and largest number of words of a text, whether it may have several lines.
_KINDS = {"short": (48, (8, 34), False), "long": (512, (120, 390), True)}
_PREDICTED = 3  # One token in three.
_STEPS_PER_EPOCH = 100
_VALIDATION_STEPS = 8
_WORKERS = 8


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--teacher", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("runs/mini"))
    parser.add_argument("--start", help="a preset to go on from, instead of a conversion")
    parser.add_argument("--hours", type=float, default=4.0)
    parser.add_argument("--tokens", type=int, default=3072, help="of a batch, with padding")
    parser.add_argument("--learning_rate", type=float, default=3e-4)
    parser.add_argument("--lm_weight", type=float, default=0.05)
    parser.add_argument("--dtype", default="float32", help="or mixed_bfloat16")
    arguments = parser.parse_args()
    keras.utils.set_random_seed(0)
    lm, tokenizer = starting_model(arguments)
    texts = (read_texts(arguments, tokenizer, name) for name in ("train", "valid"))
    teacher = Teacher(arguments.teacher)
    train, held_out = (Batches(part, tokenizer, teacher, arguments.tokens) for part in texts)
    model = heal(lm, tokenizer, teacher.variance, arguments)
    arguments.output.mkdir(parents=True, exist_ok=True)
    model.fit(
        train.prefetched(),
        epochs=10**6,
        steps_per_epoch=_STEPS_PER_EPOCH,
        validation_data=held_out.repeated(_VALIDATION_STEPS),
        validation_steps=_VALIDATION_STEPS,
        callbacks=[
            Hours(arguments.hours, arguments.learning_rate),
            keras.callbacks.CSVLogger(arguments.output / "log.csv"),
        ],
        verbose=2,
    )
    draw(arguments.output / "log.csv", arguments.output / "curves.png")
    preset = arguments.output / "preset"
    lm.save_to_preset(preset, tokenizer)
    # Users should not get the dtype policy of this training.
    XLNetPermutationLM.from_preset(preset, dtype="float32").save_to_preset(preset, dtype="float16")


def documents(file):
    """Returns the documents of a file of the corpus, lists of lines."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        groups = itertools.groupby(lines, key=lambda line: bool(line.strip()))
        return [list(map(str.strip, group)) for is_text, group in groups if is_text]


def read_texts(arguments, tokenizer, name):
    """Returns the `AlignedTexts` of a part of the corpus."""
    texts = documents(arguments.data / "corpus" / f"redistributable.{name}.txt.xz")
    ids = teacher_ids(arguments.teacher, tokenizer)
    arrays = AlignedTexts.split(texts, tokenizer, read_vocabulary(arguments.teacher), ids)
    return AlignedTexts(arrays)


# === The model ===


def starting_model(arguments):
    """Returns an `XLNetPermutationLM` and its tokenizer: converted, or loaded."""
    directory = arguments.start or arguments.output / "converted"
    if not arguments.start and not directory.exists():
        convert(arguments).save_to_preset(directory)
    lm = XLNetPermutationLM.from_preset(directory, dtype=arguments.dtype)
    return lm, lm.tokenizer


def convert(arguments):
    corpus = arguments.data / "corpus" / "redistributable.train.txt.xz"
    lines = [*itertools.chain(*documents(corpus))]
    texts = [lines[i] for i in np.random.default_rng(0).permutation(len(lines))[:60_000]]
    counts = read_vocabulary(arguments.teacher).counts(texts)
    print(f"{len(counts):,} tokens of the teacher occur in {len(texts):,} texts", flush=True)
    samples = bert_conversion.corpus_texts(arguments.data)
    options = {"keep": counts, "dropout": 0.0, "attention_dropout": 0.0}
    backbone = load_bert(arguments.teacher, sample_texts=samples, **options)
    vocabulary = read_vocabulary(arguments.teacher, keep=counts)
    lm = XLNetPermutationLM(backbone, XLNetTokenizer(vocabulary.to_sentencepiece(texts)))
    mask = backbone.token_embedding.embeddings[lm.tokenizer.token_to_id("<mask>")]
    (embedding,) = lm.mask_embedding.weights
    embedding.assign(keras.ops.reshape(mask, embedding.shape))
    return lm


def heal(lm, tokenizer, variance, arguments):
    """Returns the model to train: the two passes of one XLNet."""
    inputs = lm.input
    text = {key: inputs[key] for key in ("token_ids", "segment_ids", "padding_mask")}
    states = lm.backbone(text)["sequence_output"]
    mean = keras.layers.GlobalAveragePooling1D(dtype="float32")(states, mask=inputs["padding_mask"])
    logits = lm(inputs)["logits"]
    model = keras.Model(inputs, {"states": states, "mean": mean, "logits": logits})
    weighted = "mean_with_sample_weight"
    model.compile(
        keras.optimizers.AdamW(arguments.learning_rate, weight_decay=0.01, global_clipnorm=1.0),
        loss={
            "states": keras.losses.MeanSquaredError(reduction=weighted),
            "mean": keras.losses.CosineSimilarity(),
            "logits": keras.losses.SparseCategoricalCrossentropy(True, reduction=weighted),
        },
        loss_weights={"states": 2 / variance, "mean": 1.0, "logits": arguments.lm_weight},
        weighted_metrics={"logits": [BitsPerCharacter.of(tokenizer)]},
        jit_compile=keras.backend.backend() == "jax",
    )
    return model


def teacher_ids(directory, tokenizer):
    """Returns the teacher's id for each id of the tokenizer."""
    pieces = [tokenizer.id_to_token(i) for i in range(9, tokenizer.vocabulary_size())]
    return np.asarray(bert_ids(read_vocabulary(directory, keep=set(map(_as_token, pieces)))))


def _as_token(piece):
    """The BERT token that a piece stands for."""
    return piece[1:] if piece.startswith("\u2581") else f"##{piece}"


class Teacher:
    """The BERT.

    Attributes:
        variance: Float, the mean squared difference of its states from their mean.
    """

    def __init__(self, directory):
        import torch
        import transformers

        self._torch = torch
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        dtype = torch.float16 if self._device == "cuda" else torch.float32
        model = transformers.BertModel.from_pretrained(directory, add_pooling_layer=False)
        self._model = model.to(self._device, dtype).eval()
        vocabulary = read_vocabulary(directory)
        self._end, self._cls = (vocabulary.id_of(name) for name in ("[SEP]", "[CLS]"))
        words = np.arange(2000, 3800).reshape(60, 30)
        places = np.tile(np.arange(30), (60, 1))
        states, _ = self.states(words, np.ones_like(words, bool), places)
        self.variance = float(states.astype("float32").var(axis=(0, 1)).mean())

    def states(self, ids, mask, places):
        """Returns the last states at positions of a text and at its ends, and their mean.

        Args:
            ids: Int array `(rows, length)`, without `[CLS]` and `[SEP]`, padded on the right.
            mask: Bool array `(rows, length)`.
            places: Int array `(rows, places)`, of tokens of `ids`; -1 is `[CLS]`, and the place
                after the last token is `[SEP]`.

        Returns:
            Float16 arrays `(rows, places, hidden_dim)` and `(rows, hidden_dim)`.
        """
        torch = self._torch
        ids = np.pad(np.where(mask, ids, 0), ((0, 0), (1, 1)), constant_values=(self._cls, 0))
        lengths = mask.sum(axis=1)
        ids[np.arange(len(ids)), 1 + lengths] = self._end
        mask = torch.tensor(np.arange(ids.shape[1]) < 2 + lengths[:, np.newaxis])
        ids, places = torch.tensor(ids.astype("int64")), torch.tensor(places)
        ids, mask, places = (x.to(self._device) for x in (ids, mask, places))
        with torch.inference_mode():
            states = self._model(ids, attention_mask=mask.long()).last_hidden_state
            kept = mask[:, :, None].to(states.dtype)
            mean = (states * kept).sum(dim=1, dtype=torch.float32) / mask.sum(dim=1)[:, None]
            index = (places.long() + 1)[:, :, None].expand(-1, -1, states.shape[-1])
            chosen = states.gather(1, index)
            return chosen.to(torch.float16).cpu().numpy(), mean.to(torch.float16).cpu().numpy()


# === Batches ===


class Batches:
    """Batches of texts, with the teacher's states and the targets of a permutation.

    Args:
        texts: `AlignedTexts`.
        tokenizer: `XLNetTokenizer`.
        teacher: `Teacher`.
        tokens: Int, tokens of a batch, with padding.
    """

    def __init__(self, texts, tokenizer, teacher, tokens):
        self._texts, self._tokenizer, self._teacher = texts, tokenizer, teacher
        self._tokens = tokens
        self._sampler = SpanMaskSampler(None, alpha=_PREDICTED)
        lengths = [length for length, *_ in _KINDS.values()]
        self._generators = {n: PermutationMaskGenerator(n // _PREDICTED) for n in lengths}

    def prefetched(self):
        """Yields endless batches; threads make them in advance."""
        with concurrent.futures.ThreadPoolExecutor(_WORKERS) as pool:
            waiting = collections.deque()
            for number, (chunks, length) in enumerate(self._chunks()):
                waiting.append(pool.submit(self._batch, chunks, length, number))
                if len(waiting) > 2 * _WORKERS:
                    yield waiting.popleft().result()

    def repeated(self, number):
        """Yields the first batches again and again."""
        yield from itertools.cycle([*itertools.islice(self.prefetched(), number)])

    def _chunks(self):
        """Yields the ranges of a batch and the length of its rows; the kinds alternate."""
        for number in itertools.count():
            rng = np.random.default_rng(number)
            kinds = [self._round(*kind, rng) for kind in _KINDS.values()]
            yield from itertools.chain(*zip(*kinds, strict=False))

    def _round(self, length, most_words, of_documents, rng):
        chunks = self._texts.chunks(most_words, of_documents, rng)
        chunks = self._texts.fitting(chunks, length - 2)
        size = self._tokens // length
        return [(chunks[i : i + size], length) for i in range(0, len(chunks) - size + 1, size)]

    def _batch(self, chunks, length, number):
        rng = np.random.default_rng([1, number])
        tokenizer = self._tokenizer
        (ids, mask), (starts, _), (places, _), (expected, expected_mask) = self._texts.rows(chunks)
        special = (tokenizer.sep_token_id, tokenizer.cls_token_id)
        token_ids = _on_the_left(ids, mask, length, special, tokenizer.pad_token_id)
        padding_mask = _on_the_left(mask, mask, length, (True, True), False)
        segments = np.full_like(ids, SEGMENT_A)
        ends = (SEGMENT_A, SEGMENT_CLS)
        segments = _on_the_left(segments, mask, length, ends, SEGMENT_PADDING)
        inputs = {
            "token_ids": token_ids.astype("int32"),
            "segment_ids": segments.astype("int32"),
            "padding_mask": padding_mask,
        }
        is_word = _on_the_left(starts & mask, mask, length, (False, False), False)
        candidates = padding_mask & ~np.isin(token_ids, special)
        is_target = self._sampler.sample(is_word, candidates, draws=rng)
        targets = self._generators[length].generate(token_ids, is_target, padding_mask, draws=rng)
        end = expected_mask.sum(axis=1)
        # -2: the teacher does not have this token.
        places = np.where(places < 0, -2, places)
        places = _on_the_left(places, mask, length, (end, np.full_like(end, -1)), -2)
        states, mean = self._teacher.states(expected, expected_mask, np.maximum(places, -1))
        y = {"states": states, "mean": mean, "logits": targets["labels"]}
        weights = {
            "states": (places > -2).astype("float32"),
            "mean": np.ones(len(mean), "float32"),
            "logits": targets["sample_weight"],
        }
        inputs |= {name: targets[name] for name in ("permutation_mask", "target_positions")}
        return inputs, y, weights


def _on_the_left(rows, mask, length, ends, padding):
    """Returns rows padded on the left, with two more columns at the end."""
    counts = mask.sum(axis=1, keepdims=True)
    columns = np.arange(length) - (length - 2 - counts)
    taken = np.take_along_axis(rows, np.clip(columns, 0, rows.shape[1] - 1), axis=1)
    result = np.where(columns < 0, padding, taken)
    result[:, -2], result[:, -1] = ends
    return result


# === Reports ===


class Hours(keras.callbacks.Callback):
    """Ends the training after some hours; the learning rate follows a cosine of the time to 0.

    It logs the hours of each epoch.
    """

    def __init__(self, hours, learning_rate):
        super().__init__()
        self._seconds, self._rate = 3600 * hours, learning_rate

    def on_train_begin(self, logs=None):
        self._start = time.time()

    def on_epoch_begin(self, epoch, logs=None):
        self._start_of_epoch = time.time()
        rate = self._rate * (1 + math.cos(math.pi * min(1.0, self._done()))) / 2
        # In the first epoch, Adam's moments average few batches.
        self.model.optimizer.learning_rate = rate if epoch else rate / 4

    def on_epoch_end(self, epoch, logs=None):
        logs["hours"] = (time.time() - self._start_of_epoch) / 3600
        self.model.stop_training = self._done() >= 1

    def _done(self):
        return (time.time() - self._start) / self._seconds


def draw(log, file):
    """Draws the curves of a log."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = {
        "val_logits_bits_per_character": (1, "bits per character"),
        "val_states_loss": (1, "squared difference of states"),
        "val_mean_loss": (-1, "cosine of means"),
    }
    rows = read_table(log, {name: name for name in ("hours", *names)}, numeric=["hours", *names])
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
    for axis, (name, (sign, label)) in zip(axes, names.items(), strict=True):
        axis.plot(60 * np.cumsum(rows["hours"]), sign * np.array(rows[name]), marker=".")
        axis.set(title=label, xlabel="minutes")
        axis.grid(alpha=0.3)
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
