"""Results print what a person wants to read, in a few lines."""

import dataclasses
import inspect

import numpy as np
import pytest

from keras_xlnet import models, preprocessing
from keras_xlnet.preprocessing import Answer, AnswerPrediction
from keras_xlnet.results import Result, short, table
from keras_xlnet.tokenizers import XLNetTokenizer

pytestmark = pytest.mark.filterwarnings("ignore:The head of this")
TEXTS = ["a rose is a rose", "is it a rose?"] * 6
SIZES = (28, 2, 2, 16, 32)


@pytest.fixture(scope="module")
def tokenizer():
    return XLNetTokenizer.train(iter(TEXTS * 3), vocabulary_size=28)


def task(name, tokenizer, **arguments):
    preprocessor = getattr(preprocessing, f"{name}Preprocessor")(tokenizer, sequence_length=160)
    return getattr(models, name)(
        models.XLNetBackbone(*SIZES), preprocessor=preprocessor, **arguments
    )


@pytest.fixture(scope="module")
def results(tokenizer):
    """Every result of tiny models, by class."""
    quiet = {"verbose": 0}
    classifier = task("XLNetTextClassifier", tokenizer, num_classes=20)
    tagger = task(
        "XLNetTokenClassifier", tokenizer, num_classes=2, class_names=["B-flower", "B-verb"]
    )
    sentences = tagger.preprocessor.encode(TEXTS)
    outputs = tagger.predict(sentences, **quiet)
    answerer = task("XLNetQuestionAnswering", tokenizer)
    chooser = task("XLNetMultipleChoice", tokenizer)
    ranker = task("XLNetRanker", tokenizer)
    lm = models.XLNetPermutationLM(models.XLNetBackbone(*SIZES))
    inputs = {
        "token_ids": np.array([[9, 10, 11]]),
        "permutation_mask": np.ones((1, 3, 3), bool),
        "target_positions": np.array([[1]]),
    }
    answered = answerer.answer([("is it a rose?", " ".join(TEXTS))], num_answers=30, **quiet)
    inspection = lm.inspect(inputs)
    fillings = lm.fill(["a <mask> is <mask>"], tokenizer, num_results=9)
    found = [
        *classifier.classify(TEXTS[:1], **quiet),
        *tagger.preprocessor.decode(outputs, sentences, classes=tagger.classes)[:1],
        *tagger.find_entities(TEXTS, **quiet)[0],
        *answered,
        *answered[0].answers,
        *chooser.choose([("a rose", "is it", TEXTS)], **quiet),
        *ranker.rank([("rose", TEXTS)], **quiet)[0],
        lm.score(TEXTS, tokenizer, order="random", num_orders=2),
        lm.score([[9]]),
        *fillings,
        *fillings[0].joint,
        *lm.fill([[9, 6, 10]]),
        lm.generate(TEXTS, tokenizer, max_new_tokens=3),
        lm.generate([[9, 10]] * 20, max_new_tokens=20),
        inspection,
        *inspection.attentions,
        sentences,
    ]
    return {kind: [x for x in found if type(x) is kind] for kind in {type(x) for x in found}}


def public_results():
    rooms = (models, preprocessing)
    public = [getattr(room, name) for room in rooms for name in room.__all__]
    return {x for x in public if inspect.isclass(x) and issubclass(x, Result)}


def test_all_results_are_public_frozen_and_tried(results):
    assert all(dataclasses.fields(kind) for kind in public_results())
    assert all(kind.__dataclass_params__.frozen for kind in public_results())
    # The encoded sentences are of a class of their own.
    tried = {base for kind in results for base in kind.__mro__}
    assert public_results() <= tried
    private = {kind for kind in results if kind not in public_results()}
    assert {kind.__name__ for kind in private} == {"EncodedWords"}


def test_each_result_prints_in_a_few_lines(results):
    for found in results.values():
        for result in found:
            printed = repr(result)
            assert printed.startswith(type(result).__name__)
            assert len(printed.splitlines()) <= 16, printed
            assert max(map(len, printed.splitlines())) < 1100, printed
            # Arrays have no more than some numbers of a row.
            assert "array(" not in printed and "[[" not in printed, printed


def printed_of(results, name):
    (found,) = (found for kind, found in results.items() if kind.__name__ == name)
    return [repr(result) for result in found]


def test_small_results_print_their_fields(results):
    assert printed_of(results, "Classification")[0].startswith("Classification(label='")
    assert "'7': 0." in printed_of(results, "Classification")[0]
    assert "... 12 more}" in printed_of(results, "Classification")[0]
    assert "text='a rose is a rose'" in printed_of(results, "RankedDocument")[0]
    assert printed_of(results, "Entity")[0].startswith("Entity(type='")


def test_large_results_print_what_they_are(results):
    many, alone = printed_of(results, "Scores")
    assert many.splitlines()[1].split() == (
        "total tokens perplexity bits per token standard error".split()
    )
    assert many.splitlines()[-1] == "  ... 4 more"
    assert alone.splitlines()[1].split()[-1] == "token"
    filled, of_ids = printed_of(results, "Fillings")
    assert filled.count("is") == 10 and "[" in of_ids
    texts, ids = printed_of(results, "Continuations")
    assert texts.splitlines()[1].startswith("  'a rose is a rose")
    assert "... 12 more]" in ids
    (encoded,) = printed_of(results, "EncodedWords")
    assert encoded.splitlines()[:2] == [
        "EncodedWords of 12 rows: words, text",
        "  token_ids: <int32 (12, 16)>",
    ]
    (inspected,) = printed_of(results, "Inspection")
    assert "attentions, query stream: 2 of <float32 (1, 2, 1, 3)>" in inspected
    assert "hidden_states: 2 of <float32 (1, 3, 16)>" in inspected


def test_answers_without_a_beam():
    assert repr(AnswerPrediction((), 1.23456)) == "AnswerPrediction of '', null score 1.235"
    answer = Answer("x" * 1000, 0, 1000, 1.0, -0.1, -0.2)
    assert len(repr(AnswerPrediction((answer,), 0.0))) < 600


@pytest.mark.parametrize(
    "value, expected",
    [
        (0.123456, "0.1235"),
        (np.float32(0.123456), "0.1235"),
        (12345.678, "12350.0"),
        (float("nan"), "nan"),
        (3, "3"),
        (True, "True"),
        (np.int64(3), "3"),
        ((1,), "(1,)"),
        ([], "[]"),
        (np.arange(3), "[0, 1, 2]"),
        (list(range(9)), "[0, 1, 2, 3, 4, 5, 6, 7, ... 1 more]"),
        (np.zeros((2, 3), "int32"), "<int32 (2, 3)>"),
        ({"a": [0.5], "b": None}, "{'a': [0.5], 'b': None}"),
        ("it's", '"it\'s"'),
    ],
)
def test_short(value, expected):
    assert short(value) == expected


def test_long_texts_keep_both_ends():
    cut = short("a" * 500 + "z")
    assert cut.startswith("'aaa") and cut.endswith("aaz'") and len(cut) < 210


def test_tables():
    lines = table({"n": range(3), "text": ["a", "bb", "c"]}, most_rows=2)
    assert lines == ["n  text", "0  'a'", "1  'bb'", "... 1 more"]
