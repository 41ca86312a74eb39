"""AdamWeightDecay equals the optimizer of the original and supports what Keras optimizers do."""

import json

import keras
import numpy as np
import pytest

import keras_xlnet
from keras_xlnet.checkpoints.original import ORIGINAL
from keras_xlnet.checkpoints.tasks import match_model
from keras_xlnet.training import AdamWeightDecay
from tests.training import original_steps

ATOL = 1e-6
# Adam of Keras rounds differently; the values go up to 3.
KERAS_ADAM_ATOL = 2e-6
CASES = [
    "adam_clip_tight", "adam_cos", "adam_noclip", "adam_nowarm", "adam_poly", "adamwd_cos",
    "adamwd_poly",
]  # fmt: skip
LAYER_DECAY_CASES = ["adam_layerdecay", "adamwd_layerdecay_bigeps"]


def assert_steps_equal(arrays, case, optimizer, gradients_at):
    atol = ATOL if isinstance(optimizer, AdamWeightDecay) else KERAS_ADAM_ATOL
    variables = original_steps.variables(arrays)
    for step in range(original_steps.STEPS):
        optimizer.apply(gradients_at(step, variables), variables)
        for variable in variables:
            expected = arrays[f"{case}/var/{variable.path}"][step]
            value = keras.ops.convert_to_numpy(variable)
            np.testing.assert_allclose(value, expected, rtol=0, atol=atol, err_msg=variable.path)


def test_every_golden_case_is_tested(golden):
    assert sorted(golden("optimizer.json")["cases"]) == sorted(CASES + LAYER_DECAY_CASES)


@pytest.mark.parametrize("case", CASES)
def test_steps_of_the_original(golden, case):
    # Cases without decay use Adam of Keras, which clips gradients as the original does.
    arrays, flags = golden("optimizer.npz"), golden("optimizer.json")["cases"][case]["FLAGS"]
    optimizer = original_steps.optimizer(flags)
    optimizer.global_clipnorm = flags["clip"]
    assert_steps_equal(
        arrays,
        case,
        optimizer,
        lambda step, variables: [arrays[f"grads/{v.path}"][step] for v in variables],
    )


@pytest.mark.parametrize("case", LAYER_DECAY_CASES)
def test_layer_decay_of_the_original_multiplies_clipped_gradients(golden, case):
    arrays, flags = golden("optimizer.npz"), golden("optimizer.json")["cases"][case]["FLAGS"]

    def gradients(step, variables):
        raw = [arrays[f"grads/{v.path}"][step] for v in variables]
        rates = [
            original_steps.layer_decay(v.path, flags["lr_layer_decay_rate"]) for v in variables
        ]
        return [
            rate * g for rate, g in zip(rates, original_steps.clip(raw, flags["clip"]), strict=True)
        ]

    assert_steps_equal(arrays, case, original_steps.optimizer(flags), gradients)


def test_adamw_of_keras_is_a_different_algorithm(golden):
    arrays = golden("optimizer.npz")
    flags = golden("optimizer.json")["cases"]["adamwd_poly"]["FLAGS"]
    optimizer = keras.optimizers.AdamW(
        original_steps.schedule(**flags),
        weight_decay=flags["weight_decay"],
        epsilon=flags["adam_epsilon"],
        global_clipnorm=flags["clip"],
    )
    with pytest.raises(AssertionError):
        assert_steps_equal(
            arrays,
            "adamwd_poly",
            optimizer,
            lambda step, variables: [arrays[f"grads/{v.path}"][step] for v in variables],
        )


def backbone(**kwargs):
    return keras_xlnet.models.XLNetBackbone(
        **{
            "vocabulary_size": 11,
            "num_layers": 1,
            "num_heads": 2,
            "hidden_dim": 4,
            "intermediate_dim": 8,
            **kwargs,
        }
    )


