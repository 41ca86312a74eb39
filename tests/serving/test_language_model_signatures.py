"""Language models as SavedModels: equal to the models, in a process without keras_xlnet."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from keras_xlnet.models import TransformerXLLanguageModel, XLNetBackbone, XLNetPermutationLM
from keras_xlnet.serving import export
from keras_xlnet.tokenizers import VocabularyTokenizer, XLNetTokenizer
from tests.models.test_scoring import with_random_weights

RELOAD = pathlib.Path(__file__).with_name("reload_saved_model.py")
TEXTS = [
    "win a free prize now",
    "see you at lunch",
    "a",
    # Lengths differ so much that rows are read in batches, in segments of 512 tokens too.
    "call now, see you " * 60,
    "résumé 你好",
    "  12,345 pounds!  ",
    "call now " * 9,
    "you",
    "now you see",
]
START = 7


def causal_model(tokenizer, **kwargs):
    model = TransformerXLLanguageModel(
        tokenizer.vocabulary_size(), 2, 2, 16, 24, tokenizer=tokenizer, dropout=0.0, **kwargs
    )
    return with_random_weights(model)


@pytest.fixture(scope="module")
def tokenizer(golden_dir):
    return XLNetTokenizer(golden_dir / "spiece.model")


@pytest.fixture(scope="module")
def models(tokenizer):
    """Models, and the options with which they are exported."""
    words = VocabularyTokenizer.train(
        TEXTS, unknown_token="<unk>", end_token="<eos>", min_count=2, lowercase=True
    )
    backbone = XLNetBackbone(tokenizer.vocabulary_size(), 2, 2, 16, 24, dropout=0.0)
    permutation = with_random_weights(XLNetPermutationLM(backbone, tokenizer=tokenizer))
    return {
        "permutation": (permutation, {}),
        "memory": (causal_model(tokenizer, memory_length=40), {"start_token_id": START}),
        "no_memory": (causal_model(tokenizer), {"batch_size": len(TEXTS)}),
        "zero_memory": (
            causal_model(tokenizer, memory_length=9, attend_to_empty_memory=True),
            {},
        ),
        "words": (causal_model(words, memory_length=8, cutoffs=(3, 5), div_val=2), {}),
    }


@pytest.fixture(scope="module")
def exported(models, tmp_path_factory):
    parent = tmp_path_factory.mktemp("models")
    return {
        name: export(model, parent / name / "1", **options)
        for name, (model, options) in models.items()
    }


@pytest.fixture(scope="module")
def served(exported, tmp_path_factory):
    """`served[name, signature]` are outputs of a process without keras_xlnet."""
    requests = {(name, "serving_default"): {"text": TEXTS} for name in exported}
    return run_in_a_fresh_process(requests, exported, tmp_path_factory.mktemp("served"))


def run_in_a_fresh_process(requests, exported, directory):
    names = list(exported)
    keys = {key: f"{names.index(key[0])}.{i}|{key[1]}" for i, key in enumerate(requests)}
    arrays = {
        f"{keys[key]}|{name}": as_array(value)
        for key, inputs in requests.items()
        for name, value in inputs.items()
    }
    np.savez(directory / "requests.npz", **arrays)
    (directory / "commands.json").write_text(json.dumps([]))
    arguments = ["commands.json", "requests.npz", "outputs.npz", *map(str, exported.values())]
    done = subprocess.run(
        [sys.executable, str(RELOAD), *arguments], cwd=directory, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-4000:]
    with np.load(directory / "outputs.npz") as outputs:
        return {
            key: {k.rpartition("|")[2]: v for k, v in outputs.items() if k.startswith(start + "|")}
            for key, start in keys.items()
        }


def as_array(value):
    is_text = isinstance(value, list) and isinstance(value[0], str)
    return np.array([text.encode() for text in value], "S") if is_text else np.asarray(value)


# === Scores ===


NAMES = ["permutation", "memory", "no_memory", "zero_memory", "words"]


@pytest.mark.parametrize("name", NAMES)
def test_scores_equal_those_of_the_model(name, models, served):
    model, options = models[name]
    start = {k: v for k, v in options.items() if k == "start_token_id"}
    expected, found = model.score(TEXTS, **start), served[name, "serving_default"]
    assert sorted(found) == ["log_prob", "num_tokens", "token_log_probs"]
    np.testing.assert_allclose(found["log_prob"], expected.totals, rtol=1e-5, atol=1e-5)
    assert found["num_tokens"].dtype == np.int32
    for row, log_probs, count in zip(
        found["token_log_probs"], expected.log_probs, found["num_tokens"], strict=True
    ):
        assert count == np.sum(~np.isnan(log_probs))
        np.testing.assert_allclose(row[: len(log_probs)], np.nan_to_num(log_probs), atol=1e-5)
        assert not row[len(log_probs) :].any()


def test_a_text_without_tokens_has_no_score(exported):
    import tensorflow as tf

    served = tf.saved_model.load(str(exported["memory"])).signatures["serving_default"]
    found = served(text=tf.constant(["", "you"]))
    assert found["log_prob"][0] == 0 and found["num_tokens"].numpy().tolist() == [0, 4]
    assert served(text=tf.constant([], tf.string))["log_prob"].shape == (0,)


@pytest.mark.parametrize(
    "change, options, message",
    [
        ({"tokenizer": None}, {}, "`model` must have a tokenizer, which converts text"),
        ({"stateful": True, "batch_size": 2}, {}, "`model` must have `stateful=False`"),
        ({}, {"start_token_id": 200}, "`start_token_id` must be"),
        ({}, {"threshold": 0.5}, "no argument 'threshold' for TransformerXL"),
    ],
)
def test_wrong_models_and_options(tokenizer, tmp_path, change, options, message):
    model = causal_model(tokenizer, memory_length=4).with_arguments(**change)
    with pytest.raises(ValueError, match=message):
        export(model, tmp_path / "1", **options)
    assert not list(tmp_path.iterdir())
