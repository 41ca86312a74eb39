import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.models import XLNetTextClassifier, XLNetTextRegressor
from keras_xlnet.models.long_documents import DivideIntoWindows, SegmentReader
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.preprocessing.rows_of_texts import lengths_of_windows
from keras_xlnet.serving import export
from tests.small_models import small_backbone

WORDS = "a quick brown fox jumps over the lazy dog and runs home to its small red den".split()


def texts_of(*lengths):
    rng = np.random.default_rng(5)
    return [" ".join(rng.choice(WORDS, length)) for length in lengths]


def make_backbone(**kwargs):
    keras.utils.set_random_seed(3)
    return small_backbone(**{"memory_length": 8, **kwargs})


def make(long_document, preprocessor=None, backbone=None, **kwargs):
    backbone = backbone or make_backbone()
    kwargs = {"segment_length": 8, "dropout": 0.0, **kwargs}
    model = XLNetTextClassifier(backbone, 2, preprocessor, long_document=long_document, **kwargs)
    # To trace and compile a step takes seconds, more than many eager steps.
    model.compile(run_eagerly=True)
    return model


def random_features(*lengths, width=24):
    """Documents of some lengths, padded on the left."""
    rng = np.random.default_rng(7)
    mask = np.arange(width)[None] >= width - np.array(lengths)[:, None]
    ids = np.where(mask, rng.integers(9, 200, mask.shape), 0)
    segments = np.where(mask, 0, 4)
    ids[:, -2:], segments[:, -1] = [4, 3], 2
    return {
        "token_ids": ids.astype("int32"),
        "segment_ids": segments.astype("int32"),
        "padding_mask": mask,
    }


def row_of(features, row, length):
    return {key: value[row : row + 1, -length:] for key, value in features.items()}


# === Memory ===


def test_causal_segments_with_memory_are_one_long_text():
    whole = make_backbone(num_layers=2, attention_type="uni", memory_length=24)
    features = random_features(24, 19, 5)
    expected = whole(features)["sequence_output"]
    for gradient_segments in (1, 2, None):
        sequence, ids, mask = SegmentReader(whole, 8, gradient_segments)(features)
        length = 8 * (gradient_segments or 3)
        assert sequence.shape == (3, length, 16)
        np.testing.assert_array_equal(ids, features["token_ids"][:, -length:])
        np.testing.assert_array_equal(mask, features["padding_mask"][:, -length:])
        is_real = np.asarray(mask)
        np.testing.assert_allclose(
            np.asarray(sequence)[is_real],
            np.asarray(expected)[:, -length:][is_real],
            atol=2e-5,
        )


@pytest.mark.parametrize("kwargs", [{}, {"remember_segment_ids": True}])
def test_reads_as_a_loop_over_the_backbone_does(kwargs):
    backbone = make_backbone(num_layers=2, memory_length=5, **kwargs)
    features = random_features(24)
    memory = {"memory": np.zeros((1, 2, 5, 16)), "memory_mask": np.zeros((1, 5), bool)}
    for start in (0, 8, 16):
        segment = {key: value[:, start : start + 8] for key, value in features.items()}
        outputs = dict(backbone({**segment, **memory}))
        expected = outputs.pop("sequence_output")
        memory = outputs
    sequence, _, _ = SegmentReader(backbone, 8)(features)
    np.testing.assert_allclose(sequence, expected, atol=1e-5)


@pytest.mark.parametrize("mode, pooling", [("memory", "last"), ("windows", "mean")])
def test_a_document_alone_gives_what_it_gives_in_a_batch(mode, pooling):
    model = make(mode, pooling=pooling)
    lengths = 40, 23, 8, 3
    features = random_features(*lengths, width=40)
    together = model.predict(features, verbose=0)
    assert np.abs(together[0] - together[1]).max() > 1e-4
    for row, length in enumerate(lengths):
        alone = model.predict(row_of(features, row, length), verbose=0)
        np.testing.assert_allclose(alone[0], together[row], atol=1e-5)


def test_memory_reaches_the_result_from_the_first_segment():
    features = random_features(24)
    changed = {**features, "token_ids": features["token_ids"].copy()}
    changed["token_ids"][0, 2] += 1
    for mode in ("memory", "windows"):
        model = make(mode, backbone=make_backbone(num_layers=2))
        assert np.abs(model(features) - model(changed)).max() > 1e-6
    # Two layers of memory of 4 do not reach back 22 tokens.
    model = make("memory", backbone=make_backbone(num_layers=2, memory_length=4))
    assert np.abs(model(features) - model(changed)).max() == 0


def gradients(model, features):
    import tensorflow as tf

    embeddings = model.backbone.token_embedding.embeddings
    with tf.GradientTape() as tape:
        loss = keras.ops.sum(model(features, training=True)[:, 0])
    return keras.ops.convert_to_numpy(tf.convert_to_tensor(tape.gradient(loss, embeddings)))


