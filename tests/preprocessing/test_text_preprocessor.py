"""Packing equals the original for every kind of input, inside and outside of models."""

import functools
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.tokenizers import original_tokenizer as reference

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
PROTO = GOLDEN / "spiece.model"
CLASSIFIER = json.loads((GOLDEN / "classifier.json").read_text(encoding="utf-8"))
NAMES = ("token_ids", "segment_ids", "padding_mask")
A = ["the cat", "9,", "The quiet river, in 1987, was golden"]
B = ["a dog and a lantern", "", "so"]


# A preprocessor is compiled at its first call: there is one for all that need the same.
packer = functools.cache(XLNetTextClassifierPreprocessor)
# Length, side and padding: from the shortest for pairs to one that has room for most pairs.
SIDES_AND_LENGTHS = [
    *((5, "left", 0), (5, "right", 5), (6, "left", 5), (9, "right", 0)),
    *((12, "left", 0), (15, "right", 5), (24, "left", 5), (24, "right", 0)),
]


@pytest.fixture(scope="module")
def tokenizers():
    return {u: XLNetTokenizer(PROTO, lowercase=u, remove_accents=True) for u in (False, True)}


@pytest.fixture(scope="module")
def tokenizer(tokenizers):
    return tokenizers[False]


@pytest.fixture(scope="module")
def processor():
    return sentencepiece.SentencePieceProcessor(model_file=str(PROTO))


def lists(outputs):
    """Checks names and dtypes of the outputs and returns them as Python lists."""
    assert list(outputs) == list(NAMES)
    assert [outputs[name].dtype for name in NAMES] == [tf.int32, tf.int32, tf.bool]
    return [np.asarray(outputs[name]).tolist() for name in NAMES]


def expected(processor, a, b, length, **kwargs):
    """Returns the outputs of the reference implementation for lists of texts."""

    def ids(text):
        return reference.encode_ids(processor, reference.preprocess_text(text))

    rows = [reference.pack(ids(x), ids(y), length, **kwargs) for x, y in zip(a, b, strict=True)]
    return [list(column) for column in zip(*rows, strict=True)]


# Equal to the original.


@pytest.mark.parametrize("padding_side", ["left", "right"])
@pytest.mark.parametrize("uncased", [False, True])
def test_equals_the_original(tokenizers, uncased, padding_side):
    # One of the examples is only padding.
    examples = [e for e in CLASSIFIER["examples"] if e["uncased"] is uncased]
    assert len(examples) in (12, 13)
    for e in examples:
        preprocessor = packer(tokenizers[uncased], e["max_seq_length"], padding_side)
        text, pair = e["text_a"], e["text_b"]
        token_ids, segment_ids, mask = lists(preprocessor(text if pair is None else (text, pair)))
        # The original pads on the left. With padding on the right the same ids come first.
        padding = sum(e["input_mask"])
        start = padding if padding_side == "right" else 0

        def shifted(row, start=start):
            return row[start:] + row[:start]

        assert token_ids == shifted(e["input_ids"])
        assert segment_ids == shifted(e["segment_ids"])
        assert mask == shifted([not m for m in e["input_mask"]])


def test_truncation_equals_the_original(tokenizer):
    cases = [c for c in CLASSIFIER["truncate_seq_pair"] if c["len_b"] > 0 and c["max_length"] > 1]
    assert len(cases) >= 6
    for case in cases:
        preprocessor = XLNetTextClassifierPreprocessor(tokenizer, case["max_length"] + 3)
        # A token for the start of a word, and one for each letter.
        texts = ["x" * (case[name] - 1) for name in ("len_a", "len_b")]
        features = preprocessor(([texts[0]], [texts[1]]))
        segments = features["segment_ids"].numpy()[features["padding_mask"].numpy()]
        # One of each is a separator.
        kept = [np.sum(segments == segment) - 1 for segment in (0, 1)]
        assert kept == [len(case["a"]), len(case["b"])]
        a, b = range(case["len_a"]), range(100, 100 + case["len_b"])
        assert reference.truncate_pair(a, b, case["max_length"]) == (case["a"], case["b"])


@settings(max_examples=30)
@given(
    pairs=st.lists(
        st.tuples(st.text("aé9, ", max_size=30), st.text("aé9, ", max_size=30)),
        min_size=1,
        max_size=5,
    ),
    packing=st.sampled_from(SIDES_AND_LENGTHS),
)
def test_any_pairs_equal_the_reference(tokenizer, processor, pairs, packing):
    a, b = map(list, zip(*pairs, strict=True))
    length, side, padding = packing
    kwargs = {"padding_side": side, "padding_token_id": padding}
    preprocessor = packer(tokenizer, length, **kwargs)
    assert lists(preprocessor((a, b))) == expected(processor, a, b, length, **kwargs)
    singles = expected(processor, a, [""] * len(a), length, **kwargs)
    assert lists(preprocessor(a)) == singles


