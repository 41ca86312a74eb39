"""Shows what a pretrained model knows: fill-ins, nearest neighbours of words and of sentences.

    python research/language_models/what_it_knows.py  # writes docs/what_it_knows.md, .png
    python research/language_models/what_it_knows.py --preset runs/pretraining/permutation_lm \\
        --page mine.md

It shows all sentences of examples/data/fill_ins.tsv and all words below, right or wrong; they were
written before any model saw them. The page keeps its text: only the parts between its markers
are replaced. Takes about a minute on 2 cores and needs no network.
"""

import argparse
import collections
import dataclasses
import html
import pathlib
import re

import keras
import matplotlib
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from keras_xlnet.models import XLNetPermutationLM, XLNetTextEmbedder
from keras_xlnet.task_files import read_table

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

ROOT = pathlib.Path(__file__).parents[2]
DATA = ROOT / "examples" / "data"
WORDS = (
    "king water Monday three she London quickly red happy run walked because doctor war money "
    "dog England music night under"
).split()
# Text before every sentence, because rows in pretraining are never as short as a sentence. It
# ends with a document, as texts in the records do, and is unrelated.
CONTEXT = """\
We had walked along the canal for most of the afternoon and talked of nothing in particular. \
Some boats were lying under the trees. A woman on one of them was hanging up shirts, and she \
waved when she noticed us. Further on, the path became narrow and turned away from the bank, \
between gardens and sheds, until we came to a small square with a fountain and a few benches. \
No one else was there. We sat for some time, and then we went back the way we had come."""
# Stands for a word that cannot be known.
UNKNOWN, PLACEHOLDER = "?", "it"
MASK_ID = 6


@dataclasses.dataclass(frozen=True)
class FillIn:
    """A sentence with a blank. The blank has as many pieces as the first of `answers`.

    `answers` is empty if there is no right one; the blank then has one piece.
    """

    kind: str
    before: str
    answers: tuple
    after: str

    @property
    def sentence(self):
        return f"{self.before}____{self.after}"

    @property
    def right_pieces(self):
        """The answers as SentencePiece writes them: `▁` where a space stands before them."""
        space = "" if self.before.strip() and not self.before.endswith(" ") else "▁"
        return [space + answer.replace(" ", "▁") for answer in self.answers]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="xlnet_small_en", help="of an XLNetPermutationLM")
    page = ROOT / "docs" / "what_it_knows.md"
    parser.add_argument("--page", type=pathlib.Path, default=page, help="with the markers")
    parser.add_argument("--row_length", type=int, default=64, help="tokens, as in pretraining")
    options = parser.parse_args()
    write_page(options.preset, options.page, options.row_length)


def write_page(preset, page, row_length):
    model = XLNetPermutationLM.from_preset(
        preset, stateful=False, batch_size=None, attend_to_empty_memory=False,
        # Half of the rows were read backward in pretraining, and memory came before them.
        bidirectional_data=False, memory_length=None, reuse_length=None, dtype="float32",
    )  # fmt: skip
    fill_ins = read_fill_ins(DATA / "fill_ins.tsv")
    guesses = [fill(model, fill_in, row_length) for fill_in in fill_ins]
    table = read_table(DATA / "sentences_by_topic.tsv", {"topic": "topic", "sentence": "sentence"})
    topics, sentences = table["topic"], table["sentence"]
    embeddings = keras.ops.convert_to_numpy(model.backbone.token_embedding.embeddings)
    encoder = XLNetTextEmbedder.from_preset(preset).embed(sentences, verbose=0)
    means = [embeddings[ids].mean(axis=0) for ids in model.tokenizer.encode(sentences)]
    similarities = {
        "the encoder": cosines(encoder - encoder.mean(axis=0)),
        "mean of the embedding table": cosines(np.array(means) - np.mean(means, axis=0)),
        "TF-IDF of words": cosines(TfidfVectorizer().fit_transform(sentences).toarray()),
    }
    scores, picture = count_right(guesses), page.with_suffix(".png")
    draw(scores, similarities["the encoder"], topics, picture)
    backbone = model.backbone
    parts = {
        "model": f"![share of right fill-ins, and similarity of sentences]({picture.name})\n\n"
        f"The model: `{pathlib.PurePath(preset).name}`, {backbone.num_layers} layers of "
        f"width {backbone.hidden_dim}, {backbone.vocabulary_size:,} pieces, "
        f"{backbone.count_params():,} weights; rows of {row_length} tokens.\n",
        "scores": scores_table(scores),
        "fill-ins": fill_ins_table(guesses),
        "words": words_table(embeddings, model.tokenizer),
        "sentences": sentences_text(similarities, topics, sentences),
    }
    empty = "".join(f"<!-- begin {name} -->\n<!-- end {name} -->\n\n" for name in parts)
    text = page.read_text(encoding="utf-8") if page.is_file() else empty
    page.write_text(write_between_markers(text, parts), encoding="utf-8")
    print(f"{parts['scores']}\nwrote {page} and {picture}")


