"""Permutation masks: the original's numbers, no leaks, every order alike."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.layers import PermutationMaskGenerator

SEP, CLS = 4, 3


@pytest.mark.parametrize("case", range(5))
def test_one_half_equals_the_original(golden, case):
    arrays, name = golden("data.npz"), f"lp{case}"
    generator = PermutationMaskGenerator(
        None, permutation_length=golden("data.json")["local_perm_cases"][case]["perm_size"]
    )
    features = generator.generate(
        arrays[f"{name}_in_inputs"][None],
        arrays[f"{name}_in_is_masked"][None],
        permutations=arrays[f"{name}_in_permutation"][None, None],
    )
    np.testing.assert_array_equal(
        features["permutation_mask"][0], arrays[f"{name}_out_perm_mask"] == 0
    )
    np.testing.assert_array_equal(features["target_mask"][0], arrays[f"{name}_out_target_mask"])
    np.testing.assert_array_equal(features["labels"][0], arrays[f"{name}_in_inputs"])


@pytest.mark.parametrize("variant", ["bi", "uni"])
@pytest.mark.parametrize("num_predictions", [6, None])
def test_whole_segments_equal_the_original(golden, variant, num_predictions):
    arrays = golden("data.npz")
    permutations = np.stack([arrays["perm_first"], arrays["perm_second"]])[None]
    generator = PermutationMaskGenerator(
        num_predictions, permutation_length=len(arrays["perm_first"]), reuse_length=16
    )
    name = f"{variant}_feat" if num_predictions else f"{variant}_featfull"
    for batch in range(len(arrays[f"{name}_target"])):
        rows = slice(4 * batch, 4 * batch + 4)
        features = generator.generate(
            arrays[f"{variant}_rec_input"][rows],
            arrays[f"{variant}_rec_is_masked"][rows],
            permutations=permutations,
        )
        np.testing.assert_array_equal(
            features["permutation_mask"], arrays[f"{name}_perm_mask"][batch] == 0
        )
        weight = arrays[f"{name}_target_mask"][batch]
        np.testing.assert_array_equal(features["sample_weight"], weight)
        labels = arrays[f"{name}_target"][batch]
        # In the form of full length the original holds what follows where `<sep>` stands.
        scored = weight > 0 if num_predictions is None else ...
        np.testing.assert_array_equal(features["labels"][scored], labels[scored])
        if num_predictions:
            positions = arrays[f"{name}_target_mapping"][batch].argmax(axis=-1)
            np.testing.assert_array_equal(features["target_positions"], positions)


def test_numpy_eager_graph_and_xla_agree(rng):
    generator = PermutationMaskGenerator(5, permutation_length=4, reuse_length=8)
    token_ids = rng.integers(3, 9, (6, 16)).astype("int32")
    inputs = (
        token_ids,
        rng.random(token_ids.shape) < 0.4,
        rng.random(token_ids.shape) < 0.9,
        rng.random((6, generator.num_draws(16)), "float32"),
    )

    def call(token_ids, target_mask, padding_mask, draws):
        return generator(token_ids, target_mask, padding_mask, draws=draws)

    expected = generator.generate(*inputs[:3], draws=inputs[3])
    for function in (call, tf.function(call), tf.function(call, jit_compile=True)):
        actual = function(*map(tf.constant, inputs))
        assert set(actual) == set(expected)
        for key, value in expected.items():
            np.testing.assert_array_equal(actual[key], value)


def test_no_target_learns_of_itself():
    rng = np.random.default_rng(0)
    num_targets = 0
    for _ in range(200):
        length = 4 * int(rng.integers(2, 9))
        generator = PermutationMaskGenerator(
            int(rng.integers(1, length)), permutation_length=4, reuse_length=rng.choice([None, 4])
        )
        token_ids = rng.integers(3, 8, (32, length))
        features = generator.generate(
            token_ids,
            rng.random(token_ids.shape) < rng.random(),
            padding_mask=rng.random(token_ids.shape) < 0.9,
            draws=rng,
        )
        rows = (features[key] for key in ("permutation_mask", "target_positions", "sample_weight"))
        assert generator.verify(*rows) == 0
        num_targets += features["sample_weight"].sum()
    assert num_targets > 10_000


def brute_force_leaks(mask, target_positions, num_layers):
    """Follows every token's knowledge layer by layer, in sets."""
    leaks = 0
    for see, targets in zip(mask, target_positions, strict=True):
        length = len(see)
        content = [{i} for i in range(length)]
        query = [set() for _ in targets]
        for _ in range(num_layers):
            # A row that sees nothing attends to all alike.
            rows = [np.flatnonzero(see[t]) if see[t].any() else range(length) for t in targets]
            query = [
                q.union(*(content[j] for j in row)) for q, row in zip(query, rows, strict=True)
            ]
            content = [
                content[i].union(*(content[j] for j in np.flatnonzero(see[i])))
                for i in range(length)
            ]
        leaks += sum(t in q for t, q in zip(targets, query, strict=True))
    return leaks


