"""The paper's "New York" example: blanks filled together, and each on its own.

    python research/language_models/fill_together.py        # about a minute on 2 cores, no network

trains a small XLNet on sentences such as "New York is a city", and fills "<mask> <mask> is a
<mask>". If blanks are predicted one after the other, each sees the words in the blanks before it.
If they are predicted independently, as BERT predicts masked tokens, each gets its most frequent
word, and the words do not fit together: "New Francisco is a city". It prints and draws the best
fillings of both.

Source: Yang et al. 2019 (XLNet), sections 2.1 and 2.6.
"""

import argparse
import pathlib

import keras
import matplotlib
import numpy as np

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", default="<mask> <mask> is a <mask>", help="with blanks")
    parser.add_argument("--steps", type=int, default=1500, help="of training")
    picture = pathlib.Path("runs/fill_together/fillings.png")
    parser.add_argument("--picture", type=pathlib.Path, default=picture)
    options = parser.parse_args()
    keras.utils.set_random_seed(0)
    sentences = all_sentences()
    tokenizer = VocabularyTokenizer.train(sentences, special_tokens=SPECIAL_TOKENS)
    model = train(tokenizer(sentences).numpy(), options.steps)
    fillings = model.fill(options.text, tokenizer, num_results=10)
    columns = {
        "together": [(f.text, f.log_prob) for f in fillings.joint],
        "each on its own": [(f.text, f.independent_log_prob) for f in fillings.independent],
    }
    options.picture.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
    for axis, (title, rows) in zip(axes, columns.items(), strict=True):
        is_true = [text in sentences for text, _ in rows]
        print(f"\n{title}: {sum(is_true)} of {len(rows)} are in the text")
        for (text, log_prob), known in zip(rows, is_true, strict=True):
            print(f"  {np.exp(log_prob):6.1%}  {text}{'' if known else '   (not true)'}")
        colors = ["tab:green" if known else "tab:red" for known in is_true]
        axis.barh(range(len(rows)), [100 * np.exp(p) for _, p in rows], color=colors)
        axis.set_yticks(range(len(rows)), [text for text, _ in rows])
        axis.invert_yaxis()
        axis.set(title=f"blanks predicted {title}", xlabel="probability, %")
    figure.suptitle(f"{options.text}: in the text (green) or not (red)")
    figure.savefig(options.picture, dpi=120)
    print(f"\nWritten to {options.picture}")


def all_sentences():
    """Returns the sentences that the model learns."""
    return [f"{place} is a {kind}" for kind, ps in PLACES.items() for place in ps.split(",")]


def train(token_ids, steps):
    """Returns a permutation language model of sentences.

    Args:
        token_ids: Int array `(sentences, length)`.
        steps: Int.
    """
    ends = np.tile([SEP, CLS], (len(token_ids), 1))
    token_ids = np.concatenate([token_ids, ends], axis=1)
    length = token_ids.shape[1]
    backbone = XLNetBackbone(int(token_ids.max()) + 1, 2, 4, 64, 128, dropout=0.0, seed=0)
    model = XLNetPermutationLM(backbone)
    model.compile(keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(3e-3, steps)))
    generator = PermutationMaskGenerator(num_predictions=length - 2, seed=0)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(token_ids), 32 * steps)
    # The probability of a token to be a target varies by row: few blanks and many.
    is_target = rng.random((len(rows), length)) < rng.random((len(rows), 1))
    is_target[:, -2:] = False
    features = {k: np.asarray(v) for k, v in generator(token_ids[rows], is_target).items()}
    labels, weights = features.pop("labels"), features.pop("sample_weight")
    features["token_ids"] = token_ids[rows]
    # As in `fill`: `<cls>` is its own segment.
    features["segment_ids"] = np.tile([0] * (length - 1) + [2], (len(rows), 1))
    model.fit(features, labels, sample_weight=weights, batch_size=32, verbose=2)
    return model


if __name__ == "__main__":
    main()
