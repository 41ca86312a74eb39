"""Language models in lm-eval: its metrics equal those computed one text at a time."""

import json

import keras
import numpy as np
import pytest

from keras_xlnet.evaluation import Perplexity
from keras_xlnet.models import TransformerXLLanguageModel, XLNetPermutationLM, XLNetTextEmbedder
from keras_xlnet.tokenizers import VocabularyTokenizer
from tests.small_models import small_backbone

lm_eval = pytest.importorskip("lm_eval")

from lm_eval.api.instance import Instance  # noqa: E402

from keras_xlnet.integrations import HarnessLM  # noqa: E402

TEXTS = [
    "the cat sat on a mat",
    "a dog ran to the cat and the cat ran to a tree, where it sat",
    "it ran",
    "where the mat is, a dog sat",
]
QUESTIONS = [
    {"question": "the cat sat on", "choices": ["a mat", "the tree and the mat", "it"], "answer": 0},
    {"question": "it ran to", "choices": ["dog", "a tree where the dog sat", "on"], "answer": 1},
    {"question": "a dog ran", "choices": ["to the cat", "the", "mat on mat"], "answer": 2},
    {"question": "where", "choices": ["is it", "a cat", "the mat and the dog ran"], "answer": 0},
]


def requests(kind, *arguments):
    return [Instance(kind, {}, each, i) for i, each in enumerate(arguments)]


def with_random_weights(model):
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(scale=0.4, size=variable.shape) + ("gamma" in variable.path))
    return model


def causal_model(tokenizer, **arguments):
    return with_random_weights(
        TransformerXLLanguageModel(
            tokenizer.vocabulary_size(), 1, 2, 16, 32, tokenizer, dropout=0.0, **arguments
        )
    )


@pytest.fixture(scope="module")
def words():
    texts = [*TEXTS, *(" ".join(q["choices"]) for q in QUESTIONS)]
    return VocabularyTokenizer.train(texts, end_token="<eos>")


@pytest.fixture(scope="module")
def causal(words):
    """Its memory holds all texts."""
    return causal_model(words, memory_length=40)


@pytest.fixture(scope="module")
def permutation(tokenizer):
    keras.utils.set_random_seed(0)
    return with_random_weights(XLNetPermutationLM(small_backbone(), tokenizer))


# === Against one text at a time ===


def total_of_last(model, text, count):
    """The log-probability of the last tokens of a text, after the end token."""
    end = model.tokenizer.token_to_id("<eos>")
    rows = [row[:-1] for row in model.tokenizer.encode([text])]
    return model.score(rows, start_token_id=end).log_probs[0][len(rows[0]) - count :].sum()


def test_a_causal_continuation_has_the_score_of_its_tokens(causal):
    pairs = [(a, f" {b}") for a, b in zip(TEXTS, reversed(TEXTS), strict=True)] + [("", "a cat")]
    found = HarnessLM(causal, batch_size=2, max_length=8).loglikelihood(
        requests("loglikelihood", *pairs), True
    )
    for (context, continuation), (total, _) in zip(pairs, found, strict=True):
        expected = total_of_last(causal, context + continuation, len(continuation.split()))
        np.testing.assert_allclose(total, expected, atol=1e-4)


def slow_permutation_scores(model, given, new):
    """Log-probabilities `(new, vocabulary)` of new tokens after given ones, each from a call."""
    length, rows = len(given) + len(new), []
    token_ids = np.array([[*given, *new, 4, 3]])
    for place in range(len(given), length):
        # The given tokens and `<sep><cls>` are seen by all, a new token by those after it.
        may_see = np.zeros((length + 2, length + 2), bool)
        may_see[:, [*range(len(given)), length, length + 1]] = True
        for later in range(len(given), length):
            may_see[later, len(given) : later] = True
        features = {
            "token_ids": token_ids,
            "segment_ids": np.array([[0] * length + [0, 2]]),
            "permutation_mask": may_see[None],
            "target_positions": np.array([[place]]),
        }
        rows.append(keras.ops.log_softmax(model(features)["logits"])[0, 0])
    return np.array(rows)


