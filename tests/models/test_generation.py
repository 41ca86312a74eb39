"""Continuations: equal to what is computed anew for every token, by every method."""

import itertools

import numpy as np
import pytest

from keras_xlnet.models.generation import BeamSearch, Sampling
from tests.models.test_scoring import causal_model, permutation_model, texts_of

SIZE, NEW = 30, 5
CAUSAL = {
    "memory": {},
    "short_memory": {"memory_length": 5},
    "no_memory": {"memory_length": None},
    "zero_memory": {"memory_length": 9, "attend_to_empty_memory": True},
    "zero_memory_normalize_first": {
        "normalize_first": True,
        "memory_length": 20,
        "attend_to_empty_memory": True,
        "clamp_length": 4,
    },
    "same_length": {"same_length": True, "memory_length": 6, "tie_attention_biases": True},
    "clusters": {"cutoffs": (5, 12), "div_val": 2, "tie_projections": True},
}


@pytest.fixture(scope="module")
def models():
    """Models that are compiled once."""
    return {make: make(SIZE) for make in (causal_model, permutation_model)}


def prompts_of(lengths=(3, 9, 17)):
    return texts_of(lengths, SIZE)


def next_of_causal(model, prompt, ways):
    """Log-probabilities of each token of some ways to go on: with memory, anew."""
    memory, found = {}, []
    prompts, ways = np.tile(prompt, (len(ways), 1)), np.array(ways)
    segments = [prompts, *np.split(ways[:, :-1], ways.shape[1] - 1, axis=1)]
    if not model.memory_length:
        whole = np.concatenate(segments, axis=1)
        log_probs = np.asarray(model({"token_ids": whole})["log_probs"])
        return log_probs[:, len(prompt) - 1 :]
    for segment in segments:
        outputs = model({"token_ids": segment, **memory})
        found.append(np.asarray(outputs["log_probs"])[:, -1])
        memory = {key: outputs[key] for key in ("memory", "memory_mask")}
    return np.stack(found, axis=1)


def next_of_permutation(model, prompt, ways):
    """The same for a permutation language model: a pass for each token."""
    found = []
    prompts, ways = np.tile(prompt, (len(ways), 1)), np.array(ways)
    for count in range(ways.shape[1]):
        unknown = np.zeros((len(ways), 1), "int32")
        whole = np.concatenate([prompts, ways[:, :count], unknown], axis=1).astype("int32")
        length = whole.shape[1]
        turn = np.maximum(np.arange(length) - len(prompt) + 1, 0)
        # The prompt sees itself, the others what comes before.
        mask = (turn[None] < turn[:, None]) | (turn[None] == 0)
        inputs = {
            "token_ids": whole,
            "permutation_mask": np.tile(mask, (len(ways), 1, 1)),
            "target_positions": np.full((len(ways), 1), length - 1),
        }
        logits = np.asarray(model(inputs)["logits"])[:, 0].astype("float64")
        found.append(logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)))
    return np.stack(found, axis=1)


# === Equal to what is computed anew ===


@pytest.mark.parametrize("name", CAUSAL)
def test_a_causal_model_continues_as_computed_anew(name):
    model = causal_model(SIZE, **CAUSAL[name])
    prompts = prompts_of()
    found = model.generate(prompts, max_new_tokens=NEW)
    for prompt, tokens, log_probs in zip(prompts, found.token_ids, found.log_probs, strict=True):
        (expected,) = next_of_causal(model, prompt, [tokens])
        np.testing.assert_array_equal(tokens, expected.argmax(axis=1))
        np.testing.assert_allclose(log_probs, expected.max(axis=1), rtol=0, atol=2e-5)


