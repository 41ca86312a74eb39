"""The task models equal the original: logits, losses, gradients, beams (`heads.npz`)."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.checkpoints import load_original
from keras_xlnet.checkpoints.original import ORIGINAL
from keras_xlnet.checkpoints.tasks import match_model
from keras_xlnet.models import XLNetMultipleChoice, XLNetTextClassifier, XLNetTextRegressor

ATOL = 1e-5
# Prefix of the golden arrays: task, and how its model is made.
TEXT_TASKS = {
    "cls": ("text_classifier", lambda backbone: XLNetTextClassifier(backbone, 3, dropout=0.0)),
    "reg": ("text_regressor", lambda backbone: XLNetTextRegressor(backbone, dropout=0.0)),
    "race": ("multiple_choice", lambda backbone: XLNetMultipleChoice(backbone, dropout=0.0)),
}
every_text_task = pytest.mark.parametrize("prefix", TEXT_TASKS)


@pytest.fixture(scope="module")
def models(golden_dir, golden_checkpoint):
    """`models("race")`: the model with the original's weights. No dropout."""
    rates = {"dropout": 0.0, "attention_dropout": 0.0}
    made = {}

    def get(prefix):
        if prefix in made:
            return made[prefix]
        if prefix == "qa":
            model = load_original(
                golden_dir / "qa_ckpt", "question_answering", start_n_top=4, end_n_top=3, **rates
            )
        else:
            task, make = TEXT_TASKS[prefix]
            model = make(load_original(golden_dir / "tiny_ckpt", **rates))
            read = golden_checkpoint("heads_ckpt")
            encoder = {id(weight) for weight in model.backbone.weights}
            for match in match_model(model, ORIGINAL, "tiny"):
                if id(match.weight) not in encoder:
                    match.weight.assign(match.to_model(read(match.name)))
        made[prefix] = model
        return model

    return get


def inputs_of(arrays, prefix):
    inputs = {
        "token_ids": arrays[f"{prefix}_input_ids"],
        "segment_ids": arrays[f"{prefix}_segment_ids"],
        "padding_mask": arrays[f"{prefix}_input_mask"] == 0,
    }
    if prefix == "race":
        # The original's rows hold their four choices one after another.
        inputs = {key: value.reshape(2, 4, 14) for key, value in inputs.items()}
    if prefix.startswith("qa"):
        inputs["paragraph_mask"] = arrays[f"{prefix}_p_mask"] == 0
        inputs["cls_index"] = arrays[f"{prefix}_cls_index"]
    return inputs


def labels_of(arrays):
    keys = ("start_positions", "end_positions", "is_impossible")
    return {key: arrays[f"qa_train_{key}"] for key in keys}


def gradients(model, task, x, y):
    """The loss that `fit` takes, and its gradients by the original's names of variables.

    Variables of all layers that the original keeps in one come as a list.
    """
    matches = match_model(model, ORIGINAL, "tiny")
    assert len(matches) == len(model.trainable_variables)
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x, y, model(x, training=True))
    values = tape.gradient(loss, [match.weight.value for match in matches])
    by_name = collections.defaultdict(list)
    for match, value in zip(matches, values, strict=True):
        # That of an embedding is sparse.
        by_name[match.name].append(tf.convert_to_tensor(value).numpy())
    return float(loss), by_name


def assert_same_gradients(by_name, arrays, description, prefix):
    case = description["cases"][prefix]["grad_l2_by_variable"]
    assert set(by_name) == set(case)
    for name, expected in case.items():
        norm = np.sqrt(sum((value**2).sum(dtype="float64") for value in by_name[name]))
        np.testing.assert_allclose(norm, expected, rtol=1e-5, atol=1e-6, err_msg=name)
    heads = [name for name in arrays if name.startswith(f"{prefix}_grad/")]
    assert len(heads) >= 4
    for name in heads:
        (actual,) = by_name[name.removeprefix(f"{prefix}_grad/")]
        np.testing.assert_allclose(actual, arrays[name], rtol=0, atol=ATOL, err_msg=name)


@every_text_task
def test_logits_equal_the_original(golden, models, prefix):
    arrays, model = golden("heads.npz"), models(prefix)
    outputs = model.predict(inputs_of(arrays, prefix), verbose=0)
    expected = arrays[f"{prefix}_logits"]
    if prefix == "reg":
        expected = expected[:, None]
    else:
        expected = np.exp(expected) / np.exp(expected).sum(-1, keepdims=True)
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=ATOL)


@every_text_task
def test_loss_and_gradients_equal_the_original(golden, models, prefix):
    arrays, model = golden("heads.npz"), models(prefix)
    y = tf.constant(arrays[f"{prefix}_label_ids"])
    loss, by_name = gradients(model, TEXT_TASKS[prefix][0], inputs_of(arrays, prefix), y)
    np.testing.assert_allclose(loss, arrays[f"{prefix}_total_loss"], rtol=0, atol=ATOL)
    assert_same_gradients(by_name, arrays, golden("heads.json"), prefix)


def test_beams_equal_the_original(golden, models):
    arrays = golden("heads.npz")
    outputs = models("qa").predict(inputs_of(arrays, "qa_eval"), verbose=0)
    assert len(outputs) == 5
    for key, actual in outputs.items():
        expected = arrays[f"qa_eval_{key}"]
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=0, atol=0 if "index" in key else ATOL)


def test_log_probabilities_given_the_true_start_equal_the_original(golden, models):
    arrays = golden("heads.npz")
    inputs = inputs_of(arrays, "qa_train")
    outputs = models("qa")({**inputs, "start_positions": arrays["qa_train_start_positions"]})
    for key, expected in (
        ("start_positions", arrays["qa_train_start_log_probs"]),
        ("end_positions", arrays["qa_train_end_log_probs"]),
        ("is_impossible", arrays["qa_train_cls_logits"][:, None]),
    ):
        np.testing.assert_allclose(outputs[key], expected, rtol=1e-6, atol=ATOL, err_msg=key)


def test_loss_and_gradients_of_answers_equal_the_original(golden, models):
    arrays, model = golden("heads.npz"), models("qa")
    y = labels_of(arrays)
    x = {**inputs_of(arrays, "qa_train"), "start_positions": y["start_positions"]}
    loss, by_name = gradients(model, "question_answering", x, y)
    np.testing.assert_allclose(loss, arrays["qa_train_total_loss"], rtol=0, atol=ATOL)
    assert_same_gradients(by_name, arrays, golden("heads.json"), "qa_train")


def test_evaluate_gives_the_loss_of_the_original(golden, models):
    arrays = golden("heads.npz")
    results = models("qa").evaluate(
        inputs_of(arrays, "qa_train"), labels_of(arrays), verbose=0, return_dict=True
    )
    np.testing.assert_allclose(results["loss"], arrays["qa_train_total_loss"], rtol=0, atol=ATOL)
