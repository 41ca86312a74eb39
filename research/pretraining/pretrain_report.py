"""Records and reports a run of pretrain.py: history, samples, a baseline and a plot."""

import contextlib
import json
import pathlib
import time

import keras
import matplotlib
import numpy as np

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

from keras_xlnet.task_files import read_table


def callbacks(output_dir, tokenizer, held_out):
    """Returns the callbacks that write the history of a run and samples of its predictions.

    They continue the files of a run that was killed, which `output_dir / "backup"` shows, and
    replace those of a run that was complete.

    Args:
        output_dir: `pathlib.Path` of the run.
        tokenizer: An `XLNetTokenizer`.
        held_out: Batches of `PermutationBatches` to sample from, or `None` for no samples.
    """
    if not has_backup(output_dir):
        for name in ("history.csv", "minutes.json", "blanks.txt"):
            (output_dir / name).unlink(missing_ok=True)
    found = [
        Minutes(output_dir / "minutes.json"),
        keras.callbacks.CSVLogger(str(output_dir / "history.csv"), append=True),
        keras.callbacks.TensorBoard(str(output_dir / "tensorboard"), write_graph=False),
    ]
    if held_out is not None:
        found.append(Blanks(held_out, tokenizer, output_dir / "blanks.txt"))
    return found


def has_backup(output_dir):
    """Returns whether a run was killed after an epoch, and will continue."""
    return any((pathlib.Path(output_dir) / "backup").glob("epoch_*"))


class Minutes(keras.callbacks.Callback):
    """Logs the minutes of processor time and wall clock time since training began.

    The sums are kept in a file, so that they include the time before a restart.

    Args:
        path: `pathlib.Path` of the file.
    """

    def __init__(self, path):
        super().__init__()
        self.path = path

    def on_train_begin(self, logs=None):
        self.before = {"cpu_minutes": 0.0, "minutes": 0.0}
        with contextlib.suppress(OSError, ValueError):
            self.before = json.loads(self.path.read_text(encoding="utf-8"))
        self.start = {"cpu_minutes": time.process_time(), "minutes": time.perf_counter()}

    def on_epoch_end(self, epoch, logs=None):
        now = {"cpu_minutes": time.process_time(), "minutes": time.perf_counter()}
        spent = {key: self.before[key] + (now[key] - self.start[key]) / 60 for key in now}
        self.path.write_text(json.dumps(spent), encoding="utf-8")
        logs |= spent


class Blanks(keras.callbacks.Callback):
    """Prints and writes, after each epoch, what the model fills into the blanks of a few rows.

    Args:
        dataset: Batches of `PermutationBatches`. Rows of the first batch are used.
        tokenizer: An `XLNetTokenizer`.
        path: `pathlib.Path` of a text file; each epoch appends to it.
        num_rows: Int, number of rows to show.
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
        text = f"after epoch {epoch + 1}: {right:.0%} of the blanks right. [right] or "
        text += "[wrong/right answer]\n"
        text += "".join(f"  {row}\n" for row in rows[: self.num_rows])
        print(f"\n{text}", flush=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


def fill_blanks(tokenizer, token_ids, positions, predicted):
    """Returns the second half of a row as text, with the predictions in its blanks."""
    pieces = [tokenizer.id_to_token(int(i)) for i in token_ids]
    for position, token_id in zip(positions, predicted, strict=True):
        filled, answer = tokenizer.id_to_token(int(token_id)), pieces[position]
        space = "▁" if answer.startswith("▁") else ""
        filled, answer = filled.removeprefix("▁"), answer.removeprefix("▁")
        blank = filled if filled == answer else f"{filled}/{answer}"
        pieces[position] = f"{space}[{blank}]"
    return "".join(pieces[len(pieces) // 2 :]).replace("▁", " ").strip()


def bits_by_source(model, held_out):
    """Returns and prints the bits per character of each held-out text.

    Args:
        model: A model that was compiled with `BitsPerCharacter`.
        held_out: Dict of batches of `PermutationBatches` by the name of their source.
    """
    bits = {
        source: model.evaluate(batches, verbose=0, return_dict=True)["bits_per_character"]
        for source, batches in held_out.items()
    }
    for source, value in bits.items():
        print(f"{source}: {value:.3f} bits per character")
    return bits


def write_report(output_dir, flag_values, records, held_out, bits):
    """Writes `metrics.json` and `curves.png`, and prints the held-out loss.

    Args:
        output_dir: `pathlib.Path` of the run.
        flag_values: Dict, the flags of the run.
        records: `TokenRecords` of the training text.
        held_out: Batches of `PermutationBatches`, or `None`.
        bits: Dict of bits per character by source.
    """
    history = read_history(output_dir / "history.csv")
    metrics = {"flags": flag_values, "history": history, "bits_per_character": bits}
    metrics["tokens"] = records.num_tokens
    unigram = None
    if held_out is not None:
        unigram = unigram_loss(records, held_out)
        metrics |= {"held_out_loss": history["val_loss"][-1], "unigram_loss": unigram}
        print(f"held-out loss {history['val_loss'][-1]:.3f}, of unigrams {unigram:.3f}")
    (output_dir / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    plot_history(history, unigram, output_dir / "curves.png")
    print(f"the preset is {output_dir / 'preset'}; curves: {output_dir / 'curves.png'}")


def read_history(path):
    """Returns the columns that `CSVLogger` wrote, as lists by name.

    An epoch that was repeated after a restart counts once, with its last values.
    """
    names = path.read_text(encoding="utf-8").partition("\n")[0].strip().split(",")
    table = read_table(path, {name: name for name in names}, integer=["epoch"])
    last = {epoch: row for row, epoch in enumerate(table["epoch"])}
    # Without validation, Keras writes "NA" into the columns of the validation metrics.
    return {
        name: [float(column[row]) for row in last.values()]
        for name, column in table.items()
        if column[last[table["epoch"][0]]] != "NA"
    }


def unigram_loss(records, dataset):
    """Returns the loss on the targets of `dataset` of a model that knows only token frequencies.

    The frequencies are those of `records`.
    """
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
    """Plots the training loss and the held-out loss of each epoch."""
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
