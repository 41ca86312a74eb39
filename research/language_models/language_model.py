"""Trains a Transformer-XL language model on any text, and continues a prompt with it.

    python research/language_models/language_model.py

trains on the characters of tiny Shakespeare, which is in this repository. After each epoch the
model continues a line of the text. Everything is in runs/language_model: the preset, samples,
`history.csv`, TensorBoard logs, and a picture of how the held-out loss falls with more memory. A
run that was killed continues after its last epoch when it is started again. More ways to run it:

    python research/language_models/language_model.py --text book.txt --unit word \\
        --vocabulary_size 20000
    python research/language_models/language_model.py --text "texts/*.txt" --unit piece \\
        --steps 10000
    python research/language_models/language_model.py --load runs/language_model \\
        --prompt "To be, or"
"""

import glob
import json
import lzma
import math
import pathlib
import sys
import time

import keras
import matplotlib
import numpy as np
from absl import app, flags

from keras_xlnet.evaluation import corpus_log_probs
from keras_xlnet.models import TransformerXLLanguageModel
from keras_xlnet.pretraining import CausalBatches, ResumeBatches
from keras_xlnet.tokenizers import VocabularyTokenizer, XLNetTokenizer
from keras_xlnet.training import ExactBackupAndRestore

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

TOKENIZER = "tokenizer.keras"
END_OF_LINE = 8  # The piece `<eop>` of XLNet's vocabularies.
BUNDLED = pathlib.Path(__file__).parents[2] / "examples" / "data" / "tiny_shakespeare.txt.xz"

FLAGS = flags.FLAGS
flags.DEFINE_list("text", None, "UTF-8 text files or patterns. [tiny Shakespeare]")
flags.DEFINE_float("held_out", 0.1, "Share of the text, from its end, to validate on.", 0.001, 0.5)
flags.DEFINE_enum("unit", "character", ["character", "word", "piece"], "What a token is.")
flags.DEFINE_integer("vocabulary_size", None, "Words or pieces. [all characters; 8000]")
flags.DEFINE_string("output_dir", "runs/language_model", "Where everything is written.")
flags.DEFINE_string("load", None, "Only continue the prompt with the model in this folder.")
flags.DEFINE_string("prompt", None, "Text to continue. [the first line of the held-out text]")
flags.DEFINE_integer("num_new_tokens", 200, "Tokens of a continuation.", lower_bound=1)
flags.DEFINE_float("temperature", 0.8, "Temperature of continuations.", lower_bound=0.01)
flags.DEFINE_integer("num_layers", 4, "Number of layers.", lower_bound=1)
flags.DEFINE_integer("num_heads", 4, "Number of attention heads.", lower_bound=1)
flags.DEFINE_integer("hidden_dim", 128, "Width.", lower_bound=2)
flags.DEFINE_integer("intermediate_dim", 448, "Width of the feed-forward networks.", lower_bound=1)
flags.DEFINE_integer("sequence_length", 64, "Tokens of a segment.", lower_bound=1)
flags.DEFINE_integer("memory_length", 64, "Tokens of memory; 0 for none.", lower_bound=0)
flags.DEFINE_float("dropout", 0.0, "Dropout rate.", lower_bound=0, upper_bound=0.9)
flags.DEFINE_integer("batch_size", 12, "Rows of a batch.", lower_bound=1)
flags.DEFINE_integer("steps", 2000, "Training steps.", lower_bound=1)
flags.DEFINE_integer("epochs", 8, "Parts of the training; each ends with a backup.", lower_bound=1)
flags.DEFINE_float("learning_rate", 1e-3, "Peak learning rate.", lower_bound=0)
flags.DEFINE_list("memory_curve", ["0", "16", "64", "256", "1024"], "Memory to evaluate with.")
flags.DEFINE_integer("seed", 0, "Seed of everything that is random.", lower_bound=0)


def main(arguments):
    if len(arguments) > 1:
        raise app.UsageError(f"unknown arguments {arguments[1:]}")
    try:
        if FLAGS.load:
            continue_prompt(pathlib.Path(FLAGS.load))
        else:
            train(pathlib.Path(FLAGS.output_dir))
    except (OSError, ValueError) as error:
        sys.exit(f"language_model.py: {error}")


