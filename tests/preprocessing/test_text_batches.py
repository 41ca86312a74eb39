"""Batches of packed texts, or of texts of similar length: nothing but the shapes changes."""

import dataclasses
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier, XLNetTokenClassifier
from keras_xlnet.preprocessing import (
    XLNetTextClassifierPreprocessor,
    XLNetTokenClassifierPreprocessor,
)
from keras_xlnet.preprocessing.examples import ExampleReader
from keras_xlnet.preprocessing.text_batches import (
    TextBatches,
    batch_by_length,
    batch_length,
    batch_packed,
    lengths_of,
)

LENGTH = 96
LENGTHS = [16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024]


def texts_of(lengths, seed=0):
    rng = np.random.default_rng(seed)
    words = ["ship", "water", "harbor", "cold", "rose", "the", "a"]
    return [" ".join(rng.choice(words, n)) for n in lengths]


TEXTS = texts_of(np.random.default_rng(1).permutation(np.arange(1, 71) // 2 + 1))
LABELS = np.arange(70) % 3


def classifier(tokenizer, side="left", memory_length=None, **arguments):
    """A model, with memory one that cannot read packed rows."""
    keras.utils.set_random_seed(5)
    backbone = XLNetBackbone(
        200, 1, 2, 16, 32, dropout=0.0, attention_dropout=0.0, memory_length=memory_length
    )
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, LENGTH, padding_side=side)
    model = XLNetTextClassifier(backbone, 3, preprocessor, dropout=0.0, **arguments)
    model.compile(keras.optimizers.SGD(0.1))
    return model


def layout_of(model):
    """The layout of the batches of `predict`."""
    seen, step = [], model.predict_step

    def noted(data):
        (inputs,) = data if isinstance(data, tuple) else (data,)
        seen.append((inputs["token_ids"].shape[1], "packing" in inputs))
        return step(data)

    model.predict_step, model.predict_function = noted, None
    model.predict(TEXTS, batch_size=8, verbose=0)
    model.predict_step = step
    assert seen
    if any(is_packed for _, is_packed in seen):
        return "packed"
    return "by_length" if None in {length for length, _ in seen} else "padded"


def random_features(lengths, side="left", width=200):
    rng = np.random.default_rng(0)
    position = np.arange(width)
    lengths = np.asarray(lengths)[:, np.newaxis]
    mask = position < lengths if side == "right" else position >= width - lengths
    return {"token_ids": rng.integers(9, 90, mask.shape) * mask, "padding_mask": mask}


def test_lengths_are_few():
    assert sorted({batch_length(n, 1024) for n in range(1, 1025)}) == LENGTHS
    assert all(n <= batch_length(n, 10**6) < max(33, 1.5 * n + 1) for n in range(1, 5000))
    assert batch_length(90, 92) == 92


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 200), min_size=1, max_size=90),
    batch_size=st.integers(1, 40),
    side=st.sampled_from(["left", "right"]),
    shuffle=st.booleans(),
)
def test_each_row_is_once_in_an_epoch_with_all_of_its_tokens(lengths, batch_size, side, shuffle):
    features = random_features(lengths, side)
    rows = np.arange(len(lengths))
    batches = TextBatches(features, rows, rows * 2.0, batch_size, shuffle, side, layout="by_length")
    assert len(batches) == -(-len(lengths) // batch_size)
    for _ in range(2):
        order = batches.order
        found = [batches[i] for i in range(len(batches))]
        np.testing.assert_array_equal(np.concatenate([y for _, y, _ in found]), order)
        assert sorted(order) == rows.tolist()
        assert [len(y) for _, y, _ in found[:-1]] == [batch_size] * (len(found) - 1)
        for inputs, labels, weights in found:
            np.testing.assert_array_equal(weights, labels * 2.0)
            width = inputs["token_ids"].shape[1]
            assert width == min(batch_length(max(lengths[row] for row in labels), 200), 200)
            for ids, mask, row in zip(*inputs.values(), labels, strict=True):
                expected = features["token_ids"][row][features["padding_mask"][row]]
                np.testing.assert_array_equal(ids[mask], expected)
        batches.on_epoch_end()


def test_batches_are_of_like_length_and_shuffled():
    lengths = np.random.default_rng(2).permutation(np.arange(1024) % 200 + 1)
    np.random.seed(3)
    batches = TextBatches(random_features(lengths), batch_size=16, layout="by_length")
    widths = [batches[i][0]["token_ids"].shape[1] for i in range(len(batches))]
    shuffled = [lengths[i : i + 16].max() for i in range(0, 1024, 16)]
    assert np.mean(widths) < 0.7 * np.mean(shuffled)
    assert np.abs(np.diff(widths)).mean() > 30  # Not from short to long.
    first = batches.order.copy()
    batches.on_epoch_end()
    assert (batches.order != first).any()
    np.random.seed(3)
    again = TextBatches(random_features(lengths), batch_size=16, layout="by_length")
    assert (again.order == first).all()


def test_few_batches_are_not_sorted_by_length():
    # If length correlates with the label, batches have several labels.
    lengths = np.random.default_rng(2).permutation(np.arange(40) * 4 + 10)
    np.random.seed(3)
    batches = TextBatches(random_features(lengths), lengths > 90, batch_size=8, layout="by_length")
    assert len({batches[i][0]["token_ids"].shape[1] for i in range(5)}) <= 2
    assert all(0 < labels.sum() < 8 for _, labels in batches)


def test_lengths_of_choices():
    mask = np.arange(8) < np.array([[3, 5, 0], [2, 1, 1]])[..., np.newaxis]
    assert lengths_of(mask).tolist() == [5, 2]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("memory_length", [None, 4])
def test_predictions_are_in_the_order_of_the_texts(side, memory_length, tokenizer):
    model = classifier(tokenizer, side, memory_length)
    expected = model.predict(TEXTS, pack=False, verbose=0)
    for x in (TEXTS, model.preprocessor.encode(TEXTS)):
        found = model.predict(x, batch_size=8, verbose=0)
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("memory_length", [None, 4])
def test_evaluate_is_the_same(memory_length, tokenizer):
    model = classifier(tokenizer, memory_length=memory_length)
    weights = np.arange(70) % 5 + 1.0
    expected, found = (
        model.evaluate(
            TEXTS, LABELS, 8, sample_weight=weights, pack=flag, return_dict=True,
            verbose=0,
        )
        for flag in (False, True)
    )  # fmt: skip
    assert found == pytest.approx(expected, rel=1e-5)


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(0, 50), min_size=1, max_size=90).filter(any),
    batch_size=st.integers(1, 40),
    side=st.sampled_from(["left", "right"]),
    shuffle=st.booleans(),
)
def test_packed_rows_have_each_token_once(lengths, batch_size, side, shuffle):
    features = random_features(lengths, side, width=52)
    rows = np.arange(len(lengths))
    np.random.seed(4)
    batches = TextBatches(features, rows, None, batch_size, shuffle, side)
    np.random.seed(4)
    padded = TextBatches(features, rows, None, batch_size, shuffle, side, layout="padded")
    for _ in range(2):
        assert batches.order.tolist() == padded.order.tolist()  # A plain shuffle.
        for inputs, labels in batches:
            packing = inputs["packing"]
            np.testing.assert_array_equal(inputs["token_ids"], features["token_ids"][labels])
            assert packing.dtype == "int32" and packing.shape[1] == batches.plan.row_length
            # A rare shuffle needs more rows than all that the plan has seen.
            assert packing.shape[0] in batches.plan.counts or packing.shape[0] > max(
                batches.plan.counts
            )
            is_token = packing >= 0
            expected = np.flatnonzero(inputs["padding_mask"])
            np.testing.assert_array_equal(np.sort(packing[is_token]), expected)
            # A text stands in one row, its tokens one after the other.
            for row in packing:
                texts = row[row >= 0] // 52
                starts = np.flatnonzero(np.diff(texts, prepend=-1))
                assert len(set(texts[starts])) == len(starts)
                assert (np.delete(np.diff(row[row >= 0], prepend=0), starts) == 1).all()
        for batch in (batches, padded):
            batch.on_epoch_end()


