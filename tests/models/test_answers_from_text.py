"""Question answering from texts to texts: training, prediction, saving, and what is refused."""

import json
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.evaluation import answer_scores
from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM, XLNetQuestionAnswering
from keras_xlnet.preprocessing import (
    XLNetQuestionAnsweringPreprocessor,
    XLNetTextClassifierPreprocessor,
)
from keras_xlnet.preprocessing.answer_decoding import decode_answers
from keras_xlnet.preprocessing.answer_windows import AnswerWindows
from keras_xlnet.tokenizers import XLNetTokenizer

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
SQUAD = json.loads((GOLDEN / "squad.json").read_text(encoding="utf-8"))
NAMES = ["Ann", "Ben", "Eve", "Tom", "Zoe", "Max"]
PLACES = ["home", "work", "sea", "farm", "lake", "shop"]


def examples(count, seed):
    """Who hides where, in contexts of several windows; in every fourth nobody does."""
    rng = np.random.default_rng(seed)
    questions, contexts, answers = [], [], []
    for row in range(count):
        pairs = list(zip(rng.permutation(NAMES)[:5], rng.permutation(PLACES)[:5], strict=True))
        verbs = ["is at"] * 5
        hidden = rng.integers(5)
        verbs[hidden] = "is at" if row % 4 == 0 else "hides at"
        parts = [f"{name} {verb} {place}" for (name, place), verb in zip(pairs, verbs, strict=True)]
        contexts.append(". ".join(parts))
        questions.append("who hides, and where?")
        found = contexts[-1].find("hides at ")
        place = str(pairs[hidden][1])
        answers.append(None if found < 0 else (found + len("hides at "), place))
    return {"question": questions, "context": contexts}, answers


@pytest.fixture(scope="module")
def tokenizer():
    x, _ = examples(40, 0)
    texts = [f"{q} {c}" for q, c in zip(*x.values(), strict=True)]
    return XLNetTokenizer.train(iter(texts * 3), vocabulary_size=50)


def make(tokenizer, **kwargs):
    keras.utils.set_random_seed(5)
    backbone = XLNetBackbone(
        tokenizer.vocabulary_size(), 1, 2, 32, 64, dropout=0.0, attention_dropout=0.0,
        kernel_initializer="glorot_normal",
    )  # fmt: skip
    preprocessor = XLNetQuestionAnsweringPreprocessor(
        tokenizer, sequence_length=32, doc_stride=12, max_question_length=8
    )
    return XLNetQuestionAnswering(
        backbone, preprocessor=preprocessor, start_n_top=3, end_n_top=2, dropout=0.0, **kwargs
    )


@pytest.fixture(scope="module")
def trained(tokenizer):
    model = make(tokenizer)
    model.compile(keras.optimizers.Adam(0.01))
    x, answers = examples(200, 1)
    history = model.fit(
        x, answers, epochs=6, batch_size=32, verbose=0, validation_data=examples(40, 2)
    ).history
    return model, history


def test_learns_from_text(trained):
    model, history = trained
    assert history["loss"][-1] < 0.7 * history["loss"][0]
    assert history["val_loss"][-1] < 0.8 * history["val_loss"][0]
    x, answers = examples(40, 2)
    assert model.evaluate(x, answers, verbose=0, return_dict=True)["loss"] == pytest.approx(
        history["val_loss"][-1], rel=1e-4
    )
    found = model.answer(x, verbose=0)
    right = [
        prediction.text == answer[1]
        for prediction, answer in zip(found, answers, strict=True)
        if answer is not None
    ]
    assert np.mean(right) > 0.5


def test_predictions_are_parts_of_contexts(trained):
    model, _ = trained
    x, _ = examples(12, 3)
    arguments = {"num_answers": 4, "max_answer_length": 5, "null_threshold": None}
    predictions = model.answer(x, **arguments, verbose=0)
    assert len(predictions) == 12
    assert sum(bool(prediction.answers) for prediction in predictions) >= 8
    for prediction, context in zip(predictions, x["context"], strict=True):
        assert len(prediction.answers) <= 4 and np.isfinite(prediction.null_score)
        if not prediction.answers:  # All beams are `<cls>`.
            assert prediction.text == ""
            continue
        texts = [answer.text for answer in prediction.answers]
        assert len(set(texts)) == len(texts) and prediction.text == texts[0]
        probabilities = [answer.probability for answer in prediction.answers]
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) == pytest.approx(1)
        for answer in prediction.answers:
            assert context[answer.start : answer.end] == answer.text == answer.text.strip() != ""
            assert len(model.preprocessor.tokenizer(answer.text)) <= 6