def train(output_dir):
    """Trains, reports, and writes the model."""
    keras.utils.set_random_seed(FLAGS.seed)
    text = read_text()
    end = len(text) - round(FLAGS.held_out * len(text))
    tokenizer = make_tokenizer(text[:end], output_dir)
    token_ids, held_out = (tokenize(tokenizer, part) for part in (text[:end], text[end:]))
    size = tokenizer.vocabulary_size()
    print(f"{len(token_ids):,} tokens, {len(held_out):,} held out, {size:,} different ones")
    batches = CausalBatches(token_ids, FLAGS.batch_size, FLAGS.sequence_length)
    validation = CausalBatches(held_out, FLAGS.batch_size, FLAGS.sequence_length)
    model = make_model(size)
    print(f"{count_weights(model):,} weights")
    prompt = FLAGS.prompt or text[end:].split("\n", 1)[0] + "\n"
    start = time.process_time()
    model.fit(
        batches.dataset(),
        validation_data=validation.evaluation_dataset(),
        epochs=FLAGS.epochs,
        steps_per_epoch=math.ceil(FLAGS.steps / FLAGS.epochs),
        shuffle=False,  # Memory needs the batches in their order.
        callbacks=[
            Samples(tokenizer, prompt, output_dir / "samples.txt"),
            keras.callbacks.CSVLogger(str(output_dir / "history.csv"), append=True),
            keras.callbacks.TensorBoard(str(output_dir / "tensorboard"), write_graph=False),
            ExactBackupAndRestore(output_dir / "backup"),
            ResumeBatches(batches),
        ],
        verbose=1 if sys.stdout.isatty() else 2,
    )
    print(f"{(time.process_time() - start) / 60:.1f} CPU minutes, with validation and samples")
    model.save_to_preset(output_dir / "preset")
    report(output_dir, without_state(model), held_out, text[end:])


def read_text():
    if not FLAGS.text:
        return lzma.open(BUNDLED, "rt", encoding="utf-8").read()
    files = sorted(file for pattern in FLAGS.text for file in glob.glob(pattern))
    if not files:
        raise FileNotFoundError(f"--text: no file matches {','.join(FLAGS.text)}")
    return "\n".join(pathlib.Path(file).read_text(encoding="utf-8") for file in files)


# === Tokens ===


def make_tokenizer(text, output_dir):
    """Returns a tokenizer trained on the text, and writes it."""
    lines = [line for line in text.splitlines() if line.strip()]
    if FLAGS.unit == "piece":
        tokenizer = XLNetTokenizer.train(iter(lines), FLAGS.vocabulary_size or 8000)
    elif FLAGS.unit == "word":
        size = FLAGS.vocabulary_size or 8000
        tokenizer = VocabularyTokenizer.train(
            lines, size=size, unknown_token="<unk>", end_token="<eos>"
        )
    else:
        tokenizer = VocabularyTokenizer.train([text], unit="character", unknown_token="\ufffd")
    output_dir.mkdir(parents=True, exist_ok=True)
    # A model of its own, so that Keras writes the vocabulary beside the config.
    keras.Sequential([keras.Input((), dtype="string"), tokenizer]).save(output_dir / TOKENIZER)
    return tokenizer


def tokenize(tokenizer, text):
    """Returns the ids of a text, an int array. Words and pieces are those of its lines."""
    if is_of_characters(tokenizer):
        return tokenizer([text]).flat_values.numpy()
    lines = [line for line in text.splitlines() if line.strip()]
    ids = tokenizer(lines)
    if isinstance(tokenizer, VocabularyTokenizer):  # Lines end with the tokenizer's `<eos>`.
        return ids.flat_values.numpy()
    return np.concatenate([np.append(row, END_OF_LINE) for row in ids.numpy()])


def prompt_ids(tokenizer, prompt):
    """Returns the ids of a prompt: its last line does not end."""
    ids = tokenize(tokenizer, prompt)
    return ids if is_of_characters(tokenizer) else ids[:-1]


def is_of_characters(tokenizer):
    return getattr(tokenizer, "unit", None) == "character"


# === The model ===


