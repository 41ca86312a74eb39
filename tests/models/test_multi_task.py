"""Several tasks on one backbone: what they share, missing labels, and each task alone."""

from unittest import mock

import keras
import numpy as np
import pytest
from keras import ops
from sklearn.metrics import accuracy_score, cohen_kappa_score

from keras_xlnet import models
from keras_xlnet.evaluation import QuadraticWeightedKappa
from keras_xlnet.models import (
    MultiTask,
    Task,
    XLNetBackbone,
    XLNetTextClassifier,
    XLNetTextRegressor,
)
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from tests.small_models import small_backbone

WORDS = ["prize", "lunch", "home", "cash", "call", "today"]
TEXTS = [" ".join(WORDS[(i * i + j) % 6] for j in range(1 + i % 5)) for i in range(24)]
# By the first word, where there is one.
TOPIC_OF = {"prize": "money", "cash": "money", "lunch": "people", "call": "places"}
TOPICS = [None if i % 4 == 2 else TOPIC_OF[text.split()[0]] for i, text in enumerate(TEXTS)]
STARS = [None if i % 3 == 1 else 1.0 + i % 5 for i in range(24)]
LABELS = {"topic": TOPICS, "stars": STARS}
NAMES = ["money", "people", "places"]


@pytest.fixture(scope="module")
def preprocessor(tokenizer):
    return XLNetTextClassifierPreprocessor(tokenizer, sequence_length=32)


def make(preprocessor, num_outputs=1, seed=5, **arguments):
    keras.utils.set_random_seed(seed)
    backbone = small_backbone()
    shared = {"dropout": 0.0, "pooling": "mean", **arguments}
    topic = XLNetTextClassifier(backbone, 3, preprocessor, class_names=NAMES, **shared)
    stars = XLNetTextRegressor(backbone, preprocessor, num_outputs=num_outputs, **shared)
    return MultiTask({"topic": topic, "stars": stars})


def values_of(weights):
    return [ops.convert_to_numpy(weight).copy() for weight in weights]


def assert_same_outputs(found, expected, atol=1e-6):
    assert found.keys() == expected.keys()
    for name, output in expected.items():
        np.testing.assert_allclose(found[name], output, atol=atol)


# === One backbone ===


def test_the_backbone_reads_a_text_once_for_all_tasks(preprocessor):
    model = make(preprocessor)
    features = preprocessor.encode(TEXTS).features
    real = XLNetBackbone.call
    with mock.patch.object(XLNetBackbone, "call", autospec=True, side_effect=real) as call:
        outputs = model(features)
    assert call.call_count == 1
    for name, task in model.tasks.items():
        np.testing.assert_allclose(outputs[name], task(features), atol=1e-6)


@pytest.mark.parametrize(
    "arguments", [{}, {"pooling": "pair"}, {"long_document": "windows", "segment_length": 6}]
)
def test_each_task_alone_gives_the_same(arguments, preprocessor):
    model = make(preprocessor, **arguments)
    texts = [*zip(TEXTS, TEXTS[::-1], strict=True)] if arguments.get("pooling") else TEXTS
    outputs = model.predict(texts, batch_size=5, verbose=0)
    for name, task in model.tasks.items():
        np.testing.assert_allclose(outputs[name], task.predict(texts, verbose=0), atol=1e-5)
    assert_same_outputs(outputs, model.predict(texts, pack=False, verbose=0), atol=1e-5)
    found = model.annotate(texts, verbose=0)
    assert found["topic"][3].label == model.tasks["topic"].classify(texts, verbose=0)[3].label
    assert found["stars"] == pytest.approx(outputs["stars"][:, 0].tolist(), abs=1e-5)


def test_annotate_takes_a_string(preprocessor):
    found = make(preprocessor).annotate("prize lunch", verbose=0)
    assert found["topic"].label in NAMES and isinstance(found["stars"], float)


# === Training ===


def test_learns_from_raw_strings(preprocessor):
    model = make(preprocessor)
    model.compile(keras.optimizers.Adam(0.02), metrics={"topic": "accuracy"})
    history = model.fit(TEXTS, LABELS, epochs=30, batch_size=8, verbose=0).history
    assert history.keys() == {"loss", "topic_loss", "stars_loss", "topic_accuracy"}
    assert history["topic_accuracy"][-1] > 0.9 and history["stars_loss"][-1] < 0.5


