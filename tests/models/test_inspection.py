"""What `inspect` shows is what the layers computed."""

import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM, XLNetTextClassifier
from tests.models.test_scoring import causal_model, permutation_model, with_random_weights

TOKENS = np.random.default_rng(0).integers(0, 30, (3, 7))


def lm_inputs(length=7):
    ranks = np.array([np.random.default_rng(i).permutation(length) for i in range(3)])
    return {
        "token_ids": TOKENS[:, :length],
        "segment_ids": np.tile(np.arange(length) // 4, (3, 1)),
        "padding_mask": np.arange(length) >= np.array([[0], [2], [0]]),
        "permutation_mask": ranks[:, None] < ranks[:, :, None],
        "target_positions": np.array([[1, 5], [3, 6], [0, 4]]),
    }


@pytest.mark.parametrize("arguments", [{}, {"memory_length": 4, "tie_attention_biases": True}])
def test_probabilities_are_those_of_the_attention_layers(arguments, monkeypatch):
    model = permutation_model(30, **arguments)
    inputs = lm_inputs()
    if arguments:
        rng = np.random.default_rng(1)
        inputs["memory"] = rng.normal(size=(3, 2, 4, 16)).astype("float32")
        inputs["memory_mask"] = rng.random((3, 4)) < 0.7
    expected = []
    for block in model.backbone.blocks:
        attend = block.attention.attend

        def recording(*args, attend=attend, **kwargs):
            result, scores = attend(*args, **{**kwargs, "return_attention_scores": True})
            expected.append(np.asarray(scores))
            return result

        monkeypatch.setitem(vars(block.attention), "attend", recording)
    outputs = model(inputs)["logits"]
    monkeypatch.undo()
    inspection = model.inspect(inputs)
    np.testing.assert_allclose(inspection.outputs["logits"], outputs, rtol=0, atol=1e-6)
    found = [(a.layer, a.stream) for a in inspection.attentions]
    assert found == [(0, "content"), (0, "query"), (1, "query")]
    for attention, probabilities in zip(inspection.attentions, expected, strict=True):
        np.testing.assert_allclose(attention.probabilities, probabilities, rtol=0, atol=1e-6)
        # A row that may attend to nothing attends to everything.
        hidden = ~attention.mask & attention.mask.any(axis=-1, keepdims=True)
        assert not np.any(attention.probabilities[:, 0][hidden] > 1e-6)
        # The terms add up to the scores that these are the softmax of.
        scores = np.where(attention.mask[:, None], attention.scores, -np.inf)
        rows = attention.mask.any(axis=-1)
        weights = np.exp(scores - np.nan_to_num(scores.max(axis=-1, keepdims=True), neginf=0))
        softmax = weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-30)
        for head in range(2):
            np.testing.assert_allclose(
                softmax[:, head][rows], probabilities[:, head][rows], rtol=0, atol=1e-5
            )
        assert attention.memory_length == arguments.get("memory_length", 0)
    query = inspection.attention(1, "query")
    np.testing.assert_array_equal(query.positions, inputs["target_positions"])
    content = inspection.attention(0)
    distances = np.arange(7)[:, None] - np.arange(-content.memory_length, 7)
    np.testing.assert_array_equal(content.distances[1], distances)


def test_each_term_depends_on_what_it_says():
    model = with_random_weights(XLNetBackbone(30, 1, 2, 16, 24, dropout=0.0))
    inputs = {key: lm_inputs()[key] for key in ("token_ids", "segment_ids")}
    attention = model.blocks[0].attention
    before = model.inspect(inputs).attention(0).terms
    changes = {
        "content_bias": attention.content_bias,
        "position_bias": attention.position_bias,
        "segment": attention.segment_bias,
        "position": attention.position_dense.kernel,
    }
    for name, variable in changes.items():
        value = np.asarray(variable)
        variable.assign(value * 1.5)
        after = model.inspect(inputs).attention(0).terms
        variable.assign(value)
        changed = {key for key in before if np.abs(after[key] - before[key]).max() > 1e-6}
        assert changed == ({"position", "position_bias"} if name == "position" else {name})
    # (c) is the same for every query, (d) for every pair at the same distance.
    np.testing.assert_allclose(
        before["content_bias"], before["content_bias"][:, :, :1].repeat(7, axis=2), atol=1e-6
    )
    bias = before["position_bias"][0, 0]
    np.testing.assert_allclose(bias[1:, 1:], bias[:-1, :-1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("normalize_first", [False, True])
def test_a_causal_model(normalize_first):
    model = causal_model(30, memory_length=4, normalize_first=normalize_first)
    first = model({"token_ids": TOKENS})
    inputs = {"token_ids": TOKENS, **{k: first[k] for k in ("memory", "memory_mask")}}
    inspection = model.inspect(inputs)
    assert [(a.layer, a.stream) for a in inspection.attentions] == [(0, "content"), (1, "content")]
    for attention in inspection.attentions:
        assert "segment" not in attention.terms
        np.testing.assert_allclose(attention.probabilities.sum(-1), 1, atol=1e-5)
        assert not np.any(attention.probabilities[:, :, attention.distances[0] < 0] > 1e-9)
    assert [h.shape for h in inspection.hidden_states] == [(3, 7, 16)] * 3
    np.testing.assert_allclose(
        inspection.hidden_states[-1], inspection.outputs["sequence_output"], atol=1e-6
    )
    # Nothing stays behind.
    found, expected = (x["log_probs"] for x in (inspection.outputs, model(inputs)))
    np.testing.assert_array_equal(found, expected)
    assert "attend" not in vars(model.blocks[0].attention)


def test_raw_text(tokenizer):
    from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor

    backbone = XLNetBackbone(tokenizer.vocabulary_size(), 2, 2, 16, 24)
    model = XLNetTextClassifier(
        backbone, 2, preprocessor=XLNetTextClassifierPreprocessor(tokenizer, 9)
    )
    inspection = model.inspect(model.preprocessor.encode(["a text", "another"]).features)
    assert inspection.attention(1).probabilities.shape == (2, 2, 9, 9)
    assert inspection.outputs.shape == (2, 2)
    with pytest.raises(KeyError):
        inspection.attention(0, "query")


def test_denoising_has_one_stream():
    backbone = XLNetBackbone(30, 2, 2, 16, 24)
    model = XLNetPermutationLM(backbone, objective="denoising")
    inputs = lm_inputs()
    del inputs["permutation_mask"]
    streams = [a.stream for a in model.inspect(inputs).attentions]
    assert streams == ["content", "content"]
