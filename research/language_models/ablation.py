"""Trains Transformer-XL without its parts, as tables 6, 7 and 10 of the paper, but small.

    python research/language_models/ablation.py        # about 20 minutes on 2 cores, no network

All combinations (training with and without memory, three position encodings, and a loss on all
tokens or on the second half of each segment) are trained on the characters of tiny Shakespeare, for
the same number of steps. All are evaluated with attention to increasing numbers of tokens. It
writes to runs/ablation a table, and plots of the perplexity by attention length and of the relative
effective context length (RECL) for the hardest tenth, half and all of the tokens. An interrupted
run continues with the next model when it is started again.

Source: Dai et al. 2019 (Transformer-XL), sections 4.2 and 4.4, tables 6, 7, 8 and 10.
"""

import argparse
import itertools
import lzma
import pathlib
import time

import keras
import matplotlib
import numpy as np
import tensorflow as tf
from keras import ops

from keras_xlnet.evaluation import corpus_log_probs, effective_context_lengths
from keras_xlnet.layers import RelativePositionEncoding
from keras_xlnet.models import TransformerXLLanguageModel
from keras_xlnet.pretraining import CausalBatches
from keras_xlnet.tokenizers import VocabularyTokenizer

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

SHAKESPEARE = pathlib.Path(__file__).parents[2] / "examples" / "data" / "tiny_shakespeare.txt.xz"
SEGMENT, ROWS = 32, 16
SHARES = (0.1, 0.5, 1.0)


# === Encodings of positions ===


class LearnedRelativePositions(RelativePositionEncoding):
    """A learned vector for each distance instead of a sinusoid, as in Shaw et al. 2018.

    Distances beyond `max_distance` have the vector of `max_distance`.
    """

    max_distance = 64

    def build(self, content_shape, memory_shape=None):
        super().build(content_shape, memory_shape)
        shape, initializer = (self.max_distance + 1, self.hidden_dim), "random_normal"
        self.table = self.add_weight(shape, initializer, name="table")

    def call(self, content, memory=None):
        length = 0 if memory is None else ops.shape(memory)[-2]
        distances = self._distances(ops.shape(content)[1], length)
        rows = ops.cast(ops.clip(distances, 0, self.max_distance), "int32")
        return ops.take(self.table, rows, axis=0)


class NoRelativePositions(RelativePositionEncoding):
    """Zeros: the score depends only on the content."""

    def call(self, content, memory=None):
        return ops.zeros_like(super().call(content, memory=memory))


class AddAbsolutePositions(RelativePositionEncoding):
    """Adds the sinusoid of its position in the segment to each token, as Vaswani et al. 2017."""

    def call(self, content, memory=None):
        # The distances of one segment, from its length to 0.
        return content + ops.flip(super().call(content), axis=1)[:, :-1]

    def compute_output_shape(self, content_shape, memory_shape=None):
        return content_shape


class ShawLanguageModel(TransformerXLLanguageModel):
    """Transformer-XL with learned relative positions."""

    position_encoding_class = LearnedRelativePositions


class AbsoluteLanguageModel(TransformerXLLanguageModel):
    """Transformer-XL with absolute positions, the same in memory and in the segment."""

    position_encoding_class = NoRelativePositions

    def encode(self, content, **arguments):
        """Runs the blocks on embedded tokens with their positions in the segment."""
        add_positions = AddAbsolutePositions(content.shape[-1], "uni", dtype="float32")
        return TransformerXLLanguageModel.encode(self, add_positions(content), **arguments)


ENCODINGS = {
    "relative": TransformerXLLanguageModel,
    "Shaw": ShawLanguageModel,
    "absolute": AbsoluteLanguageModel,
}


# === Runs ===


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000, help="of training")
    parser.add_argument("--num_layers", type=int, default=3)
    parser.add_argument("--evaluated", type=int, default=20000, help="held-out characters")
    lengths = [4, 8, 16, 32, 64, 128, 256]
    parser.add_argument("--attention", nargs="+", type=int, default=lengths, help="lengths")
    parser.add_argument("--output_dir", type=pathlib.Path, default=pathlib.Path("runs/ablation"))
    options = parser.parse_args()
    options.output_dir.mkdir(parents=True, exist_ok=True)
    text = lzma.open(SHAKESPEARE, "rt", encoding="utf-8").read()
    token_ids = VocabularyTokenizer.train([text], unit="character")([text]).flat_values.numpy()
    train, held_out = np.split(token_ids, [len(text) - round(0.1 * len(text))])
    runs = {}
    for has_memory, encoding, loss in itertools.product((True, False), ENCODINGS, ("full", "half")):
        name = f"{'memory' if has_memory else 'no memory'}-{encoding}-{loss} loss"
        path = options.output_dir / f"{name}.npz"
        if not path.exists():
            found = run(encoding, has_memory, loss, train, held_out[: options.evaluated], options)
            np.savez(path.with_suffix(".tmp.npz"), **found)
            path.with_suffix(".tmp.npz").replace(path)
        with np.load(path) as arrays:
            runs[name] = dict(arrays)
        print(f"{name}: {nats(runs[name]) or runs[name]['training'].mean()}", flush=True)
    table = make_table(runs)
    (options.output_dir / "table.md").write_text(table + "\n", encoding="utf-8")
    draw(runs, options.output_dir / "ablation.png")
    print(f"\n{table}\nWritten to {options.output_dir}: table.md, ablation.png")