def test_a_task_without_labels_changes_nothing_for_another(preprocessor):
    both, alone = make(preprocessor), make(preprocessor).tasks["topic"]
    for model in both, alone:
        model.compile(keras.optimizers.SGD(0.1))
    topics = [topic or "places" for topic in TOPICS]
    options = {"epochs": 2, "batch_size": 8, "shuffle": False, "verbose": 0}
    both.fit(TEXTS, {"topic": topics, "stars": [None] * 24}, **options)
    alone.fit(TEXTS, topics, **options)
    for found, expected in zip(
        values_of(both.tasks["topic"].weights), values_of(alone.weights), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_gradients_are_the_weighted_sum_of_those_of_the_tasks(preprocessor):
    topics, stars = np.arange(24) % 3, np.arange(24) % 5 + 1.0
    features = preprocessor.encode(TEXTS).features

    def changes(pick, y):
        model = pick(make(preprocessor))
        given = {"loss_weights": {"stars": 0.5}} if isinstance(model, MultiTask) else {}
        model.compile(keras.optimizers.SGD(1.0), **given)
        before = values_of(model.backbone.trainable_variables)
        model.train_on_batch(features, y)
        after = values_of(model.backbone.trainable_variables)
        return [b - a for a, b in zip(before, after, strict=True)]

    both = changes(lambda model: model, {"topic": topics, "stars": stars[:, None]})
    of_topic = changes(lambda model: model.tasks["topic"], topics)
    of_stars = changes(lambda model: model.tasks["stars"], stars[:, None])
    for found, first, second in zip(both, of_topic, of_stars, strict=True):
        np.testing.assert_allclose(found, first + 0.5 * second, atol=1e-5)


def test_loss_and_metrics_are_of_the_rows_with_a_label(preprocessor):
    model = make(preprocessor)
    kappa = QuadraticWeightedKappa(1, 5)
    model.compile(metrics={"topic": ["accuracy"], "stars": [kappa]})
    weights = {"topic": np.linspace(0.1, 2, 24), "stars": np.linspace(3, 1, 24)}
    found = model.evaluate(
        TEXTS, LABELS, sample_weight=weights, batch_size=7, verbose=0, return_dict=True
    )
    outputs = model.predict(TEXTS, verbose=0)
    rows = [i for i, topic in enumerate(TOPICS) if topic is not None]
    index, w = [NAMES.index(TOPICS[i]) for i in rows], weights["topic"][rows]
    losses = -np.log(outputs["topic"][rows, index])
    assert found["topic_loss"] == pytest.approx((w * losses).sum() / len(rows), abs=1e-5)
    predicted = outputs["topic"][rows].argmax(axis=1)
    expected = accuracy_score(index, predicted, sample_weight=w)
    assert found["topic_accuracy"] == pytest.approx(expected, abs=1e-5)

    rows = [i for i, stars in enumerate(STARS) if stars is not None]
    stars, w = np.array([STARS[i] for i in rows]), weights["stars"][rows]
    values = outputs["stars"][rows, 0]
    expected = (w * (values - stars) ** 2).sum() / len(rows)
    assert found["stars_loss"] == pytest.approx(expected, rel=1e-5)
    ratings = np.clip(np.round(values), 1, 5).astype(int)
    expected = cohen_kappa_score(stars.astype(int), ratings, weights="quadratic", sample_weight=w)
    assert found["stars_quadratic_weighted_kappa"] == pytest.approx(expected, abs=1e-5)
    assert found["loss"] == pytest.approx(found["topic_loss"] + found["stars_loss"], rel=1e-5)


def test_forms_of_labels(preprocessor):
    pandas = pytest.importorskip("pandas")
    import tensorflow as tf

    model = make(preprocessor)
    index = [-1 if topic is None else NAMES.index(topic) for topic in TOPICS]
    stars = np.array([np.nan if star is None else star for star in STARS], "float32")
    table = pandas.DataFrame({"topic": pandas.Categorical(TOPICS), "stars": stars})
    forms = [
        {"topic": index, "stars": stars[:, None]},
        {"topic": [np.nan if i < 0 else i for i in index], "stars": STARS},
        {"topic": pandas.array(index, "Int64").astype(object), "stars": table["stars"]},
        {"topic": table["topic"], "stars": [[star] for star in STARS]},
    ]
    options = {"verbose": 0, "return_dict": True}
    expected = model.evaluate(TEXTS, LABELS, **options)
    for y in forms:
        assert model.evaluate(TEXTS, y, **options) == pytest.approx(expected, abs=1e-5)
    features = preprocessor.encode(TEXTS).features
    assert model.evaluate(features, forms[0], **options) == pytest.approx(expected, abs=1e-5)
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, {"topic": index, "stars": stars}))
    assert model.evaluate(dataset.batch(7), **options) == pytest.approx(expected, abs=1e-5)
    # A task that is left out has no labels.
    only = model.evaluate(TEXTS, {"topic": TOPICS}, **options)
    assert only["stars_loss"] == 0.0
    assert only["loss"] == pytest.approx(expected["topic_loss"], abs=1e-5)


def test_rows_of_several_numbers_and_of_several_classes(preprocessor):
    backbone = small_backbone()
    tags = XLNetTextClassifier(backbone, 2, preprocessor, activation="sigmoid")
    marks = XLNetTextRegressor(backbone, num_outputs=2)
    model = MultiTask({"tags": tags, "marks": marks})
    y = {
        "tags": [["a", "b"], [], None, ["b"]],
        "marks": [[1.0, 2.0], [None, None], [3.0, 4.0], None],
    }
    model.fit(TEXTS[:4], y, verbose=0)
    assert tags.class_names == ["a", "b"]
    found = model.evaluate(TEXTS[:4], y, verbose=0, return_dict=True)
    outputs = model.predict(TEXTS[:4], verbose=0)
    errors = (outputs["marks"][[0, 2]] - [[1, 2], [3, 4]]) ** 2
    assert found["marks_loss"] == pytest.approx(errors.mean(), rel=1e-5)
    with pytest.raises(ValueError, match="task 'marks'.* row 1: .*nan"):
        model.fit(TEXTS[:2], {"marks": [[1.0, 2.0], [None, 2.0]]}, verbose=0)


