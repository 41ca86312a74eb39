"""A Transformer-XL language model of the characters of any text, and texts that it writes.

    python examples/language_model.py
    python examples/language_model.py --text book.txt --steps 10000
    python examples/language_model.py --load runs/language_model --prompt "To be, or"

trains on tiny Shakespeare. After each epoch the model continues the first line of the held-out
text. runs/language_model has the preset, the tokenizer, `history.csv`, and a picture of how the
held-out loss falls with more memory. It takes some minutes and needs no network.
A run that was killed goes on after its last epoch when it is started again.
"""

import lzma
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import matplotlib
from absl import app, flags

from keras_xlnet.evaluation import corpus_log_probs
from keras_xlnet.models import TransformerXLLanguageModel
from keras_xlnet.pretraining import CausalBatches, ResumeBatches
from keras_xlnet.tokenizers import VocabularyTokenizer
from keras_xlnet.training import ExactBackupAndRestore, FineTuningAdamW

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

SHAKESPEARE = pathlib.Path(__file__).parent / "data" / "tiny_shakespeare.txt.xz"
ROWS, SEGMENT, MEMORY = 12, 64, 64  # Of a batch: its rows, and tokens of a segment and before it.
FLAGS = flags.FLAGS
flags.DEFINE_string("text", str(SHAKESPEARE), "UTF-8 text file; .xz is decompressed.")
flags.DEFINE_integer("steps", 2000, "Training steps.", lower_bound=1)
flags.DEFINE_integer("epochs", 8, "Parts of the training; each ends with a backup.", lower_bound=1)
flags.DEFINE_string("prompt", None, "Text to continue. [the first line of the held-out text]")
flags.DEFINE_string("output_dir", "runs/language_model", "Where everything is written.")
flags.DEFINE_string("load", None, "Only continue the prompt with the model in this folder.")


def main(arguments):
    try:
        if not FLAGS.load:
            train(pathlib.Path(FLAGS.output_dir))
            return
        model = TransformerXLLanguageModel.from_preset(
            f"{FLAGS.load}/preset", stateful=False, batch_size=None
        )
        (tokenizer,) = keras.saving.load_model(f"{FLAGS.load}/tokenizer.keras").layers
        print(continued(model, tokenizer, FLAGS.prompt or "\n"))
    except (OSError, ValueError) as error:
        sys.exit(f"error: {' '.join(str(error).split())}")


def train(folder):
    keras.utils.set_random_seed(0)
    open_file = lzma.open if FLAGS.text.endswith(".xz") else open
    with open_file(FLAGS.text, "rt", encoding="utf-8") as file:
        text = file.read()
    end = len(text) * 9 // 10
    tokenizer = VocabularyTokenizer.train([text[:end]], unit="character", unknown_token="\ufffd")
    folder.mkdir(parents=True, exist_ok=True)
    keras.Sequential([keras.Input((), dtype="string"), tokenizer]).save(folder / "tokenizer.keras")
    ids, held_out = (tokenizer([part]).flat_values.numpy() for part in (text[:end], text[end:]))
    batches, validation = (CausalBatches(part, ROWS, SEGMENT) for part in (ids, held_out))
    model = TransformerXLLanguageModel(
        tokenizer.vocabulary_size(), num_layers=4, num_heads=4, hidden_dim=128,
        intermediate_dim=448, dropout=0.0, attention_dropout=0.0,
        memory_length=MEMORY, stateful=True, batch_size=ROWS, seed=0,
    )  # fmt: skip
    model.compile(FineTuningAdamW(1e-3, warmup_ratio=0.05, weight_decay=0.1))
    prompt = FLAGS.prompt or text[end:].split("\n", 1)[0] + "\n"
    reader = model.with_arguments(stateful=False, batch_size=None)

    def show(epoch, logs):
        reader.assign_weights(model)
        print(f"\n--- after epoch {epoch + 1}:\n{continued(reader, tokenizer, prompt)}\n---")

    model.fit(
        batches.dataset(),
        validation_data=validation.evaluation_dataset(),
        epochs=FLAGS.epochs,
        steps_per_epoch=-(-FLAGS.steps // FLAGS.epochs),
        shuffle=False,  # Memory needs the batches in their order.
        callbacks=[
            keras.callbacks.LambdaCallback(on_epoch_end=show),
            keras.callbacks.CSVLogger(str(folder / "history.csv"), append=True),
            ExactBackupAndRestore(folder / "backup"),
            ResumeBatches(batches),
        ],
    )
    model.save_to_preset(folder / "preset")
    reader.assign_weights(model)
    draw_memory(reader, held_out, folder / "memory.png")


def continued(model, tokenizer, prompt):
    ids = tokenizer([prompt]).flat_values.numpy()
    sampling = {"method": "sample", "temperature": 0.8, "seed": 1}
    found = model.generate([ids], max_new_tokens=200, **sampling)
    return prompt + tokenizer.decode(found.token_ids[0])


def draw_memory(model, held_out, path):
    """Draws the held-out loss by the length of the memory, which can be longer than in training."""
    losses = {}
    for length in (0, 16, 64, 256, 1024):
        arguments = {"batch_size": ROWS, "memory_length": length, "verbose": 0}
        losses[length] = -corpus_log_probs(model, held_out, SEGMENT, **arguments).mean()
        print(f"memory of {length:4} tokens: {losses[length]:.3f} nats a token", flush=True)
    figure, axes = plt.subplots(layout="constrained")
    axes.plot(list(losses), list(losses.values()), marker="o")
    axes.axvline(MEMORY, color="gray", linestyle=":", label="memory in training")
    axes.set_xscale("symlog", base=2, linthresh=8)
    axes.set(xlabel="tokens of memory", ylabel="held-out loss, nats a token")
    axes.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    app.run(main)
