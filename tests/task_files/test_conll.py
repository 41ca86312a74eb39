"""Files of words and tags: exact values, every error, round trips, and the real files."""

import pathlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_xlnet.task_files import TaskFileError, read_conll, write_conll

WNUT = pathlib.Path(__file__).parents[3] / "shared" / "data" / "tasks" / "wnut17"


def write(tmp_path, content):
    path = tmp_path / "a.conll"
    path.write_bytes(content.encode())
    return path


def test_sentences(tmp_path):
    path = write(tmp_path, "Empire\tB-location\nState\tI-location\n.\tO\n\nHello\tO\n")
    assert read_conll(path) == {
        "words": [["Empire", "State", "."], ["Hello"]],
        "tags": [["B-location", "I-location", "O"], ["O"]],
    }


@pytest.mark.parametrize("blank", ["", "\t", " ", "\t\t", " \t ", "\n", "\t\n\n\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines(tmp_path, blank, end):
    # wnut17train.conll has 2,394 lines with only a tab. Several of them end one sentence.
    content = f"{blank}\na\tO\n{blank}\nb\tO\n{blank}\n".replace("\n", end)
    assert read_conll(write(tmp_path, content)) == {"words": [["a"], ["b"]], "tags": [["O"], ["O"]]}


def test_columns_of_conll_2003(tmp_path):
    path = write(
        tmp_path,
        "-DOCSTART- -X- -X- O\n\nEU NNP B-NP S-ORG\nrejects  VBZ B-VP O\n\n"
        "-DOCSTART- -X- -X- O\nPeter NNP B-NP B-PER\nBlackburn NNP I-NP E-PER\n",
    )
    sentences = read_conll(path)
    assert sentences["words"] == [["EU", "rejects"], ["Peter", "Blackburn"]]
    assert sentences["tags"] == [["S-ORG", "O"], ["B-PER", "E-PER"]]
    assert read_conll(path, tag_column=2)["tags"] == [["B-NP", "B-VP"], ["B-NP", "I-NP"]]


def test_a_document_start_ends_a_sentence(tmp_path):
    path = write(tmp_path, "-DOCSTART-\na\tO\n-DOCSTART-\nb\tO\n-DOCSTART-ed\tO\n")
    assert read_conll(path)["words"] == [["a"], ["b", "-DOCSTART-ed"]]


def test_word_after_tag(tmp_path):
    path = write(tmp_path, "0\tO\ta\n1\tB-x\tb\n")
    sentences = read_conll(path, word_column=-1, tag_column=1)
    assert sentences == {"words": [["a", "b"]], "tags": [["O", "B-x"]]}


def test_given_delimiter(tmp_path):
    assert read_conll(write(tmp_path, "a b|O\n"), delimiter="|")["words"] == [["a b"]]


@pytest.mark.parametrize(
    "word",
    [
        '"',
        "''",
        "\u00a0",
        "\u3000",
        " ",
        "\u2028",
        "\x85",
        "\u200b",
        "Dubbz\ufeff",
        "New York",
        "#",
    ],
)
def test_unusual_words(tmp_path, word):
    path = write(tmp_path, f"a\tO\n{word}\tB-x\nb\tO\n")
    assert read_conll(path)["words"] == [["a", word, "b"]]


TAG_FORMS = "must be O, or B-, I-, E- or S- and one type without a comma"


@pytest.mark.parametrize(
    "content, arguments, message",
    [
        ("", {}, ": must have at least one row. Received: none"),
        ("\n\t\n-DOCSTART-\n", {}, ": must have at least one row. Received: none"),
        ("a\n", {}, ", line 1: must have a word and a tag. Received: ['a']"),
        (
            "a\tO\nb\n",
            {},
            ", line 2: must have as many columns as line 1, 2. Received: 1, ['b']",
        ),
        (
            # Without the tag of the last column, that before it would be taken for it.
            "a DT B-NP O\n\nb NN I-NP\n",
            {},
            ", line 3: must have as many columns as line 1, 4. Received: 3, ['b', 'NN', 'I-NP']",
        ),
        (
            "a\tO\n\u00a0\nb\tO\n",
            {},
            r", line 2: must have as many columns as line 1, 2. Received: 1, ['\xa0']",
        ),
        (
            "a\tO\nb\tc\tO\n",
            {},
            ", line 2: must have as many columns as line 1, 2. Received: 3, ['b', 'c', 'O']",
        ),
        (
            # The delimiter of the first word is that of all lines.
            "a O\nb\tO\n",
            {},
            r", line 2: must have as many columns as line 1, 2. Received: 1, ['b\tO']",
        ),
        ("a\tO\n\tO\n", {}, ", line 2, column 0: must have a word. Received: ''"),
        ("a\tO\nb\t\n", {}, f", line 2, column -1: {TAG_FORMS}. Received: ''"),
        ("a\tperson\n", {}, f", line 1, column -1: {TAG_FORMS}. Received: 'person'"),
        ("a\tB-\n", {}, f", line 1, column -1: {TAG_FORMS}. Received: 'B-'"),
        ("a\to\n", {}, f", line 1, column -1: {TAG_FORMS}. Received: 'o'"),
        ("a\tL-x\n", {}, f", line 1, column -1: {TAG_FORMS}. Received: 'L-x'"),
        ("a\tO \n", {}, f", line 1, column -1: {TAG_FORMS}. Received: 'O '"),
        (
            # As in emerging.test.conll.
            "a\tB-person,B-group\n",
            {},
            f", line 1, column -1: {TAG_FORMS}. Received: 'B-person,B-group'",
        ),
        (
            "a\tO\n",
            {"tag_column": 3},
            ", line 1, column 3: must be there. Received: 2 columns, ['a', 'O']",
        ),
        (
            "a\tO\n",
            {"word_column": -3},
            ", line 1, column -3: must be there. Received: 2 columns, ['a', 'O']",
        ),
    ],
)
def test_wrong_files(tmp_path, content, arguments, message):
    path = write(tmp_path, content)
    with pytest.raises(TaskFileError) as info:
        read_conll(path, **arguments)
    assert str(info.value) == f"{path}{message}"


def test_wrong_delimiter(tmp_path):
    with pytest.raises(ValueError) as info:
        read_conll(write(tmp_path, "a\tO\n"), delimiter="")
    assert str(info.value) == "`delimiter` must be one character. Received: ''"


def test_written_file(tmp_path):
    path = tmp_path / "a.conll"
    write_conll(str(path), [["Empire", "State"], ["é"]], [["B-location", "I-location"], ["O"]])
    assert path.read_bytes() == "Empire\tB-location\nState\tI-location\n\né\tO\n\n".encode()


# Surrogates are not UTF-8. Carriage returns may stand inside of words.
WORD = st.text(
    st.characters(exclude_characters="\t\n", codec="utf-8"), min_size=1, max_size=5
) | st.sampled_from(["\ufeff", "\ufeff\ufeff", "\r", " ", "\u2028", '"'])
TAG = st.sampled_from(["O", "B-person", "I-creative-work", "E-x", "S-é"])
SENTENCE = st.lists(st.tuples(WORD, TAG), min_size=1, max_size=4)


@given(sentences=st.lists(SENTENCE, min_size=1, max_size=4))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_round_trip(tmp_path, sentences):
    words = [[word for word, _ in sentence] for sentence in sentences]
    tags = [[tag for _, tag in sentence] for sentence in sentences]
    write_conll(tmp_path / "a.conll", words, tags)
    assert read_conll(tmp_path / "a.conll") == {"words": words, "tags": tags}


WORDS_MESSAGE = "`words` must have texts without tabs and newlines, and not '-DOCSTART-'. "
LISTS_MESSAGE = "`words` and `tags` must have lists of equal lengths, one or more. "


@pytest.mark.parametrize(
    "words, tags, message",
    [
        ([], [], "`words` and `tags` must have equal lengths, one or more. Received: 0 and 0"),
        ([["a"]], [], "`words` and `tags` must have equal lengths, one or more. Received: 1 and 0"),
        (
            [["a"], ["b", "c"]],
            [["O"], ["O"]],
            LISTS_MESSAGE + "Received in sentence 1: ['b', 'c'] and ['O']",
        ),
        ([["a"], []], [["O"], []], LISTS_MESSAGE + "Received in sentence 1: [] and []"),
        ([["a"], "b"], [["O"], ["O"]], LISTS_MESSAGE + "Received in sentence 1: 'b' and ['O']"),
        ([["a", ""]], [["O", "O"]], WORDS_MESSAGE + "Received in sentence 0: ''"),
        ([["a\tb"]], [["O"]], WORDS_MESSAGE + r"Received in sentence 0: 'a\tb'"),
        ([["a\n"]], [["O"]], WORDS_MESSAGE + r"Received in sentence 0: 'a\n'"),
        ([["-DOCSTART-"]], [["O"]], WORDS_MESSAGE + "Received in sentence 0: '-DOCSTART-'"),
        ([[5]], [["O"]], WORDS_MESSAGE + "Received in sentence 0: 5"),
        ([["a"]], [["person"]], f"`tags` {TAG_FORMS}. Received in sentence 0: 'person'"),
        ([["a"]], [[0]], f"`tags` {TAG_FORMS}. Received in sentence 0: 0"),
    ],
)
def test_what_is_not_written(tmp_path, words, tags, message):
    with pytest.raises(ValueError) as info:
        write_conll(tmp_path / "a.conll", words, tags)
    assert str(info.value) == message
    assert not (tmp_path / "a.conll").exists()


@pytest.mark.skipif(not WNUT.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize(
    "file, sentences, words",
    [
        ("wnut17train.conll", 3394, 62730),
        ("emerging.dev.conll", 1009, 15733),
        ("emerging.test.annotated", 1287, 23394),
    ],
)
def test_real_files(tmp_path, file, sentences, words):
    rows = read_conll(WNUT / file)
    assert len(rows["words"]) == len(rows["tags"]) == sentences
    assert sum(map(len, rows["words"])) == sum(map(len, rows["tags"])) == words
    types = {tag[2:] for tags in rows["tags"] for tag in tags if tag != "O"}
    assert types == {"person", "location", "group", "creative-work", "corporation", "product"}
    write_conll(tmp_path / "a.conll", **rows)
    assert read_conll(tmp_path / "a.conll") == rows


@pytest.mark.skipif(not WNUT.exists(), reason="needs ../shared/data")
def test_real_file_with_the_tags_of_several_annotators():
    with pytest.raises(TaskFileError, match="line 212, .* 'B-corporation,B-person,B-location'$"):
        read_conll(WNUT / "emerging.test.conll")
