"""The workloads: sizes, and the NumPy data that every library gets."""

import csv
import dataclasses
import json
import os
import pathlib

import numpy as np

from benchmarks.flop import Shapes, encoder_flop, forward_flop, matmul_flop

VOCABULARY_SIZE = 32000
DROPOUT = 0.1
MATMUL_SIZE = int(os.environ.get("COMPARISON_MATMUL_SIZE", 2048))
PROMPT_LENGTH = 64
OVERLAP = 48  # tokens that two windows of a context share
DATA = pathlib.Path(__file__).parents[2] / "examples" / "data"


@dataclasses.dataclass(frozen=True)
class Workload:
    """One thing to time. `kind` is the function of the library's file that builds it.

    A repetition is `calls` calls of it; `units` of `unit` are done in one call.
    """

    name: str
    title: str
    kind: str
    batch_size: int = 1
    length: int = 128
    num_layers: int = 12
    dim: int = 768
    num_heads: int = 12
    memory_length: int = 0
    num_predictions: int = 0
    num_clients: int = 1
    calls: int = 1
    unit: str = ""
    units: int = 0
    gigabytes: float = 2.5  # about what a process takes: decides how many run side by side
    fresh: bool = False  # whether a repetition is the first call of a new process, imports included

    @property
    def intermediate_dim(self):
        return 4 * self.dim

    @property
    def reads_texts(self):
        """Whether it needs the vocabulary that is trained on the messages."""
        return "text" in self.kind or self.kind in ("tokenize", "fit_answers")

    @property
    def shapes(self):
        """The `Shapes` whose operations are counted."""
        sizes = (self.num_layers, self.num_heads, self.dim, self.intermediate_dim)
        batch = (self.length, self.memory_length, self.num_predictions, self.batch_size)
        head_dim = self.dim // self.num_heads
        return Shapes(*sizes, VOCABULARY_SIZE, head_dim, *batch, bidirectional_data=False)

    @property
    def flop(self):
        """Floating point operations that a call needs, or None if they were not counted."""
        if self.kind == "multiply":
            return matmul_flop(MATMUL_SIZE, MATMUL_SIZE, MATMUL_SIZE)
        # The backward pass of a product is two products of its size.
        if self.kind == "pretrain":
            return 3 * sum(forward_flop(self.shapes).values())
        if self.kind == "serve_texts":
            return self.units // self.batch_size * encoder_flop(self.shapes)
        passes = {"encode": 1, "finetune": 3}.get(self.kind)
        return passes and passes * encoder_flop(self.shapes)


def _pretraining(name, title, **sizes):
    sizes = {"batch_size": 4, "length": 256, "num_layers": 6, "dim": 512, "num_heads": 8, **sizes}
    return Workload(name, title, "pretrain", num_predictions=42, gigabytes=3.5, **sizes)


def _serving(name, title, **sizes):
    return Workload(name, title, "serve_texts", unit="texts", gigabytes=3, **sizes)


