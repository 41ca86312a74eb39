"""Functions of many objects, each traced once, give no warning."""

import logging

import pytest
import tensorflow as tf

from keras_xlnet.compat.graph_function import graph_function
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.tokenizers import XLNetTokenizer


@pytest.fixture
def messages(caplog):
    """The texts of the warnings of TensorFlow, whose logger does not propagate them."""
    logger = tf.get_logger()
    logger.addHandler(caplog.handler)
    with caplog.at_level(logging.WARNING, logger.name):
        yield lambda: [record.getMessage() for record in caplog.records]
    logger.removeHandler(caplog.handler)


def test_many_tokenizers_and_preprocessors(golden_dir, messages):
    for _ in range(6):
        XLNetTextClassifierPreprocessor(XLNetTokenizer(golden_dir / "spiece.model"), 8)(["a text"])
    assert messages() == []


def test_a_function_that_is_traced_again_and_again_is_told(messages):
    function = graph_function(lambda x: x + 1)
    for length in range(6):
        function(tf.zeros(length))
    assert "retracing" in messages()[0]


def test_traced_once_for_a_signature(rng):
    traces = []

    def double(x, y=None):
        traces.append(x)
        return 2 * x if y is None else x + y

    function = graph_function(double, input_signature=[tf.TensorSpec([None], tf.float32)])
    for length in (2, 3):
        x = rng.normal(size=length).astype("float32")
        assert function(x).numpy().tolist() == (2 * x).tolist()
    assert len(traces) == 1
