"""How much faster tokens are generated with kept keys and values than with passes over all tokens.

    python benchmarks/generation.py

For each length of the prompt, the time of a new token is measured twice on the same model: with
`generate`, which keeps keys and values, and with a pass over all tokens for each new one. Both are
compiled with XLA, and give the same tokens. Writes a table and a plot to `--output_dir`. It takes
some minutes on 2 cores; the numbers are for an otherwise idle machine.
"""

import json
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import matplotlib
import numpy as np
from absl import app, flags

from keras_xlnet.models import TransformerXLLanguageModel, XLNetBackbone, XLNetPermutationLM

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FLAGS = flags.FLAGS
flags.DEFINE_list("lengths", ["64", "128", "256", "512", "1024"], "Tokens of the prompt.")
flags.DEFINE_integer("num_layers", 4, "Number of layers.", lower_bound=1)
flags.DEFINE_integer("hidden_dim", 256, "Width.", lower_bound=2)
flags.DEFINE_integer("num_tokens", 32, "New tokens that are timed.", lower_bound=1)
flags.DEFINE_string("output_dir", "runs/generation", "Where everything is written.")

VOCABULARY_SIZE = 1000


def main(_):
    output_dir = pathlib.Path(FLAGS.output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, (model, next_token) in new_models().items():
        for length in map(int, FLAGS.lengths):
            prompt = np.random.default_rng(0).integers(9, VOCABULARY_SIZE, length)
            kept, kept_tokens = seconds_with_generate(model, prompt)
            again, tokens = seconds_with_passes(next_token, prompt)
            if tokens != kept_tokens:
                raise AssertionError(f"{name}, {length}: {tokens} is not {kept_tokens}")
            rows.append({"model": name, "length": length, "kept": kept, "again": again})
            print(format_row(rows[-1]), flush=True)
    head = ["model", "prompt", "kept, ms a token", "passes over all, ms a token", "ratio"]
    lines = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head))]
    table = "\n".join([*lines, *map(format_row, rows)])
    (output_dir / "table.md").write_text(table + "\n", encoding="utf-8")
    (output_dir / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
    draw(rows, output_dir / "generation.png")
    print(f"\n{table}\nWritten to {output_dir}: table.md, rows.json, generation.png")


def new_models():
    """Returns models by name, each with a function from tokens to the most probable next one."""
    sizes = (FLAGS.num_layers, max(1, FLAGS.hidden_dim // 64), FLAGS.hidden_dim)
    sizes = (VOCABULARY_SIZE, *sizes, 4 * FLAGS.hidden_dim)
    # Far larger than for training, so that rounding never decides which token is next.
    causal = TransformerXLLanguageModel(*sizes, kernel_initializer="glorot_normal", seed=0)
    backbone = XLNetBackbone(*sizes, kernel_initializer="glorot_normal", seed=0)
    permutation = XLNetPermutationLM(backbone)
    for model in (causal, permutation):
        model.compile(jit_compile=True)

    def next_causal(tokens, prompt_length):
        return causal.predict_on_batch({"token_ids": tokens})["log_probs"][0, -1].argmax()

    def next_permuted(tokens, prompt_length):
        num_tokens = tokens.shape[1]
        inputs = {
            "token_ids": np.pad(tokens, ((0, 0), (0, 1))),
            "permutation_mask": mask_of_order(num_tokens + 1, prompt_length),
            "target_positions": np.array([[num_tokens]], "int32"),
        }
        return permutation.predict_on_batch(inputs)["logits"][0, 0].argmax()

    return {
        "Transformer-XL": (causal, next_causal),
        "XLNet": (permutation, next_permuted),
    }


def mask_of_order(length, prompt_length):
    """Returns the mask of the order in which the prompt comes first and the others follow it."""
    mask = np.tri(length, k=-1, dtype=bool)
    mask[:prompt_length, :prompt_length] = True
    return mask[None]


def seconds_with_generate(model, prompt):
    """Returns the time of a new token after the first, and the tokens."""
    times = []
    found = model.generate(
        [prompt],
        max_new_tokens=FLAGS.num_tokens + 2,
        callback=lambda number, tokens: times.append(time.perf_counter()),
    )
    # The first is read with the prompt; the second compiles the step.
    return (times[-1] - times[1]) / FLAGS.num_tokens, found.token_ids[0][:4].tolist()


def seconds_with_passes(next_token, prompt):
    """Returns the time of a pass, and the first tokens."""
    tokens, found = prompt[None], []
    for _ in range(4):
        found.append(int(next_token(tokens, len(prompt))))
        tokens = np.append(tokens, [[found[-1]]], axis=1)
    # One length, which is compiled: the time of other lengths hardly differs.
    count = 5
    start = time.perf_counter()
    for _ in range(count):
        next_token(tokens[:, :-1], len(prompt))
    return (time.perf_counter() - start) / count, found


def format_row(row):
    cells = [
        row["model"],
        f"{row['length']:,}",
        f"{1000 * row['kept']:.1f}",
        f"{1000 * row['again']:.1f}",
        f"{row['again'] / row['kept']:.1f}x",
    ]
    return f"| {' | '.join(cells)} |"


def draw(rows, path):
    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    for name in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == name]
        lengths = [row["length"] for row in own]
        axis.plot(lengths, [row["again"] / row["kept"] for row in own], marker="o", label=name)
    axis.set_xscale("log", base=2)
    axis.set(xlabel="tokens of the prompt", ylabel="times faster with kept keys", ylim=(0, None))
    axis.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    app.run(main)
