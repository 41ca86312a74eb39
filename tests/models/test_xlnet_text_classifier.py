import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.checkpoints import load_original
from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.tokenizers import XLNetTokenizer

SPAM = ["win a free prize now", "free cash call now", "claim your prize today", "call now to win"]
HAM = ["see you at lunch", "ok at six then", "are you home today", "lunch at home then"]
TEXTS, LABELS = SPAM * 4 + HAM * 4, [1] * 16 + [0] * 16


@pytest.fixture(scope="module")
def preprocessor(tokenizer):
    return XLNetTextClassifierPreprocessor(tokenizer, sequence_length=24)


def make(preprocessor, num_classes=2, optimizer=None, run_eagerly=True, **kwargs):
    keras.utils.set_random_seed(3)
    backbone = XLNetBackbone(
        200, 1, 2, 16, 32, dropout=0.0, attention_dropout=0.0, kernel_initializer="glorot_normal"
    )
    model = XLNetTextClassifier(backbone, num_classes, preprocessor, dropout=0.0, **kwargs)
    # To trace and compile a step takes seconds, more than many eager steps.
    optimizer = optimizer or keras.optimizers.SGD(0.01, momentum=0.9)
    model.compile(optimizer, run_eagerly=run_eagerly, jit_compile=False)
    return model


@pytest.fixture(scope="module")
def untrained(preprocessor):
    """A model for tests that do not change it. It predicts in a graph, as by default."""
    return make(preprocessor, run_eagerly=False)


@pytest.fixture(scope="module")
def expected_of_pairs(preprocessor, untrained):
    """What `untrained` predicts for the features of pairs."""
    return untrained.predict(as_features(preprocessor, (SPAM, HAM)), verbose=0)


def test_learns_from_raw_strings(preprocessor):
    model = make(preprocessor, run_eagerly=False)
    history = model.fit(TEXTS, LABELS, epochs=15, batch_size=8, verbose=0)
    assert history.history["loss"][-1] < 0.1 < history.history["loss"][0]
    loss, accuracy = model.evaluate(TEXTS, LABELS, verbose=0)
    assert accuracy == 1.0
    probabilities = model.predict(TEXTS, verbose=0)
    np.testing.assert_array_equal(probabilities.argmax(-1), LABELS)
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-6)
    expected = -np.log(probabilities[np.arange(32), LABELS]).mean()
    assert loss == pytest.approx(expected, abs=1e-5)


def as_features(preprocessor, texts):
    return {k: np.asarray(v) for k, v in preprocessor(texts).items()}


@pytest.mark.parametrize(
    "form",
    [
        lambda a, b: (a, b),
        lambda a, b: {"text": a, "pair": np.array(b)},
        lambda a, b: tf.data.Dataset.from_tensor_slices(((a, b),)).batch(4),
        lambda a, b: tf.data.Dataset.from_tensor_slices({"text": a, "pair": b}).batch(4),
    ],
)
def test_pairs(untrained, expected_of_pairs, form):
    found = untrained.predict(form(SPAM, HAM), verbose=0)
    np.testing.assert_allclose(found, expected_of_pairs, atol=1e-6)
    alone = untrained.predict(SPAM, verbose=0)
    assert np.abs(alone - expected_of_pairs).max() > 1e-3


def test_text_trains_as_its_features_do(preprocessor):
    labels, weights = np.array(LABELS), np.linspace(0.1, 2, 32)
    features = as_features(preprocessor, TEXTS)
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, labels, weights)).batch(16)
    arguments = {"epochs": 2, "batch_size": 16, "shuffle": False, "verbose": 0}

    def losses(*args, **kwargs):
        return make(preprocessor).fit(*args, **kwargs).history["loss"]

    expected = losses(features, labels, sample_weight=weights, **arguments)
    actual = losses(TEXTS, LABELS, sample_weight=weights, **arguments)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
    np.testing.assert_allclose(losses(dataset, epochs=2, verbose=0), expected, rtol=1e-5)
    other = losses(TEXTS, LABELS, **{**arguments, "epochs": 1})
    assert abs(other[0] - expected[0]) > 1e-3


def test_class_weight_counts(preprocessor):
    arguments = {"epochs": 1, "shuffle": False, "verbose": 0, "batch_size": 32}
    plain = make(preprocessor).fit(TEXTS, LABELS, **arguments).history["loss"][0]
    double = make(preprocessor).fit(TEXTS, LABELS, class_weight={0: 2.0, 1: 2.0}, **arguments)
    assert double.history["loss"][0] == pytest.approx(2 * plain, rel=1e-5)