def decayed_paths(variables, optimizer=None):
    """Returns the paths of the variables that weight decay changes when all gradients are zero."""
    optimizer = optimizer or AdamWeightDecay(1.0, weight_decay=0.5)
    for variable in variables:
        variable.assign(np.ones(variable.shape))
    optimizer.apply([np.zeros(v.shape, "float32") for v in variables], variables)
    return {v.path for v in variables if np.all(np.isclose(keras.ops.convert_to_numpy(v), 0.5))}


@pytest.mark.parametrize("tied", [False, True])
def test_decays_what_the_original_decays(golden, tied):
    applies = golden("optimizer.json")["weight_decay_applies"]
    model = keras_xlnet.models.XLNetPermutationLM(backbone(tie_attention_biases=tied))
    expected = {match.path: applies[match.name] for match in match_model(model, ORIGINAL)}
    assert {v.path for v in model.trainable_variables} == set(expected)
    decayed = decayed_paths(model.trainable_variables)
    assert decayed == {path for path, applied in expected.items() if applied}


def test_decays_what_the_original_decays_in_heads(golden):
    applies = golden("optimizer.json")["weight_decay_applies"]
    model = keras_xlnet.models.XLNetTextClassifier(backbone(), num_classes=2)
    decayed = decayed_paths(model.trainable_variables)
    assert ("sequence_summary/dense/kernel" in decayed) == applies[
        "model/sequnece_summary/summary/kernel"
    ]
    assert ("sequence_summary/dense/bias" in decayed) == applies[
        "model/sequnece_summary/summary/bias"
    ]
    assert ("logits/kernel" in decayed) == applies["model/classification_tiny/logit/kernel"]
    assert ("logits/bias" in decayed) == applies["model/lm_loss/bias"]


def test_default_exclusions_match_the_names_of_the_original(golden):
    applies = golden("optimizer.json")["weight_decay_applies"]
    variables = [original_steps.variable(path, np.ones(1, "float32")) for path in applies]
    assert decayed_paths(variables) == {path for path, applied in applies.items() if applied}


def test_default_exclusions_match_whole_names_at_any_depth():
    excluded = ["bias", "logits/bias", "norm/beta"]
    excluded.append("block_0/attention_add_and_norm/norm/gamma")
    decayed = ["block_0/attention/content_bias", "gamma/kernel", "attention_biases/segment_bias"]
    variables = [original_steps.variable(p, np.ones(1, "float32")) for p in excluded + decayed]
    assert decayed_paths(variables) == set(decayed)


def test_exclusions_by_argument_and_by_method():
    variables = [keras.Variable(np.ones(2), name=name) for name in "abcd"]
    optimizer = AdamWeightDecay(1.0, weight_decay=0.5, weight_decay_exclusions=["^a$"])
    optimizer.exclude_from_weight_decay(var_list=[variables[1]], var_names=["c"])
    assert decayed_paths(variables, optimizer) == {"d"}


def fitted(optimizer, batch_size=8, **compile_kwargs):
    """Returns the weights of a small model after training on rows with many repeated tokens."""
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 5, (8, 6)), rng.normal(size=(8, 1))
    model = keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            keras.layers.Embedding(5, 4),
            keras.layers.Flatten(),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer, "mse", **compile_kwargs)
    model.fit(x, y, batch_size=batch_size, epochs=2, shuffle=False, verbose=0)
    return model.get_weights()


@pytest.fixture(scope="module")
def expected():
    return fitted(AdamWeightDecay(0.1))


def assert_weights_equal(actual, expected, atol=ATOL):
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol)


def test_accumulated_half_batches_equal_whole_ones(expected):
    halves = AdamWeightDecay(0.1, gradient_accumulation_steps=2)
    assert_weights_equal(fitted(halves, batch_size=4), expected)