# Kinds of inputs.


@given(
    words=st.lists(st.sampled_from("the cat a dog lantern".split()), max_size=40),
    packing=st.sampled_from(
        [(5, "left"), (6, "right"), (11, "left"), (18, "right"), (25, "left"), (40, "right")]
    ),
)
@settings(max_examples=25)
def test_the_middle_is_truncated(tokenizer, words, packing):
    text = " ".join(words)
    ids = tokenizer(text).numpy().tolist()
    length, side = packing
    middle = packer(tokenizer, length, padding_side=side, truncation="middle")
    outputs = middle(text)
    found = outputs["token_ids"].numpy()[outputs["padding_mask"].numpy()].tolist()
    kept = min(len(ids), length - 2)
    head = kept // 4
    assert found == [*ids[:head], *ids[len(ids) - (kept - head) :], 4, 3]


@pytest.fixture(scope="module")
def preprocessor(tokenizer):
    return packer(tokenizer, 16)


@pytest.fixture(scope="module")
def single_rows(processor):
    return expected(processor, A, [""] * 3, 16)


@pytest.fixture(scope="module")
def pair_rows(processor):
    return expected(processor, A, B, 16)


@pytest.mark.parametrize(
    "wrap",
    [list, np.array, tf.constant, lambda x: np.array(x, object), lambda x: np.array(x)[:, None]],
    ids=["list", "numpy", "tensor", "objects", "column"],
)
def test_batches(preprocessor, single_rows, pair_rows, wrap):
    assert lists(preprocessor(wrap(A))) == single_rows
    assert lists(preprocessor({"text": wrap(A)})) == single_rows
    assert lists(preprocessor((wrap(A), wrap(B)))) == pair_rows
    assert lists(preprocessor({"text": wrap(A), "pair": wrap(B)})) == pair_rows


def test_one_text_and_one_pair(preprocessor, single_rows, pair_rows):
    assert lists(preprocessor(A[2])) == [rows[2] for rows in single_rows]
    assert lists(preprocessor((A[0], B[0]))) == [rows[0] for rows in pair_rows]


def test_a_list_of_two_is_a_batch_and_a_tuple_of_two_a_pair(preprocessor):
    batch, pair = preprocessor(["the cat", "so"]), preprocessor(("the cat", "so"))
    assert batch["token_ids"].shape == (2, 16)
    assert pair["token_ids"].shape == (16,)
    assert 1 not in batch["segment_ids"].numpy()
    assert 1 in pair["segment_ids"].numpy()


def test_an_empty_batch(preprocessor):
    assert preprocessor([])["token_ids"].shape == (0, 16)


def test_datasets_of_examples_and_of_batches(preprocessor, pair_rows, single_rows):
    pairs = tf.data.Dataset.from_tensor_slices({"text": A, "pair": B})
    singles = pairs.map(preprocessor)
    assert {s.shape.as_list()[0] for s in singles.element_spec.values()} == {16}
    (batch,) = singles.batch(3)
    assert lists(batch) == pair_rows
    batches = pairs.batch(2).map(preprocessor)
    assert batches.element_spec["token_ids"].shape.as_list() == [None, 16]
    assert [r for b in batches for r in b["token_ids"].numpy().tolist()] == pair_rows[0]
    (texts,) = tf.data.Dataset.from_tensor_slices(A).map(preprocessor).batch(3)
    assert lists(texts) == single_rows


def test_tf_function_of_unknown_batch(preprocessor, pair_rows):
    spec = tf.TensorSpec([None], tf.string)
    function = tf.function(lambda a, b: preprocessor((a, b)), input_signature=[spec, spec])
    outputs = function(tf.constant(A), tf.constant(B))
    assert lists(outputs) == pair_rows
    assert function.get_concrete_function().structured_outputs["token_ids"].shape[1] == 16


@pytest.mark.parametrize("shapes", [((), ()), ((), (1,)), ((1,), (1,))], ids=str)
def test_symbolic_inputs(preprocessor, pair_rows, shapes):
    inputs = [keras.Input(shape, dtype="string") for shape in shapes]
    outputs = preprocessor(tuple(inputs))
    assert {(n, o.shape, o.dtype) for n, o in outputs.items()} == {
        ("token_ids", (None, 16), "int32"),
        ("segment_ids", (None, 16), "int32"),
        ("padding_mask", (None, 16), "bool"),
    }
    model = keras.Model(inputs, outputs)
    arrays = [tf.reshape(x, [3, *s]) for x, s in zip((A, B), shapes, strict=True)]
    assert lists(model(arrays)) == pair_rows
    predicted = model.predict(arrays, verbose=0)
    assert [predicted[name].tolist() for name in NAMES] == pair_rows