def test_packed_rows_are_full_and_of_few_shapes():
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.gamma(3.0, 8.0, 4000).astype(int), 3, 64)
    batches = TextBatches(random_features(lengths, width=64), batch_size=32)
    shapes = [batch["packing"].shape for (batch,) in batches]
    assert len(set(shapes)) <= 3
    assert lengths.sum() / sum(map(np.prod, shapes)) > 0.88


def rows_of(token_ids):
    """The tokens of texts, without padding, as strings."""
    return [" ".join(map(str, row[row != 5])) for row in token_ids]


def seen_by(model, *args, **kwargs):
    """Returns the history of a `fit`, and the widths, labels and texts of its batches."""
    seen = []
    step = model.train_step

    def record(data):
        x, y, *_ = data
        ids = rows_of(np.asarray(x["token_ids"]))
        seen.append((x["token_ids"].shape[1], np.asarray(y).ravel().tolist(), ids))
        return step(data)

    model.train_step = record
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    history = model.fit(*args, verbose=0, **kwargs).history
    return history, seen


def test_fit_reads_each_text_once_an_epoch(tokenizer):
    ids = np.arange(70) % 3
    model = classifier(tokenizer, memory_length=4)
    history, seen = seen_by(model, TEXTS, ids, batch_size=5, epochs=2)
    assert len(seen) == 28 and len(history["loss"]) == 2
    for epoch in (seen[:14], seen[14:]):
        labels = [label for _, batch, _ in epoch for label in batch]
        assert sorted(labels) == sorted(ids.tolist())
    assert len({width for width, *_ in seen}) > 2
    _, flat = seen_by(classifier(tokenizer), TEXTS, ids, batch_size=24, pack=False)
    assert len({width for width, *_ in flat}) == 1
    for arguments in ({"shuffle": False}, {"x_is": "features"}):
        model = classifier(tokenizer, memory_length=4)
        x = TEXTS
        if arguments.pop("x_is", None):
            x = model.preprocessor.encode(TEXTS).features
        _, flat = seen_by(model, x, ids, batch_size=24, **arguments)
        assert len({width for width, *_ in flat}) == 1


