"""LiteRT files of a network, in the process of the tests."""

import numpy as np
import pytest

from keras_xlnet.serving.portable.litert_format import write_litert
from keras_xlnet.serving.portable.networks import network_of
from keras_xlnet.serving.portable.predict import litert_interpreter
from tests.serving.portable.conftest import TEXTS


@pytest.fixture(scope="module")
def network(classifier):
    return network_of(classifier)


@pytest.fixture(scope="module")
def float32_file(network, tmp_path_factory):
    path = tmp_path_factory.mktemp("litert") / "float32.tflite"
    write_litert(network, path)
    return path


def assert_probabilities(path, classifier, smallest, largest):
    """Asserts that the largest difference is between two bounds, for several shapes."""
    run = litert_interpreter()(str(path)).get_signature_runner()
    differences = []
    for texts in (TEXTS, TEXTS[:1], TEXTS[1:3]):
        features = classifier.preprocessor.encode(texts).features
        expected = classifier.predict(features, verbose=0)
        differences.append(np.abs(run(**features)["probabilities"] - expected).max())
    assert smallest <= max(differences) < largest


def test_float32(float32_file, classifier):
    assert_probabilities(float32_file, classifier, 0, 1e-6)


@pytest.mark.parametrize(
    ("quantization", "saved", "difference"), [("float16", 0.4, 2e-3), ("int8", 0.6, 0.05)]
)
def test_fewer_bits(network, float32_file, classifier, tmp_path, quantization, saved, difference):
    path = tmp_path / "small.tflite"
    write_litert(network, path, quantization)
    # Besides the weights there is the graph, which is large for so small a network.
    weights = 4 * classifier.count_params()
    assert path.stat().st_size < float32_file.stat().st_size - saved * weights
    assert_probabilities(path, classifier, 1e-6, difference)
