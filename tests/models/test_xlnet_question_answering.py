"""Question answering: from arrays, and from texts to texts."""

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
from tests.small_models import small_backbone

ROWS, LENGTH = 24, 9
_rng = np.random.default_rng(12)
# Paragraph of 6, then a question, then <cls> (3). Answers start with 38 and end with 39.
TOKEN_IDS = _rng.integers(9, 38, (ROWS, LENGTH)).astype("int32")
TOKEN_IDS[:, -1] = 3
STARTS = _rng.integers(0, 5, ROWS)
ENDS = np.minimum(STARTS + _rng.integers(1, 3, ROWS), 5)
IMPOSSIBLE = np.arange(ROWS) % 3 == 0
STARTS[IMPOSSIBLE] = ENDS[IMPOSSIBLE] = LENGTH - 1
TOKEN_IDS[~IMPOSSIBLE, STARTS[~IMPOSSIBLE]] = 38
TOKEN_IDS[~IMPOSSIBLE, ENDS[~IMPOSSIBLE]] = 39
ALLOWED = np.isin(np.arange(LENGTH), [0, 1, 2, 3, 4, 5, LENGTH - 1])
INPUTS = {
    "token_ids": TOKEN_IDS,
    "segment_ids": np.tile([0] * 6 + [1, 1, 2], (ROWS, 1)).astype("int32"),
    "paragraph_mask": np.tile(ALLOWED, (ROWS, 1)),
}
LABELS = {
    "start_positions": STARTS,
    "end_positions": ENDS,
    "is_impossible": IMPOSSIBLE.astype("float32"),
}
WEIGHTS = np.linspace(0.2, 2, ROWS)


def make(dtype=None, **kwargs):
    keras.utils.set_random_seed(13)
    backbone = small_backbone(vocabulary_size=40, dtype=dtype)
    return XLNetQuestionAnswering(backbone, **{"start_n_top": 2, "end_n_top": 3, **kwargs})


@pytest.fixture(scope="module")
def model():
    return make()


@pytest.fixture(scope="module")
def trained():
    model = make(dropout=0.0)
    model.compile(keras.optimizers.Adam(0.02))
    return model, model.fit(INPUTS, LABELS, epochs=30, batch_size=12, verbose=0).history


def test_learns_to_answer(trained):
    model, history = trained
    assert history["loss"][-1] < 0.1 < history["loss"][0]
    for key in LABELS:
        assert history[f"{key}_accuracy"][-1] > 0.95
    answers = model.predict(INPUTS, verbose=0)
    np.testing.assert_array_equal(answers["start_top_index"][:, 0], STARTS)
    np.testing.assert_array_equal(answers["end_top_index"][:, 0], ENDS)
    np.testing.assert_array_equal(answers["cls_logits"] > 0, IMPOSSIBLE)


def twin_losses(model):
    """Each row's three losses, from the outputs of training."""
    outputs = model({**INPUTS, "start_positions": STARTS})
    outputs = {key: np.asarray(value, dtype="float64") for key, value in outputs.items()}
    logits = outputs["is_impossible"][:, 0]
    return {
        "start_positions": -outputs["start_positions"][np.arange(ROWS), STARTS],
        "end_positions": -outputs["end_positions"][np.arange(ROWS), ENDS],
        "is_impossible": np.log1p(np.exp(logits)) - IMPOSSIBLE * logits,
    }


DATA = {
    "arrays": lambda: ((INPUTS, LABELS), {}),
    "weighted": lambda: ((INPUTS, LABELS), {"sample_weight": WEIGHTS}),
    "weight_of_each_label": lambda: (
        (INPUTS, LABELS), {"sample_weight": dict.fromkeys(LABELS, WEIGHTS)}
    ),
    "start_among_the_inputs": lambda: (({**INPUTS, "start_positions": STARTS}, LABELS), {}),
    "dataset": lambda: (
        (tf.data.Dataset.from_tensor_slices((INPUTS, LABELS)).batch(ROWS),), {}
    ),
    "weighted_dataset": lambda: (
        (tf.data.Dataset.from_tensor_slices((INPUTS, LABELS, WEIGHTS)).batch(ROWS),), {}
    ),
    "generator": lambda: (((batch for batch in [(INPUTS, LABELS)]),), {}),
}  # fmt: skip