@pytest.mark.parametrize("arguments", [{}, {"tie_attention_biases": True, "memory_length": 4}])
def test_a_permutation_model_continues_as_computed_anew(arguments):
    model = permutation_model(SIZE, **arguments)
    prompts = prompts_of()
    found = model.generate(prompts, max_new_tokens=NEW)
    for prompt, tokens, log_probs in zip(prompts, found.token_ids, found.log_probs, strict=True):
        (expected,) = next_of_permutation(model, prompt, [tokens])
        np.testing.assert_array_equal(tokens, expected.argmax(axis=1))
        np.testing.assert_allclose(log_probs, expected.max(axis=1), rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    "make, method",
    [(causal_model, m) for m in ("sample", "beam")]
    + [(permutation_model, m) for m in ("greedy", "beam")],
)
def test_other_prompts_change_nothing(make, method, models):
    model, prompts = models[make], prompts_of((3, 17))
    arguments = {"max_new_tokens": NEW, "method": method, "seed": 5, "beam_size": 2}
    together = model.generate(prompts, **arguments)
    alone = model.generate(prompts[:1], **arguments)
    np.testing.assert_array_equal(alone.token_ids[0], together.token_ids[0])
    np.testing.assert_allclose(alone.log_probs[0], together.log_probs[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("make", [causal_model, permutation_model])
def test_beam_search_finds_the_best(make):
    model, prompts = make(3), texts_of((5,), 3)
    next_of = next_of_causal if make is causal_model else next_of_permutation
    # With as many beams as there are continuations, it is a complete search.
    found = model.generate(prompts, max_new_tokens=3, method="beam", beam_size=9)
    ways = list(itertools.product(range(3), repeat=3))
    for prompt, tokens, log_probs in zip(prompts, found.token_ids, found.log_probs, strict=True):
        expected = next_of(model, prompt, ways)
        best = max(
            (of_way[np.arange(3), list(way)].sum(), way)
            for of_way, way in zip(expected, ways, strict=True)
        )
        assert tuple(tokens) == best[1]
        assert log_probs.sum() == pytest.approx(best[0], abs=1e-4)


# === Methods ===


def test_samples_follow_the_probabilities(rng):
    log_probs = np.log(np.array([0.5, 0.05, 0.3, 0.15]))
    rows = np.tile(log_probs, (4000, 1))

    def shares(**settings):
        rngs = [np.random.default_rng((1, i)) for i in range(4000)]
        return np.bincount(Sampling(**settings).draw(rows, rngs), minlength=4) / 4000

    np.testing.assert_allclose(shares(), [0.5, 0.05, 0.3, 0.15], atol=0.03)
    np.testing.assert_allclose(shares(top_k=2), [0.625, 0, 0.375, 0], atol=0.03)
    np.testing.assert_allclose(shares(top_p=0.7), [0.625, 0, 0.375, 0], atol=0.03)
    np.testing.assert_allclose(shares(top_p=0.5), [1, 0, 0, 0])
    np.testing.assert_allclose(shares(top_p=1.0), [0.5, 0.05, 0.3, 0.15], atol=0.03)
    squared = np.exp(2 * log_probs)
    np.testing.assert_allclose(shares(temperature=0.5), squared / squared.sum(), atol=0.03)


def test_seeds(models):
    model, prompts = models[causal_model], prompts_of()
    first, again, other = (
        model.generate(prompts, method="sample", max_new_tokens=NEW, seed=seed).token_ids
        for seed in (1, 1, 2)
    )
    for a, b, c in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.any(a != c)
    few = model.generate(prompts, method="sample", max_new_tokens=NEW, top_k=1).token_ids
    greedy = model.generate(prompts, max_new_tokens=NEW).token_ids
    for a, b in zip(few, greedy, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("method", ["greedy", "beam"])
def test_stop_tokens_end_a_continuation(method, models):
    model, prompts = models[causal_model], prompts_of()
    free = model.generate(prompts, max_new_tokens=NEW).token_ids
    stop = {int(free[0][2]), int(free[1][4])}
    found = model.generate(prompts, max_new_tokens=NEW, method=method, stop_token_ids=stop)
    for tokens, unstopped in zip(found.token_ids, free, strict=True):
        assert not set(tokens[:-1].tolist()) & stop
        assert len(tokens) == NEW or int(tokens[-1]) in stop
        if method == "greedy":
            np.testing.assert_array_equal(tokens, unstopped[: len(tokens)])


def test_a_search_is_done_when_nothing_can_become_better():
    search = BeamSearch(2, {0})
    log_probs = np.log(np.array([[0.6, 0.3, 0.1]] * 2))
    search.extend(log_probs, is_last=False)
    assert search.best.token_ids == (0,)
    assert search.is_done
    assert [beam.token_ids for beam in search.beams] == [(1,), (2,)]


def test_the_callback_sees_every_step(models):
    model, prompts = models[permutation_model], prompts_of((3, 17))
    seen = []
    found = model.generate(prompts, max_new_tokens=4, callback=lambda *step: seen.append(step))
    assert [number for number, _ in seen] == [0, 1, 2, 3]
    np.testing.assert_array_equal(np.stack([t for _, t in seen], axis=1), found.token_ids)


@pytest.mark.parametrize("method", ["greedy", "sample"])
@pytest.mark.parametrize("make", [causal_model, permutation_model])
def test_the_callback_gets_no_tokens_of_rows_that_have_ended(make, method, models):
    model, prompts = models[make], prompts_of()
    free = model.generate(prompts, max_new_tokens=NEW, method=method).token_ids
    seen = []
    found = model.generate(
        prompts,
        max_new_tokens=NEW,
        method=method,
        stop_token_ids=[int(free[0][1])],
        callback=lambda number, tokens: seen.append(tokens),
    )
    lengths = [len(tokens) for tokens in found.token_ids]
    assert lengths[0] < max(lengths)
    for tokens, row in zip(found.token_ids, np.stack(seen, axis=1), strict=True):
        assert row.tolist() == [*tokens, *[-1] * (max(lengths) - len(tokens))]


def test_what_a_callback_writes_changes_nothing(models):
    model, prompts = models[causal_model], prompts_of()

    def clear(number, tokens):
        tokens[:] = 0

    found = model.generate(prompts, max_new_tokens=NEW, callback=clear).token_ids
    expected = model.generate(prompts, max_new_tokens=NEW).token_ids
    np.testing.assert_array_equal(np.stack(found), np.stack(expected))


@pytest.mark.parametrize("method", ["greedy", "beam"])
@pytest.mark.parametrize("make", [causal_model, permutation_model])
def test_stop_tokens_must_be_ids(make, method, models):
    model = models[make]

    def generate(ids):
        return model.generate([[1, 2]], max_new_tokens=1, method=method, stop_token_ids=ids)

    for ids, received in (
        (["."], r"'\.'\. For a string use `tokenizer.token_to_id`"),
        ([SIZE], SIZE),
        ([-1], -1),
        ([2.0], "2.0"),
        ([None], None),
        ([True], True),
        ([[3]], r"\[3\]"),
    ):
        message = f"`stop_token_ids` must be an id from 0 to 29. Received: {received}"
        with pytest.raises(ValueError, match=message):
            generate(ids)
    for ids in (".", 4, None):
        with pytest.raises(ValueError, match="`stop_token_ids` must be a list of ids"):
            generate(ids)
    for ids in ([4], (4,), {4}, range(4, 5), np.array([4]), [np.int64(4)]):
        assert len(generate(ids).token_ids[0]) == 1


def test_a_prompt_has_no_end_token():
    from keras_xlnet.tokenizers import VocabularyTokenizer

    tokenizer = VocabularyTokenizer.train(["a rose is a rose"], end_token="<eos>")
    model = causal_model(tokenizer.vocabulary_size())
    found = model.generate(["a rose", "a <eos>"], tokenizer, max_new_tokens=3)
    expected = model.generate([[1, 2], [1, 0]], max_new_tokens=3)
    np.testing.assert_array_equal(found.token_ids, expected.token_ids)
    np.testing.assert_allclose(found.log_probs, expected.log_probs, rtol=0, atol=1e-5)


def test_white_space_at_the_end_of_a_prompt_belongs_to_the_next_word(tokenizer):

    model = causal_model(tokenizer.vocabulary_size())
    plain, spaced = model.generate(["a text", "a text \n"], tokenizer, max_new_tokens=3).token_ids
    np.testing.assert_array_equal(plain, spaced)


@pytest.mark.parametrize("make", [causal_model, permutation_model])
def test_strings(make, tokenizer):

    model = make(tokenizer.vocabulary_size())
    found = model.generate(["a text", "one"], tokenizer, max_new_tokens=3)
    for prompt, text, tokens in zip(["a text", "one"], found.texts, found.token_ids, strict=True):
        ids = np.concatenate([np.asarray(tokenizer(prompt)), tokens])
        assert text == tokenizer.detokenize(ids).numpy().decode()
    assert model.generate([[9, 10], [9]], max_new_tokens=1).texts is None


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"prompts": []}, "`prompts` must have at least one text"),
        ({"prompts": [[1], []]}, "at least one token each. Received in row 1"),
        ({"prompts": ["one"]}, "pass `tokenizer=`"),
        ({"prompts": [["1", "2"]]}, r"that are ints. Received in row 0: \['1', '2'\]"),
        ({"prompts": [[1.5]]}, r"token ids that are ints. Received in row 0: \[1.5\]"),
        ({"prompts": [[2**40]]}, "token ids from 0 to 29. Received in row 0: 1099511627776"),
        ({"method": "best"}, "`method` must be one of"),
        ({"max_new_tokens": 0}, "`max_new_tokens` must be a positive"),
        ({"method": "sample", "temperature": 0}, "`temperature` must be above 0"),
        ({"method": "sample", "top_k": 0}, "`top_k` must be a positive"),
        ({"method": "sample", "top_p": 1.5}, "`top_p` must be a number, from 0 to 1"),
        ({"top_k": 3}, "are for `method='sample'`"),
        ({"method": "beam", "callback": print}, "`callback` cannot be used"),
        ({"method": "beam", "beam_size": 0}, "`beam_size` must be a positive"),
    ],
)
def test_bad_arguments(arguments, message, models):
    with pytest.raises(ValueError, match=message):
        models[causal_model].generate(**{"prompts": [[1, 2]], **arguments})


def test_stateful_models_are_refused():
    with pytest.raises(ValueError, match="`generate` needs a model with `stateful=False`"):
        causal_model(SIZE, stateful=True, batch_size=1).generate([[1]])
