import sys

import numpy as np
import pytest

from keras_xlnet.models import XLNetPermutationLM
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.examples import EXAMPLES

sys.path.insert(0, str(EXAMPLES))
from results_models import Kind, Trainer, WarmupCosine
from results_tasks import Examples, Recipe

RECIPE = Recipe(24, epochs=1, scratch_epochs=2, batch_size=4, fewest_steps=3)
TEXTS = np.array(
    ["a cat", "the dog sat on the cat and the mat " * 3, "is it so?", "no", "it is a dog", "x y"],
    dtype=object,
)
SINGLE = Kind(is_classes=True, is_pair=False)
CLASSES = Examples(TEXTS, np.array([0, 1, 0, 1, 0, 1], "int32"))
NUMBERS = Examples(
    np.stack([TEXTS, TEXTS[::-1]], axis=1), np.array([1, 4, 2, 5, 3, 0], "float32") * 100
)


@pytest.fixture(scope="module")
def trainer(tiny_preset):
    return Trainer(tiny_preset)


@pytest.fixture(scope="module")
def preprocessor(golden_dir):
    return XLNetTextClassifierPreprocessor(XLNetTokenizer(golden_dir / "spiece.model"), 24)


def test_a_run_does_not_depend_on_those_before_it(trainer, tiny_preset):
    first = trainer.train(CLASSES, RECIPE, 1, from_scratch=False)(TEXTS)
    model = next(iter(trainer.compiled.values()))
    weights = model.get_weights()
    trainer.train(CLASSES, RECIPE, 2, from_scratch=True)
    assert not np.allclose(model.get_weights()[0], weights[0], atol=1e-3)
    np.testing.assert_array_equal(trainer.train(CLASSES, RECIPE, 1, False)(TEXTS), first)
    for again, weight in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_allclose(again, weight, atol=1e-6)


def test_starts_from_the_preset_or_from_random_weights(trainer, tiny_preset):
    pretrained = XLNetPermutationLM.from_preset(tiny_preset).backbone
    fine_tuned = trainer._fresh(SINGLE, 0, 0.1, from_scratch=False)
    from_scratch = trainer._fresh(SINGLE, 0, 0.1, from_scratch=True)
    for model in (fine_tuned, from_scratch):
        assert not model.backbone.bidirectional_data and model.backbone.memory_length is None
        assert model.backbone.dropout == model.backbone.attention_dropout == 0.1
    kernels = [
        np.asarray(backbone.blocks[0].attention.query_dense.kernel)
        for backbone in (pretrained, fine_tuned.backbone, from_scratch.backbone)
    ]
    np.testing.assert_array_equal(kernels[0], kernels[1])
    assert kernels[2].std() > 2 * kernels[1].std()  # Glorot's, for a width of 16.


def test_numbers_come_back_on_their_scale(trainer):
    predict = trainer.train(NUMBERS, RECIPE, 0, from_scratch=False)
    predictions = predict(NUMBERS.texts)
    assert predictions.shape == (6,) and predictions.dtype.kind == "f"
    assert 0 < predictions.mean() < 500


def test_identity(trainer, tiny_preset):
    assert trainer.identity(True) in trainer.identity(False)
    assert Trainer(tiny_preset).identity(False) == trainer.identity(False)


def test_pairs_are_compared_and_single_texts_pooled(trainer):
    trainer.train(CLASSES, RECIPE, 1, from_scratch=False)
    trainer.train(NUMBERS, RECIPE, 1, from_scratch=False)
    kinds = {key[0]: model.pooling for key, model in trainer.compiled.items()}
    assert kinds[Kind(is_classes=False, is_pair=True)] == "pair"
    assert kinds[SINGLE] == "mean"


def test_learning_rate():
    schedule = WarmupCosine(2.0, 30)
    assert [schedule.rate(step) for step in (0, 2)] == pytest.approx([2 / 3, 2.0])
    assert schedule.rate(3) == 2.0 and schedule.rate(3 + 27 // 2) == pytest.approx(1.0, abs=0.1)
    assert 0 < schedule.rate(29) < 0.01