def test_a_permutation_continuation_follows_a_context_that_is_given(permutation):
    pairs = [("The river is", " long"), ("", "The harbor"), ("A", " ship on the river sails")]
    encode = permutation.tokenizer.encode
    found = HarnessLM(permutation, batch_size=2).loglikelihood(
        requests("loglikelihood", *pairs), True
    )
    for (context, continuation), (total, is_greedy) in zip(pairs, found, strict=True):
        (given,), (whole,) = encode([context]), encode([context + continuation])
        new = whole[len(given) :]
        log_probs = slow_permutation_scores(permutation, given, new)
        expected = log_probs[np.arange(len(new)), new]
        np.testing.assert_allclose(total, expected.sum(), atol=1e-4)
        assert is_greedy == (log_probs.argmax(-1) == new).all()


def test_a_permutation_text_has_the_score_of_its_order(permutation):
    expected = permutation.score(TEXTS).totals
    found = HarnessLM(permutation, batch_size=3).loglikelihood_rolling(
        requests("loglikelihood_rolling", *((text,) for text in TEXTS)), True
    )
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_the_continuation_of_generate_is_greedy(causal):
    lm = HarnessLM(causal)
    prompts = [(text, {"max_gen_toks": 3, "until": []}) for text in TEXTS]
    texts = lm.generate_until(requests("generate_until", *prompts), True)
    pairs = [*zip(TEXTS, texts, strict=True)]
    others = [(text, continuation + " dog") for text, continuation in pairs]
    found = lm.loglikelihood(requests("loglikelihood", *pairs, *others), True)
    assert all(is_greedy for _, is_greedy in found[: len(pairs)])
    assert not all(is_greedy for _, is_greedy in found[len(pairs) :])


def test_an_adaptive_softmax_finds_the_most_probable_token(words):
    model = causal_model(words, memory_length=8, cutoffs=(5, 9))
    rows = words.encode(["the cat sat"])
    context = np.append(words.token_to_id("<eos>"), rows[0][:-1])
    log_probs = np.array(model({"token_ids": context[None]})["log_probs"])[0, -1]
    new = [f" {words.id_to_token(i)}" for i in range(1, words.vocabulary_size())]
    pairs = [("the cat sat", word) for word in new]
    found = HarnessLM(model).loglikelihood(requests("loglikelihood", *pairs), True)
    np.testing.assert_allclose([total for total, _ in found], log_probs[1:], atol=1e-4)
    assert [is_greedy for _, is_greedy in found] == (log_probs == log_probs.max())[1:].tolist()


# === Tokens ===


def test_a_word_that_goes_on_in_the_continuation_is_the_continuations(permutation):
    encode = permutation.tokenizer.encode
    word = next(
        piece[1:]
        for piece in map(permutation.tokenizer.id_to_token, range(199, 8, -1))
        if piece[0] == "▁" and len(piece) > 4
    )
    context = f"the {word[:-1]}"
    (whole,), (head,) = encode([f"the {word}"]), encode(["the"])
    ((total, _),) = HarnessLM(permutation).loglikelihood(
        requests("loglikelihood", (context, word[-1])), True
    )
    new = whole[len(head) :]
    assert len(new) == 1 and len(encode([context])[0]) > len(whole) - 1
    expected = slow_permutation_scores(permutation, head, new)[0, new[0]]
    np.testing.assert_allclose(total, expected, atol=1e-4)


def test_spaces_at_the_end_of_a_context_change_nothing(permutation):
    pairs = [("the river", " is long"), ("the river ", "is long"), ("the river ", " is long")]
    found = HarnessLM(permutation).loglikelihood(requests("loglikelihood", *pairs), True)
    np.testing.assert_allclose([total for total, _ in found], found[0][0], atol=1e-5)


