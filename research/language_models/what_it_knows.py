"""Shows what a pretrained model knows: fill-ins, nearest neighbours of words and of sentences.

    python research/language_models/what_it_knows.py  # writes docs/what_it_knows.md, .png
    python research/language_models/what_it_knows.py --preset runs/pretrain/permutation_lm \\
        --page mine.md

All sentences of data/fill_ins.tsv and all words below are shown, right or wrong; they were written
before any model filled them in. The page keeps its text: only what stands between its markers is
replaced. About a minute on 2 cores, no network.
"""

import collections
import html
import os
import pathlib
import re
import sys

import keras
import matplotlib
import numpy as np
from absl import app, flags
from fill_ins import RowMaker, fill, read_fill_ins
from sklearn.feature_extraction.text import TfidfVectorizer

from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM
from keras_xlnet.task_files import read_table
from keras_xlnet.tokenizers import XLNetTokenizer

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

DATA = pathlib.Path(__file__).parents[2] / "examples" / "data"
DOCS = pathlib.Path(__file__).parents[2] / "docs"
WORDS = (
    "king water Monday three she London quickly red happy run walked because doctor war money "
    "dog England music night under"
).split()
EMPTY_PAGE = "".join(
    f"<!-- begin {name} -->\n<!-- end {name} -->\n\n"
    for name in ("model", "scores", "fill-ins", "words", "sentences")
)

FLAGS = flags.FLAGS


def define_flags():
    flags.DEFINE_string("preset", "xlnet_small_en", "An XLNetPermutationLM with a tokenizer.")
    flags.DEFINE_string("page", str(DOCS / "what_it_knows.md"), "Markdown file to write.")
    flags.DEFINE_string("picture", None, "Picture to draw. [beside the page, with its name]")
    flags.DEFINE_integer(
        "row_length", None, "Tokens of a row. [as in pretraining, or 128]", lower_bound=8
    )


def main(arguments):
    if len(arguments) > 1:
        raise app.UsageError(f"unknown arguments {arguments[1:]}")
    page = pathlib.Path(FLAGS.page)
    picture = pathlib.Path(FLAGS.picture) if FLAGS.picture else page.with_suffix(".png")
    try:
        model, tokenizer, row_length = load(FLAGS.preset)
        rows = RowMaker(tokenizer, FLAGS.row_length or row_length)
        guesses, left_out = fill_all(model, rows, read_fill_ins(DATA / "fill_ins.tsv"))
        topics, sentences = read_sentences(DATA / "sentences_by_topic.tsv")
        encoder, table = sentence_vectors(model, rows, sentences)
    except (OSError, ValueError) as error:
        sys.exit(f"what_it_knows.py: {error}")
    similarity = cosines(encoder - encoder.mean(axis=0))
    other = {
        "mean of the embedding table": cosines(table - table.mean(axis=0)),
        "TF-IDF of words": tf_idf_cosines(sentences),
    }
    scores = count_right(guesses)
    draw(scores, similarity, topics, picture)
    parts = {
        "model": describe(FLAGS.preset, model, rows, picture, page),
        "scores": scores_table(scores, left_out),
        "fill-ins": fill_ins_table(guesses),
        "words": words_table(model, tokenizer),
        "sentences": sentences_text(similarity, other, topics, sentences),
    }
    text = page.read_text(encoding="utf-8") if page.is_file() else EMPTY_PAGE
    page.write_text(write_between_markers(text, parts), encoding="utf-8")
    print(parts["scores"])
    print(f"wrote {page} and {picture}")


# === Model ===


def load(preset):
    """Returns the model for single rows without memory, its tokenizer, and its row length."""
    trained = XLNetPermutationLM.from_preset(
        preset, stateful=False, batch_size=None, attend_to_empty_memory=False
    )
    if trained.objective != "permutation" or not trained.partial_prediction:
        raise ValueError(
            f"`preset` must be a model with objective='permutation' and partial_prediction=True. "
            f"Received: {preset!r}, a model with objective={trained.objective!r}, "
            f"partial_prediction={trained.partial_prediction}"
        )
    # Half of the rows were read backward in pretraining, and memory came before them.
    alone = {"bidirectional_data": False, "memory_length": None, "reuse_length": None}
    config = {**trained.backbone.get_config(), **alone, "dtype": "float32"}
    model = XLNetPermutationLM(XLNetBackbone.from_config(config))
    model.set_weights(trained.get_weights())
    reuse_length = trained.backbone.reuse_length
    row_length = 2 * reuse_length if reuse_length else 128
    return model, XLNetTokenizer.from_preset(preset), row_length


def describe(preset, model, rows, picture, page):
    """Returns the picture, and what was asked how."""
    backbone = model.backbone
    link = pathlib.Path(os.path.relpath(picture, page.parent)).as_posix()
    return (
        f"![share of right fill-ins, and similarity of sentences]({link})\n\n"
        f"The model: `{pathlib.PurePath(preset).name}`, {backbone.num_layers} layers of "
        f"width {backbone.hidden_dim}, {backbone.vocabulary_size:,} pieces, "
        f"{backbone.count_params():,} weights; rows of {rows.length} tokens.\n"
    )


# === Fill-ins ===