def test_accumulated_gradients_are_clipped_as_their_mean():
    # Not tested with an embedding: its gradient is sparse until it is accumulated, and the norm
    # that Keras and the original compute from its slices is different from that of their sum.
    accumulated, whole = (keras.Variable(np.ones(2), name="kernel") for _ in range(2))
    optimizer = AdamWeightDecay(0.1, global_clipnorm=1e-5, gradient_accumulation_steps=2)
    for gradient in ([1.0, 2.0], [3.0, -1.0]):
        optimizer.apply([np.array(gradient, "float32")], [accumulated])
    AdamWeightDecay(0.1, global_clipnorm=1e-5).apply([np.array([2.0, 0.5], "float32")], [whole])
    assert_weights_equal([accumulated.numpy()], [whole.numpy()])


@pytest.mark.parametrize("kwargs", [{"jit_compile": True}, {"run_eagerly": True}])
def test_compiled_and_eager_steps_are_equal(expected, kwargs):
    assert_weights_equal(fitted(AdamWeightDecay(0.1), **kwargs), expected, atol=1e-5)


def test_under_a_strategy(expected):
    import tensorflow as tf

    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        assert_weights_equal(fitted(AdamWeightDecay(0.1)), expected)


def test_mixed_precision(expected):
    keras.config.set_dtype_policy("mixed_float16")
    try:
        half = fitted(AdamWeightDecay(0.1))  # Keras wraps it in a LossScaleOptimizer
    finally:
        keras.config.set_dtype_policy("float32")
    assert_weights_equal(half, expected, atol=0.02)


def applied(optimizer, steps=2, scale=1.0):
    """Returns a variable after each step with a constant gradient, and its final value."""
    variable = keras.Variable(np.ones(3, "float32"), name="kernel")
    values = []
    for _ in range(steps):
        optimizer.apply([scale * np.array([1.0, -2.0, 0.5], "float32")], [variable])
        values.append(variable.numpy())
    optimizer.finalize_variable_values([variable])
    return values, variable.numpy()


def test_loss_scale_factor():
    scaled, _ = applied(AdamWeightDecay(0.1, loss_scale_factor=1024.0), scale=1024.0)
    assert_weights_equal(scaled, applied(AdamWeightDecay(0.1))[0])


def test_moving_average_of_the_weights():
    (first, second), _ = applied(AdamWeightDecay(0.1))
    _, average = applied(AdamWeightDecay(0.1, use_ema=True, ema_momentum=0.25))
    assert_weights_equal([average], [0.25 * first + 0.75 * second])


def test_slices_of_repeated_tokens_are_summed_before_they_are_squared():
    # Adam of Keras sums the squares of the slices.
    import tensorflow as tf

    slices = tf.IndexedSlices(tf.constant([[1.0], [2.0], [4.0]]), tf.constant([1, 1, 0]), (3, 1))
    sparse, dense = (keras.Variable(np.ones((3, 1)), name="embeddings") for _ in range(2))
    AdamWeightDecay(0.1).apply([slices], [sparse])
    AdamWeightDecay(0.1).apply([np.array([[4.0], [3.0], [0.0]], "float32")], [dense])
    assert_weights_equal([sparse.numpy()], [dense.numpy()])


def test_config_round_trip():
    optimizer = AdamWeightDecay(
        keras_xlnet.training.WarmupPolynomialDecay(0.1, 10, 2),
        beta_1=0.8,
        beta_2=0.99,
        epsilon=1e-8,
        weight_decay=0.2,
        weight_decay_exclusions=["bias"],
        global_clipnorm=1.0,
        gradient_accumulation_steps=2,
    )
    config = keras.optimizers.serialize(optimizer)
    assert config["registered_name"] == "keras_xlnet>AdamWeightDecay"
    again = keras.optimizers.deserialize(json.loads(json.dumps(config)))
    assert again.get_config() == optimizer.get_config()
    assert_weights_equal(applied(again, 4)[0], applied(optimizer, 4)[0], atol=0)