def test_a_seed_gives_the_same_run(tokenizer):
    runs = []
    for seed in (1, 1, 2):
        model = classifier(tokenizer)
        keras.utils.set_random_seed(seed)
        runs.append(model.fit(TEXTS, LABELS, batch_size=8, epochs=2, verbose=0).history["loss"])
    assert runs[0] == runs[1] != runs[2]


def test_validation_split_is_the_last_rows(tokenizer):
    found, expected = (
        classifier(tokenizer).fit(
            TEXTS, LABELS, batch_size=70, validation_split=0.3, pack=flag, verbose=0
        ).history
        for flag in (True, False)
    )  # fmt: skip
    for key in ("loss", "val_loss", "val_accuracy"):
        assert found[key] == pytest.approx(expected[key], rel=1e-4), key
    with pytest.raises(ValueError, match="`validation_split` must leave rows.*=1.5 for 70 rows"):
        classifier(tokenizer).fit(TEXTS, LABELS, validation_split=1.5, verbose=0)


def test_validation_data_weights_and_class_weights(tokenizer):
    weights = np.arange(70) % 4 + 0.5
    found, expected = (
        classifier(tokenizer, class_names=["a", "b", "c"]).fit(
            TEXTS,
            LABELS,
            batch_size=70,
            sample_weight=weights,
            class_weight={"b": 3.0},
            validation_data=(TEXTS[:20], LABELS[:20], weights[:20]),
            validation_batch_size=7,
            pack=flag,
            verbose=0,
        ).history
        for flag in (True, False)
    )  # fmt: skip
    for key in ("loss", "val_loss", "val_accuracy"):
        assert found[key] == pytest.approx(expected[key], rel=1e-4), key


