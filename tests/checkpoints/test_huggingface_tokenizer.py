"""Tokenizer files of transformers: ours there, theirs here."""

import json

import pytest

from keras_xlnet.checkpoints import save_huggingface, save_original
from keras_xlnet.checkpoints.huggingface_tokenizer import read_tokenizer, write_tokenizer
from keras_xlnet.models import XLNetBackbone
from keras_xlnet.tokenizers import XLNetTokenizer

TEXTS = [
    "the turtle sat on 12,345 mats",
    "(a) <eop> £5 - naïve – “quoted”",
    "",
    "Ａ ｆｕｌｌ ½ ﬁne",
]


@pytest.fixture
def tokenizer(golden_dir):
    return XLNetTokenizer(str(golden_dir / "spiece.model"), remove_accents=True)


@pytest.mark.parametrize("flags", [{}, {"lowercase": True, "remove_accents": True}])
def test_round_trip(flags, golden_dir, tmp_path):
    tokenizer = XLNetTokenizer(str(golden_dir / "spiece.model"), **flags)
    write_tokenizer(tmp_path, tokenizer)
    copy = read_tokenizer(tmp_path)
    assert copy.get_config() | {"name": ""} == tokenizer.get_config() | {"name": ""}
    assert copy(TEXTS).to_list() == tokenizer(TEXTS).to_list()


@pytest.fixture
def transformers():
    pytest.importorskip("torch", reason="PyTorch is not installed (extra: transformers)")
    return pytest.importorskip(
        "transformers", reason="transformers is not installed (extra: transformers)"
    )


def test_transformers_writes_what_we_read(tokenizer, transformers, tmp_path):
    (tmp_path / "ours").mkdir()
    write_tokenizer(tmp_path / "ours", tokenizer)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert type(theirs).__name__ == "XLNetTokenizer"
    ids = theirs(TEXTS[0], add_special_tokens=False)["input_ids"]
    assert theirs.decode(ids) == TEXTS[0]
    theirs.save_pretrained(tmp_path / "theirs")
    assert not (tmp_path / "theirs" / "spiece.model").exists()
    # The vocabulary is made again from tokenizer.json.
    assert read_tokenizer(tmp_path / "theirs")(TEXTS).to_list() == tokenizer(TEXTS).to_list()


@pytest.mark.parametrize("lowercase", [False, True])
def test_tokenizer_json_alone(lowercase, transformers, golden_dir, tmp_path):
    vocabulary = str(golden_dir / "spiece.model")
    tokenizer = XLNetTokenizer(vocabulary, lowercase=lowercase, remove_accents=True)
    write_tokenizer(tmp_path, tokenizer)
    transformers.AutoTokenizer.from_pretrained(tmp_path).save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "tokenizer_config.json").unlink()
    alone = read_tokenizer(tmp_path / "theirs")
    assert (alone.lowercase, alone.remove_accents) == (lowercase, True)
    texts = ["The Turtle", *TEXTS]
    assert alone(texts).to_list() == tokenizer(texts).to_list()


def test_an_older_tokenizer_does_not_stay(tokenizer, tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    write_tokenizer(tmp_path, tokenizer)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "spiece.model",
        "tokenizer_config.json",
    ]


@pytest.mark.parametrize("save", [save_original, save_huggingface])
def test_a_tokenizer_that_is_larger_than_the_model(save, tokenizer, tmp_path):
    with pytest.raises(ValueError, match="has 200 ids, but the model knows only vocabulary_size=9"):
        save(XLNetBackbone(9, 1, 2, 8, 8), tmp_path / "out", tokenizer=tokenizer)
    assert not (tmp_path / "out").exists()


def test_no_tokenizer(tmp_path):
    assert read_tokenizer(tmp_path) is None


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("spiece.model", "no model", "spiece.model: `proto` must be a SentencePiece model"),
        ("tokenizer.json", "{", "tokenizer.json is not JSON"),
        ("tokenizer.json", json.dumps({"model": {"type": "BPE"}}), "it has no Unigram model"),
        ("tokenizer.json", json.dumps({"model": 3}), "it has no Unigram model"),
        (
            "tokenizer.json",
            json.dumps({"model": {"type": "Unigram", "vocab": [["a", 0.0]]}}),
            "tokenizer.json: `proto` must",
        ),
        (
            "tokenizer.json",
            json.dumps({"model": {"type": "Unigram", "vocab": ["a"]}}),
            "it has no Unigram model",
        ),
        (
            "tokenizer.json",
            json.dumps(
                {
                    "model": {"type": "Unigram", "vocab": [["a", 0.0]]},
                    "normalizer": {"type": "Precompiled", "precompiled_charsmap": "!!"},
                }
            ),
            "tokenizer.json is not the tokenizer of an XLNet.*base64",
        ),
    ],
)
def test_bad_files(name, content, message, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        read_tokenizer(tmp_path)
