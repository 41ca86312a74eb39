"""`loss` and metrics of `evaluate` are those of all rows as one batch, whatever the batch size."""

import keras
import numpy as np
import pytest

from keras_xlnet.models import (
    TransformerXLLanguageModel,
    XLNetMultipleChoice,
    XLNetPermutationLM,
    XLNetQuestionAnswering,
    XLNetRanker,
    XLNetTextClassifier,
    XLNetTextEmbedder,
    XLNetTextRegressor,
    XLNetTokenClassifier,
)
from keras_xlnet.preprocessing import XLNetTokenClassifierPreprocessor
from tests.small_models import small_backbone

ROWS, LENGTH, CLASSES = 9, 5, 3
RNG = np.random.default_rng(4)
TOKENS = {"token_ids": RNG.integers(9, 200, (ROWS, LENGTH))}
PAIRS = {"token_ids": RNG.integers(9, 200, (ROWS, 2, LENGTH))}
WEIGHTS = RNG.random(ROWS).astype("float32") * 3
INDICES = RNG.integers(0, CLASSES, ROWS)
IGNORED = np.array([0, 0, 0, 0, 1, 2, 0, 1, 2])
VECTORS = RNG.integers(0, 2, (ROWS, CLASSES)).astype("float32")
# Whole rows, and a whole batch of two, without labels.
TAGS = np.where(RNG.random((ROWS, LENGTH)) < 0.5, RNG.integers(0, 3, (ROWS, LENGTH)), -100)
TAGS[:4] = -100
TAGS[3, 2] = 1


def eager(model, **arguments):
    model.compile(keras.optimizers.SGD(0.0), run_eagerly=True, **arguments)
    return model


def values_at(model, batch_size, *args, **kwargs):
    return model.evaluate(*args, batch_size=batch_size, verbose=0, return_dict=True, **kwargs)


def cross_entropy(probabilities, labels):
    picked = np.take_along_axis(probabilities, np.maximum(labels, 0)[..., np.newaxis], -1)
    return -np.log(picked[..., 0])


def binary(probabilities, labels):
    losses = labels * np.log(probabilities) + (1 - labels) * np.log(1 - probabilities)
    return -losses.mean(axis=-1)


def squares(outputs, labels):
    return ((outputs - labels.reshape(outputs.shape)) ** 2).mean(axis=-1)


IGNORES = {"loss": keras.losses.SparseCategoricalCrossentropy(ignore_class=0)}
SUM = {"loss": keras.losses.SparseCategoricalCrossentropy(reduction="sum")}
# The model, its arguments, inputs, labels; losses of labels, which labels count, what divides.
CASES = {
    "softmax": (XLNetTextClassifier, {"num_classes": 3}, {}, TOKENS, INDICES, cross_entropy),
    "sigmoid": (
        XLNetTextClassifier, {"num_classes": 3, "activation": "sigmoid"}, {}, TOKENS, VECTORS,
        binary,
    ),
    "linear": (
        XLNetTextClassifier, {"num_classes": 3, "activation": "linear"}, {}, TOKENS, VECTORS,
        squares,
    ),
    "ignored": (XLNetTextClassifier, {"num_classes": 3}, IGNORES, TOKENS, IGNORED, cross_entropy),
    "sum": (XLNetTextClassifier, {"num_classes": 3}, SUM, TOKENS, INDICES, cross_entropy),
    "regressor": (XLNetTextRegressor, {}, {}, TOKENS, WEIGHTS - 1, squares),
    "tags": (XLNetTokenClassifier, {"num_classes": 3}, {}, TOKENS, TAGS, cross_entropy),
    "choices": (XLNetMultipleChoice, {}, {}, PAIRS, INDICES % 2, cross_entropy),
}  # fmt: skip


@pytest.mark.parametrize(
    "case, weights",
    [*((case, WEIGHTS) for case in CASES), *((case, None) for case in ("softmax", "tags"))],
)
def test_tasks(case, weights):
    task, arguments, compiled, x, y, losses_of = CASES[case]
    model = eager(task(small_backbone(), **arguments), **compiled)
    losses = losses_of(np.asarray(model.predict(x, verbose=0), "float64"), y)
    of_rows = np.ones(ROWS) if weights is None else weights
    of_labels = of_rows.reshape((-1,) + (1,) * (losses.ndim - 1)) * np.ones(losses.shape)
    if case == "ignored":
        of_labels = of_labels * (y != 0)
    if case == "tags":
        of_labels = of_labels * (y != -100)
    divisor = {
        "sum": 1.0,
        "tags": of_labels.sum(),
        "ignored": (y != 0).sum(),
    }.get(case, losses.size)
    expected = (losses * of_labels).sum() / divisor
    found = [values_at(model, size, x, y, sample_weight=weights) for size in (2, ROWS)]
    assert found[0]["loss"] == pytest.approx(expected, rel=1e-5)
    assert found[1] == pytest.approx(found[0], rel=1e-5)