def test_long_texts_are_read_in_windows(permutation):
    (row,) = permutation.tokenizer.encode([TEXTS[1]])
    size = len(row) // 2 - 1  # Three windows.
    (found,) = HarnessLM(permutation, max_length=size + 1).loglikelihood_rolling(
        requests("loglikelihood_rolling", (TEXTS[1],)), True
    )
    last = len(row) - 2 * size
    windows = [
        ([], row[:size]),
        (row[size - 1 : size], row[size : 2 * size]),
        (row[-size - 1 : -last], row[-last:]),
    ]
    expected = sum(
        slow_permutation_scores(permutation, given, new)[np.arange(len(new)), new].sum()
        for given, new in windows
    )
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_long_context_loses_its_first_tokens(permutation, words):
    long = [("where a mat is the cat", " sat"), ("mat is the cat", " sat")]
    without_memory = causal_model(words)
    found = HarnessLM(without_memory, max_length=5).loglikelihood(
        requests("loglikelihood", *long), True
    )
    kept = words.encode(["mat is the cat sat"])[0][:-1]
    expected = without_memory.score([kept]).log_probs[0][-1]
    np.testing.assert_allclose([total for total, _ in found], expected, atol=1e-4)
    lm = HarnessLM(permutation, max_length=6)
    (row,) = permutation.tokenizer.encode(["".join(long[0])])
    (context,) = permutation.tokenizer.encode([long[0][0]])
    new = row[len(context) :]
    ((total, _),) = lm.loglikelihood(requests("loglikelihood", long[0]), True)
    given = context[len(row) - 6 :]
    expected = slow_permutation_scores(permutation, given, new)[np.arange(len(new)), new].sum()
    np.testing.assert_allclose(total, expected, atol=1e-4)


def test_texts_without_tokens_have_the_likelihood_1(causal, permutation):
    for model in (causal, permutation):
        lm = HarnessLM(model)
        pairs = requests("loglikelihood", ("the cat", ""), ("the cat", " "))
        assert lm.loglikelihood(pairs, True) == [(0.0, True)] * 2
        assert lm.loglikelihood_rolling(requests("loglikelihood_rolling", ("",)), True) == [0.0]


# === Continuations ===


@pytest.mark.parametrize("kind", ["causal", "permutation"])
def test_prompts_are_continued_up_to_a_stop_string(kind, request):
    model = request.getfixturevalue(kind)
    start = [model.tokenizer.token_to_id("<eos>")] if kind == "causal" else []
    prompts = [[*start, *row[: -len(start) or None]] for row in model.tokenizer.encode(TEXTS)]
    stop_ids = start
    alone = [
        model.generate([row], max_new_tokens=12, stop_token_ids=stop_ids).texts[0][len(text) :]
        for row, text in zip(prompts, map(model.tokenizer.decode, prompts), strict=True)
    ]
    arguments = {"max_gen_toks": 12, "do_sample": False, "until": []}
    whole = [(text, arguments) for text in TEXTS]
    lm = HarnessLM(model, batch_size=2)
    assert lm.generate_until(requests("generate_until", *whole), True) == alone
    # A stop string of several tokens, and one that is a part of a token.
    for text, expected in zip(TEXTS, alone, strict=True):
        for until in (expected[3:7], expected[-1:]):
            request_ = requests("generate_until", (text, {**arguments, "until": [until, "%"]}))
            (found,) = lm.generate_until(request_, True)
            assert found == expected.split(until)[0] if until else found == expected


def test_sampling_follows_the_arguments_of_the_task(causal):
    lm = HarnessLM(causal, batch_size=2)
    arguments = {"max_gen_toks": 12, "until": []}

    def texts(**others):
        same = [("the cat", {**arguments, **others})] * 5
        return lm.generate_until(requests("generate_until", *same), True)

    assert len(set(texts())) == 1
    assert len(set(texts(do_sample=True, temperature=1.0))) == 5
    assert texts(do_sample=True, top_k=1, temperature=1.0) == texts()
    assert texts(do_sample=True, top_p=1e-6) == texts(temperature=0.0)


# === Through lm-eval ===


def next_word(model, text):
    (row,) = model.tokenizer.encode([text])
    ((token,),) = model.generate([np.roll(row, 1)], max_new_tokens=1).token_ids
    return model.tokenizer.id_to_token(token)


@pytest.fixture(scope="module")
def results(causal, tmp_path_factory):
    """What lm-eval prints for tasks of local files, and the logged samples."""
    folder = tmp_path_factory.mktemp("tasks")

    def task(name, rows, **config):
        file = folder / f"{name}.jsonl"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        metrics = [{"metric": metric} for metric in config.pop("metrics")]
        return {
            "task": name,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": str(file)}, "cache_dir": str(folder)},
            "test_split": "test",
            "metric_list": metrics,
            **config,
        }

    tasks = [
        task(
            "choices",
            QUESTIONS,
            output_type="multiple_choice",
            doc_to_text="question",
            doc_to_choice="choices",
            doc_to_target="answer",
            metrics=["acc", "acc_norm"],
        ),
        task(
            "texts",
            [{"text": text} for text in TEXTS],
            output_type="loglikelihood_rolling",
            doc_to_text="",
            doc_to_target="text",
            metrics=["word_perplexity", "byte_perplexity", "bits_per_byte"],
        ),
        task(
            "next",
            # The model is right about two of four.
            [
                {"text": text, "word": next_word(causal, text) if i % 2 else "moon"}
                for i, text in enumerate(TEXTS)
            ],
            output_type="generate_until",
            doc_to_text="text",
            doc_to_target=" {{word}}",
            generation_kwargs={"until": ["\n"], "max_gen_toks": 1},
            metrics=["exact_match"],
        ),
    ]
    return lm_eval.simple_evaluate(HarnessLM(causal, batch_size=3), tasks=tasks, bootstrap_iters=0)


