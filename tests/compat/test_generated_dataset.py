import itertools

import numpy as np
import pytest
import tensorflow as tf

import keras_xlnet
from keras_xlnet.compat.generated_dataset import generated_dataset

SPEC = (
    {"a": tf.TensorSpec((None,), "int32"), "b": tf.TensorSpec((), "string")},
    tf.TensorSpec((2,)),
)


def elements():
    rng = np.random.default_rng(3)
    for n in (3, 0, 5):
        yield {"b": f"text {n}".encode(), "a": list(range(n))}, rng.normal(size=2)


@pytest.mark.parametrize("length", [None, 3])
def test_elements_are_those_of_from_generator(length):
    dataset = generated_dataset(elements, SPEC, length)
    expected = tf.data.Dataset.from_generator(elements, output_signature=SPEC)
    assert dataset.element_spec == expected.element_spec
    for _ in range(2):  # Each iterator has its own generator.
        pairs = list(zip(dataset, expected, strict=True))
        assert len(pairs) == 3
        for actual, wanted in pairs:
            tf.nest.map_structure(np.testing.assert_array_equal, actual, wanted)


def test_iterators_side_by_side():
    dataset = generated_dataset(itertools.count, tf.TensorSpec((), "int64"))
    first, second = iter(dataset.skip(2)), iter(dataset.prefetch(3))
    assert [int(next(i)) for i in (first, second, first, second)] == [2, 0, 3, 1]


def test_no_more_than_the_length():
    drawn = []

    def endless():
        for number in itertools.count():
            drawn.append(number)
            yield number

    dataset = generated_dataset(endless, tf.TensorSpec((), "int64"), 4)
    assert list(dataset.as_numpy_iterator()) == drawn == [0, 1, 2, 3]


def test_errors_of_the_generator():
    def broken():
        yield 1
        raise ValueError("the file is damaged")

    iterator = iter(generated_dataset(broken, tf.TensorSpec((), "int64")))
    assert int(next(iterator)) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="the file is damaged"):
        next(iterator)


def test_fit_and_predict_of_strings_call_no_from_generator(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("`from_generator` slows all of TensorFlow down")

    monkeypatch.setattr(tf.data.Dataset, "from_generator", refuse)
    classifier = keras_xlnet.models.XLNetTextClassifier.from_preset("xlnet_mini_en", num_classes=2)
    texts, labels = ["good", "bad news", "a long text about good news"], [1, 0, 1]
    classifier.fit(texts, labels, batch_size=2, verbose=0, validation_data=(texts, labels))
    assert classifier.predict(texts, verbose=0).shape == (3, 2)