def test_several_outputs_have_their_own_counts():
    model = XLNetQuestionAnswering(small_backbone())
    eager(model, loss_weights={"start_positions": 2.0, "end_positions": 0.5, "is_impossible": 1.0})
    starts = RNG.integers(0, 3, ROWS)
    y = {"start_positions": starts, "end_positions": starts + 1, "is_impossible": INDICES % 2}
    found = [values_at(model, size, TOKENS, y, sample_weight=WEIGHTS) for size in (2, 4, ROWS)]
    for each in found[:-1]:
        assert each == pytest.approx(found[-1], rel=1e-5)
    of_outputs = {key: found[0][f"{key}_loss"] for key in y}
    weights = {"start_positions": 2.0, "end_positions": 0.5, "is_impossible": 1.0}
    expected = sum(weights[key] * of_outputs[key] for key in y)
    assert found[0]["loss"] == pytest.approx(expected, rel=1e-5)
    losses = cross_entropy(
        np.exp(np.asarray(model({**TOKENS, "start_positions": starts})["start_positions"])), starts
    )
    assert of_outputs["start_positions"] == pytest.approx((losses * WEIGHTS).mean(), rel=1e-4)


def test_lists_of_different_lengths():
    relevance = np.array([[1, 0], [0, 2]] * 4 + [[3, 1]])
    model = eager(XLNetRanker(small_backbone()))
    found = [values_at(model, size, PAIRS, relevance)["loss"] for size in (2, ROWS)]
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_embeddings():
    model = eager(XLNetTextEmbedder(small_backbone()))
    cosines = np.linspace(-1, 1, ROWS)
    found = [values_at(model, size, PAIRS, cosines)["loss"] for size in (2, ROWS)]
    assert found[0] == pytest.approx(found[1], rel=1e-5)
    # Negatives come from the batch: here the batch size matters, and rows have equal weights.
    found = [values_at(model, size, PAIRS)["loss"] for size in (3, ROWS)]
    parts = [{"token_ids": PAIRS["token_ids"][i : i + 3]} for i in (0, 3, 6)]
    assert found[0] == pytest.approx(
        np.mean([values_at(model, 3, part)["loss"] for part in parts]), rel=1e-5
    )
    assert abs(found[0] - found[1]) > 0.1


def test_fit_reports_it_too(rng):
    """With a regularizer, class weights, a held-out part, and a graph."""
    backbone = small_backbone()
    model = XLNetTokenClassifier(backbone, 3, dropout=0.0)
    backbone.token_embedding.embeddings.regularizer = keras.regularizers.L2(0.01)
    model.compile(keras.optimizers.SGD(0.0), metrics=["accuracy"])
    arguments = {"class_weight": {0: 3.0}, "sample_weight": WEIGHTS, "shuffle": False, "verbose": 0}
    found = [
        model.fit(TOKENS, TAGS, batch_size=size, validation_split=0.4, **arguments).history
        for size in (2, ROWS)
    ]
    for name, values in found[1].items():
        assert found[0][name] == pytest.approx(values, rel=1e-5), name
    probabilities = model.predict(TOKENS, verbose=0)
    weights = WEIGHTS[:, np.newaxis] * np.where(TAGS == 0, 3.0, 1.0) * (TAGS != -100)
    losses = (cross_entropy(probabilities, TAGS) * weights)[:5].sum() / weights[:5].sum()
    penalty = 0.01 * np.square(np.asarray(backbone.token_embedding.embeddings)).sum()
    assert found[0]["loss"][0] == pytest.approx(losses + penalty, rel=1e-5)
    # Unweighted metrics leave out tokens without labels as well.
    held_out, right = TAGS[5:], probabilities[5:].argmax(-1) == TAGS[5:]
    expected = right[held_out != -100].mean()
    assert found[0]["val_accuracy"][0] == pytest.approx(expected, rel=1e-5)


def test_a_loss_that_adds_to_that_of_keras():
    class Classifier(XLNetTextClassifier):
        def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
            loss = super().compute_loss(x, y, y_pred, sample_weight, training)
            return loss + keras.ops.mean(y_pred[:, 0])

    model = eager(Classifier(small_backbone(), 3))
    probabilities = model.predict(TOKENS, verbose=0)
    expected = cross_entropy(probabilities, INDICES).mean() + probabilities[:, 0].mean()
    for size in (2, ROWS):
        found = values_at(model, size, TOKENS, INDICES)["loss"]
        assert found == pytest.approx(expected, rel=1e-5)


