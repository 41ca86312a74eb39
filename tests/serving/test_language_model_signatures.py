"""Language models as SavedModels: equal to the models, in a process without keras_xlnet."""

import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.models import TransformerXLLanguageModel, XLNetBackbone, XLNetPermutationLM
from keras_xlnet.serving import export
from keras_xlnet.serving.saved_model_signatures import saved_model_signatures
from keras_xlnet.tokenizers import VocabularyTokenizer
from tests.models.test_scoring import with_random_weights
from tests.serving.fresh_process import run_in_a_fresh_process

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
# New tokens of each text.
COUNTS = [5, 1, 7, 2, 3, 4, 6, 5, 7]


def causal_model(tokenizer, num_layers=2, **kwargs):
    sizes = (tokenizer.vocabulary_size(), num_layers, 2, 16, 24)
    model = TransformerXLLanguageModel(*sizes, tokenizer=tokenizer, dropout=0.0, **kwargs)
    return with_random_weights(model)


@pytest.fixture(scope="module")
def models(tokenizer):
    """Models, and the options with which they are exported."""
    words = VocabularyTokenizer.train(
        TEXTS, unknown_token="<unk>", end_token="<eos>", min_count=2, lowercase=True
    )
    backbone = XLNetBackbone(tokenizer.vocabulary_size(), 2, 2, 16, 24, dropout=0.0)
    permutation = with_random_weights(XLNetPermutationLM(backbone, tokenizer=tokenizer))
    of_words = causal_model(
        words, memory_length=9, cutoffs=(3, 5), div_val=2, attend_to_empty_memory=True
    )
    (found,) = of_words.generate(["you"], max_new_tokens=1).token_ids
    return {
        "permutation": (permutation, {}),
        "memory": (causal_model(tokenizer, memory_length=40), {"start_token_id": START}),
        "no_memory": (causal_model(tokenizer, 1), {"batch_size": len(TEXTS)}),
        "words": (of_words, {"stop_token_ids": found.tolist()}),
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
    requests |= {
        (name, "serving_generate"): {"prompt": TEXTS, "max_new_tokens": np.array(COUNTS, "int32")}
        for name in exported
    }
    return run_in_a_fresh_process(requests, exported, tmp_path_factory.mktemp("served"))


# === Scores ===


NAMES = ["permutation", "memory", "no_memory", "words"]


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


def test_models_without_memory_have_no_segments(exported):
    for name in ("memory", "no_memory"):
        signatures = saved_model_signatures(exported[name])["signatures"]
        assert ("serving_segment" in signatures) == (name == "memory")


def test_a_text_without_tokens_has_no_score(exported):
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


# === Continuations ===


@pytest.mark.parametrize("name", NAMES)
def test_greedy_continuations_are_those_of_the_model(name, models, served):
    found = served[name, "serving_generate"]
    model, options = models[name]
    stops = options.get("stop_token_ids", ())
    expected = model.generate(TEXTS, max_new_tokens=max(COUNTS), stop_token_ids=stops)
    counts = [min(x, len(row)) for x, row in zip(COUNTS, expected.token_ids, strict=True)]
    assert found["num_tokens"].tolist() == counts
    assert (counts == COUNTS) == (name != "words")
    for i, count in enumerate(counts):
        tokens, log_probs = found["token_ids"][i], found["token_log_probs"][i]
        assert tokens[:count].tolist() == expected.token_ids[i][:count].tolist()
        np.testing.assert_allclose(log_probs[:count], expected.log_probs[i][:count], atol=1e-5)
        assert (tokens[count:] == -1).all() and not log_probs[count:].any()
        if count == len(expected.token_ids[i]):
            assert found["text"][i].decode() == expected.texts[i]


@pytest.fixture(scope="module")
def sample(exported):
    """A function from prompts and settings, equal for all rows, to the outputs of a signature."""
    signature = tf.saved_model.load(str(exported["memory"])).signatures["serving_sample"]

    def draw(prompts, count=4, temperature=1.0, top_k=0, top_p=1.0, seed=()):
        size = len(prompts)
        outputs = signature(
            prompt=tf.constant(prompts),
            max_new_tokens=tf.fill((size,), count),
            temperature=tf.fill((size,), temperature),
            top_k=tf.fill((size,), top_k),
            top_p=tf.fill((size,), top_p),
            seed=tf.constant(list(seed) or [0] * size, tf.int64),
        )
        return {key: value.numpy() for key, value in outputs.items()}

    return draw


@pytest.mark.parametrize(
    "settings", [{"temperature": 0.0}, {"top_k": 1}, {"top_p": 1e-6}], ids=lambda x: [*x][0]
)
def test_settings_that_leave_one_token_are_greedy(settings, models, sample):
    expected = models["memory"][0].generate(TEXTS[:3], max_new_tokens=4)
    found = sample(TEXTS[:3], **settings)
    assert found["token_ids"].tolist() == [row.tolist() for row in expected.token_ids]


def test_what_is_drawn_depends_on_the_seed_of_the_row_alone(sample):
    together = sample(["you", "see you", "you", "you"], seed=[3, 4, 3, 5])["token_ids"]
    alone = sample(["see you"], seed=[4])["token_ids"]
    assert together[1].tolist() == alone[0].tolist()
    assert together[0].tolist() == together[2].tolist() != together[3].tolist()


def test_draws_have_the_probabilities_of_python(models, sample):
    settings = {"temperature": 0.5, "top_k": 6, "top_p": 0.8}
    model, count = models["memory"][0], 4000
    found = sample(["see you"] * count, 1, **settings, seed=range(count))["token_ids"][:, 0]
    (row,) = model.tokenizer.encode(["see you"])
    log_probs = np.asarray(model({"token_ids": row[np.newaxis]})["log_probs"])[0, -1]
    order = np.argsort(-log_probs)[:6]
    probs = np.exp(log_probs[order] / 0.5)
    probs /= probs.sum()
    kept = 1 + np.searchsorted(np.cumsum(probs), 0.8)
    assert 1 < kept < 6
    probs = probs[:kept] / probs[:kept].sum()
    drawn = np.array([np.mean(found == token) for token in order[:kept]])
    assert drawn.sum() == 1
    np.testing.assert_allclose(drawn, probs, atol=4 * 0.5 / np.sqrt(count))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"temperature": -1.0}, "`temperature` must be at least 0"),
        ({"top_k": -2}, "`top_k` must be at least 0"),
        ({"top_p": 0.0}, "`top_p` must be above 0"),
        ({"top_p": 1.5}, "`top_p` must be at most 1"),
        ({"count": 257}, "`max_new_tokens` must be at most 256"),
    ],
)
def test_wrong_settings(settings, message, sample):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        sample(["you"], **settings)


def test_prompts_without_tokens_are_not_continued(sample):
    found = sample(["", "you"])
    assert found["num_tokens"].tolist() == [0, 4] and found["text"][0] == b""
    assert sample([""])["token_ids"].shape == (1, 0)
    assert sample(np.array([], str))["text"].shape == (0,)
