"""Rules that pick weights by name say for the weights of real models what the original's say."""

import re

import keras
import pytest

from keras_xlnet import models
from keras_xlnet.checkpoints.original import ORIGINAL
from keras_xlnet.checkpoints.tasks import match_model
from keras_xlnet.training import AdamWeightDecay, LambWeightDecay, layout_map
from tests.training import original_steps

NUM_LAYERS = 3


def backbone(**arguments):
    return models.XLNetBackbone(20, NUM_LAYERS, 2, 8, 12, **arguments)


def language_model(**arguments):
    return models.TransformerXLLanguageModel(20, NUM_LAYERS, 2, 8, 12, **arguments)


MAKE = {
    "backbone": backbone,
    "tied_backbone": lambda: backbone(tie_attention_biases=True),
    "permutation_lm": lambda: models.XLNetPermutationLM(backbone(tie_attention_biases=True)),
    "stateful_permutation_lm": lambda: models.XLNetPermutationLM(
        backbone(memory_length=3), stateful=True, batch_size=2
    ),
    "text_classifier": lambda: models.XLNetTextClassifier(backbone(), 2),
    "attention_pooling": lambda: models.XLNetTextClassifier(backbone(), 2, pooling="attention"),
    "text_regressor": lambda: models.XLNetTextRegressor(backbone()),
    "token_classifier": lambda: models.XLNetTokenClassifier(backbone(), 2),
    "multiple_choice": lambda: models.XLNetMultipleChoice(backbone()),
    "question_answering": lambda: models.XLNetQuestionAnswering(backbone()),
    "multi_task": lambda: models.MultiTask({"topic": models.XLNetTextClassifier(backbone(), 2)}),
    "ranker": lambda: models.XLNetRanker(backbone()),
    "text_embedder": lambda: models.XLNetTextEmbedder(backbone()),
    "language_model": language_model,
    "adaptive_language_model": lambda: language_model(cutoffs=(5, 9), div_val=2),
    "stateful_language_model": lambda: language_model(
        cutoffs=(5, 9), memory_length=3, stateful=True, batch_size=2
    ),
}


@pytest.fixture(params=MAKE)
def model(request):
    return MAKE[request.param]()


def test_every_public_model_is_here():
    made = {type(make()).__name__ for make in MAKE.values()}
    # `Task` is the base class of others.
    public = [getattr(models, name) for name in models.__all__ if name != "Task"]
    assert made == {cls.__name__ for cls in public if issubclass(cls, keras.Model)}


def original_names(model):
    """Returns `{path: name in the original}`, of the backbone's weights if the head has none."""
    try:
        matches = match_model(model, ORIGINAL)
    except ValueError:
        matches = match_model(model.backbone, ORIGINAL)
    # The names in Transformer-XL's original have no "model/".
    return {m.path: m.name if "/transformer/" in m.name else f"model/{m.name}" for m in matches}


def test_the_rules_of_the_original_are_those_that_it_was_seen_to_follow(golden):
    recorded = golden("optimizer.json")
    for name, applies in recorded["weight_decay_applies"].items():
        assert original_steps.is_decayed(name) == applies, name
    for flags, factors in recorded["layer_decay_gradient_multipliers"].items():
        num_layers, rate = re.fullmatch(r"n_layer=(\d+),lr_layer_decay_rate=(.+)", flags).groups()
        for name, factor in factors.items():
            found = original_steps.layer_decay(name, float(rate), int(num_layers))
            assert found == pytest.approx(factor), name


@pytest.mark.parametrize("optimizer_class", [AdamWeightDecay, LambWeightDecay])
def test_layer_decay_of_gradients_is_the_originals(model, optimizer_class):
    names = original_names(model)
    optimizer = optimizer_class(layer_decay=0.5, layer_decay_of="gradient")
    optimizer.build(model.trainable_variables)
    for index, variable in enumerate(model.trainable_variables):
        # Heads that the original does not have are beside the layers, as its own are.
        expected = original_steps.layer_decay(names.get(variable.path, ""), 0.5, NUM_LAYERS)
        assert optimizer._layer_rates[index] == expected, variable.path


def test_layer_decay_of_the_learning_rate_is_for_all_weights_of_a_block(model):
    optimizer = AdamWeightDecay(layer_decay=0.5)
    optimizer.build(model.trainable_variables)
    blocks = getattr(model, "backbone", model).blocks
    # Tied attention biases belong to no block.
    layers = {v.path: i for i, b in enumerate(blocks) for v in b.weights if "block_" in v.path}
    assert len(layers) >= 10 * NUM_LAYERS
    for index, variable in enumerate(model.trainable_variables):
        layer = layers.get(variable.path, NUM_LAYERS - 1)
        expected = 0.5 ** (NUM_LAYERS - 1 - layer)
        assert optimizer._layer_rates[index] == expected, variable.path


@pytest.mark.parametrize("optimizer_class", [AdamWeightDecay, LambWeightDecay])
def test_weight_decay_is_for_what_the_original_decays(model, optimizer_class):
    names = original_names(model)
    optimizer = optimizer_class()
    optimizer.build(model.trainable_variables)
    for index, variable in enumerate(model.trainable_variables):
        name = names.get(variable.path, variable.path)
        # Those of the adaptive softmax are "b" in the original, which trains without weight decay.
        expected = original_steps.is_decayed("bias" if name.endswith("/b") else name)
        if "cluster_b" in name:
            expected = False
        assert optimizer._decayed[index] == expected, variable.path


def test_low_rank_matrices_have_the_rate_of_their_block(model):
    model.enable_lora(2, projections=["query", "key", "value", "position", "output"])
    optimizer = AdamWeightDecay(layer_decay=0.5, layer_decay_of="gradient")
    optimizer.build(model.trainable_variables)
    matrices = [v for v in model.trainable_variables if "lora_kernel" in v.path]
    assert len(matrices) == NUM_LAYERS * 5 * 2
    for index, variable in enumerate(model.trainable_variables):
        if "lora_kernel" not in variable.path:
            continue
        layer = int(re.search(r"block_(\d)", variable.path)[1])
        assert optimizer._layer_rates[index] == 0.5 ** (NUM_LAYERS - 1 - layer)


# The weights whose sizes grow with the vocabulary or with the square of the width of the model.
LARGE = re.compile(
    r"token_embedding/(embeddings|table_\d)|block_\d/attention/\w+/kernel"
    r"|block_\d/feed_forward/\w+/kernel|memory_\w+/.*"
)
SMALL = re.compile(
    r".*norm/(gamma|beta)|block_\d/feed_forward/output/bias|mask_embedding/.*|(\w+_)?logits/.*"
    r"|sequence_summary/.*|answer_class/.*|softmax/.*|token_embedding/projection_\d"
)


def test_large_weights_are_split_over_devices(model):
    mesh = keras.distribution.DeviceMesh((1, 1), ["batch", "model"], devices=["cpu:0"])
    layouts = layout_map(mesh)
    for weight in model.weights:
        layout = layouts[weight.path]
        assert layout is not None or not LARGE.fullmatch(weight.path), weight.path
        assert layout is None or not SMALL.fullmatch(weight.path), weight.path
        assert layout is None or len(layout.axes) == len(weight.shape), weight.path