# === Fill-ins ===


def read_fill_ins(path):
    """Returns the sentences of a file with the columns `kind` and `sentence`.

    The blank of a sentence is `{answer}`, `{answer|other answer}` or `{?}`.
    """
    table = read_table(path, {"kind": "kind", "sentence": "sentence"})
    found = []
    for kind, sentence in zip(table["kind"], table["sentence"], strict=True):
        match = re.fullmatch(r"([^{}]*)\{([^{}]+)\}([^{}]*)", sentence)
        if match is None:
            raise ValueError(f"{path}: not a sentence with one blank: {sentence!r}")
        before, answers, after = match.groups()
        answers = () if answers == UNKNOWN else tuple(answers.split("|"))
        found.append(FillIn(kind, before, answers, after))
    return found


def row_with_blank(tokenizer, fill_in, length):
    """Returns the ids of the context and of a sentence, `<mask>` for each piece of the answer."""
    answer = fill_in.answers[0] if fill_in.answers else PLACEHOLDER
    context, before, until, pieces = (
        tokenizer.encode([text])[0].tolist()
        for text in (
            CONTEXT,
            fill_in.before,
            fill_in.before + answer,
            fill_in.before + answer + fill_in.after,
        )
    )
    if not before == pieces[: len(before)] or not before != until == pieces[: len(until)]:
        raise ValueError(f"the vocabulary does not split a sentence at its blank: {fill_in}")
    pieces[len(before) : len(until)] = [MASK_ID] * (len(until) - len(before))
    context.append(tokenizer.eod_token_id)
    return np.array([*context[-(length - len(pieces)) :], *pieces], "int32")


def fill(model, fill_in, row_length):
    """Returns a fill-in, its number of pieces, and the five best guesses.

    A guess is its pieces as one string, and its probability.
    """
    row = row_with_blank(model.tokenizer, fill_in, row_length - 2)  # <sep> and <cls> follow.
    (found,) = model.fill([row])
    guesses = [
        (text_of(model.tokenizer, f.token_ids), float(np.exp(f.log_prob))) for f in found.joint
    ]
    return fill_in, int((row == MASK_ID).sum()), guesses


def text_of(tokenizer, pieces):
    return "".join(tokenizer.id_to_token(int(piece)) for piece in pieces)


def shown(text):
    """Returns pieces for the page. A hyphen marks those that continue the previous word."""
    if text in ("▁", "`"):
        return {"▁": "(space)", "`": "(backtick)"}[text]
    text = text if text.startswith(("▁", "<")) or not text[0].isalnum() else f"-{text}"
    return f"`{text.replace('▁', ' ').strip()}`".replace("|", "\\|")


def count_right(guesses):
    """Returns `(sentences, right first, right in the first five)` by kind, and by pieces."""
    scores = collections.defaultdict(lambda: np.zeros(3, int))
    for fill_in, num_pieces, best in guesses:
        if not fill_in.answers:
            continue
        right = [text in fill_in.right_pieces for text, _ in best]
        pieces = "blanks of one piece" if num_pieces == 1 else "blanks of several pieces"
        for name in (fill_in.kind, pieces, "all"):
            scores[name] += (1, right[0], any(right))
    last = ("blanks of one piece", "blanks of several pieces", "all")
    kinds = [name for name in scores if name not in last]
    return {name: scores[name] for name in (*kinds, *last) if name in scores}


def scores_table(scores):
    rows = [
        (name, f"{count}", f"{first / count:.0%}", f"{five / count:.0%}")
        for name, (count, first, five) in scores.items()
    ]
    return markdown(("kind", "sentences", "right first", "right in the first five"), rows)


