r"""Entities and their scores equal those of seqeval.

`golden/seqeval.json` was written by this script with seqeval 1.2.2, NumPy 2.4 and Python 3.11,
`python script.py tests/golden/seqeval.json`:

    import json, random, sys, warnings
    from seqeval.metrics import classification_report, f1_score, precision_score, recall_score
    from seqeval.metrics.sequence_labeling import get_entities

    warnings.simplefilter("ignore")
    random.seed(0)
    TYPES = ["person", "place", "a-b", "_"]
    TRICKY = [
        "I-person I-person", "B-person I-place I-place", "B-person B-person", "S-person I-person",
        "E-person E-person", "B-person E-person E-person", "I-person E-person I-person", "O O", "",
        "B-person I-person E-person", "S-place S-place", "B-place S-place E-place",
        "E-person", "B-place O I-place", "I-_ O B-_ I-_", "B-person I-person O E-person S-person",
        "I-a-b B-a-b I-a",
    ]


    def sentence(letters):
        types = random.sample(TYPES, random.randint(1, 3))
        tags = ["O"] + [f"{letter}-{type_}" for letter in letters for type_ in types]
        return [random.choice(tags) for _ in range(random.randint(0, 9))]


    def changed(tags, letters):
        return [
            tag if random.random() < 0.6 else random.choice([*sentence(letters), "O"])
            for tag in tags
        ]


    def scores(true, predicted):
        report = classification_report(true, predicted, output_dict=True, zero_division=0)
        by_type = {k: v for k, v in report.items() if not k.endswith(" avg")}
        functions = (precision_score, recall_score, f1_score)
        micro = [function(true, predicted, zero_division=0) for function in functions]
        names = ("precision", "recall", "f1-score", "support")
        return {
            "true": [" ".join(tags) for tags in true],
            "predicted": [" ".join(tags) for tags in predicted],
            "micro": [float(x) for x in micro],
            "by_type": {k: [float(v[name]) for name in names] for k, v in by_type.items()},
        }


    rows = [line.split() for line in TRICKY]
    rows += [sentence(letters) for letters in ("BI", "BIES", "I", "BIES") for _ in range(11)]
    spans = [{"tags": " ".join(r), "entities": [[t, a, b + 1] for t, a, b in get_entities(r)]}
             for r in rows]
    cases = []
    for letters in ("BI", "BIES", "I") * 3:
        true = [sentence(letters) for _ in range(random.randint(1, 6))]
        cases.append(scores(true, [changed(tags, letters) for tags in true]))
    for true, predicted in (("O O", "O O"), ("O", "B-x"), ("B-x", "O"), ("B-x I-x", "B-x O")):
        cases.append(scores([true.split()], [predicted.split()]))
    spans, cases = (",\n".join(json.dumps(case) for case in found) for found in (spans, cases))
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(f'{{"spans": [\n{spans}\n], "scores": [\n{cases}\n]}}\n')
"""

import dataclasses
import json
import pathlib

import pytest

from keras_xlnet.evaluation import EntityScores, EntitySpan, entity_scores, entity_spans

GOLDEN = json.loads(
    (pathlib.Path(__file__).parents[1] / "golden" / "seqeval.json").read_text(encoding="utf-8")
)


def split(rows):
    return [row.split() for row in rows]


def values(scores):
    return [scores.precision, scores.recall, scores.f1, scores.support]


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
@pytest.mark.parametrize("case", GOLDEN["spans"], ids=lambda case: case["tags"] or "no words")
def test_entities_are_those_of_seqeval(case, scheme):
    expected = [EntitySpan(*entity) for entity in case["entities"]]
    assert entity_spans(case["tags"].split(), scheme) == expected


@pytest.mark.parametrize("case", GOLDEN["scores"], ids=lambda case: case["true"][0] or "no words")
def test_scores_are_those_of_seqeval(case):
    scores = entity_scores(split(case["true"]), split(case["predicted"]))
    assert values(scores)[:3] == pytest.approx(case["micro"], abs=1e-12)
    assert scores.support == sum(row[3] for row in case["by_type"].values())
    assert list(scores.by_type) == list(case["by_type"])
    for type_, row in scores.by_type.items():
        assert values(row) == pytest.approx(case["by_type"][type_], abs=1e-12)


def test_neighbours_of_a_type_are_one_entity_without_letters():
    tags = "I-x I-x I-y O B-x B-x E-x O S-y".split()
    spans = [("x", 0, 2), ("y", 2, 3), ("x", 4, 7), ("y", 8, 9)]
    assert entity_spans(tags, "io") == [EntitySpan(*span) for span in spans]
    assert entity_spans(tags, "io") != entity_spans(tags)


def test_the_scheme_matters_for_scores():
    true, predicted = [["B-x", "B-x"]], [["I-x", "I-x"]]
    assert entity_scores(true, predicted, "bio").f1 == 0
    assert entity_scores(true, predicted, "io").f1 == 1


def test_an_entity_of_another_sentence_is_another_entity():
    # If the sentences were joined, the true tags would have one entity, `B-x I-x`.
    scores = entity_scores([["O", "B-x"], ["I-x"]], [["O", "B-x"], ["O"]])
    assert (scores.precision, scores.recall, scores.support) == (1.0, 0.5, 2)


def test_table_has_a_row_a_type_and_the_average():
    scores = entity_scores(
        [["B-place", "O", "B-x", "O"]], [["B-place", "O", "B-x", "B-very-long-name"]]
    )
    assert str(scores).splitlines() == [
        "                precision  recall      f1  support",
        "place              1.0000  1.0000  1.0000        1",
        "very-long-name     0.0000  0.0000  0.0000        0",
        "x                  1.0000  1.0000  1.0000        1",
        "micro average      0.6667  1.0000  0.8000        2",
    ]


def test_nothing_to_find_and_nothing_found_is_0():
    assert entity_scores([["O"], []], [["O"], []]) == EntityScores(0.0, 0.0, 0.0, 0, {})


def test_scores_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        entity_scores([["O"]], [["O"]]).f1 = 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "must have the same number of sentences, at least one. Received: 0 and 0"),
        (([["O"]], []), "must have the same number of sentences, .* Received: 1 and 0"),
        (([["O"], ["O"]], [["O"], []]), "`predicted_tags` must .* Received in row 1: 0 and 1"),
        (([["O"], ["O", "B"]], [["O"], ["O", "O"]]), "`true_tags` .* in row 1, word 1: 'B'"),
        (([["O"]], [["B-"]]), "`predicted_tags` must be O, .* in row 0, word 0: 'B-'"),
        (([["O"]], [["U-x"]]), "`predicted_tags` must be O, .* in row 0, word 0: 'U-x'"),
        (([["O"]], [[3]]), "`predicted_tags` must be O, .* in row 0, word 0: 3"),
        ((["O"], ["O"]), "`true_tags` must be lists of tags. Received in row 0: 'O'"),
        (([["O"]], [["O"]], "iob"), "`scheme` must be one of .*'iob'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message) as error:
        entity_scores(*arguments)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["O", "NOUN"],), "`tags` must be O, .* Received at word 1: 'NOUN'"),
        ((["O"], "iob"), "`scheme` must be one of .*'iob'"),
    ],
)
def test_bad_arguments_of_spans(arguments, message):
    with pytest.raises(ValueError, match=message):
        entity_spans(*arguments)