def run(encoding, has_memory, loss, token_ids, held_out, options):
    """Trains a model and returns its losses for each token, by attention length."""
    keras.utils.set_random_seed(0)
    memory = {"memory_length": SEGMENT, "stateful": True, "batch_size": ROWS} if has_memory else {}
    model = ENCODINGS[encoding](
        int(token_ids.max()) + 1, options.num_layers, 4, 128, 448,
        dropout=0.0, attention_dropout=0.0, seed=0, **{"memory_length": 0, **memory},
    )  # fmt: skip
    warmup = max(1, options.steps // 20)
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, options.steps - warmup), 0.1, warmup_target=1e-3, warmup_steps=warmup
    )
    optimizer = keras.optimizers.AdamW(rate, weight_decay=0.1, beta_2=0.99, global_clipnorm=1.0)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    model.compile(optimizer)
    batches = CausalBatches(token_ids, ROWS, SEGMENT).dataset()
    if loss == "half":
        batches = batches.map(weigh_second_half)
    start = time.process_time()
    model.fit(batches, steps_per_epoch=options.steps, shuffle=False, verbose=0)
    found = {"cpu_minutes": (time.process_time() - start) / 60}
    model = model.with_arguments(stateful=False, batch_size=None)
    found["training"] = losses_of(model, held_out)
    # A model trained without memory never learned to distinguish its positions from the segment's.
    for length in options.attention if has_memory or encoding != "absolute" else ():
        found[str(length)] = losses_of(model, held_out, memory_length=length, same_length=length)
    return found


def losses_of(model, held_out, **overrides):
    return -corpus_log_probs(model, held_out, SEGMENT, batch_size=32, verbose=0, **overrides)


def weigh_second_half(features, labels):
    """Adds sample weights: 0 for the first half of each segment, which has little context."""
    weights = tf.cast(tf.range(SEGMENT) >= SEGMENT // 2, tf.float32)
    return features, labels, tf.tile(weights[tf.newaxis], (ROWS, 1))


# === The report ===


def nats(found):
    """Returns the mean losses of a run by attention length."""
    return {int(k): round(float(found[k].mean()), 3) for k in found if k.isdigit()}


def recl(runs, share):
    """Returns the relative effective context length of each run."""
    losses = {
        name: {int(k): row for k, row in found.items() if k.isdigit()}
        for name, found in runs.items()
        if nats(found)
    }
    return effective_context_lengths(losses, r=share)


def make_table(runs):
    """Returns a table with a row for each run."""
    lengths = {share: recl(runs, share) for share in SHARES}
    head = ["memory", "positions", "loss", "as in training", "best", "attention of the best"]
    head += [f"RECL, r={share}" for share in SHARES] + ["CPU minutes"]
    lines = [head, ["---"] * len(head)]
    for name, found in runs.items():
        memory, encoding, loss = name.split("-")
        cells = ["yes" if memory == "memory" else "no", encoding, loss.removesuffix(" loss")]
        cells.append(f"{found['training'].mean():.3f}")
        if by_length := nats(found):
            best = min(by_length, key=by_length.get)
            cells += [f"{by_length[best]:.3f}", str(best)]
            cells += [str(lengths[share][name]) for share in SHARES]
        cells += [""] * (len(head) - 1 - len(cells))
        lines.append([*cells, f"{float(found['cpu_minutes']):.1f}"])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def draw(runs, path):
    """Draws perplexity by attention length, and RECL."""
    runs = {name: found for name, found in runs.items() if nats(found)}
    titles = [name.replace("-", ", ") for name in runs]
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.5), layout="constrained")
    colors = dict(zip(ENCODINGS, ("tab:green", "tab:blue", "tab:red"), strict=True))
    for (name, found), title in zip(runs.items(), titles, strict=True):
        memory, encoding, loss = name.split("-")
        style = {"linestyle": "-" if memory == "memory" else ":", "color": colors[encoding]}
        by_length, marker = nats(found), "o" if loss == "full loss" else "x"
        perplexities = np.exp(list(by_length.values()))
        left.plot(list(by_length), perplexities, marker=marker, label=title, **style)
    left.set_xscale("log", base=2)
    left.set(xlabel="attention length in evaluation", ylabel="perplexity of a character")
    left.set_ylim(top=min(left.get_ylim()[1], 15))
    figure.legend(fontsize="small", loc="outside right upper")
    for i, share in enumerate(SHARES):
        places = np.arange(len(runs)) + (i - 1) / 4
        right.barh(places, list(recl(runs, share).values()), 1 / 4, label=f"r = {share}")
    right.set_yticks(range(len(runs)), titles, fontsize=8)
    right.invert_yaxis()
    right.set(xlabel="relative effective context length, characters")
    right.legend()
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main()