class Texts(keras.utils.PyDataset):
    """Batches of eight texts in their order."""

    def __len__(self):
        return 9

    def __getitem__(self, index):
        rows = slice(8 * index, 8 * index + 8)
        return TEXTS[rows], LABELS[rows]


@pytest.mark.parametrize(
    "form", ["packed", "grouped", "padded", "in order", "features", "PyDataset"]
)
def test_steps_per_epoch_read_pass_after_pass(form, tokenizer):
    # 9 batches, the last of 6 rows, and 4 steps an epoch: epochs end within passes.
    model = classifier(tokenizer, memory_length=4 if form == "grouped" else None)
    x, y, arguments = TEXTS, LABELS, {"batch_size": 8}
    if form == "features":
        x = model.preprocessor.encode(TEXTS).features
    if form == "PyDataset":
        x, y, arguments = Texts(), None, {}
    arguments["pack"] = form != "padded"
    arguments["shuffle"] = form != "in order"
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*ran out of data")
        history, seen = seen_by(model, x, y, steps_per_epoch=4, epochs=5, **arguments)
    assert len(history["loss"]) == 5 and len(seen) == 20
    passes = [np.concatenate([rows for _, _, rows in seen[i : i + 9]]) for i in (0, 9)]
    expected = rows_of(model.preprocessor.encode(TEXTS).features["token_ids"])
    for found in passes:
        assert sorted(found) == sorted(expected)
    assert (passes[0].tolist() == passes[1].tolist()) == (form == "in order")
    if form == "in order":
        assert passes[0].tolist() == expected
    assert form == "grouped" or len({width for width, *_ in seen}) == 1


def test_steps_are_the_first_batches_in_the_order_of_the_texts(tokenizer):
    model = classifier(tokenizer)
    model.compile(keras.optimizers.SGD(0.0), metrics=["accuracy"], run_eagerly=True)
    first = {"x": TEXTS[:16], "y": LABELS[:16], "verbose": 0, "return_dict": True}
    expected = model.evaluate(**first)
    assert expected != pytest.approx(model.evaluate(TEXTS, LABELS, verbose=0, return_dict=True))
    forms = {
        "texts": ((TEXTS, LABELS), {"batch_size": 8}),
        "padded": ((TEXTS, LABELS), {"batch_size": 8, "pack": False}),
        "features": ((model.preprocessor.encode(TEXTS).features, LABELS), {"batch_size": 8}),
        "encoded": ((model.preprocessor.encode(TEXTS), LABELS), {"batch_size": 8}),
        "PyDataset": ((Texts(),), {}),
    }
    for form, (data, arguments) in forms.items():
        found = model.evaluate(*data, steps=2, verbose=0, return_dict=True, **arguments)
        assert found == pytest.approx(expected, rel=1e-5), form
    predicted = model.predict(TEXTS, batch_size=8, steps=2, verbose=0)
    np.testing.assert_allclose(predicted, model.predict(TEXTS[:16], verbose=0), atol=1e-6)
    validation = {"validation_steps": 2, "validation_batch_size": 8, "verbose": 0}
    for held_out in (
        {"validation_data": (TEXTS, LABELS)},
        {"validation_data": (TEXTS, LABELS), "pack": False},
        {"validation_data": (TEXTS, LABELS), "steps_per_epoch": 2},
    ):
        history = model.fit(TEXTS[:4], LABELS[:4], **held_out, **validation).history
        assert history["val_loss"] == pytest.approx([expected["loss"]], rel=1e-5), held_out
    texts, labels = [*TEXTS[:30], *TEXTS], np.append(LABELS[:30], LABELS)
    for arguments in ({}, {"steps_per_epoch": 2, "pack": False}):
        history = model.fit(texts, labels, validation_split=0.7, **arguments, **validation).history
        assert history["val_loss"] == pytest.approx([expected["loss"]], rel=1e-5)