@pytest.mark.parametrize("form", DATA)
def test_every_form_of_data_gives_the_same_losses(model, form):
    args, kwargs = DATA[form]()
    results = model.evaluate(*args, **kwargs, batch_size=ROWS, verbose=0, return_dict=True)
    weights = WEIGHTS if "weight" in form else np.ones(ROWS)
    losses = {key: (loss * weights).mean() for key, loss in twin_losses(model).items()}
    assert results["loss"] == pytest.approx(0.5 * sum(losses.values()), abs=1e-5)
    # Keras counts a generator's batch twice in the losses of the outputs.
    if "weight" not in form and form != "generator":
        for key, loss in losses.items():
            assert results[f"{key}_loss"] == pytest.approx(loss, abs=1e-5)


def test_fit_of_arrays_and_of_a_dataset_is_the_same():
    histories = []
    for dataset in (False, True):
        model = make()
        model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
        data = (INPUTS, LABELS, WEIGHTS)
        held_out = ({k: v[:4] for k, v in INPUTS.items()}, {k: v[:4] for k, v in LABELS.items()})
        if dataset:
            args = (tf.data.Dataset.from_tensor_slices(data).batch(12),)
            held_out, kwargs = tf.data.Dataset.from_tensor_slices(held_out).batch(4), {}
        else:
            args = data[:2]
            kwargs = {"sample_weight": WEIGHTS, "batch_size": 12, "shuffle": False}
        history = model.fit(*args, **kwargs, epochs=2, verbose=0, validation_data=held_out)
        histories.append(history.history)
    assert set(histories[0]) == set(histories[1])
    assert "val_end_positions_accuracy" in histories[0]
    assert histories[0]["loss"][0] > histories[0]["loss"][1]
    for key, values in histories[0].items():
        np.testing.assert_allclose(histories[1][key], values, rtol=1e-5, err_msg=key)


def test_end_is_given_the_labelled_start(model):
    """A beam for the start and the output for the same start are the same."""
    beams = model(INPUTS)
    given = model({**INPUTS, "start_positions": beams["start_top_index"][:, 1]})
    top, index = keras.ops.top_k(given["end_positions"], 3)
    np.testing.assert_allclose(beams["end_top_log_probs"][:, 3:], top, atol=1e-5)
    np.testing.assert_array_equal(beams["end_top_index"][:, 3:], index)
    np.testing.assert_allclose(np.exp(given["end_positions"]).sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(beams["cls_logits"], given["is_impossible"][:, 0], atol=1e-6)
    other = model({**INPUTS, "start_positions": beams["start_top_index"][:, 0]})
    assert np.abs(other["end_positions"] - given["end_positions"])[:, ALLOWED].max() > 0.01


def test_answers_are_where_they_may_be(model):
    beams = model(INPUTS)
    for key in ("start_top_index", "end_top_index"):
        assert np.isin(beams[key], np.flatnonzero(ALLOWED)).all()
    for key in ("start_top_log_probs", "end_top_log_probs"):
        assert np.asarray(beams[key]).min() > -50
    outputs = model({**INPUTS, "start_positions": STARTS})
    for key in ("start_positions", "end_positions"):
        forbidden = np.asarray(outputs[key])[:, ~ALLOWED]
        np.testing.assert_array_equal(forbidden, np.float32(-1e30))


@pytest.mark.parametrize("side", ["left", "right"])
def test_defaults_are_the_real_tokens_and_the_last_of_them(model, side):
    kept = np.array([9, 7, 4, 8])[:, None]
    positions = np.arange(LENGTH)
    padding_mask = positions < kept if side == "right" else positions >= LENGTH - kept
    last = kept[:, 0] - 1 if side == "right" else np.full(4, LENGTH - 1)
    inputs = {"token_ids": TOKEN_IDS[:4], "padding_mask": padding_mask}
    given = {**inputs, "paragraph_mask": padding_mask, "cls_index": last}
    for extra in ({}, {"start_positions": last}):
        actual, expected = model({**inputs, **extra}), model({**given, **extra})
        for key, value in expected.items():
            np.testing.assert_array_equal(actual[key], value, err_msg=key)
    moved = model({**given, "cls_index": last - 1})
    assert np.abs(moved["cls_logits"] - model(inputs)["cls_logits"]).max() > 1e-3


def test_short_texts_have_as_many_beams(model):
    model = make(start_n_top=4, end_n_top=5)
    beams = model({"token_ids": TOKEN_IDS[:3, :2]})
    assert beams["start_top_index"].shape == (3, 4)
    assert beams["end_top_index"].shape == (3, 20)
    np.testing.assert_allclose(np.exp(beams["start_top_log_probs"][:, :2]).sum(-1), 1, atol=1e-6)
    assert np.asarray(beams["start_top_log_probs"])[:, 2:].max() <= -1e30
    for key in ("start_top_index", "end_top_index"):
        assert np.isin(beams[key], [0, 1]).all()


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float16"])
def test_half_precision(model, policy):
    half = make(policy)
    half.set_weights(model.get_weights())
    inputs = {**INPUTS, "start_positions": STARTS}
    for key, expected in model(inputs).items():
        actual = half(inputs)[key]
        assert actual.dtype == "float32"
        # -1e30 is in float32 only.
        np.testing.assert_allclose(actual, expected, rtol=0, atol=0.1, err_msg=key)
    assert all(np.isfinite(value).all() for value in half(INPUTS).values())


def test_gradients_are_finite_in_float16():
    model = make("mixed_float16")
    x = {**INPUTS, "start_positions": STARTS}
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x, LABELS, model(x, training=True))
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    assert all(np.isfinite(tf.convert_to_tensor(gradient)).all() for gradient in gradients)


