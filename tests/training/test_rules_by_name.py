"""Rules that pick weights by their names, on the names of real models."""

import keras
import pytest

from keras_xlnet.checkpoints.tasks import match_model
from keras_xlnet.models import (
    TransformerXLLanguageModel,
    XLNetBackbone,
    XLNetMultipleChoice,
    XLNetPermutationLM,
    XLNetQuestionAnswering,
    XLNetRanker,
    XLNetTextClassifier,
    XLNetTextRegressor,
    XLNetTokenClassifier,
)
from keras_xlnet.training import AdamWeightDecay, LambWeightDecay
from tests.training import original_steps

NUM_LAYERS = 3


def backbone(**arguments):
    return XLNetBackbone(40, NUM_LAYERS, 2, 16, 32, **arguments)


MODELS = {
    "backbone": backbone,
    "tied_biases": lambda: backbone(tie_attention_biases=True),
    "permutation_lm": lambda: XLNetPermutationLM(backbone()),
    "text_classifier": lambda: XLNetTextClassifier(backbone(), 2),
    "attention_pooling": lambda: XLNetTextClassifier(backbone(), 2, pooling="attention"),
    "pairs": lambda: XLNetTextClassifier(backbone(), 2, pooling="pair"),
    "text_regressor": lambda: XLNetTextRegressor(backbone()),
    "token_classifier": lambda: XLNetTokenClassifier(backbone(), 2),
    "question_answering": lambda: XLNetQuestionAnswering(backbone()),
    "multiple_choice": lambda: XLNetMultipleChoice(backbone()),
    "ranker": lambda: XLNetRanker(backbone()),
    "transformer_xl": lambda: TransformerXLLanguageModel(
        40, NUM_LAYERS, 2, 16, 32, memory_length=4, cutoffs=[10, 20], div_val=2
    ),
}
ATTENTION_BIASES = ("content_bias", "position_bias", "segment_bias")


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


@pytest.mark.parametrize("optimizer_class", [AdamWeightDecay, LambWeightDecay])
def test_offsets_scales_and_biases_are_not_decayed(optimizer_class, model):
    optimizer = optimizer_class()
    optimizer.build(model.trainable_variables)
    for variable, is_decayed in zip(model.trainable_variables, optimizer._decayed, strict=True):
        name = variable.path.rsplit("/", 1)[-1]
        is_excluded = name in ("gamma", "beta") or ("bias" in name and name not in ATTENTION_BIASES)
        assert is_decayed != is_excluded, variable.path
        # What is excluded are vectors, and all vectors but those that are directions of attention.
        if len(variable.shape) > 1:
            assert is_decayed, variable.path


def rates_of(model, layer_decay_of):
    optimizer = AdamWeightDecay(layer_decay=0.5, layer_decay_of=layer_decay_of)
    optimizer.build(model.trainable_variables)
    paths = [variable.path for variable in model.trainable_variables]
    return dict(zip(paths, optimizer._layer_rates, strict=True))


def test_layers_are_found(model):
    rates = rates_of(model, "learning_rate")
    for path, rate in rates.items():
        layers = [i for i in range(NUM_LAYERS) if f"block_{i}/" in path]
        assert rate == (0.5 ** (NUM_LAYERS - 1 - layers[0]) if layers else 1.0), path
    assert {0.25, 0.5, 1.0} == set(rates.values())


@pytest.mark.parametrize("name", ["backbone", "tied_biases", "permutation_lm", "text_classifier"])
def test_gradients_are_scaled_by_the_original_names(name, monkeypatch):
    model = MODELS[name]()
    monkeypatch.setattr(original_steps, "NUM_LAYERS", NUM_LAYERS)
    found = rates_of(model, "gradient")
    expected = {
        m.path: original_steps.layer_decay(m.name, 0.5) for m in match_model(model, "original")
    }
    assert found == {path: expected[path] for path in found}
    scaled = {path for path, rate in found.items() if rate != 1.0}
    assert scaled and not any("segment_embeddings" in path for path in scaled)


def test_rules_hold_in_a_model_of_a_user():
    inner = backbone()
    inputs = inner.input
    outputs = keras.layers.Dense(1)(inner(inputs)["sequence_output"])
    model = keras.Model(inputs, outputs)
    rates = rates_of(model, "gradient")
    assert {rate for path, rate in rates.items() if "query/kernel" in path} == {0.25, 0.5, 1.0}
    assert {rate for path, rate in rates.items() if path.endswith("content_bias")} == {1.0}