def test_gradients_flow_through_the_segments_that_are_asked_for():
    features = random_features(24)
    features["token_ids"][0] = np.arange(100, 124)  # Each token once.
    for gradient_segments, first in ((1, 16), (2, 8), (3, 0), (None, 0)):
        backbone = make_backbone(num_layers=2)
        model = make(
            "memory", backbone=backbone, gradient_segments=gradient_segments, pooling="mean"
        )
        rows = np.abs(gradients(model, features)).max(axis=1)
        assert not rows[100 : 100 + first].any()
        assert (rows[100 + first : 124] > 0).all()


@pytest.mark.parametrize("mode", ["memory", "windows"])
@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_trains(mode, jit_compile):
    model = make(mode, backbone=make_backbone(dropout=0.1))
    model.compile(keras.optimizers.SGD(0.01), jit_compile=jit_compile)
    features = random_features(*range(4, 24))
    # Nothing but the first segment tells the class.
    labels = features["token_ids"][:, 3] % 2
    history = model.fit(features, labels, epochs=3, batch_size=4, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    expected = model.predict(features, verbose=0)
    np.testing.assert_allclose(model(features), expected, atol=1e-5)


@pytest.mark.parametrize("mode", ["memory", "windows"])
def test_unknown_lengths_in_a_dataset(mode):
    import tensorflow as tf

    model = make(mode)
    model.compile(keras.optimizers.SGD(0.01), jit_compile=False)
    rows = [row_of(random_features(n), 0, n) for n in (24, 9, 24)]
    spec = {k: tf.TensorSpec((None, None), v.dtype) for k, v in rows[0].items()}
    dataset = tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=spec)
    found = model.predict(dataset, verbose=0)
    expected = [np.asarray(model(row))[0] for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    labels = tf.data.Dataset.from_tensor_slices(np.array([[0], [1], [0]]))
    model.fit(tf.data.Dataset.zip(dataset, labels), verbose=0)


def test_all_segments_need_a_static_length():
    import tensorflow as tf

    reader = SegmentReader(make_backbone(), 8, None)

    @tf.function(input_signature=[tf.TensorSpec((1, None), tf.int32)])
    def read(ids):
        mask = tf.ones_like(ids, tf.bool)
        return reader({"token_ids": ids, "segment_ids": ids * 0, "padding_mask": mask})

    with pytest.raises(ValueError, match="`gradient_segments=None` needs inputs of a static"):
        read(np.ones((1, 16), "int32"))


# === Windows ===


def test_windows_are_texts_of_their_own():
    model = make("windows", pooling="last")
    features = random_features(15, width=15)
    windows, is_window = DivideIntoWindows(8)(features)
    ids = features["token_ids"][0]
    np.testing.assert_array_equal(
        windows["token_ids"],
        [[0, 0, 0, 0, 0, ids[0], 4, 3], [*ids[1:7], 4, 3], [*ids[7:13], 4, 3]],
    )
    np.testing.assert_array_equal(windows["segment_ids"][1], [0] * 7 + [2])
    assert is_window.shape == (1, 3) and np.asarray(is_window).all()
    whole = make("truncate", pooling="last")
    whole.assign_weights(model)
    summarize = keras.Model(whole.input, whole.sequence_summary.output)
    summaries = summarize({key: np.asarray(value) for key, value in windows.items()})
    mean = np.asarray(summaries).mean(0, keepdims=True)
    logits = mean @ np.asarray(model.logits_dense.kernel) + np.asarray(model.logits_dense.bias)
    expected = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(model(features), expected, atol=1e-5)


def test_an_empty_document_has_a_window():
    features = random_features(2, width=10)
    _, is_window = DivideIntoWindows(6)(features)
    np.testing.assert_array_equal(is_window, [[False, True]])


# === Text ===


def test_documents_as_strings(tokenizer):
    texts = texts_of(1, 12, 4, 18)
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, sequence_length=400)
    for mode in ("memory", "windows"):
        model = make(mode, preprocessor)
        expected = [model.predict([text], verbose=0)[0] for text in texts]
        np.testing.assert_allclose(model.predict(texts, verbose=0), expected, atol=1e-5)
        model.fit(texts, [0, 1, 0, 1], batch_size=2, verbose=0)


def test_short_texts_are_the_same_in_all_modes(tokenizer):
    texts = texts_of(2, 1)
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, sequence_length=32)
    whole = make("truncate", preprocessor, segment_length=32)
    expected = whole.predict(texts, verbose=0)
    for mode in ("head_tail", "windows", "memory"):
        model = whole.with_arguments(long_document=mode)
        np.testing.assert_allclose(model.predict(texts, verbose=0), expected, atol=1e-5)