def test_validation_of_every_kind(preprocessor):
    model = make(preprocessor)
    held_out = (TEXTS[-8:], LABELS[-8:])
    split = model.fit(TEXTS, LABELS, validation_split=0.25, epochs=1, verbose=0, shuffle=False)
    again = make(preprocessor).fit(
        TEXTS[:-8], LABELS[:-8], validation_data=held_out, epochs=1, verbose=0, shuffle=False
    )
    expected = model.evaluate(*held_out, verbose=0)[0]
    assert split.history["val_loss"][0] == pytest.approx(expected, abs=1e-6)
    assert again.history["val_loss"][0] == pytest.approx(expected, abs=1e-5)
    dataset = tf.data.Dataset.from_tensor_slices(held_out).batch(3)
    features = (as_features(preprocessor, held_out[0]), np.array(held_out[1]))
    for validation_data in (dataset, features):
        history = model.fit(
            TEXTS, LABELS, validation_data=validation_data, epochs=1, verbose=0
        ).history
        assert history["val_loss"][0] == pytest.approx(
            model.evaluate(*held_out, verbose=0)[0], abs=1e-6
        )


def test_multi_label(preprocessor):
    names = ["prize", "call", "lunch"]
    model = make(preprocessor, 3, run_eagerly=False, activation="sigmoid", class_names=names)
    labels = np.array([["prize" in t, "call" in t, "lunch" in t] for t in TEXTS], "float32")
    history = model.fit(TEXTS, labels, epochs=25, batch_size=8, verbose=0).history
    assert history["accuracy"][-1] > 0.95
    probabilities = model.predict(TEXTS, verbose=0)
    assert probabilities.shape == (32, 3) and probabilities.max() <= 1
    # Labels do not exclude each other: the sum of a row is not 1.
    assert np.ptp(probabilities.sum(-1)) > 0.5


def test_regression(preprocessor):
    adam = keras.optimizers.Adam(0.01)
    model = make(preprocessor, 1, adam, run_eagerly=False, activation="linear")
    targets = np.array([len(t) / 10 for t in TEXTS])
    history = model.fit(TEXTS, targets, epochs=30, batch_size=8, verbose=0).history
    assert history["loss"][-1] < 0.05
    assert "mean_absolute_error" in history


@pytest.fixture(scope="module")
def right_preprocessor(tokenizer):
    return XLNetTextClassifierPreprocessor(tokenizer, sequence_length=24, padding_side="right")


@pytest.mark.parametrize("pooling", ["last", "first", "mean", "cls", "attention"])
def test_pooling_modes_and_padding_sides(preprocessor, right_preprocessor, pooling):
    left = make(preprocessor, pooling=pooling)
    right = make(right_preprocessor, pooling=pooling)
    right.set_weights(left.get_weights())
    expected = left.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(right.predict(TEXTS, verbose=0), expected, atol=1e-5)


def test_pairs_are_compared_token_by_token(tokenizer):
    left, right = (
        make(
            XLNetTextClassifierPreprocessor(tokenizer, 48, padding_side=side),
            run_eagerly=False,
            pooling="pair",
        )
        for side in ("left", "right")
    )
    pairs = [(a, b) for a in TEXTS[:6] for b in TEXTS[:6]]
    first, second = ([pair[i] for pair in pairs] for i in (0, 1))
    same = np.array([int(a == b) for a, b in pairs])
    history = left.fit((first, second), same, epochs=20, batch_size=12, verbose=0).history
    assert history["loss"][-1] < 0.2 * history["loss"][0]
    right.set_weights(left.get_weights())
    expected = left.predict((first, second), verbose=0)
    np.testing.assert_allclose(right.predict((first, second), verbose=0), expected, atol=1e-5)


def test_equals_the_original_from_text_to_logits(golden, golden_dir, golden_checkpoint, tokenizer):
    read, arrays = golden_checkpoint("heads_ckpt"), golden("heads.npz")
    # The original's pipeline removes accents from cased models, too.
    tokenizer = XLNetTokenizer(golden_dir / "spiece.model", remove_accents=True)
    model = XLNetTextClassifier(
        load_original(golden_dir / "tiny_ckpt"),
        num_classes=3,
        preprocessor=XLNetTextClassifierPreprocessor(tokenizer, sequence_length=24),
    )
    for dense, name in (
        (model.sequence_summary.dense, "model/sequnece_summary/summary"),
        (model.logits_dense, "model/classification_tiny/logit"),
    ):
        dense.set_weights([read(f"{name}/kernel"), read(f"{name}/bias")])
    examples = [e for e in golden("classifier.json")["examples"] if not e["uncased"]]
    examples = [e for e in examples if e["max_seq_length"] == 24 and e["is_real_example"]]
    texts = ([e["text_a"] for e in examples], [e["text_b"] or "" for e in examples])
    expected = keras.ops.softmax(arrays["e2e_logits"])
    np.testing.assert_allclose(model.predict(texts, verbose=0), expected, atol=1e-5)