def test_forms_of_questions_give_the_same_answers(trained):
    model, _ = trained
    x, _ = examples(5, 4)
    expected = model.answer(x, null_threshold=None, verbose=0)
    rows = list(zip(*x.values(), strict=True))
    windows = model.preprocessor.encode(x)
    assert isinstance(windows, AnswerWindows) and len(windows) > 5
    for form in (rows, tuple(x.values()), windows):
        for found, other in zip(
            model.answer(form, null_threshold=None, verbose=0), expected, strict=True
        ):
            assert found.text == other.text
            assert found.null_score == pytest.approx(other.null_score, abs=1e-5)
    outputs = model.predict(windows.features, verbose=0)
    assert decode_answers(windows, outputs)[0].text == expected[0].text
    assert model(rows)["cls_logits"].shape == (len(windows),)


def test_a_threshold_of_the_null_score(trained):
    model, _ = trained
    x, _ = examples(6, 5)
    everything = model.answer(x, null_threshold=None, verbose=0)
    # The model was trained on questions without an answer, and so learned that there are some.
    assert model.null_threshold == 0.0
    assert model.with_arguments(dropout=0.0).null_threshold == 0.0
    middle = sorted(p.null_score for p in everything)[3]
    for threshold, cut in (("auto", 0.0), (middle, middle), (-1e9, -1e9), (1e9, 1e9)):
        found = model.answer(x, null_threshold=threshold, verbose=0)
        for prediction, whole in zip(found, everything, strict=True):
            is_answered = whole.null_score <= cut
            assert prediction.text == (whole.text if is_answered else "")
            assert [a.text for a in prediction.answers] == [a.text for a in whole.answers]
        # Scores are those of the texts, and the best thresholds do not depend on the given one.
        gold = [[answer.text] for answer in (p.answers[0] for p in everything)]
        texts = [prediction.text for prediction in found]
        assert answer_scores(found, gold).exact == answer_scores(texts, gold).exact
        best = answer_scores(everything, gold).best_exact_threshold
        assert answer_scores(found, gold).best_exact_threshold == best
    with pytest.raises(ValueError, match="`null_threshold` must be a number, None or 'auto'"):
        model.answer(x, null_threshold="best", verbose=0)


def test_answers_as_on_the_hub(trained):
    model, _ = trained
    x = {"question": ["what is it?", "and now?"], "context": ["a ship sails", "the sea is cold"]}
    hub = [{"text": ["ship", "sails"], "answer_start": [2, 7]}, {"text": [], "answer_start": []}]
    lists = [[{"text": "ship", "answer_start": 2}], []]
    expected = model.evaluate(x, lists, verbose=0)
    np.testing.assert_allclose(model.evaluate(x, hub, verbose=0), expected, rtol=1e-6)
    gold = [["ship", "sails"], None]
    assert answer_scores(["sails", ""], hub) == answer_scores(["sails", ""], gold)


def test_saved_models_answer_the_same(trained, tmp_path):
    model, _ = trained
    x, _ = examples(5, 4)
    expected = [prediction.text for prediction in model.answer(x, verbose=0)]
    model.save(tmp_path / "model.keras")
    model.save_to_preset(tmp_path / "preset")
    for loaded in (
        keras.models.load_model(tmp_path / "model.keras"),
        XLNetQuestionAnswering.from_preset(tmp_path / "preset"),
        model.with_arguments(start_n_top=4),
    ):
        loaded.run_eagerly = True  # To trace each model would take seconds.
        assert [prediction.text for prediction in loaded.answer(x, verbose=0)] == expected
    clone = model.clone()
    clone.run_eagerly = True
    assert clone.answer(x, verbose=0)[0].answers
    other = make(model.preprocessor.tokenizer).preprocessor
    other.doc_stride = 5
    assert model.with_arguments(preprocessor=other).preprocessor is other