def _small(name, title, kind, **sizes):
    """Strings, for a model of the size of the preset `xlnet_small_en`."""
    sizes = {"batch_size": 32, "num_layers": 6, "dim": 256, "num_heads": 4, "units": 1024, **sizes}
    return Workload(name, title, kind, unit="texts", **sizes)


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("GEMM", f"matrix product {MATMUL_SIZE}^3", "multiply", calls=10, gigabytes=1),
        Workload("W1", "encoder forward, Base, 8 x 128", "encode", 8, 128),
        Workload("W2", "encoder forward, Base, 2 x 512", "encode", 2, 512),
        Workload("W3", "fine-tuning step, Base, 8 x 128", "finetune", 8, 128, gigabytes=5),
        _pretraining("W4", "pretraining step, 6 x 512, 4 x 256"),
        _pretraining("W4m", "the same, memory 128", memory_length=128),
        Workload("W5", "encoder forward, Base, one text of 32", "encode", 1, 32, calls=10),
        Workload("W6", "generation, Base, 64 + 32 tokens", "generate", unit="tokens", units=32),
        Workload("W7", "tokenizer, 5,000 short texts", "tokenize", unit="texts", units=5000),
        _serving("W8", "served texts, Base, 32 at a time", batch_size=32, units=32),
        _serving("W8c1", "served texts, Base, 1 client, one at a time", units=32),
        _serving("W8c8", "the same, 8 clients at once", num_clients=8, units=64),
        Workload("W9", "predict([text]) in Python, Base", "predict_texts", unit="texts", units=32),
        _small("W10", "fit on 1,024 messages, 6 x 256", "fit_texts"),
        _small("W11", "predict on 1,024 messages, 6 x 256", "predict_many_texts"),
        Workload("W12", "import to first step, 6 x 256", "finetune", 32, 64, 6, 256, 4, fresh=True),
        _small("W13", "fit on 256 texts of 256 tokens", "fit_texts", units=256, length=256),
        _small("W14", "fit on 128 questions, windows of 192", "fit_answers", units=128, length=192),
    )
}
if os.environ.get("COMPARISON_SIZE") == "small":
    # For tests: the same steps in seconds.
    small = {"num_layers": 1, "dim": 32, "num_heads": 2, "gigabytes": 1}
    WORKLOADS = {
        name: dataclasses.replace(
            workload,
            **small,
            batch_size=min(workload.batch_size, 4),
            length=min(workload.length, 32),
            num_predictions=min(workload.num_predictions, 4),
            memory_length=min(workload.memory_length, 16),
            units=min(workload.units, 32),
        )
        for name, workload in WORKLOADS.items()
    }


def token_batch(workload):
    """`token_ids`, `segment_ids` (int32), `padding_mask` (bool) and `labels` of distinct rows.

    Row `r` begins with `3 r` tokens of padding: XLNet pads on the left.
    """
    rng = np.random.default_rng(0)
    shape = workload.batch_size, workload.length
    columns = np.arange(workload.length)
    return {
        "token_ids": rng.integers(10, VOCABULARY_SIZE, shape).astype("int32"),
        "segment_ids": np.tile((columns >= workload.length // 2).astype("int32"), (shape[0], 1)),
        "padding_mask": columns >= 3 * np.arange(shape[0])[:, None],
        "labels": np.arange(shape[0]) % 2,
    }


def pretraining_batch(workload):
    """A batch of permutation language modelling, without padding.

    `permutation_mask` `(batch, length, length)` is True where row i may see column j.
    """
    batch, length = workload.batch_size, workload.length
    rng = np.random.default_rng(1)
    order = np.stack([rng.permutation(length) for _ in range(batch)])
    shape = batch, workload.num_predictions
    positions = [rng.choice(length, shape[1], replace=False) for _ in range(batch)]
    return {
        "token_ids": rng.integers(10, VOCABULARY_SIZE, (batch, length)).astype("int32"),
        "segment_ids": token_batch(workload)["segment_ids"],
        "permutation_mask": order[:, :, None] > order[:, None, :],
        "target_positions": np.sort(np.stack(positions)).astype("int32"),
        "labels": rng.integers(10, VOCABULARY_SIZE, shape).astype("int32"),
    }


def prompt():
    """Returns token ids `(1, PROMPT_LENGTH)` to continue."""
    return np.random.default_rng(2).integers(10, VOCABULARY_SIZE, (1, PROMPT_LENGTH))


def texts(count):
    """Returns the bundled short messages, or the texts of a file, repeated."""
    path = os.environ.get("COMPARISON_TEXTS", DATA / "spam_messages.tsv")
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return _repeated([row["text"] for row in rows], count)


def questions(count):
    """Returns `(question, context, start, answer)` of the bundled ones or a file, repeated."""
    path = os.environ.get("COMPARISON_QUESTIONS", DATA / "squad_sample.json")
    articles = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["data"]
    found = [
        (row["question"], part["context"], answer["answer_start"], answer["text"])
        for article in articles
        for part in article["paragraphs"]
        for row in part["qas"]
        for answer in row["answers"][:1]
    ]
    # Questions about one paragraph stand together, and paragraphs differ in length.
    order = np.random.default_rng(3).permutation(len(found))
    return _repeated([found[i] for i in order], count)


def _repeated(rows, count):
    return [rows[i % len(rows)] for i in range(count)]


def vocabulary_file():
    """Path of the SentencePiece model that was trained on the messages (`run.py`)."""
    return os.path.join(os.environ["COMPARISON_ASSETS"], "spiece.model")