def test_saved_with_its_vocabulary_and_optimizer(preprocessor, tmp_path):
    model = make(preprocessor, class_names=["ham", "spam"])
    model.fit(TEXTS, LABELS, epochs=1, verbose=0)
    expected = model.predict(TEXTS, verbose=0)
    model.save(tmp_path / "model.keras")
    copy = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(copy.predict(TEXTS, verbose=0), expected)
    assert copy.class_names == ["ham", "spam"]
    assert int(copy.optimizer.iterations) == int(model.optimizer.iterations) == 1
    copy.fit(TEXTS, LABELS, epochs=1, verbose=0)
    model.save_to_preset(tmp_path / "preset")
    assert (tmp_path / "preset" / "assets" / "spiece.model").is_file()
    fresh = XLNetTextClassifier.from_preset(tmp_path / "preset")
    np.testing.assert_array_equal(fresh.predict(TEXTS, verbose=0), expected)
    backbone = XLNetBackbone.from_preset(tmp_path / "preset")
    for ours, theirs in zip(backbone.weights, model.backbone.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_quantized_classifier_is_loaded_exactly(preprocessor, tmp_path):
    model = make(preprocessor)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # Of layers that have nothing to quantize.
        model.quantize("int8")
    expected = model.predict(TEXTS, verbose=0)
    model.save(tmp_path / "model.keras")
    copy = keras.saving.load_model(tmp_path / "model.keras")
    assert copy.logits_dense.quantization_mode == "int8"
    np.testing.assert_array_equal(copy.predict(TEXTS, verbose=0), expected)


def test_half_precision_probabilities_are_float32(preprocessor):
    backbone = XLNetBackbone(200, 1, 2, 16, 32, dtype="mixed_bfloat16")
    model = XLNetTextClassifier(backbone, 2, preprocessor)
    model.compile(run_eagerly=True)
    history = model.fit(TEXTS, LABELS, epochs=1, verbose=0)
    assert np.isfinite(history.history["loss"][0])
    assert model.predict(TEXTS, verbose=0).dtype == np.float32


def test_trains_with_xla(preprocessor):
    model = make(preprocessor)
    plain = make(preprocessor, optimizer=keras.optimizers.SGD(0.1))
    model.compile(keras.optimizers.SGD(0.1), jit_compile=True)
    arguments = {"epochs": 2, "batch_size": 8, "shuffle": False, "verbose": 0}
    np.testing.assert_allclose(
        model.fit(TEXTS, LABELS, **arguments).history["loss"],
        plain.fit(TEXTS, LABELS, **arguments).history["loss"],
        rtol=1e-4,
    )


def test_preprocessor_does_not_keep_xla_off(untrained):
    assert all(layer.supports_jit for layer in untrained._flatten_layers())


def test_backbone_with_memory(preprocessor):
    backbone = XLNetBackbone(200, 1, 2, 16, 32, memory_length=8)
    model = XLNetTextClassifier(backbone, 2, preprocessor)
    model.compile(run_eagerly=True)
    model.fit(TEXTS, LABELS, epochs=1, verbose=0)


def test_texts_of_two_models_with_one_preprocessor(tokenizer):
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, sequence_length=24)
    for model in (make(preprocessor), make(preprocessor)):
        expected = model.predict(as_features(preprocessor, TEXTS), verbose=0)
        for count in (1, 2, 5, 1):
            np.testing.assert_allclose(model.predict(TEXTS[:count]), expected[:count], atol=1e-6)
        model.predict(TEXTS * 9, verbose=0)


def test_methods_for_arrays_refuse_text(preprocessor):
    model = make(preprocessor)
    for method in (model, model.predict_on_batch, model.inspect):
        with pytest.raises(ValueError, match=r"preprocessor\.encode\(x\)\.features"):
            method(TEXTS)
    for method in (model.train_on_batch, model.test_on_batch):
        with pytest.raises(ValueError, match=r"preprocessor\.encode\(x\)\.features"):
            method(TEXTS, np.array(LABELS))


