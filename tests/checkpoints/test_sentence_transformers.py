"""Embedders as directories of sentence-transformers: the vectors are the same there and back."""

import json

import keras
import numpy as np
import pytest

from keras_xlnet.checkpoints import detect_task, load_huggingface, save_huggingface
from keras_xlnet.models import XLNetTextEmbedder
from keras_xlnet.preprocessing import XLNetTextEmbedderPreprocessor
from tests.small_models import small_backbone
from xlnet_command import parse, run

TEXTS = ["free", "call me when you can", "", "a prize of 500 is waiting: call now, it is free " * 9]


def embedder(tokenizer, pooling="mean", **kwargs):
    keras.utils.set_random_seed(4)
    # The first token has to be the first of its row there.
    side = "right" if pooling == "first" else "left"
    preprocessor = XLNetTextEmbedderPreprocessor(tokenizer, 24, padding_side=side)
    backbone = small_backbone(vocabulary_size=tokenizer.vocabulary_size(), activation="gelu")
    return XLNetTextEmbedder(backbone, preprocessor, pooling=pooling, **kwargs)


@pytest.mark.filterwarnings("ignore:.*are longer than the preprocessor takes")
@pytest.mark.parametrize("pooling", ["mean", "last", "cls", "first"])
def test_vectors_are_those_of_sentence_transformers(pooling, tokenizer, tmp_path):
    reason = "sentence-transformers is not installed (extra: transformers)"
    theirs = pytest.importorskip("sentence_transformers", reason=reason)
    model = embedder(tokenizer, pooling)
    save_huggingface(model, tmp_path / "ours")
    expected = model.embed(TEXTS, verbose=0)
    loaded = theirs.SentenceTransformer(str(tmp_path / "ours"))
    assert loaded.max_seq_length == 24
    found = loaded.encode(TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(expected, axis=0).max() > 0.01
    np.testing.assert_allclose(
        loaded.similarity(found, found), model.similarity(TEXTS, TEXTS, verbose=0), atol=1e-5
    )
    # What the newest release writes has other names.
    loaded.save(str(tmp_path / "theirs"))
    for name in ("ours", "theirs"):
        assert detect_task(tmp_path / name) == "text_embedder"
        again = load_huggingface(tmp_path / name, task="text_embedder", activation="gelu")
        assert again.preprocessor.sequence_length == 24
        np.testing.assert_allclose(again.embed(TEXTS, verbose=0), expected, atol=1e-6)


def test_prompts_are_those_of_sentence_transformers(tokenizer, tmp_path):
    theirs = pytest.importorskip("sentence_transformers")
    model = embedder(tokenizer, prompts={"query": "call me: ", "document": "a prize "})
    save_huggingface(model, tmp_path / "ours")
    loaded = theirs.SentenceTransformer(str(tmp_path / "ours"))
    texts = TEXTS[:2]
    for name in ("encode_query", "encode_document"):
        expected = getattr(loaded, name)(texts)
        np.testing.assert_allclose(getattr(model, name)(texts, verbose=0), expected, atol=1e-5)
    loaded.default_prompt_name, loaded.truncate_dim = "query", 8
    loaded.save(str(tmp_path / "theirs"))
    with pytest.warns(UserWarning, match="prompt_name='query'.*`prompt_name` to `embed`"):
        again = load_huggingface(tmp_path / "theirs", task="text_embedder", activation="gelu")
    assert again.prompts == model.prompts
    settings = tmp_path / "theirs" / "1_Pooling" / "config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"include_prompt": False}))
    with pytest.raises(ValueError, match="leaves prompts out of the pooling"):
        load_huggingface(tmp_path / "theirs", task="text_embedder", activation="gelu")


def test_the_command_writes_and_reads_them(tokenizer, tmp_path, capsys):
    model = embedder(tokenizer)
    model.save_to_preset(tmp_path / "preset")
    folders = [str(tmp_path / name) for name in ("preset", "out")]
    convert = ["xlnet", "convert", *folders, "--to", "sentence-transformers"]
    assert run(parse(convert)) == 0
    assert "(sentence-transformers): XLNetTextEmbedder" in capsys.readouterr().out
    names = {"config.json", "model.safetensors", "tokenizer.json", "modules.json", "1_Pooling"}
    assert names <= {path.name for path in (tmp_path / "out").iterdir()}
    assert run(parse(["xlnet", "verify", *folders])) == 0
    model.backbone.save_to_preset(tmp_path / "preset")
    assert run(parse(convert)) == 1
    assert "needs an XLNetTextEmbedder. Received:" in capsys.readouterr().err


def test_what_has_no_counterpart_is_refused(tokenizer, tmp_path):
    with pytest.raises(ValueError, match="sentence-transformers has no pooling='attention'"):
        save_huggingface(embedder(tokenizer, "attention"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    save_huggingface(embedder(tokenizer), tmp_path)
    pooling, modules = tmp_path / "1_Pooling" / "config.json", tmp_path / "modules.json"
    found = json.loads(pooling.read_text())
    pooling.write_text(json.dumps(found | {"pooling_mode_max_tokens": True}))
    with pytest.raises(
        ValueError, match=r"config.json has the pooling \['mean', 'max'\], but only"
    ):
        load_huggingface(tmp_path, task="text_embedder")
    pooling.write_text(json.dumps(found))
    modules.write_text(json.dumps(json.loads(modules.read_text())[:2]))
    with pytest.raises(ValueError, match="modules.json must have the modules .*'normalize'"):
        load_huggingface(tmp_path, task="text_embedder")
    modules.write_text("[3]")
    with pytest.raises(ValueError, match="modules.json is damaged"):
        load_huggingface(tmp_path, task="text_embedder")


def test_another_model_in_the_directory_is_no_embedder(tokenizer, tmp_path):
    model = embedder(tokenizer)
    save_huggingface(model, tmp_path)
    save_huggingface(model.backbone, tmp_path)
    assert detect_task(tmp_path) is None