@pytest.mark.parametrize("memory_length", [None, 4])
def test_one_graph_for_all_lengths(memory_length, tokenizer):
    model = classifier(tokenizer, memory_length=memory_length)
    traces = []
    call = model.call

    def count(inputs, **kwargs):
        traces.append(inputs["token_ids"].shape)
        return call(inputs, **kwargs)

    model.call = count
    model.fit(TEXTS, LABELS, batch_size=8, epochs=2, verbose=0)
    assert len(traces) <= 3


def test_each_replica_packs_its_own_texts(two_replicas, tokenizer):
    """Of 65 texts in batches of 16, the last batch is a text on one replica, none on the other."""
    texts, labels = TEXTS[:65], LABELS[:65]
    runs = []
    for strategy in (tf.distribute.get_strategy(), two_replicas):
        with strategy.scope():
            model = classifier(tokenizer)
        held_out = (TEXTS[50:], LABELS[50:])
        # Keras looks at a batch first if there are replicas, so another shuffle follows.
        arguments = {"batch_size": 16, "shuffle": False, "validation_data": held_out, "verbose": 0}
        found = model.fit(texts, labels, epochs=2, **arguments).history
        found |= {"evaluate": model.evaluate(texts, labels, batch_size=16, verbose=0)}
        found |= {"first": model.evaluate(texts, labels, batch_size=16, steps=2, verbose=0)}
        found |= {"predict": model.predict(texts, batch_size=16, verbose=0)}
        runs.append(found | {"weights": np.concatenate([*map(np.ravel, model.get_weights())])})
        assert layout_of(model) == "packed"
        steps = int(model.optimizer.iterations.numpy())
        model.fit(texts, labels, 16, steps_per_epoch=3, epochs=2, verbose=0)
        assert int(model.optimizer.iterations.numpy()) == steps + 6
    for key, expected in runs[0].items():
        np.testing.assert_allclose(runs[1][key], expected, rtol=0, atol=3e-6, err_msg=key)


def test_each_worker_reads_the_parts_of_its_replicas():
    class Strategy:
        num_replicas_in_sync = 4

        def distribute_datasets_from_function(self, function):
            of_worker = [tf.distribute.InputContext(2, worker, 4) for worker in range(2)]
            return [function(context) for context in of_worker]

    features = random_features(range(1, 23))
    batches = TextBatches(features, batch_size=10, shuffle=False, strategy=Strategy())
    assert batches.steps == 3
    workers = [iter(dataset) for dataset in batches.as_keras_input()]
    for _ in range(2):  # Two passes.
        seen = []
        for size in (10, 10, 2):
            parts = [next(worker)[0] for worker in workers for _ in range(2)]
            lengths = [part["padding_mask"].numpy().sum(axis=1) for part in parts]
            assert [*map(len, lengths)] == [*map(len, np.array_split(np.arange(size), 4))]
            for part, found in zip(parts, lengths, strict=True):
                assert (part["packing"].numpy() >= 0).sum() == found.sum()
                assert part["packing"].numpy().max(initial=-1) < part["token_ids"].shape[0] * 200
            seen += np.concatenate(lengths).tolist()
        assert seen == [*range(1, 23)]