def test_head_and_tail(tokenizer):
    (text,) = texts_of(50)
    ids = tokenizer(text).numpy().tolist()
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, sequence_length=18)
    model = make("head_tail", preprocessor)
    assert preprocessor.truncation == "end"
    assert model.preprocessor.truncation == "middle"
    kept = model.preprocessor(text)["token_ids"].numpy().tolist()
    assert kept == [*ids[:4], *ids[-12:], 4, 3]
    pair = model.preprocessor((text, "a den"))["token_ids"].numpy().tolist()
    pair_ids = tokenizer("a den").numpy().tolist()
    left = 18 - 3 - len(pair_ids)
    assert pair[: left // 4] == ids[: left // 4]
    assert pair[left // 4 : left] == ids[left // 4 - left :]
    assert pair[left:] == [4, *pair_ids, 4, 3]


def test_saved_and_loaded(tokenizer, tmp_path):
    texts = texts_of(3, 40)
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, sequence_length=24)
    for mode in ("head_tail", "windows", "memory"):
        model = make(mode, preprocessor)
        expected = model.predict(texts, verbose=0)
        model.save(tmp_path / "model.keras")
        loaded = keras.saving.load_model(tmp_path / "model.keras")
        np.testing.assert_allclose(loaded.predict(texts, verbose=0), expected, atol=1e-6)
        model.save_to_preset(tmp_path / mode)
        loaded = XLNetTextClassifier.from_preset(tmp_path / mode)
        np.testing.assert_allclose(loaded.predict(texts, verbose=0), expected, atol=1e-6)
        assert loaded.long_document == mode


@pytest.mark.parametrize("mode", ["windows", "memory"])
def test_exported(tokenizer, tmp_path, mode):
    import tensorflow as tf

    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, sequence_length=24)
    model = make(mode, preprocessor)
    export(model, tmp_path)
    served = tf.saved_model.load(tmp_path).signatures["serving_default"]
    texts = texts_of(3, 40)
    found = served(text=tf.constant(texts))["probabilities"]
    np.testing.assert_allclose(found, model.predict(texts, verbose=0), atol=1e-5)


def test_from_the_preset_of_a_backbone(tokenizer, tmp_path):
    make_backbone().save_to_preset(tmp_path, tokenizer=tokenizer)
    model = XLNetTextClassifier.from_preset(
        tmp_path,
        num_classes=2,
        long_document="memory",
        segment_length=8,
        memory_length=8,
        sequence_length=64,
    )
    assert model.predict(texts_of(30), verbose=0).shape == (1, 2)
    regressor = XLNetTextRegressor.from_preset(
        tmp_path, long_document="windows", segment_length=8, sequence_length=64
    )
    assert regressor.predict(texts_of(30), verbose=0).shape == (1, 1)


@pytest.mark.parametrize(
    "mode, arguments, message",
    [
        ("whole", {}, "`long_document` must be"),
        ("memory", {"segment_length": 0}, "`segment_length` must be"),
        ("windows", {"segment_length": 2}, "`segment_length` must be at least 3"),
        ("memory", {"gradient_segments": 0}, "`gradient_segments` must be"),
        ("windows", {"pooling": "pair"}, "`pooling='pair'` compares"),
    ],
)
def test_bad_arguments(mode, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(mode, **arguments)


def test_memory_needs_a_memory():
    with pytest.raises(ValueError, match="`long_document='memory'` needs a backbone with a `memo"):
        make("memory", backbone=make_backbone(memory_length=None))


def test_padding_is_on_the_left(tokenizer):
    preprocessor = XLNetTextClassifierPreprocessor(
        tokenizer, sequence_length=40, padding_side="right"
    )
    with pytest.raises(ValueError, match="pads on the left. Received: .*'right'"):
        make("windows", preprocessor)


# === Windows in packed rows ===


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(2, 40), min_size=1, max_size=6), st.integers(3, 12))
def test_lengths_of_windows_are_those_of_the_graph(lengths, window_length):
    features = random_features(*lengths, width=40)
    windows, is_window = DivideIntoWindows(window_length)(features)
    tokens = np.asarray(windows["padding_mask"]).sum(axis=1).reshape(is_window.shape)
    found = lengths_of_windows(np.array(lengths), 40, window_length)
    np.testing.assert_array_equal(found, tokens * np.asarray(is_window))


def test_windows_in_packed_rows_give_what_padded_ones_give(tokenizer):
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, sequence_length=60)
    texts, labels = texts_of(50, 3, 12, 30, 1, 8, 21), np.arange(7) % 2
    found = []
    for pack in (True, False):
        keras.utils.set_random_seed(3)
        backbone = small_backbone(dropout=0.0, attention_dropout=0.0)
        model = make("windows", preprocessor, backbone, pooling="mean")
        model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
        arguments = {"batch_size": 4, "pack": pack, "verbose": 0}
        history = model.fit(texts, labels, shuffle=False, epochs=2, **arguments).history
        scores = model.evaluate(texts, labels, **arguments)
        found.append([history["loss"], scores, model.predict(texts, **arguments)])
    for packed, padded in zip(*found, strict=True):
        np.testing.assert_allclose(packed, padded, atol=2e-5)
    assert np.ptp(found[0][2], axis=0).max() > 1e-3