def test_names_of_classes_are_forgotten_if_fit_fails(preprocessor):
    backbone = small_backbone()
    first, second = (XLNetTextClassifier(backbone, 2, preprocessor, name=n) for n in "ab")
    model = MultiTask({"first": first, "second": second})
    with pytest.raises(ValueError, match="3 names"):
        model.fit(TEXTS[:3], {"first": ["x", "y", None], "second": ["x", "y", "z"]}, verbose=0)
    assert first.class_names is None


# === Files and copies ===


def test_files_and_copies_have_the_weights_once(preprocessor, tmp_path):
    model = make(preprocessor)
    model.fit(TEXTS, LABELS, verbose=0)
    expected = model.predict(TEXTS, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_to_preset(tmp_path / "preset")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    copies = [
        loaded,
        Task.from_preset(tmp_path / "preset"),
        model.with_arguments(),
        model.with_vocabulary(202),
    ]
    for copy in copies:
        assert_same_outputs(copy.predict(TEXTS, verbose=0), expected)
        topic = copy.tasks["topic"]
        assert topic.backbone is copy.backbone and topic.class_names == NAMES
        assert topic.classify(TEXTS, verbose=0) == copy.annotate(TEXTS, verbose=0)["topic"]
    assert loaded.evaluate(TEXTS, LABELS, verbose=0) == pytest.approx(
        model.evaluate(TEXTS, LABELS, verbose=0), abs=1e-6
    )
    size = (tmp_path / "preset" / "model.safetensors").stat().st_size
    assert size < 4 * model.count_params() + 8000
    shorter = MultiTask.from_preset(tmp_path / "preset", sequence_length=8)
    assert {task.preprocessor.sequence_length for task in shorter.tasks.values()} == {8}


def test_a_task_can_be_saved_alone(preprocessor, tmp_path):
    model = make(preprocessor)
    stars = model.tasks["stars"]
    stars.save_to_preset(tmp_path)
    copy = XLNetTextRegressor.from_preset(tmp_path)
    np.testing.assert_array_equal(copy.predict(TEXTS, verbose=0), stars.predict(TEXTS, verbose=0))


def test_an_adapter_is_of_one_task(preprocessor, tmp_path):
    with pytest.raises(ValueError, match="`save_to_preset`"):
        make(preprocessor).save_adapter(tmp_path)


# === Errors ===


def other_backbone(first):
    return XLNetTextRegressor(small_backbone())


def other_length(first):
    tokenizer = first.preprocessor.tokenizer
    return XLNetTextRegressor(first.backbone, XLNetTextClassifierPreprocessor(tokenizer, 8))


WRONG = {
    "another backbone": (other_backbone, "'second'.* must have the backbone of 'first'"),
    "another length": (other_length, "'second'.*sequence_length=8, expected: 32"),
    "another reading": (
        lambda first: XLNetTextRegressor(first.backbone, pooling="pair"),
        "'second'.* must read texts as 'first'",
    ),
    "tokens": (
        lambda first: models.XLNetTokenClassifier(first.backbone, 3),
        "'second'.* must be an XLNetTextClassifier or .*XLNetTokenClassifier",
    ),
    "numbers of a classifier": (
        lambda first: XLNetTextClassifier(first.backbone, 3, activation="linear"),
        r"'second'.*num_outputs",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_tasks_that_do_not_fit_are_named(name, preprocessor):
    second, message = WRONG[name]
    first = XLNetTextClassifier(small_backbone(), 3, preprocessor)
    with pytest.raises(ValueError, match=message):
        MultiTask({"first": first, "second": second(first)})


def test_wrong_arguments(preprocessor):
    model = make(preprocessor)
    for tasks, message in (({}, "dict of models"), ({"a b": model.tasks["topic"]}, "'a b'")):
        with pytest.raises(ValueError, match=message):
            MultiTask(tasks)
    for y, message in (
        (TOPICS, r"dict with the labels of some of \['topic', 'stars'\]. Received: list"),
        ({"star": STARS}, r"Received: \['star'\]"),
        ({"topic": [*TOPICS[:23], "moon"]}, "task 'topic'.* row 23: 'moon'"),
        ({"topic": TOPICS[:5]}, "a label for each of 24 rows. Received: 5"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(TEXTS, y, verbose=0)
    with pytest.raises(ValueError, match="`class_weight` needs .*`sample_weight`"):
        model.fit(TEXTS, LABELS, class_weight={0: 2.0}, verbose=0)
    with pytest.raises(ValueError, match=r"`metrics` must be a dict .*'topic', 'stars'"):
        model.compile(metrics=["accuracy"])
    with pytest.raises(ValueError, match="`fit_head` is for"):
        model.fit(TEXTS, LABELS, head_first=True, verbose=0)