def test_shapes_but_rows_and_length_are_known():
    features = {**random_features([9, 70]), "cls_index": np.array([8, 69])}
    dataset, packed = (
        TextBatches(features, np.ones((2, 1)), np.ones(2), layout=layout).as_keras_input()
        for layout in ("by_length", "packed")
    )
    inputs, labels, weights = dataset.element_spec
    assert {key: spec.shape.as_list() for key, spec in inputs.items()} == {
        "token_ids": [None, None], "padding_mask": [None, None], "cls_index": [None],
    }  # fmt: skip
    assert {key: spec.shape.as_list() for key, spec in packed.element_spec[0].items()} == {
        "token_ids": [None, 200], "padding_mask": [None, 200], "cls_index": [None],
        "packing": [None, 80],
    }  # fmt: skip
    assert labels.shape.as_list() == [None, 1] and weights.shape.as_list() == [None]


def test_one_length_on_tpus(tokenizer, monkeypatch):
    class TPUStrategyV2:
        num_replicas_in_sync = 1

        def __getattr__(self, name):
            return getattr(tf.distribute.get_strategy(), name)

    model = classifier(tokenizer)
    assert layout_of(model) == "packed"
    strategy = property(lambda self: TPUStrategyV2())
    monkeypatch.setattr(XLNetTextClassifier, "distribute_strategy", strategy, raising=False)
    assert layout_of(model) == "padded"


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("memory_length", [None, 4])
def test_tags_are_cut_with_their_tokens(side, memory_length, tokenizer):
    keras.utils.set_random_seed(2)
    backbone = XLNetBackbone(
        200, 1, 2, 16, 32, dropout=0.0, attention_dropout=0.0, memory_length=memory_length
    )
    preprocessor = XLNetTokenClassifierPreprocessor(tokenizer, LENGTH, side)
    model = XLNetTokenClassifier(backbone, 2, preprocessor=preprocessor, dropout=0.0)
    sentences = [text.split()[:14] for text in TEXTS]
    tags = [[int(word == "ship") for word in words] for words in sentences]
    weights = [[1.0 + (word == "rose") for word in words] for words in sentences]
    reader = ExampleReader(XLNetTokenClassifierPreprocessor, preprocessor, model.classes)
    examples = dataclasses.replace(reader.read(sentences, tags, weights), layout="by_length")
    batches = examples.batches(8)
    assert batches[0][1].shape == batches[0][2].shape == batches[0][0]["token_ids"].shape
    model.compile(keras.optimizers.SGD(0.1))
    found, expected = (
        model.evaluate(sentences, tags, 70, sample_weight=weights, pack=flag, verbose=0)
        for flag in (True, False)
    )
    assert found == pytest.approx(expected, rel=1e-4)
    model.fit(sentences, tags, batch_size=8, verbose=0)
    assert model.tag(sentences, verbose=0) == [
        row for i in range(0, 70, 7) for row in model.tag(sentences[i : i + 7], verbose=0)
    ]


@pytest.mark.parametrize("side", ["left", "right"])
def test_outputs_for_tokens_are_joined_in_order(side, tokenizer, capsys):
    keras.utils.set_random_seed(2)
    preprocessor = XLNetTokenClassifierPreprocessor(tokenizer, LENGTH, side)
    backbone = XLNetBackbone(200, 1, 2, 16, 32, memory_length=4)
    model = XLNetTokenClassifier(backbone, 2, preprocessor)
    sentences = [text.split()[:14] for text in TEXTS]
    is_token = preprocessor.encode(sentences).features["padding_mask"]
    found = model.predict(sentences, batch_size=8, verbose=1)
    assert "9/9" in capsys.readouterr().out
    expected = model.predict(sentences, batch_size=8, pack=False, verbose=0)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found[is_token], expected[is_token], atol=1e-5)
    lengths = []
    model.predict_on_batch = lambda x: (
        lengths.append(x["token_ids"].shape[1]) or type(model).predict_on_batch(model, x)
    )
    model.predict(sentences, batch_size=8, verbose=0)
    assert len(lengths) == 9
    assert lengths[0] < lengths[-1]