def test_compute_output_shape(preprocessor):
    for shape in [(3,), (3, 1), ((3,), (3,)), {"text": (3,), "pair": (3, 1)}]:
        outputs = preprocessor.compute_output_shape(shape)
        assert outputs == dict.fromkeys(NAMES, (3, 16))
    assert preprocessor.compute_output_shape(())["token_ids"] == (16,)


# Saved and loaded.


def test_config_round_trip(tokenizers, tmp_path):
    original = packer(tokenizers[True], 12, "right", 5, truncation="middle")
    copy = XLNetTextClassifierPreprocessor.from_config(
        json.loads(json.dumps(original.get_config()))
    )
    assert copy.get_config() == original.get_config()
    original.save_assets(tmp_path)
    copy.load_assets(tmp_path)
    assert lists(copy((A, B))) == lists(original((A, B)))


def test_keras_file_round_trip(preprocessor, pair_rows, tmp_path):
    inputs = [keras.Input((), dtype="string"), keras.Input((), dtype="string")]
    keras.Model(inputs, preprocessor(tuple(inputs))).save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert lists(loaded([tf.constant(A), tf.constant(B)])) == pair_rows


def test_keras_file_with_a_shared_tokenizer(tokenizer, single_rows, tmp_path):
    inputs = keras.Input((), dtype="string")
    sides = [packer(tokenizer, 16, side) for side in ("left", "right")]
    keras.Model(inputs, [side(inputs) for side in sides]).save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    left, right = loaded(tf.constant(A))
    assert lists(left) == single_rows
    assert lists(right) == lists(sides[1](A)) != single_rows


@pytest.mark.parametrize("backend", ["jax", pytest.param("torch", marks=pytest.mark.slow)])
def test_other_backends(pair_rows, backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"needs {backend}")
    program = """
import json, sys
import tensorflow as tf
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.tokenizers import XLNetTokenizer
preprocessor = XLNetTextClassifierPreprocessor(XLNetTokenizer(sys.argv[1], remove_accents=True), 16)
a, b = json.loads(sys.argv[2])
(batch,) = tf.data.Dataset.from_tensor_slices((a, b)).map(lambda *x: preprocessor(x)).batch(3)
for outputs in (batch, preprocessor((a, b))):
    print(json.dumps([value.numpy().tolist() for value in outputs.values()]))
"""
    run = subprocess.run(
        [sys.executable, "-c", program, str(PROTO), json.dumps([A, B])],
        capture_output=True,
        text=True,
        cwd=PROTO.parents[2],
        env={**os.environ, "KERAS_BACKEND": backend},
        timeout=120,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert [json.loads(line) for line in run.stdout.splitlines()[-2:]] == [pair_rows, pair_rows]


# Refused.


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"tokenizer": "spiece.model"}, "`tokenizer` must be an XLNetTokenizer"),
        ({"sequence_length": 2}, "`sequence_length` must be an integer of at least 3.*=2"),
        ({"sequence_length": 8.0}, "`sequence_length` must be an integer"),
        ({"padding_side": "top"}, "`padding_side` must be.*'top'"),
        ({"padding_token_id": -1}, "`padding_token_id` must be"),
        ({"truncation": "start"}, "`truncation` must be 'end' or 'middle'.*'start'"),
    ],
)
def test_refuses_wrong_arguments(tokenizer, kwargs, message):
    with pytest.raises(ValueError, match=message):
        XLNetTextClassifierPreprocessor(**{"tokenizer": tokenizer, **kwargs})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (3, "`text` must be strings"),
        ((["a"], [1]), "`pair` must be strings"),
        (("a", "b", "c"), "tuple of two for a pair. Received: a tuple of 3"),
        ({"texts": ["a"]}, "the key \"text\".*Received the keys: .'texts'"),
        ([["a", "b"]], r"`text` must have shape .* Received: \(1, 2\)"),
        ((["a"], ["b", "c"]), r"same number of texts. Received: shapes \(1,\) and \(2,\)"),
        ((["a"], "b"), r"same number of texts. Received: shapes \(1,\) and \(\)"),
    ],
    ids=str,
)
def test_refuses_wrong_inputs(preprocessor, inputs, message):
    with pytest.raises(ValueError, match=message):
        preprocessor(inputs)


def test_refuses_wrong_symbolic_inputs(preprocessor):
    with pytest.raises(ValueError, match="`text` must be strings. Received: dtype float32"):
        preprocessor(keras.Input((), dtype="float32"))
    with pytest.raises(ValueError, match=r"`text` must have shape .*\(None, 2\)"):
        preprocessor(keras.Input((2,), dtype="string"))


def test_refuses_pairs_without_room(tokenizer):
    short = XLNetTextClassifierPreprocessor(tokenizer, 4)
    assert short("the cat")["token_ids"].shape == (4,)
    with pytest.raises(ValueError, match="at least 5 for pairs.*=4"):
        short(("a", "b"))