def fill_all(model, rows, fill_ins):
    """Returns `(fill_in, number of pieces, guesses)` by sentence, and the sentences left out.

    A guess is its pieces as one string, and its probability.
    """
    blanks = [rows.blank(fill_in) for fill_in in fill_ins]
    asked = [(f, blank) for f, blank in zip(fill_ins, blanks, strict=True) if blank]
    left_out = [f.sentence for f, blank in zip(fill_ins, blanks, strict=True) if not blank]
    found = fill(model, rows, [blank for _, blank in asked])
    guesses = [
        (
            fill_in,
            blank.stop - blank.start,
            [(text_of(rows.tokenizer, pieces), probability) for pieces, probability in best],
        )
        for (fill_in, (_, blank)), best in zip(asked, found, strict=True)
    ]
    return guesses, left_out


def text_of(tokenizer, pieces):
    return "".join(tokenizer.id_to_token(piece) for piece in pieces)


def shown(text):
    """Returns pieces for the page. What continues the word before it begins with a hyphen."""
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


def scores_table(scores, left_out):
    rows = [
        (name, f"{count}", f"{first / count:.0%}", f"{five / count:.0%}")
        for name, (count, first, five) in scores.items()
    ]
    text = markdown(("kind", "sentences", "right first", "right in the first five"), rows)
    if left_out:
        names = "; ".join(escape(sentence) for sentence in left_out)
        text += f"\nLeft out, because the vocabulary does not split them at the blank: {names}\n"
    return text


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


def words_table(model, tokenizer, count=8):
    """Returns the pieces whose embeddings are nearest to those of `WORDS`."""
    similarity = cosines(embedding_table(model))
    rows = []
    for word in WORDS:
        pieces = np.asarray(tokenizer(word))
        if len(pieces) != 1:
            rows.append((word, f"(not one piece, but {len(pieces)})"))
            continue
        order = np.argsort(-similarity[pieces[0]])
        near = [int(i) for i in order if i != pieces[0]][:count]
        cells = (f"{shown(text_of(tokenizer, [i]))} {similarity[pieces[0], i]:.2f}" for i in near)
        rows.append((word, ", ".join(cells)))
    return markdown(("word", "nearest pieces, cosine"), rows)


def read_sentences(path):
    """Returns topics and sentences, two lists of the same length."""
    table = read_table(path, {"topic": "topic", "sentence": "sentence"})
    return table["topic"], table["sentence"]


def sentence_vectors(model, rows, sentences):
    """Returns the mean of the encoder's output over the pieces of each sentence.

    And the mean of the rows of the embedding table, to compare with.
    """
    pieces = [rows.pieces(sentence) for sentence in sentences]
    placed = [rows.row(p) for p in pieces]
    token_ids = np.array([row for row, _ in placed], "int32")
    inputs = {"token_ids": token_ids, "segment_ids": rows.segment_ids(len(token_ids))}
    outputs = model.backbone.predict(inputs, batch_size=64, verbose=0)["sequence_output"]
    table = embedding_table(model)
    spans = [slice(begin, begin + len(p)) for (_, begin), p in zip(placed, pieces, strict=True)]
    encoder = [output[span].mean(axis=0) for output, span in zip(outputs, spans, strict=True)]
    return np.array(encoder, "float32"), np.array([table[p].mean(axis=0) for p in pieces])


def embedding_table(model):
    return keras.ops.convert_to_numpy(model.backbone.token_embedding.embeddings)


def cosines(vectors):
    """Returns the cosines of all pairs of rows."""
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors @ vectors.T


def tf_idf_cosines(sentences):
    return cosines(TfidfVectorizer().fit_transform(sentences).toarray())


def nearest(similarity):
    """Returns the index of the nearest other row, by row."""
    return np.argmax(similarity - 9 * np.eye(len(similarity)), axis=1)


def same_topic(similarity, topics):
    """Returns the share of sentences whose nearest sentence has the same topic."""
    return np.mean([topics[i] == topics[j] for i, j in enumerate(nearest(similarity))])


def sentences_text(similarity, other, topics, sentences):
    """Returns how often the nearest sentence has the same topic, and that of some sentences."""
    first = [topics.index(topic) for topic in dict.fromkeys(topics)]
    found = nearest(similarity)
    chance = np.mean([(topics.count(t) - 1) / (len(topics) - 1) for t in topics])
    shares = {"the encoder": similarity, **other}
    rows = [(name, f"{same_topic(s, topics):.0%}") for name, s in shares.items()]
    text = markdown(("vectors", "nearest has the same topic"), [*rows, ("chance", f"{chance:.0%}")])
    rows = [(topics[i], sentences[i], sentences[found[i]], topics[found[i]]) for i in first]
    head = ("topic", "first sentence of the topic", "nearest sentence", "its topic")
    return f"{text}\n{markdown(head, rows)}"


# === Page ===


def draw(scores, similarity, topics, path):
    """Draws the shares of right fill-ins, and the similarity of all sentences."""
    figure, (bars, heat) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    names = list(scores)
    y = np.arange(len(names))[::-1]
    counts = np.array([scores[name] for name in names])
    for column, label in ((2, "in the first five"), (1, "first")):
        bars.barh(y, 100 * counts[:, column] / counts[:, 0], label=label)
    bars.set_yticks(y, [f"{name} ({scores[name][0]})" for name in names])
    bars.set(xlim=(0, 100), xlabel="% of the sentences", title="expected word is guessed")
    bars.legend(loc="lower right")
    bars.grid(axis="x", alpha=0.3)
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
    """Returns text without what Markdown would take as markup."""
    text = html.escape(text, quote=False)
    return re.sub(r"[|*`\\]", lambda match: f"&#{ord(match[0])};", text)


def markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    define_flags()
    app.run(main)