def test_memory_of_all_segments_needs_one_length(tokenizer):
    model = classifier(tokenizer, memory_length=4)
    assert layout_of(model) == "by_length"
    model.long_document, model.gradient_segments = "memory", None
    assert layout_of(model) == "padded"


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("has_labels", [True, False])
def test_the_transformation_of_datasets(side, has_labels):
    lengths = np.random.default_rng(4).permutation(np.arange(1, 151))
    features = random_features(lengths, side)
    rows = np.arange(150)
    data = (features, {"row": rows}, rows * 2.0) if has_labels else features
    dataset = tf.data.Dataset.from_tensor_slices(data).apply(batch_by_length(4, side))
    widths, seen = [], []
    for batch in dataset:
        inputs, *others = batch if has_labels else (batch,)
        found = inputs["padding_mask"].numpy().sum(axis=1)
        width = inputs["token_ids"].shape[1]
        assert width == min(batch_length(found.max(), 200), 200)
        widths.append(width)
        for ids, mask, length in zip(*map(np.asarray, inputs.values()), found, strict=True):
            (row,) = np.flatnonzero(lengths == length)
            np.testing.assert_array_equal(
                ids[mask], features["token_ids"][row][features["padding_mask"][row]]
            )
            seen.append(row)
        if has_labels:
            labels, weights = others[0]["row"].numpy(), others[1].numpy()
            np.testing.assert_array_equal(labels, seen[-len(labels) :])
            np.testing.assert_array_equal(weights, labels * 2.0)
    assert sorted(seen) == rows.tolist()
    assert np.mean(widths) < 110 and set(widths) <= set(LENGTHS) | {200}


def test_the_transformation_cuts_labels_of_tokens():
    features = random_features([3, 9, 70, 80])
    labels = features["token_ids"]
    dataset = tf.data.Dataset.from_tensor_slices((features, labels))
    for inputs, found in dataset.apply(batch_by_length(2, has_token_labels=True)):
        np.testing.assert_array_equal(found, inputs["token_ids"])


@pytest.mark.parametrize("has_labels", [True, False])
def test_the_transformation_to_packed_rows(has_labels):
    lengths = np.random.default_rng(4).integers(1, 60, 75)
    features, rows = random_features(lengths, width=64), np.arange(75)
    data = (features, {"row": rows}) if has_labels else features
    dataset = tf.data.Dataset.from_tensor_slices(data).apply(batch_packed(32, row_length=80))
    shapes, seen = set(), []
    for batch in dataset:
        inputs, *others = batch if has_labels else (batch,)
        packing = inputs["packing"].numpy()
        shapes.add(packing.shape)
        ids = inputs["token_ids"].numpy()
        first = len(seen)
        np.testing.assert_array_equal(ids, features["token_ids"][first : first + len(ids)])
        assert sorted(packing[packing >= 0]) == np.flatnonzero(inputs["padding_mask"]).tolist()
        if has_labels:
            assert others[0]["row"].numpy().tolist() == [*range(first, first + len(ids))]
        seen += [*range(first, first + len(ids))]
    assert seen == rows.tolist()
    assert {length for _, length in shapes} == {80} and all(n % 2 == 0 for n, _ in shapes)
    with pytest.raises(ValueError, match="`row_length` must be at least 64.*row_length=60"):
        tf.data.Dataset.from_tensor_slices(data).apply(batch_packed(32, row_length=60))


def test_a_dataset_of_packed_rows_trains_as_the_texts(tokenizer):
    model, losses = classifier(tokenizer), []
    features = model.preprocessor(TEXTS)
    dataset = tf.data.Dataset.from_tensor_slices((features, LABELS)).apply(batch_packed(16))
    losses.append(model.fit(dataset, epochs=2, verbose=0).history["loss"])
    model = classifier(tokenizer)
    arguments = {"batch_size": 16, "shuffle": False, "pack": False, "verbose": 0}
    losses.append(model.fit(TEXTS, LABELS, epochs=2, **arguments).history["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-5)
