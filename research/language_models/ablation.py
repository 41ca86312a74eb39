"""Trains Transformer-XL without its parts, as tables 6, 7 and 10 of the paper, but small.

    python research/language_models/ablation.py        # about 20 minutes on 2 cores, no network

Every combination of memory or none in training, three encodings of positions, and a loss of all
tokens or of the second half of each segment is trained on the characters of tiny Shakespeare, for
the same number of steps. All are evaluated with attention to more and more tokens. In
runs/ablation: a table, and plots of the perplexity by attention length and of the relative
effective context length (RECL) for the hardest tenth, half and all of the tokens. A run that was
killed continues with the next model when it is started again.

Source: Dai et al. 2019 (Transformer-XL), sections 4.2 and 4.4, tables 6, 7, 8 and 10.
"""

import itertools
import pathlib
import sys
import time

import keras
import language_model
import matplotlib
import numpy as np
import tensorflow as tf
from absl import app, flags
from position_encodings import ENCODINGS

from keras_xlnet.evaluation import corpus_log_probs, effective_context_lengths
from keras_xlnet.pretraining import CausalBatches
from keras_xlnet.tokenizers import VocabularyTokenizer

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

FLAGS = flags.FLAGS
flags.DEFINE_list(
    "attention", ["4", "8", "16", "32", "64", "128", "256"], "Attention lengths to evaluate."
)
flags.DEFINE_integer("evaluated", 20000, "Held-out characters to evaluate.", lower_bound=2)
flags.FLAGS.set_default("output_dir", "runs/ablation")
flags.FLAGS.set_default("sequence_length", 32)
flags.FLAGS.set_default("memory_length", 32)
flags.FLAGS.set_default("batch_size", 16)
flags.FLAGS.set_default("num_layers", 3)

SHARES = (0.1, 0.5, 1.0)


def main(arguments):
    if len(arguments) > 1:
        raise app.UsageError(f"unknown arguments {arguments[1:]}")
    output_dir = pathlib.Path(FLAGS.output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    try:
        text = language_model.read_text()
    except OSError as error:
        sys.exit(f"ablation.py: {error}")
    end = len(text) - round(FLAGS.held_out * len(text))
    tokenizer = VocabularyTokenizer.train([text], unit="character")
    token_ids = tokenizer([text]).flat_values.numpy()
    held_out = token_ids[end:][: FLAGS.evaluated]
    runs = {}
    for has_memory, encoding, loss in itertools.product((True, False), ENCODINGS, ("full", "half")):
        name = f"{'memory' if has_memory else 'no memory'}-{encoding}-{loss} loss"
        path = output_dir / f"{name}.npz"
        if not path.exists():
            run(path, ENCODINGS[encoding], has_memory, loss, token_ids[:end], held_out)
        with np.load(path) as arrays:
            runs[name] = dict(arrays)
        print(f"{name}: {nats(runs[name]) or runs[name]['training'].mean()}", flush=True)
    table = make_table(runs)
    (output_dir / "table.md").write_text(table + "\n", encoding="utf-8")
    draw(runs, output_dir / "ablation.png")
    print(f"\n{table}\nWritten to {output_dir}: table.md, ablation.png")


def run(path, model_class, has_memory, loss, token_ids, held_out):
    """Trains a model and writes its losses for each token, by attention length."""
    keras.utils.set_random_seed(FLAGS.seed)
    FLAGS.memory_length = FLAGS.sequence_length if has_memory else 0
    model = language_model.make_model(int(token_ids.max()) + 1, model_class)
    batches = CausalBatches(token_ids, FLAGS.batch_size, FLAGS.sequence_length).dataset()
    if loss == "half":
        batches = batches.map(weigh_second_half)
    start = time.process_time()
    model.fit(batches, steps_per_epoch=FLAGS.steps, shuffle=False, verbose=0)
    found = {"cpu_minutes": (time.process_time() - start) / 60}
    model = model.with_arguments(stateful=False, batch_size=None)
    found["training"] = losses_of(model, held_out)
    # Positions in the segment say nothing of a memory that training never had.
    has_lengths = has_memory or model_class is not ENCODINGS["absolute"]
    for length in map(int, FLAGS.attention if has_lengths else ()):
        found[str(length)] = losses_of(model, held_out, memory_length=length, same_length=length)
    np.savez(path.with_suffix(".tmp.npz"), **found)
    path.with_suffix(".tmp.npz").replace(path)


def losses_of(model, held_out, **overrides):
    return -corpus_log_probs(
        model, held_out, FLAGS.sequence_length, batch_size=32, verbose=0, **overrides
    )


def weigh_second_half(features, labels):
    """Adds sample weights: 0 for the first half of each segment, which sees too little."""
    length = FLAGS.sequence_length
    weights = tf.cast(tf.range(length) >= length // 2, tf.float32)
    return features, labels, tf.tile(weights[tf.newaxis], (FLAGS.batch_size, 1))


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
        by_length = nats(found)
        cells = ["yes" if memory == "memory" else "no", encoding, loss.removesuffix(" loss")]
        cells.append(f"{found['training'].mean():.3f}")
        if by_length:
            best = min(by_length, key=by_length.get)
            cells += [f"{by_length[best]:.3f}", str(best)]
            cells += [str(lengths[share][name]) for share in SHARES]
        else:
            cells += [""] * (2 + len(SHARES))
        lines.append([*cells, f"{float(found['cpu_minutes']):.1f}"])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def draw(runs, path):
    """Draws perplexity by attention length, and RECL."""
    runs = {name: found for name, found in runs.items() if nats(found)}
    figure, axes = plt.subplots(1, 2, figsize=(13, 4.5), layout="constrained")
    colors = dict(zip(ENCODINGS, ("tab:green", "tab:blue", "tab:red"), strict=True))
    for name, found in runs.items():
        memory, encoding, loss = name.split("-")
        by_length = nats(found)
        axes[0].plot(
            list(by_length),
            np.exp(list(by_length.values())),
            color=colors[encoding],
            linestyle="-" if memory == "memory" else ":",
            marker="o" if loss == "full loss" else "x",
            label=name.replace("-", ", "),
        )
    axes[0].set_xscale("log", base=2)
    axes[0].set(xlabel="attention length in evaluation", ylabel="perplexity of a character")
    axes[0].set_ylim(top=min(axes[0].get_ylim()[1], 15))
    figure.legend(fontsize="small", loc="outside right upper")
    width = 0.25
    for i, share in enumerate(SHARES):
        places = np.arange(len(runs)) + (i - 1) * width
        axes[1].barh(places, list(recl(runs, share).values()), width, label=f"r = {share}")
    axes[1].set_yticks(range(len(runs)), [name.replace("-", ", ") for name in runs], fontsize=8)
    axes[1].invert_yaxis()
    axes[1].set(xlabel="relative effective context length, characters")
    axes[1].legend()
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    app.run(main)
