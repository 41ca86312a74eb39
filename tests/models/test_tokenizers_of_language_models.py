"""Language models hold a tokenizer: methods use it, and every kind of copy has it."""

import keras
import numpy as np
import pytest

from keras_xlnet.models import TransformerXLLanguageModel, XLNetBackbone, XLNetPermutationLM
from keras_xlnet.tokenizers import VocabularyTokenizer

TEXTS = ["the cold water", "a ship is in the harbor"]


@pytest.fixture(scope="module")
def words():
    return VocabularyTokenizer.train(TEXTS, unknown_token="<unk>")


def permutation_lm(tokenizer=None):
    return XLNetPermutationLM(XLNetBackbone(200, 1, 2, 16, 32), tokenizer)


def causal_lm(tokenizer=None):
    return TransformerXLLanguageModel(200, 1, 2, 16, 32, tokenizer)


MODELS = {"permutation": permutation_lm, "causal": causal_lm}
COPIES = {
    "clone": lambda model: model.clone(),
    "with_arguments": lambda model: model.with_arguments(name="other"),
    "with_vocabulary": lambda model: model.with_vocabulary(210),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_methods_use_the_tokenizer_of_the_model(make, tokenizer):
    model = make()
    with pytest.raises(ValueError, match="`texts` contains strings: pass `tokenizer=`"):
        model.score(TEXTS)
    expected = model.score(TEXTS, tokenizer)
    model.tokenizer = tokenizer
    found = model.score(TEXTS)
    np.testing.assert_array_equal(found.totals, expected.totals)
    continued = model.generate(TEXTS, max_new_tokens=3)
    assert continued.texts == model.generate(TEXTS, tokenizer, max_new_tokens=3).texts
    assert all(text.startswith(start) for text, start in zip(continued.texts, TEXTS, strict=True))
    if make is permutation_lm:
        blank = "the <mask> water"
        assert model.fill(blank).joint == model.fill(blank, tokenizer).joint


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_copies_have_the_tokenizer(make, copy, tokenizer):
    model = make(tokenizer)
    assert copy(model).tokenizer is tokenizer
    assert copy(make()).tokenizer is None


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_files_and_presets_have_the_tokenizer(make, tokenizer, tmp_path):
    model = make(tokenizer)
    model.save(tmp_path / "model.keras")
    model.save_to_preset(tmp_path / "preset")
    expected = model.score(TEXTS).totals
    for loaded in (
        keras.saving.load_model(tmp_path / "model.keras"),
        type(model).from_preset(tmp_path / "preset"),
    ):
        np.testing.assert_allclose(loaded.score(TEXTS).totals, expected, rtol=1e-6)
    assert type(model).from_preset(tmp_path / "preset", tokenizer=None).tokenizer is None


def test_a_language_model_around_the_backbone_of_a_preset_has_its_tokenizer(tokenizer, tmp_path):
    XLNetBackbone(200, 1, 2, 16, 32).save_to_preset(tmp_path / "backbone", tokenizer)
    model = XLNetPermutationLM.from_preset(tmp_path / "backbone")
    assert model.tokenizer.vocabulary_sha256 == tokenizer.vocabulary_sha256


def test_words_are_kept_in_files_and_refused_in_presets(words, tmp_path):
    model = causal_lm(words)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.tokenizer.vocabulary == words.vocabulary
    with pytest.raises(ValueError, match="A preset holds an `XLNetTokenizer`.*VocabularyTokenizer"):
        model.save_to_preset(tmp_path / "preset")
    assert not (tmp_path / "preset").exists()


def test_a_tokenizer_with_more_ids_than_the_model_is_refused(tokenizer):
    with pytest.raises(ValueError, match="200 ids, but the model knows only vocabulary_size=100"):
        XLNetPermutationLM(XLNetBackbone(100, 1, 2, 16, 32), tokenizer)
    model = causal_lm()
    with pytest.raises(ValueError, match="ids, but the model knows only"):
        model.tokenizer = VocabularyTokenizer([str(i) for i in range(300)])