def test_saved_model_trains_on(tmp_path):
    x, y = np.ones((4, 3)), np.ones((4, 1))
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(AdamWeightDecay(0.1), "mse", run_eagerly=True)
    model.fit(x, y, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for each in (model, loaded):
        each.run_eagerly = True
        each.fit(x, y, verbose=0)
    assert_weights_equal(loaded.get_weights(), model.get_weights(), atol=0)


@pytest.mark.parametrize("weight_decay", [-0.1, None, True, "0.1", float("nan"), float("inf")])
def test_wrong_weight_decay(weight_decay):
    with pytest.raises(ValueError, match="`weight_decay` must be a number, 0 or above"):
        AdamWeightDecay(weight_decay=weight_decay)


@pytest.mark.parametrize("exclusions", ["bias", ["(bias"], [1]])
def test_wrong_exclusions(exclusions):
    with pytest.raises(ValueError, match="`weight_decay_exclusions` must be a list of regular"):
        AdamWeightDecay(weight_decay_exclusions=exclusions)


def layered(path):
    """A path of the original with the name that layers have here."""
    return path.replace("model/transformer/layer_", "model/transformer/block_")


def test_layer_decay_of_gradients_is_the_originals(golden):
    arrays = golden("optimizer.npz")
    flags = golden("optimizer.json")["cases"]["adamwd_layerdecay_bigeps"]["FLAGS"]
    given = original_steps.variables(arrays)
    variables = [original_steps.variable(layered(v.path), v.numpy()) for v in given]
    optimizer = AdamWeightDecay(
        original_steps.schedule(**flags),
        weight_decay=flags["weight_decay"],
        epsilon=flags["adam_epsilon"],
        global_clipnorm=flags["clip"],
        layer_decay=flags["lr_layer_decay_rate"],
        layer_decay_of="gradient",
    )
    for step in range(original_steps.STEPS):
        optimizer.apply([arrays[f"grads/{v.path}"][step] for v in given], variables)
        for name, variable in zip([v.path for v in given], variables, strict=True):
            expected = arrays[f"adamwd_layerdecay_bigeps/var/{name}"][step]
            np.testing.assert_allclose(variable, expected, rtol=0, atol=ATOL, err_msg=name)


def first_steps(model, **kwargs):
    """How much each variable changes in a step when all gradients are 1."""
    before = [keras.ops.convert_to_numpy(v) for v in model.trainable_variables]
    optimizer = AdamWeightDecay(0.01, weight_decay=0.0, epsilon=1e-8, **kwargs)
    gradients = [np.ones(v.shape, "float32") for v in model.trainable_variables]
    optimizer.apply(gradients, model.trainable_variables)
    after = [keras.ops.convert_to_numpy(v) for v in model.trainable_variables]
    changes = {
        v.path: float(np.abs(a - b).max())
        for v, a, b in zip(model.trainable_variables, before, after, strict=True)
    }
    for variable, value in zip(model.trainable_variables, before, strict=True):
        variable.assign(value)
    return changes


def test_each_layer_has_its_learning_rate():
    model = keras_xlnet.models.XLNetTextClassifier(backbone(num_layers=3), num_classes=2)
    plain = first_steps(model)
    layerwise = first_steps(model, layer_decay=0.5)
    for path, change in plain.items():
        layer = next((i for i in range(3) if f"block_{i}/" in path), 2)
        assert layerwise[path] == pytest.approx(change * 0.5 ** (2 - layer), rel=1e-3), path
    # The choice of the original does nearly nothing under Adam.
    scaled = first_steps(model, layer_decay=0.5, layer_decay_of="gradient")
    assert scaled == pytest.approx(plain, rel=1e-3)


def test_layer_decay_is_saved_and_checked():
    optimizer = AdamWeightDecay(layer_decay=0.75, layer_decay_of="gradient")
    again = AdamWeightDecay.from_config(optimizer.get_config())
    assert (again.layer_decay, again.layer_decay_of) == (0.75, "gradient")
    with pytest.raises(ValueError, match="`layer_decay` must be a number, from 0 to 1"):
        AdamWeightDecay(layer_decay=1.5)
    with pytest.raises(ValueError, match="`layer_decay_of` must be one of"):
        AdamWeightDecay(layer_decay_of="loss")