def test_a_loss_that_is_a_function():
    def mean_of_rows(y_true, y_pred):
        return keras.ops.mean(keras.ops.abs(keras.ops.reshape(y_true, (-1, 1)) - y_pred))

    model = eager(XLNetTextRegressor(small_backbone()), loss=mean_of_rows)
    expected = np.abs(model.predict(TOKENS, verbose=0)[:, 0] - WEIGHTS).mean()
    for size in (2, ROWS):
        assert values_at(model, size, TOKENS, WEIGHTS)["loss"] == pytest.approx(expected, rel=1e-5)


def test_tags_of_texts_of_different_lengths(tokenizer):
    words = [["a", "ship"] * (1 + 5 * (i % 4)) for i in range(ROWS)]
    tags = [RNG.integers(0, 3, len(row)).tolist() for row in words]
    preprocessor = XLNetTokenClassifierPreprocessor(tokenizer, 96)
    model = eager(XLNetTokenClassifier(small_backbone(), 3, preprocessor))
    found = [
        values_at(model, size, words, tags, sample_weight=WEIGHTS, pack=is_packed)
        for size, is_packed in ((2, True), (ROWS, True), (4, False))
    ]
    for each in found[1:]:
        assert each == pytest.approx(found[0], rel=1e-5)


def language_model(make, batch_size):
    stateful = batch_size is not None
    keras.utils.set_random_seed(3)
    if make == "causal":
        return TransformerXLLanguageModel(
            200, 1, 2, 16, 32, memory_length=4, stateful=stateful, batch_size=batch_size,
            kernel_initializer="glorot_normal",
        )  # fmt: skip
    backbone = small_backbone(memory_length=4)
    return XLNetPermutationLM(backbone, stateful=stateful, batch_size=batch_size)


@pytest.mark.parametrize(
    "make, weights",
    [
        ("causal", None),
        ("causal", WEIGHTS),
        ("permutation", WEIGHTS),
        ("permutation, mean of all", WEIGHTS),
    ],
)
def test_language_models(make, weights):
    rng = np.random.default_rng(6)
    if make == "causal":
        x = {**TOKENS, "padding_mask": np.arange(LENGTH) >= np.arange(ROWS)[:, np.newaxis] % 4}
        y, output, counts = rng.integers(0, 200, (ROWS, LENGTH)), "log_probs", x["padding_mask"]
    else:
        positions = np.where(rng.random((ROWS, 3)) < 0.4, -1, rng.integers(0, LENGTH, (ROWS, 3)))
        # A position that sees nothing would attend to all, the empty memory included.
        mask = np.logical_or(rng.random((ROWS, LENGTH, LENGTH)) < 0.5, np.arange(LENGTH) < 2)
        x = {**TOKENS, "target_positions": positions, "permutation_mask": mask}
        y, output, counts = rng.integers(0, 200, (ROWS, 3)), "logits", positions >= 0
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    compiled = {"loss": {output: loss}} if "all" in make else {}
    compiled["metrics"] = {output: [keras.metrics.SparseCategoricalAccuracy("unweighted")]}
    outputs = language_model(make, None).predict(x, verbose=0)[output].astype("float64")
    # The last row, which fills up batches, is right, unlike the others.
    y[-1] = outputs[-1].argmax(-1)
    found = []
    for size in (2, ROWS, None):
        model = eager(language_model(make, size), **compiled)
        memory = {} if size is None else {"reset_memory": np.ones(ROWS, bool)}
        sizes = {} if size else {"batch_size": 4}
        logs = model.evaluate(
            {**x, **memory}, y, sample_weight=weights, return_dict=True, verbose=0, **sizes
        )
        found.append({key.removeprefix("logits_"): value for key, value in logs.items()})
    probabilities = np.exp(outputs) / np.exp(outputs).sum(-1, keepdims=True)
    of_labels = counts * (1.0 if weights is None else weights[:, np.newaxis])
    divisor = y.size if "all" in make else of_labels.sum()
    expected = (cross_entropy(probabilities, y) * of_labels).sum() / divisor
    assert found[-1]["loss"] == pytest.approx(expected, rel=1e-5)
    assert found[-1].get("unweighted", found[-1].get("log_probs_unweighted")) > 0
    for each in found[:-1]:
        assert each == pytest.approx(found[-1], rel=1e-5)


def test_two_replicas(two_replicas):
    """Replicas have different numbers of labels."""
    found = []
    for strategy in (None, two_replicas):
        keras.utils.set_random_seed(3)
        if strategy is None:
            model = XLNetTokenClassifier(small_backbone(), 3)
            model.compile(run_eagerly=True)
        else:
            with strategy.scope():
                model = XLNetTokenClassifier(small_backbone(), 3)
                model.compile()
        for variable in model.trainable_variables:
            rng = np.random.default_rng(len(variable.shape))
            variable.assign(rng.normal(0.0, 0.3, variable.shape))
        found.append(values_at(model, 4, {"token_ids": TOKENS["token_ids"][:8]}, TAGS[:8]))
    assert found[1] == pytest.approx(found[0], rel=1e-5)
