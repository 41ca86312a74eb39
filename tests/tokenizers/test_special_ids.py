"""Other ids of special tokens: the same pieces in another order give the same results."""

import json

import keras
import numpy as np
import pytest

from keras_xlnet.checkpoints import load_huggingface, save_huggingface
from keras_xlnet.evaluation import BitsPerCharacter
from keras_xlnet.models import XLNetPermutationLM, XLNetTextClassifier
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.pretraining import write_token_records
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.tokenizers.sentencepiece_model import SPECIAL_TOKENS, XLNET_IDS
from keras_xlnet.tokenizers.sentencepiece_proto import SentencePieceProto
from tests.small_models import small_backbone
from tests.tokenizers.test_tokenizer import PROTO, STRINGS

TEXTS = [string["input"] for string in STRINGS if string["input"].strip()][:40]


@pytest.fixture(scope="module")
def order():
    """The place of each piece of the new vocabulary in the old one."""
    return np.random.default_rng(3).permutation(200)


@pytest.fixture(scope="module")
def new_ids(order):
    return np.argsort(order)


@pytest.fixture(scope="module")
def tokenizers(order, new_ids):
    model = SentencePieceProto.parse(PROTO.read_bytes())
    pieces = [model.pieces[place] for place in order]
    names = {"unk_id": 0, "bos_id": 1, "eos_id": 2}
    settings = {name: int(new_ids[place]) for name, place in names.items()}
    proto = model.with_pieces(pieces, **settings).serialize()
    return XLNetTokenizer(PROTO), XLNetTokenizer(proto)


def test_ids_and_texts(tokenizers, new_ids):
    ours, other = tokenizers
    assert other.special_token_ids == tuple(new_ids[: len(SPECIAL_TOKENS)])
    assert other.special_token_ids != XLNET_IDS == ours.special_token_ids
    assert other.sep_token_id == new_ids[ours.sep_token_id]
    expected, offsets = ours(TEXTS, return_offsets=True)
    found, other_offsets = other(TEXTS, return_offsets=True)
    np.testing.assert_array_equal(found.values, new_ids[expected.values])
    np.testing.assert_array_equal(other_offsets.start.values, offsets.start.values)
    for row, text in zip(found, TEXTS, strict=True):
        np.testing.assert_array_equal(other.encode([text])[0], row)
    special = np.array(other.special_token_ids)
    with_special = [np.concatenate([special, row, special]) for row in found]
    expected = ours.detokenize(expected).numpy().tolist()
    texts = [other.detokenize(row).numpy() for row in with_special]
    assert texts == expected
    assert [other.decode(row).encode() for row in with_special] == expected


def test_characters_of_pieces(tokenizers, order):
    ours, other = map(BitsPerCharacter.of, tokenizers)
    np.testing.assert_array_equal(other.characters, np.array(ours.characters)[order])


def with_weights_in_order(model, other, order):
    """Sets the weights of `other` to those of `model`, the rows of the vocabulary in `order`."""
    values = []
    for value in model.get_weights():
        values.append(value[order] if value.shape[:1] == (200,) else value)
    other.set_weights(values)
    return other


def test_scores_and_blanks(tokenizers, order, new_ids):
    keras.utils.set_random_seed(0)
    ours, other = (XLNetPermutationLM(small_backbone(), tokenizer=t) for t in tokenizers)
    with_weights_in_order(ours, other, order)
    for kind in ("left_to_right", "right_to_left"):
        expected, found = (model.score(TEXTS[:4], order=kind) for model in (ours, other))
        np.testing.assert_allclose(found.totals, expected.totals, rtol=1e-5)
    expected, found = (model.fill(["the <mask> sat <mask> it"]) for model in (ours, other))
    assert [r.text for r in found[0].joint] == [r.text for r in expected[0].joint]


def test_classifier(tokenizers, order, tmp_path):
    keras.utils.set_random_seed(0)
    ours, other = (
        XLNetTextClassifier(small_backbone(), 2, XLNetTextClassifierPreprocessor(t, 16))
        for t in tokenizers
    )
    with_weights_in_order(ours, other, order)
    expected = ours.predict((TEXTS, TEXTS[::-1]), verbose=0)
    np.testing.assert_allclose(other.predict((TEXTS, TEXTS[::-1]), verbose=0), expected, atol=1e-6)
    other.save(tmp_path / "model.keras")
    copy = keras.saving.load_model(tmp_path / "model.keras")
    assert copy.preprocessor.tokenizer.special_token_ids == tokenizers[1].special_token_ids
    np.testing.assert_allclose(copy.predict((TEXTS, TEXTS[::-1]), verbose=0), expected, atol=1e-6)


@pytest.mark.parametrize("pooling", ["cls", "pair"])
def test_poolings_that_find_tokens_by_their_ids_are_refused(pooling, tokenizers):
    preprocessor = XLNetTextClassifierPreprocessor(tokenizers[1], 16)
    with pytest.raises(ValueError, match=f"`pooling='{pooling}'` needs .* use pooling='last'"):
        XLNetTextClassifier(small_backbone(), 2, preprocessor, pooling=pooling)


def test_records_end_with_the_id_of_this_vocabulary(tokenizers, tmp_path):
    records = write_token_records(iter(["the cat", "a dog"]), tokenizers[1], tmp_path, verbose=0)
    ends = [tokens[-1] for tokens, _ in records.documents()]
    assert ends == [tokenizers[1].eod_token_id] * 2


@pytest.mark.parametrize("is_rebuilt", [False, True])
def test_directories_of_transformers(is_rebuilt, tokenizers, tmp_path):
    tokenizer = tokenizers[1]
    model = XLNetTextClassifier(small_backbone(), 2, XLNetTextClassifierPreprocessor(tokenizer, 16))
    save_huggingface(model, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["pad_token_id"] == tokenizer.pad_token_id
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts = ["the cat sat", "a dog, 9,000", "Caf\u00e9"]
    for text in texts:
        ids = tokenizer.encode([text])[0]
        ends = [tokenizer.sep_token_id, tokenizer.cls_token_id]
        assert theirs(text)["input_ids"] == [*ids, *ends]
    if is_rebuilt:
        (tmp_path / "spiece.model").unlink()
    copy = load_huggingface(tmp_path, task="text_classifier")
    assert copy.preprocessor.tokenizer.special_token_ids == tokenizer.special_token_ids
    np.testing.assert_allclose(
        copy.predict(texts, verbose=0), model.predict(texts, verbose=0), atol=1e-6
    )


def test_missing_pieces_are_named():
    model = SentencePieceProto.parse(PROTO.read_bytes())
    pieces = [piece for piece in model.pieces if piece.piece not in ("<eod>", "<cls>")]
    with pytest.raises(ValueError, match=r"special pieces .* Missing: \['<cls>', '<eod>'\]"):
        XLNetTokenizer(model.with_pieces(pieces).serialize())
