import pytest

from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM, XLNetTextClassifier


def backbone():
    return XLNetBackbone(40, 1, 2, 16, 32)


def test_a_card_says_what_the_model_is_and_what_it_was_given(tmp_path):
    model = XLNetTextClassifier(backbone(), 2, class_names=["ham", "spam"])
    card = {
        "description": "Finds spam.",
        "data": "My own messages.",
        "metrics": {"F1": 0.97, "recall": 0.9},
        "license": "cc-by-4.0",
    }
    model.save_to_preset(tmp_path / "spam", card=card)
    text = (tmp_path / "spam" / "README.md").read_text()
    assert text.startswith("---\nlibrary_name: keras\n") and '\nlicense: "cc-by-4.0"\n---\n' in text
    assert 'XLNetTextClassifier.from_preset("spam")' in text
    for line in (
        "# spam",
        "Finds spam.",
        "My own messages.",
        "| F1 | 0.97 |",
        "| recall | 0.9 |",
        f"| weights | {model.count_params():,} |",
        "| tokens of the vocabulary | 40 |",
        "| classes | ham, spam |",
    ):
        assert f"\n{line}\n" in text


def test_the_card_of_a_backbone_says_that_it_has_no_head(tmp_path):
    model = XLNetPermutationLM(backbone())
    model.save_to_preset(tmp_path / "lm")
    model.backbone.save_to_preset(tmp_path / "encoder")
    assert "no head" not in (tmp_path / "lm" / "README.md").read_text()
    assert "no head" in (tmp_path / "encoder" / "README.md").read_text()


def test_a_card_that_was_edited_stays_unless_another_is_given(tmp_path):
    backbone().save_to_preset(tmp_path)
    (tmp_path / "README.md").write_text("mine")
    backbone().save_to_preset(tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"
    backbone().save_to_preset(tmp_path, card={})
    assert "XLNetBackbone" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize(
    "card, message",
    [
        ("text", "`card` must be a dict"),
        ({"metric": {}}, "Received the key 'metric'"),
        ({"metrics": [0.9]}, r"a dict for 'metrics'. Received: metrics=\[0.9\]"),
        ({"data": 3}, "a str for 'data'"),
    ],
)
def test_errors(card, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        backbone().save_to_preset(tmp_path / "none", card=card)
    assert not (tmp_path / "none").exists()
