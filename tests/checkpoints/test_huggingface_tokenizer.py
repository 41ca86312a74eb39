"""Tokenizer files of transformers: ours there, theirs here."""

import json

import pytest

from keras_xlnet.checkpoints import save_huggingface, save_original
from keras_xlnet.checkpoints.huggingface_tokenizer import read_tokenizer, write_tokenizer
from keras_xlnet.models import XLNetBackbone
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.examples import spam_messages

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


def test_old_releases_find_their_name_of_the_space(tokenizer, tmp_path):
    write_tokenizer(tmp_path, tokenizer)
    contents = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    # tokenizers 0.13, of transformers 4.30, requires the first.
    for spaces in (contents["decoder"], contents["pre_tokenizer"]["pretokenizers"][1]):
        assert spaces["add_prefix_space"] is True
        assert spaces["prepend_scheme"] == "always"


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
    ids = theirs(TEXTS[0], add_special_tokens=False)["input_ids"]
    assert theirs.decode(ids) == TEXTS[0]
    theirs.save_pretrained(tmp_path / "theirs")
    assert not (tmp_path / "theirs" / "spiece.model").exists()
    # The vocabulary is made again from tokenizer.json.
    assert read_tokenizer(tmp_path / "theirs")(TEXTS).to_list() == tokenizer(TEXTS).to_list()


@pytest.mark.parametrize("source", ["golden", "lowercase", "xlnet_mini_en", "xlnet_small_en"])
def test_the_defaults_of_transformers_give_our_ids(source, transformers, golden_dir, tmp_path):
    """Vocabularies with `9,`, with symbols that are never split, with accents, of a BERT."""
    if source.startswith("xlnet"):
        tokenizer = XLNetTokenizer.from_preset(source)
    else:
        flags = dict.fromkeys(("lowercase", "remove_accents"), source == "lowercase")
        tokenizer = XLNetTokenizer(str(golden_dir / "spiece.model"), **flags)
    write_tokenizer(tmp_path, tokenizer)
    (tmp_path / "config.json").write_text('{"model_type": "xlnet"}')
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    others = [
        "free日本prize",
        "हिन्दी में",
        "한국어 리뷰",
        "x\u200by",
        "a\tb\nc",
        "x9,y 8, 1,234,567,",
    ]
    texts = [*TEXTS[2:], *others, *spam_messages()]
    ids = theirs(texts, add_special_tokens=False)["input_ids"]
    assert [row.tolist() for row in tokenizer.encode(texts)] == ids


def test_runs_of_one_letter_may_be_split_in_another_order(transformers, tmp_path):
    """Both splits are equally probable: of the same pieces."""
    tokenizer = XLNetTokenizer.from_preset("xlnet_mini_en")
    write_tokenizer(tmp_path, tokenizer)
    (tmp_path / "config.json").write_text('{"model_type": "xlnet"}')
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    (ours,) = tokenizer.encode(["Fffff"])
    (found,) = theirs(["Fffff"], add_special_tokens=False)["input_ids"]
    assert found != ours.tolist() and sorted(found) == sorted(ours.tolist())


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
    (tmp_path / "spiece.model").unlink()
    assert read_tokenizer(tmp_path)(TEXTS).to_list() == tokenizer(TEXTS).to_list()


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
        ("tokenizer_config.json", {"tokenizer_class": "T5Tokenizer"}, "'T5Tokenizer' as `tok"),
        ("tokenizer_config.json", {"do_lower_case": "no"}, "'no' as `do_lower_case`"),
        (
            "tokenizer_config.json",
            {"sep_token": "[SEP]"},
            "`sep_token`., expected '<sep>",
        ),
        (
            "tokenizer_config.json",
            {"added_tokens_decoder": {"200": {"content": "<url>"}}},
            "the token '<url>' .`added_tokens_decoder`., expected one of the vocabulary",
        ),
        ("tokenizer_config.json", {"additional_special_tokens": ["<url>"]}, "the token '<url>'"),
        ("added_tokens.json", {"<url>": 200}, "added_tokens.json has the token '<url>'"),
        ("special_tokens_map.json", {"cls_token": {"content": "<s>"}}, "the token '<s>' .`cls_t"),
        ("tokenizer.json", {"normalizer": {"type": "NFC"}}, "'NFC' as `normalizer.type`"),
    ],
)
def test_settings_that_are_not_read_are_refused(name, content, message, tokenizer, tmp_path):
    write_tokenizer(tmp_path, tokenizer)
    if name == "tokenizer.json":
        (tmp_path / "spiece.model").unlink()
    file = tmp_path / name
    old = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(old | content))
    with pytest.raises(ValueError, match=message):
        read_tokenizer(tmp_path)


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