def fill_ins_table(guesses):
    """Returns a table for each kind, with all sentences in the order of the file."""
    kinds = collections.defaultdict(list)
    for fill_in, num_pieces, best in guesses:
        cells = []
        for text, probability in best:
            mark = "**" if text in fill_in.right_pieces else ""
            cells.append(f"{mark}{shown(text)}{mark} {probability:.0%}")
        expected = escape(", ".join(fill_in.answers)) or "(no right answer)"
        kinds[fill_in.kind].append(
            (escape(fill_in.sentence), expected, f"{num_pieces}", ", ".join(cells))
        )
    head = ("sentence", "expected", "pieces", "first five")
    return "\n".join(f"### {kind}\n\n{markdown(head, rows)}" for kind, rows in kinds.items())


# === Nearest neighbours ===


def words_table(embeddings, tokenizer, count=8):
    """Returns the pieces with the embeddings nearest to the embeddings of `WORDS`."""
    similarity, rows = cosines(embeddings), []
    for word, pieces in zip(WORDS, tokenizer.encode(WORDS), strict=True):
        if len(pieces) != 1:
            rows.append((word, f"(not one piece, but {len(pieces)})"))
            continue
        (piece,) = pieces
        near = [i for i in np.argsort(-similarity[piece]) if i != piece][:count]
        cells = (f"{shown(text_of(tokenizer, [i]))} {similarity[piece, i]:.2f}" for i in near)
        rows.append((word, ", ".join(cells)))
    return markdown(("word", "nearest pieces, cosine"), rows)


def cosines(vectors):
    """Returns the cosines of all pairs of rows."""
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors @ vectors.T


def nearest(similarity):
    """Returns the index of the nearest other row, by row."""
    return np.argmax(similarity - 9 * np.eye(len(similarity)), axis=1)


def same_topic(similarity, topics):
    """Returns the share of sentences whose nearest sentence has the same topic."""
    return np.mean([topics[i] == topics[j] for i, j in enumerate(nearest(similarity))])


def sentences_text(similarities, topics, sentences):
    """Returns how often the nearest sentence has the same topic, and some sentences with theirs."""
    chance = np.mean([(topics.count(t) - 1) / (len(topics) - 1) for t in topics])
    rows = [(name, f"{same_topic(s, topics):.0%}") for name, s in similarities.items()]
    text = markdown(("vectors", "nearest has the same topic"), [*rows, ("chance", f"{chance:.0%}")])
    first = [topics.index(topic) for topic in dict.fromkeys(topics)]
    found = nearest(similarities["the encoder"])
    rows = [(topics[i], sentences[i], sentences[found[i]], topics[found[i]]) for i in first]
    head = ("topic", "first sentence of the topic", "nearest sentence", "its topic")
    return f"{text}\n{markdown(head, rows)}"


# === Page ===


def draw(scores, similarity, topics, path):
    """Draws the shares of right fill-ins, and the similarity of all sentences."""
    figure, (bars, heat) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    y, counts = np.arange(len(scores))[::-1], np.array(list(scores.values()))
    for column, label in ((2, "in the first five"), (1, "first")):
        bars.barh(y, 100 * counts[:, column] / counts[:, 0], label=label)
    bars.set_yticks(y, [f"{name} ({found[0]})" for name, found in scores.items()])
    bars.set(xlim=(0, 100), xlabel="% of the sentences", title="expected word is guessed")
    bars.legend(loc="lower right")
    image = heat.imshow(similarity, cmap="RdBu_r", vmin=-1, vmax=1)
    groups = list(dict.fromkeys(topics))
    middles = [np.mean([i for i, t in enumerate(topics) if t == group]) for group in groups]
    heat.set_xticks(middles, groups, rotation=45, ha="right")
    heat.set_yticks(middles, groups)
    heat.set_title("cosine of sentences, by topic")
    figure.colorbar(image, ax=heat, shrink=0.8)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def write_between_markers(text, parts):
    """Returns `text` with each of `parts` between `<!-- begin name -->` and `<!-- end name -->`.

    Raises:
        ValueError: If a part has no markers.
    """
    for name, part in parts.items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        pattern = re.compile(f"({re.escape(begin)}).*?({re.escape(end)})", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"the page must have a line {begin.strip()!r} and {end!r} after it")
        text = pattern.sub(lambda match, part=part: f"{match[1]}\n{part}\n{match[2]}", text)
    return text


def escape(text):
    """Returns text with Markdown's markup escaped."""
    text = html.escape(text, quote=False)
    return re.sub(r"[|*`\\]", lambda match: f"&#{ord(match[0])};", text)


def markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    main()