def test_lm_eval_chooses_the_choice_of_the_largest_score(results, causal):
    totals = [
        [
            total_of_last(causal, f"{q['question']} {choice}", len(choice.split()))
            for choice in q["choices"]
        ]
        for q in QUESTIONS
    ]
    lengths = [[len(choice) for choice in q["choices"]] for q in QUESTIONS]
    right = [q["answer"] for q in QUESTIONS]
    by_length = [np.divide(*row).argmax() for row in zip(totals, lengths, strict=True)]
    found = results["results"]["choices"]
    assert found["acc,none"] == np.mean(np.argmax(totals, axis=1) == right)
    assert found["acc_norm,none"] == np.mean(np.array(by_length) == right)
    for sample, expected in zip(results["samples"]["choices"], totals, strict=True):
        np.testing.assert_allclose([r[0] for r in sample["filtered_resps"]], expected, atol=1e-4)


def test_the_perplexity_of_lm_eval_is_that_of_the_metric(results, causal):
    perplexity = Perplexity()
    end = causal.tokenizer.token_to_id("<eos>")
    for text in TEXTS:
        row = causal.tokenizer.encode([text])[0][:-1]
        inputs = np.append(end, row[:-1])
        # As in the original, a first segment attends to an empty memory.
        outputs = causal({"token_ids": inputs[None], **causal.empty_memory(1)})
        perplexity.update_state(row[None], outputs["log_probs"])
    found = results["results"]["texts"]
    # A token is a word.
    np.testing.assert_allclose(found["word_perplexity,none"], float(perplexity.result()), rtol=1e-4)
    num_words, num_bytes = len(" ".join(TEXTS).split()), sum(map(len, TEXTS))
    bits = np.log2(float(perplexity.result())) * num_words / num_bytes
    np.testing.assert_allclose(found["bits_per_byte,none"], bits, rtol=1e-4)


def test_lm_eval_gets_the_next_word(results, causal):
    for sample, text in zip(results["samples"]["next"], TEXTS, strict=True):
        assert sample["resps"] == [[f" {next_word(causal, text)}"]]
    assert results["results"]["next"]["exact_match,none"] == 0.5


# === Errors ===


def test_errors_name_the_argument(causal, permutation, words):
    with pytest.raises(ValueError, match="`model` must be a TransformerXLLanguageModel or an"):
        HarnessLM(XLNetTextEmbedder(small_backbone()))
    with pytest.raises(ValueError, match="`model` must have a tokenizer"):
        HarnessLM(XLNetPermutationLM(small_backbone()))
    stateful = causal.with_arguments(stateful=True, batch_size=2)
    with pytest.raises(ValueError, match="`model` must not be stateful"):
        HarnessLM(stateful)
    with pytest.raises(ValueError, match="`start_token_id` is for a TransformerXLLanguageModel"):
        HarnessLM(permutation, start_token_id=5)
    with pytest.raises(ValueError, match="`start_token_id` must be an id from 0 to"):
        HarnessLM(causal, start_token_id=words.vocabulary_size())
    without_end = causal_model(VocabularyTokenizer(words.vocabulary))
    with pytest.raises(ValueError, match="`start_token_id` is needed for a text without a context"):
        HarnessLM(without_end).loglikelihood_rolling(
            requests("loglikelihood_rolling", ("the cat",)), True
        )
    arguments = {"until": ["."], "num_beams": 4, "best_of": 2}
    with pytest.raises(ValueError, match="Received: best_of, num_beams"):
        HarnessLM(causal).generate_until(requests("generate_until", ("the", arguments)), True)