def make_model(vocabulary_size, model_class=TransformerXLLanguageModel):
    """Returns a compiled model with the settings of the flags."""
    has_memory = FLAGS.memory_length > 0
    model = model_class(
        vocabulary_size,
        FLAGS.num_layers,
        FLAGS.num_heads,
        FLAGS.hidden_dim,
        FLAGS.intermediate_dim,
        dropout=FLAGS.dropout,
        attention_dropout=FLAGS.dropout,
        memory_length=FLAGS.memory_length,
        stateful=has_memory,
        batch_size=FLAGS.batch_size if has_memory else None,
        seed=FLAGS.seed,
    )
    warmup = max(1, FLAGS.steps // 20)
    rate = keras.optimizers.schedules.CosineDecay(
        0.0,
        max(1, FLAGS.steps - warmup),
        alpha=0.1,
        warmup_target=FLAGS.learning_rate,
        warmup_steps=warmup,
    )
    optimizer = keras.optimizers.AdamW(rate, weight_decay=0.1, beta_2=0.99, global_clipnorm=1.0)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    model.compile(optimizer)
    return model


def count_weights(model):
    """Returns the number of weights, without the memory of a stateful model."""
    return sum(math.prod(variable.shape) for variable in model.trainable_variables)


def without_state(model):
    """Returns a model with the same weights, whose memory is an input and an output."""
    return model.with_arguments(stateful=False, batch_size=None)


# === Samples and the report ===


class Samples(keras.callbacks.Callback):
    """Prints and writes, after each epoch, a continuation of a prompt.

    Args:
        tokenizer: The tokenizer.
        prompt: String.
        path: `pathlib.Path` of a text file; each epoch appends to it.
    """

    def __init__(self, tokenizer, prompt, path):
        super().__init__()
        self.tokenizer = tokenizer
        self.prompt = prompt
        self.path = path

    def on_train_begin(self, logs=None):
        self.reader = without_state(self.model)

    def on_epoch_end(self, epoch, logs=None):
        self.reader.assign_weights(self.model)
        text = continued(self.reader, self.tokenizer, self.prompt, seed=epoch)
        print(f"\n--- after epoch {epoch + 1}:\n{text}\n---", flush=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"--- after epoch {epoch + 1}:\n{text}\n")


def continued(model, tokenizer, prompt, seed, callback=None):
    """Returns a prompt with a continuation."""
    ids = prompt_ids(tokenizer, prompt)
    found = model.generate(
        [ids],
        max_new_tokens=FLAGS.num_new_tokens,
        method="sample",
        temperature=FLAGS.temperature,
        seed=seed,
        callback=callback,
    )
    return detokenize(tokenizer, np.concatenate([ids, found.token_ids[0]]))


def detokenize(tokenizer, ids):
    """Returns the text of ids, line by line."""
    if is_of_characters(tokenizer):
        return tokenizer.decode(ids)
    is_piece = isinstance(tokenizer, XLNetTokenizer)
    end = END_OF_LINE if is_piece else tokenizer.token_to_id("<eos>")
    lines = np.split(ids, np.flatnonzero(ids == end) + 1)
    return "\n".join(map(tokenizer.decode, lines))


def report(output_dir, model, held_out, text):
    """Prints the held-out loss by the length of memory, and draws it."""
    losses = {}
    for length in map(int, FLAGS.memory_curve):
        log_probs = corpus_log_probs(
            model,
            held_out,
            FLAGS.sequence_length,
            batch_size=FLAGS.batch_size,
            verbose=0,
            memory_length=length,
        )
        losses[length] = float(-log_probs.mean())
        bits = -log_probs.sum() / math.log(2) / len(text)
        print(
            f"memory {length:5}: {losses[length]:.3f} nats a token, {bits:.3f} bits a character",
            flush=True,
        )
    metrics = {"held_out_loss_by_memory": losses, "weights": count_weights(model)}
    (output_dir / "metrics.json").write_text(json.dumps(metrics, indent=1), encoding="utf-8")
    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    axis.plot(list(losses), list(losses.values()), marker="o")
    axis.set_xscale("symlog", base=2, linthresh=8)
    axis.set(xlabel="tokens of memory", ylabel="held-out loss, nats a token")
    axis.axvline(FLAGS.memory_length, color="gray", linestyle=":", label="memory in training")
    axis.legend()
    figure.savefig(output_dir / "memory.png", dpi=120)
    plt.close(figure)
    print(f"Written to {output_dir}: preset, samples.txt, history.csv, metrics.json, memory.png")


def continue_prompt(folder):
    """Prints a continuation of --prompt, token by token."""
    model = TransformerXLLanguageModel.from_preset(
        folder / "preset", stateful=False, batch_size=None
    )
    (tokenizer,) = keras.saving.load_model(folder / TOKENIZER).layers
    if is_of_characters(tokenizer):

        def show(number, tokens):
            print(tokenizer.id_to_token(int(tokens[0])), end="", flush=True)

        print(FLAGS.prompt or "\n", end="")
        continued(model, tokenizer, FLAGS.prompt or "\n", FLAGS.seed, show)
        print()
    else:
        print(continued(model, tokenizer, FLAGS.prompt or "The", FLAGS.seed))


if __name__ == "__main__":
    app.run(main)
