"""The paper's "New York" example: blanks that are filled together, and each on its own.

    python research/language_models/fill_together.py        # about a minute on 2 cores, no network

trains a small XLNet on sentences such as "New York is a city", and fills "<mask> <mask> is a
<mask>". Predicted one after the other, each blank knows what is in those before it. Predicted
independently, as BERT predicts masked tokens, each blank gets what is most frequent there, and the
blanks do not fit together: "New Francisco is a city". The best fillings of both are printed, and
drawn in runs/fill_together/fillings.png.

Source: Yang et al. 2019 (XLNet), sections 2.1 and 2.6.
"""

import pathlib
import sys

import keras
import matplotlib
import numpy as np
from absl import app, flags

from keras_xlnet.layers import PermutationMaskGenerator
from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM
from keras_xlnet.tokenizers import VocabularyTokenizer
from keras_xlnet.tokenizers.sentencepiece_model import SPECIAL_TOKENS

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

PLACES = {
    "city": (
        "New York,New Orleans,New Delhi,Los Angeles,Las Vegas,San Francisco,San Diego,Santa Cruz,"
        "Santa Fe,Cape Town,Hong Kong,Tel Aviv,Buenos Aires,Kuala Lumpur,Mexico City,Salt Lake"
    ),
    "state": (
        "New Mexico,New Jersey,North Carolina,North Dakota,South Carolina,South Dakota,"
        "West Virginia,Rhode Island,West Bengal,South Australia"
    ),
    "country": (
        "New Zealand,South Africa,South Korea,North Korea,Costa Rica,Sri Lanka,Saudi Arabia,"
        "Burkina Faso,Sierra Leone,San Marino"
    ),
}
SEP, CLS = SPECIAL_TOKENS.index("<sep>"), SPECIAL_TOKENS.index("<cls>")

FLAGS = flags.FLAGS
flags.DEFINE_string("text", "<mask> <mask> is a <mask>", "A sentence with blanks.")
flags.DEFINE_string("output_dir", "runs/fill_together", "Where the picture is written.")
flags.DEFINE_integer("steps", 1500, "Training steps.", lower_bound=1)
flags.DEFINE_integer("num_results", 10, "Fillings to show.", lower_bound=1)
flags.DEFINE_integer("seed", 0, "Seed of everything that is random.", lower_bound=0)


def main(arguments):
    if len(arguments) > 1:
        raise app.UsageError(f"unknown arguments {arguments[1:]}")
    keras.utils.set_random_seed(FLAGS.seed)
    sentences = all_sentences()
    tokenizer = VocabularyTokenizer.train(sentences, special_tokens=SPECIAL_TOKENS)
    model = train(tokenizer(sentences).numpy())
    try:
        fillings = model.fill(FLAGS.text, tokenizer, num_results=FLAGS.num_results)
    except ValueError as error:
        sys.exit(f"fill_together.py: {error}")
    columns = {
        "together": [(f.text, f.log_prob) for f in fillings.joint],
        "each on its own": [(f.text, f.independent_log_prob) for f in fillings.independent],
    }
    known = set(sentences)
    for title, rows in columns.items():
        true = sum(text in known for text, _ in rows)
        print(f"\n{title}: {true} of {len(rows)} are in the text")
        for text, log_prob in rows:
            print(f"  {np.exp(log_prob):6.1%}  {text}{'' if text in known else '   (not true)'}")
    path = pathlib.Path(FLAGS.output_dir) / "fillings.png"
    draw(columns, known, path)
    print(f"\nWritten to {path}")


def all_sentences():
    """Returns the sentences that the model learns."""
    return [f"{place} is a {kind}" for kind, ps in PLACES.items() for place in ps.split(",")]


def train(token_ids):
    """Returns a permutation language model of sentences.

    Args:
        token_ids: Int array `(sentences, length)`.
    """
    token_ids = np.pad(token_ids, ((0, 0), (0, 1)), constant_values=SEP)
    token_ids = np.pad(token_ids, ((0, 0), (0, 1)), constant_values=CLS)
    length = token_ids.shape[1]
    backbone = XLNetBackbone(
        vocabulary_size=int(token_ids.max()) + 1,
        num_layers=2,
        num_heads=4,
        hidden_dim=64,
        intermediate_dim=128,
        dropout=0.0,
        seed=FLAGS.seed,
    )
    model = XLNetPermutationLM(backbone)
    model.compile(keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(3e-3, FLAGS.steps)))
    generator = PermutationMaskGenerator(num_predictions=length - 2, seed=FLAGS.seed)
    rng = np.random.default_rng(FLAGS.seed)
    rows = rng.integers(0, len(token_ids), 32 * FLAGS.steps)
    # Each token is a target with a probability that differs from row to row: few blanks and many.
    is_target = rng.random((len(rows), length)) < rng.random((len(rows), 1))
    is_target[:, -2:] = False
    features = {k: np.asarray(v) for k, v in generator(token_ids[rows], is_target).items()}
    labels, weights = features.pop("labels"), features.pop("sample_weight")
    features["token_ids"] = token_ids[rows]
    # As `fill` gives them: `<cls>` is a segment of its own.
    features["segment_ids"] = np.tile([0] * (length - 1) + [2], (len(rows), 1))
    model.fit(features, labels, sample_weight=weights, batch_size=32, verbose=2)
    return model


def draw(columns, known, path):
    """Draws the probabilities of fillings.

    Args:
        columns: Dict of lists of texts and log-probabilities, by title.
        known: Set of texts that are true.
        path: `pathlib.Path` of the PNG file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, len(columns), figsize=(11, 3.6), layout="constrained")
    for axis, (title, rows) in zip(axes, columns.items(), strict=True):
        texts = [text for text, _ in rows]
        colors = ["tab:green" if text in known else "tab:red" for text in texts]
        axis.barh(range(len(rows)), [100 * np.exp(p) for _, p in rows], color=colors)
        axis.set_yticks(range(len(rows)), texts)
        axis.invert_yaxis()
        axis.set(title=f"blanks predicted {title}", xlabel="probability, %")
    figure.suptitle(f"{FLAGS.text}: in the text (green) or not (red)")
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    app.run(main)