def test_pairs_are_given_as_to_answer_and_rank(preprocessor):
    model = make(preprocessor, pooling="pair")
    first, second = TEXTS, TEXTS[::-1]
    expected = model.classify((first, second), verbose=0)
    assert len({found.score for found in expected}) > 1
    rows = [*zip(first, second, strict=True)]
    assert model.classify(first, second, verbose=0) == expected
    assert model.classify(rows, verbose=0) == expected
    assert model.classify({"text": first, "pair": second}, verbose=0) == expected
    one = model.classify(first[0], second[0], verbose=0)
    assert one.label == expected[0].label
    assert one.score == pytest.approx(expected[0].score, abs=1e-6)
    with pytest.raises(ValueError, match=r"pass numbers such as `batch_size` by name.*0\.5"):
        model.classify(first, 0.5)


def test_classes_by_name(preprocessor):
    model = make(preprocessor, class_names=["ham", "spam"])
    probabilities = model.predict(TEXTS, verbose=0)
    for threshold in (0.0, 0.5, 1.0):
        found = model.classify(TEXTS, threshold=threshold)
        expected = np.array(["ham", "spam"])[(probabilities[:, 1] >= threshold).astype(int)]
        assert [f.label for f in found] == expected.tolist()
        scores = [[f.scores["ham"], f.scores["spam"]] for f in found]
        np.testing.assert_allclose(scores, probabilities, atol=1e-6)
        assert all(f.score == f.scores[f.label] for f in found)
    several = make(preprocessor, 3, activation="sigmoid")
    probabilities = several.predict(TEXTS, verbose=0)
    for found, row in zip(several.classify(TEXTS), probabilities, strict=True):
        assert found.label == tuple(str(i) for i in np.flatnonzero(row >= 0.5))
        assert len(found.score) == len(found.label)
    with pytest.raises(ValueError, match="needs classes"):
        make(preprocessor, 1, activation="linear").classify(TEXTS)


def test_only_token_ids_are_needed(untrained):
    ids = np.random.default_rng(0).integers(9, 200, (2, 7))
    full = {"token_ids": ids, "segment_ids": ids * 0, "padding_mask": ids > 0}
    np.testing.assert_array_equal(untrained({"token_ids": ids}), untrained(full))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda m: m.predict("one text"), "pass a list"),
        (lambda m: m.predict([]), "`x` must have at least one text"),
        (lambda m: m.fit([], []), "`x` must have at least one text"),
        (lambda m: m.predict(["a", None]), "`x` must be strings. Received in row 1: None"),
        (lambda m: m.fit(["a", "b", float("nan")], [0, 1, 0]), "in row 2: nan"),
        (lambda m: m.fit(TEXTS, LABELS[:5]), "a label for each of 32 rows. Received: 5"),
        (lambda m: m.predict((SPAM, HAM[:1])), r"equal lengths. Received: {'text': 4, 'pair': 1}"),
    ],
)
def test_bad_text_is_refused(untrained, call, message):
    with pytest.raises(ValueError, match=message):
        call(untrained)


def test_text_without_a_preprocessor_is_refused():
    with pytest.raises(ValueError, match="has no `preprocessor`"):
        make(None).predict(TEXTS)


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"num_classes": 0}, "`num_classes` must be a positive integer"),
        ({"num_classes": 1}, "always gives 1.0"),
        ({"num_classes": 2, "activation": "relu"}, "`activation` must be one of"),
        ({"num_classes": 2, "pooling": "max"}, "`pooling` must be one of"),
        ({"num_classes": 2, "class_names": ["a"]}, "`class_names` must have `num_classes` names"),
    ],
)
def test_bad_arguments_are_named(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make(None, **kwargs)


def test_vocabulary_larger_than_the_backbones_is_refused(preprocessor):
    with pytest.raises(ValueError, match="has 200 ids, but the backbone knows only"):
        XLNetTextClassifier(XLNetBackbone(100, 1, 2, 16, 32), 2, preprocessor)


@pytest.mark.parametrize("padding_side", ["left", "right"])
def test_padding_that_all_texts_have_is_left_out(padding_side, tokenizer, monkeypatch):
    preprocessor = XLNetTextClassifierPreprocessor(
        tokenizer, sequence_length=64, padding_side=padding_side
    )
    model = make(preprocessor)
    lengths = []
    predict_on_batch = model.predict_on_batch
    monkeypatch.setattr(
        model,
        "predict_on_batch",
        lambda x: lengths.append(x["token_ids"].shape[1]) or predict_on_batch(x),
    )
    texts = ["see you", "win a free prize now, call today"]
    found = [model.predict(rows, verbose=0) for rows in (texts, texts[:1], [" ".join(texts * 20)])]
    assert lengths[0] in (32, 48) and lengths[1:] == [16, 64]
    features = as_features(preprocessor, texts)
    expected = model.predict(features, batch_size=2, verbose=0)
    np.testing.assert_allclose(found[0], expected, atol=1e-6)
    np.testing.assert_allclose(found[1], expected[:1], atol=1e-6)
