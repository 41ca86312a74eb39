"""Blanks filled jointly and independently, against probabilities of whole texts."""

import numpy as np
import pytest

from tests.models.test_scoring import permutation_model

SIZE = 8


@pytest.fixture(scope="module")
def model():
    return permutation_model(SIZE)


def test_joint_is_the_product_of_conditionals(model):
    row = [3, 6, 2, 6]
    fillings = model.fill([row], num_results=SIZE * SIZE, beam_size=SIZE * SIZE)[0]
    joint = {tuple(f.token_ids): f.log_prob for f in fillings.joint}
    assert len(joint) == SIZE**2
    assert abs(np.exp(list(joint.values())).sum() - 1) < 1e-5
    assert list(joint.values()) == sorted(joint.values(), reverse=True)
    # p(a, b) = p(a) p(b | a), each from a text with one blank.
    first = {}
    for (a, _), log_prob in joint.items():
        first.setdefault(a, []).append(log_prob)
    for a, log_probs in first.items():
        filled = [3, a, 2, 6]
        alone = model.fill([filled], num_results=SIZE, beam_size=SIZE)[0].joint
        conditional = {int(f.token_ids[0]): f.log_prob for f in alone}
        marginal = np.log(np.exp(log_probs).sum())
        for b in range(SIZE):
            if a != 6:  # The id of <mask> would be one more blank.
                assert abs(joint[a, b] - marginal - conditional[b]) < 1e-5


def test_independent_is_the_product_of_marginals(model):
    row = [3, 6, 2, 6]
    fillings = model.fill([row], num_results=SIZE * SIZE, beam_size=SIZE * SIZE)[0]
    apart = {tuple(f.token_ids): f.independent_log_prob for f in fillings.independent}
    assert list(apart.values()) == sorted(apart.values(), reverse=True)
    table = np.array([[apart[a, b] for b in range(SIZE)] for a in range(SIZE)])
    # Of rank 1: a sum of two vectors.
    np.testing.assert_allclose(table, table[:, :1] + table[:1] - table[0, 0], rtol=0, atol=1e-9)
    assert abs(np.exp(table).sum() - 1) < 1e-5
    joint = {tuple(f.token_ids): f.log_prob for f in fillings.joint}
    assert max(abs(joint[key] - apart[key]) for key in joint) > 1e-3
    for filling in fillings.independent:
        assert filling.log_prob == pytest.approx(joint[tuple(filling.token_ids)], abs=1e-6)


def test_a_small_beam_finds_the_best_of_what_it_follows(model):
    row = [6, 2, 6, 5, 6]
    wide = model.fill([row], num_results=3, beam_size=SIZE**3)[0].joint
    narrow = model.fill([row], num_results=3, beam_size=20)[0].joint
    assert len(narrow) == 3
    assert narrow[0].log_prob <= wide[0].log_prob + 1e-6


def test_strings(tokenizer):

    model = permutation_model(tokenizer.vocabulary_size())
    filling = model.fill("a <mask> text <mask>", tokenizer, num_results=1).joint[0]
    ids = [*np.asarray(tokenizer("a")), filling.token_ids[0]]
    ids += [*np.asarray(tokenizer("text")), filling.token_ids[1]]
    assert filling.text == tokenizer.detokenize(np.array(ids)).numpy().decode()
    as_ids = model.fill([[*ids[:1], 6, *ids[2:-1], 6]], num_results=1)[0].joint[0]
    assert as_ids.text is None


def test_punctuation_after_a_blank_is_as_in_the_text(tokenizer):

    model = permutation_model(tokenizer.vocabulary_size())
    text = "a <mask>. (<mask>), a"
    ids = tokenizer("a. (b), a").numpy()
    assert [tokenizer.id_to_token(id) for id in ids] == "▁ a . ▁ ( b ) , ▁ a".split()
    row = [*ids[:2], 6, *ids[2:5], 6, *ids[6:]]
    filling = model.fill(text, tokenizer, num_results=1).joint[0]
    expected = model.fill([row], num_results=1)[0].joint[0]
    np.testing.assert_array_equal(filling.token_ids, expected.token_ids)
    assert filling.log_prob == pytest.approx(expected.log_prob, abs=1e-6)
    first, second = (tokenizer.id_to_token(id) for id in filling.token_ids)
    assert filling.text == f"a{first}. ({second}), a".replace("▁", " ")
    as_bytes = model.fill([text.encode()], tokenizer, num_results=1)[0].joint[0]
    assert as_bytes.text == filling.text


def test_a_word_with_the_id_of_mask_is_no_blank():
    from keras_xlnet.tokenizers import VocabularyTokenizer

    tokenizer = VocabularyTokenizer.train(["a b c d e f g h"], end_token="<eos>")
    model = permutation_model(tokenizer.vocabulary_size())
    assert tokenizer.id_to_token(6) == "f"
    filling = model.fill("f <mask> f a", tokenizer, num_results=1).joint[0]
    word = tokenizer.id_to_token(int(filling.token_ids[0]))
    assert len(filling.token_ids) == 1
    assert filling.text.split() == f"f {'' if word == '<eos>' else word} f a".split()


@pytest.mark.parametrize(
    "texts, arguments, message",
    [
        ([[1, 2]], {}, "must have blanks, '<mask>'. Received in row 0"),
        (["a <mask>"], {}, "pass `tokenizer=`"),
        ([["a", "<mask>"]], {}, r"token ids that are ints. Received in row 0: \['a', '<mask>'\]"),
        ([[6, 9]], {}, "token ids from 0 to 7"),
        ([[6]], {"num_results": 0}, "`num_results` must be a positive"),
    ],
)
def test_bad_input(texts, arguments, message, model):
    with pytest.raises(ValueError, match=message):
        model.fill(texts, **arguments)
