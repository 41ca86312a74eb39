"""Results in notebooks: HTML with parts of the text marked, and nothing of the text as HTML."""

import html.parser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_xlnet.preprocessing import Answer, AnswerPrediction, TaggedSentence
from keras_xlnet.results import marked_html


class Reader(html.parser.HTMLParser):
    """Collects the text, the text in marks, and the tags."""

    def __init__(self, source):
        super().__init__()
        self.text, self.marked, self.tags, self._open = "", [], set(), []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self._open.append(tag)
        if tag == "mark":
            self.marked.append("")

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if "small" in self._open:
            return
        self.text += data
        if "mark" in self._open:
            self.marked[-1] += data


@given(st.text(), st.text(), st.text(alphabet="abc<>&\"'"))
def test_text_comes_back_whatever_it_is(before, after, inside):
    text = before + inside + after
    found = Reader(marked_html(text, [(len(before), len(before) + len(inside), "", "red")]))
    assert found.text == text
    assert found.marked == [inside] and found.tags == {"div", "mark"}


@pytest.mark.parametrize("is_string", [True, False])
def test_entities_are_marked_in_their_sentence(is_string):
    words, tags = ("Ann", "is", "in", "<New", "York>"), ("B-p", "O", "O", "B-l", "I-l")
    text = "Ann  is in <New York>" if is_string else None
    places = ((0, 3), (5, 7), (8, 10), (11, 15), (16, 21)) if is_string else None
    found = TaggedSentence(words, tags, (0.9,) * 5, text, places).entities("bio")
    assert found == list(found) and len(found) == 2
    page = Reader(found._repr_html_())
    assert page.text == (text or " ".join(words))
    assert page.marked == ["Ann", "<New York>"]


def test_answers_are_marked_in_their_context():
    answer = Answer("a mat", 15, 20, 1.0, -0.1, -0.2)
    found = AnswerPrediction((answer,), -1.0, None, "The cat sat on a mat.")
    assert Reader(found._repr_html_()).marked == ["a mat"]
    none = AnswerPrediction((answer,), 2.0, 0.0, "The cat sat on a mat.")
    assert Reader(none._repr_html_()).marked == []
    assert AnswerPrediction((answer,), 2.0)._repr_html_() is None
