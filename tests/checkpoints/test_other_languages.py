"""Released Chinese and Korean XLNets: their configurations and a vocabulary of their kind.

The weights cannot be downloaded in tests: models of the same configuration, but small, have random
ones. Sources: `config.json` of hfl/chinese-xlnet-base and clue/xlnet_chinese_large on the Hugging
Face Hub; the commands in the READMEs of ymcui/Chinese-XLNet and yeontaek/XLNET-Korean-Model.
"""

import json
import pathlib

import keras
import numpy as np
import pytest
import sentencepiece

import xlnet_command
from keras_xlnet.checkpoints import load_huggingface, load_original, save_original
from keras_xlnet.models import XLNetTextClassifier
from tests.small_models import small_backbone

DOCS = pathlib.Path(__file__).parents[2] / "docs"
COMMON = {
    "attn_type": "bi",
    "bi_data": False,
    "bos_token_id": 1,
    "clamp_len": -1,
    "dropout": 0.1,
    "end_n_top": 5,
    "eos_token_id": 2,
    "ff_activation": "relu",
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
    "mem_len": None,
    "model_type": "xlnet",
    "output_past": True,
    "pad_token_id": 5,
    "reuse_len": None,
    "same_length": False,
    "start_n_top": 5,
    "summary_activation": "tanh",
    "summary_last_dropout": 0.1,
    "summary_type": "last",
    "summary_use_proj": True,
    "untie_r": True,
}
CONFIGS = {
    "hfl": {**COMMON, "architectures": ["XLNetLMHeadModel"]},
    "clue": COMMON,
    "gelu": {**COMMON, "architectures": ["XLNetLMHeadModel"], "ff_activation": "gelu"},
}
SMALL = {"d_model": 32, "n_head": 2, "d_head": 16, "d_inner": 64, "n_layer": 2}
TEXTS = ["今天天气很好,我们去公园。", "模型读取文本", "XLNet 的排列语言模型,2019年"]


def train_vocabulary(language, path, **settings):
    """Trains a vocabulary as the released models' authors did, on the pages in this language."""
    pages = sorted((DOCS / language).glob("*.md"))
    lines = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    with open(path, "wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([line for line in lines if line.strip()]),
            model_writer=file,
            vocab_size=1500,
            control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"],
            user_defined_symbols=["<eop>", *'.()"-–£€'],
            shuffle_input_sentence=True,
            minloglevel=2,
            **settings,
        )


@pytest.fixture(scope="module")
def chinese(tmp_path_factory):
    path = tmp_path_factory.mktemp("chinese") / "spiece.model"
    train_vocabulary("zh", path, character_coverage=0.99995, model_type="unigram")
    return path


def convert(*arguments):
    return xlnet_command.run(xlnet_command.parse(["xlnet", "convert", *map(str, arguments)]))


def ids_of_sentencepiece(path, text):
    return sentencepiece.SentencePieceProcessor(model_file=str(path)).encode(text)


@pytest.mark.parametrize("name", CONFIGS)
def test_chinese_files_of_transformers(name, chinese, tmp_path):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    source = tmp_path / "source"
    torch.manual_seed(0)
    config = transformers.XLNetConfig(**{**CONFIGS[name], **SMALL, "vocab_size": 1500})
    theirs = transformers.XLNetLMHeadModel(config).eval()
    theirs.save_pretrained(source)
    # Their own file, without the entries that this release of transformers adds.
    config = {**CONFIGS[name], **SMALL, "vocab_size": 1500}
    (source / "config.json").write_text(json.dumps(config))
    (source / "spiece.model").write_bytes(chinese.read_bytes())
    (source / "added_tokens.json").write_text("{}")
    assert convert("--to", "preset", source, tmp_path / "preset") == 0

    model = XLNetTextClassifier.from_preset(tmp_path / "preset", num_classes=2, pooling="last")
    features = model.preprocessor.encode(TEXTS).features
    for row, text in zip(features["token_ids"], TEXTS, strict=True):
        ids = [*ids_of_sentencepiece(chinese, text), 4, 3]
        np.testing.assert_array_equal(row[-len(ids) :], ids)
    with torch.no_grad():
        expected = theirs.transformer(
            input_ids=torch.tensor(features["token_ids"]),
            token_type_ids=torch.tensor(features["segment_ids"]),
            attention_mask=torch.tensor(np.asarray(features["padding_mask"], "float32")),
        ).last_hidden_state
    found = keras.ops.convert_to_numpy(model.backbone(features)["sequence_output"])
    is_real = np.asarray(features["padding_mask"], bool)
    np.testing.assert_allclose(found[is_real], expected.numpy()[is_real], atol=1e-5)
    history = model.fit(TEXTS * 4, [0, 1, 0] * 4, epochs=2, verbose=0).history
    assert history["loss"][1] < history["loss"][0]


def test_chinese_files_of_the_original(chinese, tmp_path):
    backbone = small_backbone(vocabulary_size=1500, activation="relu")
    save_original(backbone, tmp_path / "source")
    assert (
        json.loads((tmp_path / "source" / "xlnet_config.json").read_text())["ff_activation"]
        == "relu"
    )
    (tmp_path / "source" / "spiece.model").write_bytes(chinese.read_bytes())
    assert convert("--to", "preset", tmp_path / "source", tmp_path / "preset") == 0
    model = XLNetTextClassifier.from_preset(tmp_path / "preset", num_classes=2)
    features = model.preprocessor.encode(TEXTS).features
    expected = backbone(features)["sequence_output"]
    found = model.backbone(features)["sequence_output"]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_korean_files_have_a_vocabulary_that_only_sentencepiece_reads(tmp_path):
    """The Korean model's vocabulary is of the type BPE: its weights load, its text does not."""
    backbone = small_backbone(vocabulary_size=1500)
    save_original(backbone, tmp_path)
    train_vocabulary("ko", tmp_path / "spiece.model", character_coverage=1.0, model_type="bpe")
    loaded = load_original(tmp_path)
    ids = {
        "token_ids": np.array([ids_of_sentencepiece(tmp_path / "spiece.model", "모델을 학습한다")])
    }
    np.testing.assert_allclose(
        loaded(ids)["sequence_output"], backbone(ids)["sequence_output"], atol=1e-6
    )
    with pytest.raises(ValueError, match="unigram model. Received: a model of type BPE"):
        load_original(tmp_path, task="text_classifier", num_classes=2)


def test_pickles_are_refused_with_the_command_that_converts_them(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**COMMON, **SMALL, "vocab_size": 1500}))
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ValueError, match="save_pretrained"):
        load_huggingface(tmp_path)