@pytest.mark.parametrize("shape", [(None,), (LENGTH,)], ids=["unknown", "known"])
def test_in_a_users_functional_model(model, shape):
    inputs = {
        "token_ids": keras.Input(shape, dtype="int32", name="token_ids"),
        "start_positions": keras.Input((), dtype="int32", name="start_positions"),
    }
    outputs = model(inputs)
    assert {key: value.shape for key, value in outputs.items()} == {
        "start_positions": (None, *shape),
        "end_positions": (None, *shape),
        "is_impossible": (None, 1),
    }
    beams = model({"token_ids": inputs["token_ids"]})
    assert beams["end_top_index"].shape == (None, 6)
    users = keras.Model(inputs, [outputs, beams])
    values = {"token_ids": TOKEN_IDS, "start_positions": STARTS}
    actual = users(values)
    for part, expected in zip(
        actual, (model(values), model({"token_ids": TOKEN_IDS})), strict=True
    ):
        for key, value in expected.items():
            np.testing.assert_allclose(part[key], value, atol=1e-6, err_msg=key)


def test_trains_on_after_loading(trained, tmp_path):
    model, history = trained
    model.save(tmp_path / "model.keras")
    copy = keras.saving.load_model(tmp_path / "model.keras")
    expected = model.evaluate(INPUTS, LABELS, verbose=0, return_dict=True)
    actual = copy.evaluate(INPUTS, LABELS, verbose=0, return_dict=True)
    assert actual == expected
    assert int(copy.optimizer.iterations) == int(model.optimizer.iterations) == 60
    copy.run_eagerly = True  # To trace the step would take seconds.
    copy.fit(INPUTS, LABELS, verbose=0)