def test_from_a_preset_of_another_model(tokenizer, tmp_path):
    lm = XLNetPermutationLM(XLNetBackbone(tokenizer.vocabulary_size(), 1, 2, 16, 32))
    lm.save_to_preset(tmp_path, tokenizer)
    model = XLNetQuestionAnswering.from_preset(
        tmp_path, doc_stride=7, sequence_length=32, max_question_length=9
    )
    assert model.preprocessor.doc_stride == 7 and model.preprocessor.max_question_length == 9
    model.run_eagerly = True
    assert len(model.answer([("who hides?", "Ann is at work")], verbose=0)) == 1


def test_golden_answers_are_the_originals():
    tokenizer = XLNetTokenizer(GOLDEN / "spiece.model", remove_accents=True)
    config = SQUAD["config"]
    preprocessor = XLNetQuestionAnsweringPreprocessor(
        tokenizer, config["max_seq_length"], config["doc_stride"], config["max_query_length"]
    )
    paragraphs = [p for article in SQUAD["data"] for p in article["paragraphs"]]
    questions = [(q["question"], p["context"]) for p in paragraphs for q in p["qas"]]
    ids = [q["id"] for p in paragraphs for q in p["qas"]]
    raw = SQUAD["raw_results"]
    outputs = {key: np.array([row[key] for row in raw]) for key in raw[0] if key != "unique_id"}
    limits = (config["n_best_size"], config["max_answer_length"])
    windows = preprocessor.encode(questions)
    found = decode_answers(windows, outputs, *limits, as_original=True)
    for id, prediction in zip(ids, found, strict=True):
        expected = SQUAD["nbest"][id]
        assert [answer.text for answer in prediction.answers] == [row["text"] for row in expected]
        assert prediction.text == SQUAD["predictions"][id]
        assert prediction.null_score == pytest.approx(SQUAD["null_odds"][id])
        for answer, row in zip(prediction.answers, expected, strict=True):
            for key in ("probability", "start_log_prob", "end_log_prob"):
                assert getattr(answer, key) == pytest.approx(row[key])

    # By default a last token counts, and a space alone is no answer.
    ours = decode_answers(windows, outputs, *limits)
    different = {id for id, a, b in zip(ids, found, ours, strict=True) if a.answers != b.answers}
    assert different == {"q1-0", "q3-1", "q5-0"}
    assert ours[ids.index("q3-1")].text == "– yesterday."


def test_no_answer_at_all():
    windows = AnswerWindows(
        {"token_ids": np.zeros((1, 6), int), "cls_index": np.array([5])},
        {"question": ["?"], "context": ["abc"]},
        np.array([0]),
        first_position=np.array([0]),
        first_token=np.array([0]),
        num_tokens=np.array([3]),
        token_offsets=[np.array([[0, 1], [1, 2], [2, 3]])],
    )
    outputs = {
        "start_top_index": np.array([[4]]), "start_top_log_probs": np.array([[-1.0]]),
        "end_top_index": np.array([[4]]), "end_top_log_probs": np.array([[-1.0]]),
        "cls_logits": np.array([0.5]),
    }  # fmt: skip
    (prediction,) = decode_answers(windows, outputs)
    assert (prediction.answers, prediction.text, prediction.null_score) == ((), "", 0.5)


def test_bad_input(trained, tokenizer):
    model, _ = trained
    x, answers = examples(4, 0)
    with pytest.raises(ValueError, match="must have answers that are in their contexts.* in row 2"):
        model.fit(x, [*answers[:2], "Paris", answers[3]], verbose=0)
    with pytest.raises(ValueError, match="`x` is a dataset of raw text"):
        model.predict(tf.data.Dataset.from_tensor_slices(x).batch(2))
    with pytest.raises(ValueError, match="`num_answers` must be a positive integer"):
        model.answer(x, num_answers=0)
    with pytest.raises(ValueError, match="`x` must have at least one question"):
        model.predict([])
    without = XLNetQuestionAnswering(XLNetBackbone(40, 1, 2, 16, 32))
    with pytest.raises(ValueError, match="has no `preprocessor`"):
        without.answer(x)
    with pytest.raises(ValueError, match="must be an instance of .*XLNetQuestionAnsweringPrep"):
        XLNetQuestionAnswering(
            model.backbone, preprocessor=XLNetTextClassifierPreprocessor(tokenizer)
        )
