"""Components of spaCy's pipelines: their results are those of the models, also after saving."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from keras_xlnet.evaluation import entity_scores
from keras_xlnet.models import XLNetTextClassifier, XLNetTokenClassifier
from keras_xlnet.preprocessing import (
    Entity,
    XLNetTextClassifierPreprocessor,
    XLNetTokenClassifierPreprocessor,
)
from keras_xlnet.preprocessing.tags import tag_spans
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.small_models import small_backbone

spacy = pytest.importorskip("spacy", reason="spacy is not installed (extra: integrations)")

from spacy.tokens import Doc, Span  # noqa: E402
from spacy.training import Example  # noqa: E402

import keras_xlnet.integrations.spacy_components  # noqa: E402, F401  # Registers the factories.

ROOT = pathlib.Path(__file__).parents[2]
TAGS = ["O", "B-person", "I-person", "B-place", "I-place"]
TEXTS = [
    "the turtle sat on the mat",
    "Ann went to the sea",
    "",
    " \n",
    "a rose is a rose",
    "It's 9,5!",
]


@pytest.fixture(scope="module")
def tokenizer(golden_dir):
    return XLNetTokenizer(str(golden_dir / "spiece.model"))


@pytest.fixture(scope="module")
def tagger(tokenizer):
    preprocessor = XLNetTokenClassifierPreprocessor(tokenizer, sequence_length=16)
    return with_random_head(
        XLNetTokenClassifier(small_backbone(), len(TAGS), preprocessor, class_names=TAGS)
    )


def new_classifier(tokenizer, **arguments):
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, sequence_length=32)
    names = ["sports", "trade", "weather"]
    return with_random_head(
        XLNetTextClassifier(small_backbone(), 3, preprocessor, class_names=names, **arguments)
    )


def with_random_head(model):
    """The model with large weights, so that outputs differ between texts and nothing is warned."""
    kernel = model.logits_dense.kernel
    kernel.assign(np.random.default_rng(0).normal(size=kernel.shape))
    return model


def pipeline(ner=None, textcat=None):
    nlp = spacy.blank("en")
    for name, model in (("ner", ner), ("textcat", textcat)):
        if model is not None:
            nlp.add_pipe(f"keras_xlnet_{name}").model = model
    return nlp


def spans(doc):
    return [(span.label_, span.start_char, span.end_char) for span in doc.ents]


@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_pipe_gives_the_results_of_the_models(batch_size, tagger, tokenizer):
    classifier = new_classifier(tokenizer)
    texts = [text for text in TEXTS if text.strip()]
    docs = list(pipeline(tagger, classifier).pipe(TEXTS, batch_size=batch_size))
    assert [doc.text for doc in docs] == TEXTS
    found = [spans(doc) for doc in docs if doc.text.strip()]
    expected = tagger.find_entities(texts, verbose=0)
    assert any(expected)
    # These texts have no entity that ends within a token.
    assert found == [[(one.type, one.start, one.end) for one in row] for row in expected]
    assert all(doc.has_annotation("ENT_IOB") for doc in docs if doc.text.strip())
    for doc, one in zip(docs, classifier.classify(TEXTS, verbose=0), strict=True):
        assert doc.cats == pytest.approx(one.scores, abs=1e-5)


def test_a_batch_is_predicted_at_once(tagger, monkeypatch):
    sizes = []
    find = XLNetTokenClassifier.find_entities
    monkeypatch.setattr(
        XLNetTokenClassifier,
        "find_entities",
        lambda self, x, **kwargs: sizes.append(len(x)) or find(self, x, **kwargs),
    )
    list(pipeline(tagger).pipe(["a rose"] * 10, batch_size=4))
    assert sizes == [4, 4, 2]


@pytest.mark.parametrize(
    "earlier, expected",
    [
        ([], [("place", 0, 15), ("person", 16, 19)]),
        # An earlier entity stays, and what overlaps with it is left out.
        ([(1, 2, "X")], [("place", 0, 15), ("X", 16, 19)]),
        ([(0, 1, "X")], [("X", 0, 15), ("person", 16, 19)]),
    ],
)
def test_entities_are_those_of_tokens(earlier, expected, tagger, monkeypatch):
    found = [Entity("place", "London", 1, 7, 0.9), Entity("person", "Ann", 16, 19, 0.9)]
    monkeypatch.setattr(XLNetTokenClassifier, "find_entities", lambda *args, **kwargs: [found])
    nlp = pipeline(tagger)
    doc = Doc(nlp.vocab, words=["(London)/Paris:", "Ann"])
    doc.ents = [Span(doc, *entity) for entity in earlier]
    assert spans(nlp(doc)) == expected


def test_two_entities_in_one_token_give_the_first(tagger, monkeypatch):
    found = [Entity("place", "a", 0, 1, 0.9), Entity("person", "b", 2, 3, 0.9)]
    monkeypatch.setattr(XLNetTokenClassifier, "find_entities", lambda *args, **kwargs: [found])
    nlp = pipeline(tagger)
    assert spans(nlp(Doc(nlp.vocab, words=["a/b"]))) == [("place", 0, 3)]


def test_ents_f_is_that_of_entity_scores(tagger):
    sentences = [text.split() for text in TEXTS[:2] + TEXTS[4:5]]
    predicted = tagger.tag(sentences, verbose=0)
    true = [list(tags) for tags in predicted]
    true[0] = ["B-person", "I-person", "O", "O", "O", "O"]
    true[1][0] = "B-place"
    nlp = pipeline(tagger)
    examples = []
    for words, tags in zip(sentences, true, strict=True):
        gold = Doc(nlp.vocab, words=words)
        gold.ents = [Span(gold, start, end, label=kind) for kind, start, end in tag_spans(tags)]
        examples.append(Example(Doc(nlp.vocab, words=words), gold))
    scores, expected = nlp.evaluate(examples), entity_scores(true, predicted)
    assert 0 < expected.f1 < 1
    assert scores["ents_f"] == pytest.approx(expected.f1)
    assert {*scores["ents_per_type"]} == {*expected.by_type}


@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
def test_cats_are_scored_as_by_spacy(activation, tokenizer):
    classifier = new_classifier(tokenizer, activation=activation, threshold=0.5)
    classifier.threshold = 0.3 if activation == "sigmoid" else 0.5
    nlp = pipeline(textcat=classifier)
    gold = {"sports": 1.0, "trade": 0.0, "weather": 0.0}
    texts = TEXTS[:2] + TEXTS[4:]
    examples = [Example.from_dict(nlp.make_doc(text), {"cats": gold}) for text in texts]
    scores = nlp.evaluate(examples)
    probabilities = classifier.predict(texts, verbose=0)
    if activation == "softmax":
        correct = np.argmax(probabilities, axis=1) == 0
        assert scores["cats_micro_f"] == pytest.approx(correct.mean())
        assert scores["cats_score_desc"] == "macro F"
    else:
        assert scores["cats_score_desc"] == "macro AUC"
        recall = np.mean(probabilities[:, 0] >= 0.3)
        assert scores["cats_f_per_type"]["sports"]["r"] == pytest.approx(recall)


def test_a_saved_pipeline_has_its_models(tagger, tokenizer, tmp_path):
    nlp = pipeline(tagger, new_classifier(tokenizer))
    doc = nlp(TEXTS[0])
    nlp.to_disk(tmp_path / "saved")
    copies = [spacy.load(tmp_path / "saved"), pipeline()]
    for name in nlp.pipe_names:
        copies[1].add_pipe(name)
    copies[1].from_bytes(nlp.to_bytes())
    for copy in copies:
        found = copy(TEXTS[0])
        assert spans(found) == spans(doc)
        assert found.cats == pytest.approx(doc.cats, abs=1e-6)
        assert copy.pipe_labels == nlp.pipe_labels
    assert nlp.pipe_labels == {
        "keras_xlnet_ner": ["person", "place"],
        "keras_xlnet_textcat": ["sports", "trade", "weather"],
    }


def test_a_saved_pipeline_does_not_read_its_first_location(tagger, tmp_path):
    tagger.save_to_preset(tmp_path / "preset")
    nlp = spacy.blank("en")
    nlp.add_pipe("keras_xlnet_ner", config={"model": str(tmp_path / "preset")})
    expected = spans(nlp(TEXTS[0]))
    nlp.to_disk(tmp_path / "saved")
    (tmp_path / "preset").rename(tmp_path / "moved")
    assert spans(spacy.load(tmp_path / "saved")(TEXTS[0])) == expected


def test_reading_the_model_does_not_load_it(tagger):
    # Before Python 3.12, `isinstance` with a protocol reads its attributes in the order of a set:
    # in some processes, spaCy reads the model while it builds a pipeline.
    nlp = spacy.blank("en")
    component = nlp.add_pipe("keras_xlnet_ner", config={"model": "no such model"})
    assert component.model is None
    component.model = tagger
    assert component.model is tagger


def test_training_of_other_components_leaves_it(tagger):
    nlp = pipeline(tagger)
    nlp.add_pipe("textcat")
    cats = [{"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}]
    examples = [
        Example.from_dict(nlp.make_doc(text), {"cats": one})
        for text, one in zip(TEXTS[:2], cats, strict=True)
    ]
    before = [np.array(weight) for weight in tagger.get_weights()]
    nlp.initialize(lambda: examples)
    assert set(nlp.update(examples)) == {"textcat"}
    assert all(np.array_equal(a, b) for a, b in zip(before, tagger.get_weights(), strict=True))


def test_analysis_of_pipes(tagger, tokenizer):
    summary = pipeline(tagger, new_classifier(tokenizer)).analyze_pipes()["summary"]
    assert "doc.ents" in summary["keras_xlnet_ner"]["assigns"]
    assert summary["keras_xlnet_textcat"]["assigns"] == ["doc.cats"]


@pytest.mark.parametrize(
    "name, config, message",
    [
        ("ner", {}, "'keras_xlnet_ner' has no model: pass config={'model': ...}"),
        ("ner", {"model": "nams"}, "config={'model': 'nams'} of .*Did you mean 'names'"),
        ("textcat", {"model": "hf://"}, "config={'model': 'hf://'} of .*'hf://owner/name'"),
        ("ner", {"model": 3}, "(?s)keras_xlnet_ner.*model.*3 is not"),
        ("textcat", {"modle": "spam"}, "unexpected argument: 'modle'"),
    ],
)
def test_errors_name_the_key_of_the_config(name, config, message):
    nlp = spacy.blank("en")
    with pytest.raises(ValueError, match=message):
        nlp.add_pipe(f"keras_xlnet_{name}", config=config)
        nlp("a text")


def test_models_of_other_tasks_are_refused(tokenizer):
    component = spacy.blank("en").add_pipe("keras_xlnet_ner")
    with pytest.raises(ValueError, match="must be an XLNetTokenClassifier with a preprocessor"):
        component.model = new_classifier(tokenizer)


def test_another_process_is_refused(tagger, monkeypatch):
    nlp = pipeline(tagger)
    nlp("a rose")
    monkeypatch.setattr(os, "getpid", lambda: -1)  # Of no process.
    with pytest.raises(ValueError, match="`n_process` of `nlp.pipe` must be 1"):
        nlp("a rose")


def test_errors_go_to_the_handler_of_the_pipeline(tagger, monkeypatch):
    nlp = pipeline(tagger)

    def fail_at_turtles(self, texts, **kwargs):
        if "turtle" in texts[0]:
            raise ValueError("turtles")
        return [[] for _ in texts]

    monkeypatch.setattr(XLNetTokenClassifier, "find_entities", fail_at_turtles)
    failed = []
    nlp.set_error_handler(lambda name, pipe, docs, error: failed.append((name, len(docs))))
    docs = list(nlp.pipe(TEXTS[:2] + TEXTS[4:], batch_size=2))
    assert [doc.text for doc in docs] == TEXTS[4:]
    assert failed == [("keras_xlnet_ner", 2)]


def test_entry_points_are_the_factories():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (section,) = text.split("[project.entry-points.spacy_factories]\n")[1:]
    lines = section.split("\n\n")[0].splitlines()
    for line in lines:
        name, _, place = line.replace('"', "").partition(" = ")
        module, _, cls = place.partition(":")
        assert spacy.registry.factories.get(name) is getattr(sys.modules[module], cls)
    assert len(lines) == 2


@pytest.mark.slow
def test_an_adapter_in_a_fresh_process(tmp_path):
    program = f"""
import spacy, sys
nlp = spacy.load({str(tmp_path)!r})
print([(ent.text, ent.label_) for ent in nlp("Ann Smith lives in London.").ents])
"""
    nlp = spacy.blank("en")
    nlp.add_pipe("keras_xlnet_ner", config={"model": "names"})
    nlp.to_disk(tmp_path)
    factories = "import keras_xlnet.integrations.spacy_components\n"
    done = subprocess.run(
        [sys.executable, "-c", factories + program], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout == "[('Ann Smith', 'person'), ('London', 'place')]\n", done.stderr