def test_sublayers_are_saved_once(model, tmp_path):
    model.save_weights(tmp_path / "model.weights.h5")
    copy = make()
    assert len(copy.weights) == len({weight.path for weight in copy.weights})
    copy.load_weights(tmp_path / "model.weights.h5")
    for actual, expected in zip(copy.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_one_step_on_one_batch(model):
    losses = model.test_on_batch(INPUTS, LABELS, return_dict=True)
    expected = 0.5 * sum(loss.mean() for loss in twin_losses(model).values())
    assert losses["loss"] == pytest.approx(expected, abs=1e-5)


def test_trains_on_two_replicas(two_replicas):
    with two_replicas.scope():
        model = make()
        model.compile(keras.optimizers.SGD(0.1))
    loss = model.evaluate(INPUTS, LABELS, batch_size=ROWS, verbose=0, return_dict=True)["loss"]
    expected = 0.5 * sum(loss.mean() for loss in twin_losses(model).values())
    assert loss == pytest.approx(expected, abs=1e-5)
    history = model.fit(INPUTS, LABELS, batch_size=ROWS, epochs=2, verbose=0).history
    assert history["loss"][1] < history["loss"][0]


@pytest.mark.parametrize(
    "y, given",
    [
        (STARTS, "ndarray|Tensor"),
        ({"start_positions": STARTS, "end_positions": ENDS}, r"\['end_positions', 'start_pos"),
    ],
)
def test_labels_that_are_missing_are_named(model, y, given):
    with pytest.raises(
        ValueError, match=f"`y` must be a dict with the keys.*Received: .*({given})"
    ):
        model.evaluate(INPUTS, y, verbose=0)
    with pytest.raises(ValueError, match="`y` must be the labels, one for each question"):
        model.evaluate(INPUTS, verbose=0)


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"start_n_top": 0}, "`start_n_top` must be a positive integer"),
        ({"end_n_top": 2.5}, "`end_n_top` must be a positive integer"),
    ],
)
def test_bad_arguments_are_named(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make(**kwargs)


def test_unknown_inputs_are_named(model):
    with pytest.raises(
        ValueError, match=r"does not take: \['p_mask'\].*'start_positions', 'packing'\]"
    ):
        model({"token_ids": TOKEN_IDS, "p_mask": TOKEN_IDS})


# === From texts ===

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


def make_from_text(tokenizer, **kwargs):
    keras.utils.set_random_seed(5)
    backbone = small_backbone(
        vocabulary_size=tokenizer.vocabulary_size(), hidden_dim=32, intermediate_dim=64
    )
    preprocessor = XLNetQuestionAnsweringPreprocessor(
        tokenizer, sequence_length=32, doc_stride=12, max_question_length=8
    )
    return XLNetQuestionAnswering(
        backbone, preprocessor=preprocessor, start_n_top=3, end_n_top=2, dropout=0.0, **kwargs
    )


@pytest.fixture(scope="module")
def trained_on_text(tokenizer):
    model = make_from_text(tokenizer)
    model.compile(keras.optimizers.Adam(0.01))
    x, answers = examples(200, 1)
    history = model.fit(
        x, answers, epochs=6, batch_size=32, verbose=0, validation_data=examples(40, 2)
    ).history
    return model, history


def test_learns_from_text(trained_on_text):
    model, history = trained_on_text
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


def test_predictions_are_parts_of_contexts(trained_on_text):
    model, _ = trained_on_text
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


def test_forms_of_questions_give_the_same_answers(trained_on_text):
    model, _ = trained_on_text
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
    assert model(windows.features)["cls_logits"].shape == (len(windows),)


def test_a_threshold_of_the_null_score(trained_on_text):
    model, _ = trained_on_text
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


def test_answers_as_on_the_hub(trained_on_text):
    model, _ = trained_on_text
    x = {"question": ["what is it?", "and now?"], "context": ["a ship sails", "the sea is cold"]}
    hub = [{"text": ["ship", "sails"], "answer_start": [2, 7]}, {"text": [], "answer_start": []}]
    lists = [[{"text": "ship", "answer_start": 2}], []]
    expected = model.evaluate(x, lists, verbose=0)
    np.testing.assert_allclose(model.evaluate(x, hub, verbose=0), expected, rtol=1e-6)
    gold = [["ship", "sails"], None]
    assert answer_scores(["sails", ""], hub) == answer_scores(["sails", ""], gold)


def test_saved_models_answer_the_same(trained_on_text, tmp_path):
    model, _ = trained_on_text
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
    other = make_from_text(model.preprocessor.tokenizer).preprocessor
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


def test_a_question_by_itself(trained_on_text):
    model, x = trained_on_text[0], {"question": ["who hides?"], "context": ["Ann hides in a box"]}
    (expected,) = model.answer(x, verbose=0)
    question, context = "who hides?", "Ann hides in a box"
    single = {"question": question, "context": context}
    for found in (
        model.answer(question, context, verbose=0),
        model.answer((question, context), verbose=0),
        model.answer(single, verbose=0),
        *model.answer([question], [context], verbose=0),
        *model.answer([single], verbose=0),
    ):
        assert found == expected
    with pytest.raises(ValueError, match="such as `batch_size` by name. Received: 8"):
        model.answer([(question, context)], 8)


def test_an_empty_context_has_no_answer(trained_on_text):
    model = trained_on_text[0]
    rows = [("who hides?", ""), ("who hides?", "Ann hides in a box"), ("who hides?", " ")]
    found = model.answer(rows, verbose=0)
    assert [each.answers for each in found[::2]] == [(), ()] and found[1].answers
    assert np.isfinite([each.null_score for each in found]).all()
    losses = model.evaluate(rows, [None, "Ann", None], verbose=0)
    assert np.isfinite(losses).all()


def test_short_answers_are_searched_among_short_ones(trained_on_text):
    """The beams have the best ends of those that are near enough, not of all."""
    model = trained_on_text[0]
    rows = [("who hides?", "Ann hides in a box"), ("where?", "The cat is on the mat")]
    for most in (1, 2):
        for found in model.answer(rows, max_answer_length=most, num_answers=99, verbose=0):
            assert found.answers
    features = model.preprocessor.encode(rows).features
    limits = model.preprocessor.answer_limits(features["token_ids"], 1)
    beams = model.predict({**features, "max_answer_length": limits}, verbose=0)
    ends = beams["end_top_index"].reshape(len(limits), model.start_n_top, -1)
    np.testing.assert_array_equal(ends[..., 0], beams["start_top_index"])
    starts = np.take_along_axis(features["token_ids"], beams["start_top_index"], axis=1)
    assert model.preprocessor.tokenizer.token_to_id("\u2581") not in starts


def test_bad_input(trained_on_text, tokenizer):
    model, _ = trained_on_text
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
