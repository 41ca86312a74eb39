"""Models for vocabularies with more or fewer tokens."""

import numpy as np
import pytest

from keras_xlnet.models import (
    TransformerXLLanguageModel,
    XLNetBackbone,
    XLNetPermutationLM,
    XLNetTextClassifier,
)
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor

IDS = np.array([[9, 17, 12, 4], [11, 39, 21, 8]])


def backbone(**arguments):
    return XLNetBackbone(40, 1, 2, 16, 32, seed=3, **arguments)


MODELS = {
    "backbone": backbone,
    "permutation_lm": lambda: XLNetPermutationLM(backbone(memory_length=3)),
    "transformer_xl": lambda: TransformerXLLanguageModel(40, 1, 2, 16, 32, seed=3),
    "clustered": lambda: TransformerXLLanguageModel(
        40, 1, 2, 16, 32, cutoffs=(10, 20), div_val=2, seed=3
    ),
}


def first_output(model):
    inputs = {"token_ids": IDS}
    if isinstance(model, XLNetPermutationLM):
        inputs["target_positions"] = np.array([[1], [2]])
        inputs["permutation_mask"] = np.tril(np.ones((2, 4, 4), bool), -1)
    outputs = model.predict(inputs, verbose=0)
    return outputs.get("sequence_output", outputs.get("logits", next(iter(outputs.values()))))


@pytest.mark.parametrize("name, size", [("backbone", 40), *((name, 45) for name in MODELS)])
def test_known_tokens_keep_their_meaning(name, size):
    model = MODELS[name]()
    new = model.with_vocabulary(size)
    assert new.get_config() != model.get_config() or size == 40
    expected, found = first_output(model), first_output(new)
    if name in ("backbone", "permutation_lm"):
        # No softmax, in which all tokens take part.
        np.testing.assert_allclose(found[..., : expected.shape[-1]], expected, atol=1e-5)
    else:
        assert np.isfinite(found).all()


def test_new_rows_are_near_the_mean_and_not_equal():
    model = backbone()
    rows = model.token_embedding.embeddings.numpy()
    found = model.with_vocabulary(60).token_embedding.embeddings.numpy()
    np.testing.assert_array_equal(found[:40], rows)
    assert np.abs(found[40:] - rows.mean(0)).max() < 0.1
    assert np.abs(found[40] - found[41]).max() > 1e-3
    smaller = model.with_vocabulary(30).token_embedding.embeddings.numpy()
    np.testing.assert_array_equal(smaller, rows[:30])


def test_a_classifier_learns_an_added_token(tokenizer):
    model = XLNetTextClassifier(
        XLNetBackbone(200, 1, 2, 16, 32),
        2,
        XLNetTextClassifierPreprocessor(tokenizer, sequence_length=12),
    )
    model.backbone.vocabulary_sha256 = tokenizer.vocabulary_sha256
    texts = ["the river ran", "the river ran"]
    expected = model.predict(texts)
    extended = tokenizer.with_tokens(["<url>"])
    new = model.with_vocabulary(extended)
    np.testing.assert_allclose(new.predict(texts), expected, atol=1e-6)
    assert new.preprocessor.sequence_length == 12
    assert new.backbone.vocabulary_sha256 == extended.vocabulary_sha256
    texts = ["the <url> ran", "the river ran"]
    ids = np.unique(new.preprocessor(texts)["token_ids"])
    assert 200 in ids
    embeddings = new.backbone.token_embedding.embeddings
    before = embeddings.numpy()
    # Adam moves a row as far for a small gradient as for a large one.
    new.compile("adam", run_eagerly=True)
    new.fit(texts, [0, 1], verbose=0)
    changed = np.flatnonzero(np.any(embeddings.numpy() != before, axis=1))
    assert 200 in changed
    assert set(changed) <= set(ids)


@pytest.mark.parametrize("vocabulary", [0, "words", None, 2.5])
def test_what_is_no_vocabulary_is_refused(vocabulary):
    with pytest.raises(ValueError, match="`vocabulary` must be a"):
        backbone().with_vocabulary(vocabulary)


def test_a_quantized_model_is_refused():
    model = backbone()
    model.quantize("int8")
    with pytest.raises(ValueError, match="quantized"):
        model.with_vocabulary(50)
