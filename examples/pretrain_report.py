"""Samples, baseline and pictures for pretrain.py."""

import csv

import keras
import matplotlib
import numpy as np

matplotlib.use("Agg")  # No display is needed, or used.
import matplotlib.pyplot as plt


class Blanks(keras.callbacks.Callback):
    """Prints and keeps what the model fills into the blanks of a few held-out rows.

    Args:
        dataset: Batches of `PermutationBatches`; the first one is looked at.
        tokenizer: An `XLNetTokenizer`.
        path: Text file that grows with each epoch.
        num_rows: Int, rows to show.
    """

    def __init__(self, dataset, tokenizer, path, num_rows=3):
        super().__init__()
        self.tokenizer = tokenizer
        self.path = path
        self.num_rows = num_rows
        self.batch = next(iter(dataset.take(1)))
        self.dataset = dataset.take(1)

    def on_epoch_end(self, epoch, logs=None):
        logits = self.model.predict(self.dataset, verbose=0)["logits"]
        inputs, labels, _ = keras.tree.map_structure(keras.ops.convert_to_numpy, self.batch)
        rows = [
            fill_blanks(self.tokenizer, ids, positions, row_logits.argmax(axis=-1))
            for ids, positions, row_logits in zip(
                inputs["token_ids"], inputs["target_positions"], logits, strict=True
            )
        ]
        right = (logits.argmax(axis=-1) == labels).mean()
        text = f"after epoch {epoch + 1}: {right:.0%} of the blanks right. [filled in] or "
        text += "[filled in/what it was]\n"
        text += "".join(f"  {row}\n" for row in rows[: self.num_rows])
        print(f"\n{text}", flush=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


def fill_blanks(tokenizer, token_ids, positions, predicted):
    """The second half of a row as text, with what was predicted in its blanks."""
    pieces = [tokenizer.id_to_token(int(i)) for i in token_ids]
    for position, token_id in zip(positions, predicted, strict=True):
        filled, was = tokenizer.id_to_token(int(token_id)), pieces[position]
        space = "▁" if was.startswith("▁") else ""
        filled, was = filled.removeprefix("▁"), was.removeprefix("▁")
        pieces[position] = f"{space}[{filled}]" if filled == was else f"{space}[{filled}/{was}]"
    return "".join(pieces[len(pieces) // 2 :]).replace("▁", " ").strip()


def read_history(path):
    """What `CSVLogger` wrote, as lists by name; of an epoch that was done twice, the last time."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = {int(row["epoch"]): row for row in csv.DictReader(file)}
    # Without validation, Keras makes columns for it all the same.
    names = [name for name, value in next(iter(rows.values())).items() if value != "NA"]
    return {name: [float(row[name]) for row in rows.values()] for name in names}


def unigram_loss(records, dataset):
    """Loss on the targets of `dataset` of who knows only how often tokens are in `records`."""
    counts = np.ones(records.vocabulary_size)
    for index in range(len(records.shards)):
        counts += np.bincount(records.read(index).tokens, minlength=len(counts))
    losses = -np.log(counts / counts.sum())
    total = weight = 0.0
    for _, labels, sample_weight in dataset.as_numpy_iterator():
        total += (losses[labels] * sample_weight).sum()
        weight += sample_weight.sum()
    return float(total / weight)


def plot_history(history, unigram, path):
    """Draws training and held-out loss by epoch."""
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    epochs = np.arange(1, len(history["loss"]) + 1)
    axes.plot(epochs, history["loss"], marker="o", label="training (dropout on)")
    if "val_loss" in history:
        axes.plot(epochs, history["val_loss"], marker="o", label="held out")
    if unigram is not None:
        axes.axhline(unigram, color="grey", linestyle="--", label="held out, unigrams")
    axes.set(xlabel="epoch", ylabel="loss of a target (nats)")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)