@pytest.mark.parametrize("density", [0.1, 0.2, 0.4])
def test_verify_catches_every_leak_that_layers_make(density):
    rng = np.random.default_rng(1)
    mask = rng.random((40, 7, 7)) < density
    targets = np.array([rng.permutation(7)[:3] for _ in range(40)])
    expected = brute_force_leaks(mask, targets, num_layers=8)
    assert expected > 0
    assert PermutationMaskGenerator.verify(mask, targets) == expected


def test_verify_sees_through_a_second_token():
    # 0 does not see itself, but 1, which sees 0: a leak that two layers make and one does not.
    mask = np.array([[[0, 1, 0], [1, 0, 0], [0, 0, 0]]], "bool")
    assert brute_force_leaks(mask, [[0]], num_layers=1) == 0
    assert brute_force_leaks(mask, [[0]], num_layers=2) == 1
    assert PermutationMaskGenerator.verify(mask, np.array([[0]])) == 1
    assert PermutationMaskGenerator.verify(mask, np.array([[0]]), np.array([[0.0]])) == 0


def test_context_that_sees_the_targets_leaks():
    # Ordinary tokens come first in the order. Were they to see targets, these would learn of
    # themselves through their neighbours.
    target = np.array([False, True, False, True])
    ranks = np.array([-1, 0, -1, 1])
    right = (ranks[:, None] > ranks) | ~target
    assert PermutationMaskGenerator.verify(right[None], np.array([[1, 3]])) == 0
    leaking = right | ~target[:, None]
    assert PermutationMaskGenerator.verify(leaking[None], np.array([[1, 3]])) == 2


def test_all_orders_of_four_tokens_are_alike():
    """The paper's worked example: 24 orders, each drawn as often as the others."""
    num_rows = 24_000
    generator = PermutationMaskGenerator(4, seed=3)
    features = generator.generate(
        np.tile([[9, 8, 7, 6]], (num_rows, 1)), np.ones((num_rows, 4), "bool")
    )
    # Who sees k others has turn k.
    orders, counts = np.unique(features["permutation_mask"].sum(axis=2), axis=0, return_counts=True)
    assert sorted(map(tuple, orders)) == list(itertools.permutations(range(4)))
    expected = num_rows / 24
    chi_squared = np.sum((counts - expected) ** 2) / expected
    assert chi_squared < 49.7  # 23 degrees of freedom, p = 0.001
    # The first in the order may see nothing, so it is not scored.
    np.testing.assert_array_equal(features["sample_weight"].sum(axis=1), 3)


def test_functional_tokens_are_never_targets(rng):
    token_ids = rng.integers(3, 7, (50, 12))
    features = PermutationMaskGenerator(12).generate(
        token_ids, np.ones((50, 12), "bool"), draws=rng
    )
    labels = features["labels"][features["sample_weight"] > 0]
    assert labels.size and not np.isin(labels, (SEP, CLS)).any()


def test_targets_beyond_the_number_stay_context():
    generator = PermutationMaskGenerator(2, seed=0)
    features = generator.generate(np.array([[9, 9, 8, 7, 6]]), np.array([[0, 1, 1, 1, 1]]))
    np.testing.assert_array_equal(features["target_positions"], [[1, 2]])
    assert features["permutation_mask"][0, :, 3:].all()


def test_a_seed_fixes_what_is_drawn():
    token_ids, targets = np.tile(np.arange(5, 21), (3, 1)), np.ones((3, 16), "bool")
    first, again = (PermutationMaskGenerator(16, seed=5) for _ in range(2))
    a, b, c = (g(token_ids, targets)["permutation_mask"] for g in (first, first, again))
    np.testing.assert_array_equal(a, c)
    assert np.any(np.asarray(a) != np.asarray(b))


def test_every_replica_draws_its_own_order(two_replicas):
    with two_replicas.scope():
        generator = PermutationMaskGenerator(16, seed=5)
    inputs = (tf.tile(tf.range(5, 21)[None], (3, 1)), tf.ones((3, 16), "bool"))
    run = tf.function(lambda: two_replicas.run(generator, inputs)["permutation_mask"])
    a, b = two_replicas.experimental_local_results(run())
    assert np.any(a.numpy() != b.numpy())


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_predictions": -1}, "`num_predictions` must be a positive integer"),
        ({"num_predictions": 9}, "num_predictions=9, length 8"),
        ({"num_predictions": 2, "reuse_length": 8}, "reuse_length=8, length 8"),
        ({"num_predictions": 2, "permutation_length": 3}, "permutation_length=3, lengths"),
        ({"reuse_length": 5}, r"permutation_length=3, lengths \[5, 3\]"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        PermutationMaskGenerator(**arguments)(np.full((1, 8), 9), np.ones((1, 8), "bool"))
