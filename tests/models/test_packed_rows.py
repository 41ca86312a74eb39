"""Several texts in a row: outputs and gradients are those of each text in a row of its own."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_xlnet.layers import AttentionMask
from keras_xlnet.models import (
    MultiTask,
    XLNetBackbone,
    XLNetMultipleChoice,
    XLNetQuestionAnswering,
    XLNetRanker,
    XLNetTextClassifier,
    XLNetTextEmbedder,
    XLNetTextRegressor,
    XLNetTokenClassifier,
)
from keras_xlnet.preprocessing.rows_of_texts import RowPlan, place_texts
from tests.small_models import small_backbone

LENGTH = 9


def new_backbone(**arguments):
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    backbone = small_backbone(vocabulary_size=40, num_layers=2, **arguments)
    for weight in backbone.weights:
        if "float" in str(weight.dtype):
            weight.assign(rng.normal(0, 0.3, weight.shape))
    return backbone


BACKBONES = {
    "plain": new_backbone(),
    "uni": new_backbone(attention_type="uni"),
    "clamped": new_backbone(clamp_length=3, tie_attention_biases=True),
    "chunks": new_backbone(attention_chunk_size=4),
}


def random_texts(lengths, side, seed=0):
    rng = np.random.default_rng(seed)
    lengths = np.array(lengths)[:, np.newaxis]
    place = np.arange(LENGTH)
    mask = place < lengths if side == "right" else place >= LENGTH - lengths
    return {
        "token_ids": np.where(mask, rng.integers(5, 40, mask.shape), 0).astype("int32"),
        "segment_ids": np.where(mask, rng.integers(0, 3, mask.shape), 4).astype("int32"),
        "padding_mask": mask,
    }


def random_packing(mask, row_length, seed=0):
    """Texts at random places of random rows, with gaps between them."""
    rng = np.random.default_rng(seed)
    mask = mask.reshape(-1, mask.shape[-1])
    rows = []
    for text in rng.permutation(len(mask)):
        tokens = [*[-1] * rng.integers(3), *(np.flatnonzero(mask[text]) + text * mask.shape[1])]
        if not rows or len(rows[-1]) + len(tokens) > row_length or rng.random() < 0.2:
            rows.append([])
        rows[-1] += tokens
    rows = [rows[i] for i in rng.permutation(len(rows))] + [[]]  # The last one is empty.
    return np.array([row + [-1] * (row_length - len(row)) for row in rows], "int32")


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, LENGTH), min_size=5, max_size=5),
    side=st.sampled_from(["left", "right"]),
    kind=st.sampled_from(sorted(BACKBONES)),
    seed=st.integers(0, 1000),
)
def test_outputs_are_those_of_each_text_alone(lengths, side, kind, seed):
    inputs = random_texts(lengths, side, seed)
    packing = random_packing(inputs["padding_mask"], 24, seed)
    outputs = [
        ops.convert_to_numpy(BACKBONES[kind](given)["sequence_output"])
        for given in (inputs, {**inputs, "packing": packing})
    ]
    mask = inputs["padding_mask"]
    np.testing.assert_allclose(outputs[1][mask], outputs[0][mask], atol=1e-5)
    assert (outputs[1][~mask] == 0).all()


def gradients(model, inputs, labels):
    """The changes of the trained weights in a step with SGD of rate 1."""
    before = [ops.convert_to_numpy(w).astype("float64") for w in model.trainable_weights]
    loss = model.train_on_batch(inputs, labels)
    changes = []
    for weight, value in zip(model.trainable_weights, before, strict=True):
        changes.append(value - ops.convert_to_numpy(weight))
        weight.assign(value)
    return loss, changes


@pytest.mark.parametrize(
    "kind", ["plain", "bfloat16", "lora", "gradient_checkpointing", "attention_chunk_size"]
)
def test_gradients_are_the_same(kind):
    arguments = {
        "bfloat16": {"dtype": "mixed_bfloat16"},
        "gradient_checkpointing": {"gradient_checkpointing": True},
        "attention_chunk_size": {"attention_chunk_size": 5},
    }
    model = XLNetTextClassifier(new_backbone(**arguments.get(kind, {})), 3, dropout=0.0)
    if kind == "lora":
        model.enable_lora(2)
    model.compile(keras.optimizers.SGD(1.0), "sparse_categorical_crossentropy", jit_compile=False)
    inputs, labels = random_texts([9, 1, 4, 6, 2, 7, 3], "left"), np.arange(7) % 3
    packing = random_packing(inputs["padding_mask"], 20)
    alone = gradients(model, inputs, labels)
    packed = gradients(model, {**inputs, "packing": packing}, labels)
    # Products of bfloat16 are summed in another order.
    tolerance = 3e-2 if kind == "bfloat16" else 1e-5
    np.testing.assert_allclose(packed[0], alone[0], rtol=tolerance)
    sizes = [np.abs(change).max() for change in alone[1]]
    assert max(sizes) > 1e-3
    for found, expected in zip(packed[1], alone[1], strict=True):
        np.testing.assert_allclose(found, expected, atol=tolerance * max(1.0, max(sizes)))


TASKS = {
    "classifier": lambda backbone: XLNetTextClassifier(backbone, 3),
    "windows": lambda backbone: XLNetTextClassifier(
        backbone, 3, long_document="windows", segment_length=LENGTH
    ),
    "regressor": lambda backbone: XLNetTextRegressor(backbone, pooling="mean"),
    "several": lambda backbone: MultiTask(
        {"topic": XLNetTextClassifier(backbone, 3), "stars": XLNetTextRegressor(backbone)}
    ),
    "tokens": lambda backbone: XLNetTokenClassifier(backbone, 3),
    "answers": lambda backbone: XLNetQuestionAnswering(backbone),
    "choices": lambda backbone: XLNetMultipleChoice(backbone),
    "ranker": lambda backbone: XLNetRanker(backbone),
    "embedder": lambda backbone: XLNetTextEmbedder(backbone),
}


@pytest.mark.parametrize("task", TASKS)
def test_heads_do_not_know(task):
    model = TASKS[task](BACKBONES["plain"])
    inputs = random_texts([9, 5, 7, 6, 5, 8], "left")  # At least as many tokens as beams.
    packing = random_packing(inputs["padding_mask"], 20)
    if task in ("choices", "ranker", "embedder"):
        inputs = {key: value.reshape(3, 2, LENGTH) for key, value in inputs.items()}
    mask = inputs["padding_mask"] if task == "tokens" else ...
    alone, packed = (
        keras.tree.map_structure(ops.convert_to_numpy, model(given))
        for given in (inputs, {**inputs, "packing": packing})
    )
    for found, expected in zip(*map(keras.tree.flatten, (packed, alone)), strict=True):
        if task == "answers":  # The order of equal scores depends on their last digit.
            found, expected = np.sort(found), np.sort(expected)
        if found.dtype == "float32":
            np.testing.assert_allclose(found[mask], expected[mask], atol=1e-5)


@pytest.mark.parametrize("arguments", [{"memory_length": 4}, {"bidirectional_data": True}])
def test_what_cannot_be_packed_refuses_it(arguments):
    inputs = {**random_texts([3, 5], "left"), "packing": np.zeros((1, 8), "int32")}
    with pytest.raises(ValueError, match=r"does not take: \['packing'\].*\(packing needs"):
        XLNetBackbone(40, 1, 2, 16, 32, **arguments)(inputs)


def test_tasks_refuse_what_they_cannot_pack():
    inputs = {**random_texts([3, 5], "left"), "packing": np.zeros((1, 8), "int32")}
    model = XLNetTextClassifier(BACKBONES["plain"], 3, pooling="pair")
    with pytest.raises(ValueError, match=r"does not take: \['packing'\]"):
        model(inputs)
    symbolic = {key: keras.Input((None,), dtype=x.dtype) for key, x in inputs.items()}
    with pytest.raises(ValueError, match="`packing` of a XLNetTextClassifier cannot be a symbolic"):
        XLNetTextClassifier(BACKBONES["plain"], 3)(symbolic)


def test_a_functional_model_packs():
    inputs = random_texts([9, 5, 7, 6, 5, 8], "left")
    inputs["packing"] = random_packing(inputs["padding_mask"], 20)
    symbolic = {key: keras.Input((None,), dtype=x.dtype) for key, x in inputs.items()}
    model = keras.Model(symbolic, BACKBONES["plain"](symbolic)["sequence_output"])
    expected = BACKBONES["plain"](inputs)["sequence_output"]
    np.testing.assert_allclose(model(inputs), expected, atol=1e-6)
    assert "packing" not in BACKBONES["plain"].input


def test_places_are_checked():
    inputs = random_texts([3, 5], "left")
    for place in (-2, 2 * LENGTH):
        with pytest.raises(ValueError, match="`packing` must be from -1 to 17.*18 token_ids"):
            BACKBONES["plain"]({**inputs, "packing": np.full((1, 8), place)})


def test_a_mask_of_texts_equals_a_permutation_mask():
    text_ids = np.array([[0, 0, 1, 1, 1, -1], [2, 2, 2, 2, 3, 3]])
    same = text_ids[:, :, np.newaxis] == text_ids[:, np.newaxis]
    content, mask = np.zeros((2, 6, 4)), text_ids >= 0
    for kind in ("bi", "uni"):
        layer = AttentionMask(kind)
        found = layer(content, padding_mask=mask, text_ids=text_ids)
        expected = layer(content, padding_mask=mask, permutation_mask=same)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@settings(max_examples=100)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(30, 70))
def test_texts_are_placed_without_overlap(lengths, row_length):
    rows, offsets = place_texts(lengths, row_length)
    used = np.zeros((max(rows) + 1, row_length), int)
    for row, offset, length in zip(rows, offsets, lengths, strict=True):
        assert offset + length <= row_length
        used[row, offset : offset + length] += 1
    assert used.max(initial=0) <= 1
    # No two rows could be one.
    filled = sorted(used.sum(axis=1))
    assert len(filled) < 2 or filled[0] + filled[1] > row_length or filled[0] == 0


def test_the_plan_has_few_shapes_and_fits_its_batches():
    rng = np.random.default_rng(0)
    batches = [rng.integers(1, 60, 16) for _ in range(200)]
    plan = RowPlan.of_batches(batches)
    shapes = {plan.packing(lengths, 64).shape for lengths in batches}
    assert shapes == {(count, plan.row_length) for count in plan.counts} and len(shapes) <= 3
    more = RowPlan.of_batches(batches, spare_rows=1)
    assert more.counts == (*plan.counts[:-1], plan.counts[-1] + 1)
    # A batch that needs more rows than all of those gets them.
    assert plan.packing(np.full(16, 60), 64).shape[0] == 16
