"""The gallery: each example trains, writes what it says, and fails in one line."""

import ast
import functools
import json
import re

import pytest

from keras_xlnet.models import XLNetTextClassifier
from tests.examples import EXAMPLES, assert_one_error, fork_example, run_example

DATA = EXAMPLES / "data"
STORIES = sorted(path for path in EXAMPLES.rglob("*.py"))
METRICS = {
    "glue": {"model"},
    "ner": {"precision", "recall", "f1", "support", "by_type"},
    "squad": None,
    "multiple_choice": {"accuracy", "chance"},
    "ranking": {"model", "random order"},
    "long_documents": {"characters", "accuracy_by_length"},
}
WRITTEN = {
    "glue": {"predictions.tsv", "model.keras"},
    "ner": {"predictions.conll", "model.keras"},
    "squad": {"predictions.json", "model.keras"},
    "multiple_choice": {"predictions.json", "model.keras"},
    "ranking": {"model.keras"},
    "long_documents": {"accuracy.png", "memory.keras"},
}
FLAGS = {
    "squad": ["--sequence_length=48"],
    "multiple_choice": ["--sequence_length=48"],
    "long_documents": ["--long_document=memory", "--max_length=64"],
}


def test_the_gallery_is_small():
    assert len(STORIES) <= 13  # Twelve stories: the two clients of a server are one.
    for path in STORIES:
        source = path.read_text(encoding="utf-8")
        opening = ast.parse(source).body[0]
        assert isinstance(opening, ast.Expr), path
        assert f"python examples/{path.relative_to(EXAMPLES)}" in opening.value.value
        assert len(source.splitlines()) - opening.end_lineno <= 115, path
        # Each is whole by itself, so that it can be copied.
        names = {other.stem for other in STORIES}
        assert not names & set(re.findall(r"^(?:import|from) (\w+)", source, re.MULTILINE))


@pytest.fixture(scope="session")
def small_files(tmp_path_factory):
    """Few rows of the files of each example."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("questions_sample", "authors_sample", "multiple_choice_sample", "ranking_sample"):
        for path in DATA.glob(f"{name}*"):
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            (folder / path.name).write_text("".join(lines[:17]), encoding="utf-8")
    for path in DATA.glob("wnut17_sample*"):
        sentences = path.read_text(encoding="utf-8").split("\n\n")
        (folder / path.name).write_text("\n\n".join(sentences[:12]) + "\n", encoding="utf-8")
    for path in DATA.glob("squad_sample*"):
        questions = json.loads(path.read_text(encoding="utf-8"))
        questions["data"] = questions["data"][:2]
        (folder / path.name).write_text(json.dumps(questions), encoding="utf-8")
    return folder


def files(name, folder):
    """The flags for the small files in place of the defaults of an example."""
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    data, test = re.findall(r'DATA / "([\w.]+)"', source)
    return [f"--data={folder / data}", f"--test={folder / test}"]


@pytest.mark.parametrize("name", METRICS)
def test_trains_and_writes(name, tmp_path, tiny_preset, small_files):
    flags = [f"--preset={tiny_preset}", f"--output_dir={tmp_path}", "--epochs=1"]
    result = fork_example(name, *files(name, small_files), *flags, *FLAGS.get(name, ()))
    assert result.returncode == 0, result.stderr[-3000:]
    assert {path.name for path in tmp_path.iterdir()} == WRITTEN[name] | {"metrics.json"}
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    if METRICS[name]:
        assert set(metrics) == METRICS[name]


def test_numbers_and_pairs_of_a_table(tmp_path, tiny_preset):
    path = tmp_path / "pairs.csv"
    rows = [f"see you,see you at {i},{i % 5}" for i in range(12)]
    path.write_text("\n".join(["a,b,score", *rows]) + "\n")
    result = fork_example(
        "glue", f"--data={path}", f"--test={path}", "--text=a", "--pair=b", "--label=score",
        "--numbers", "--ratings", f"--preset={tiny_preset}", "--epochs=1",
        f"--output_dir={tmp_path / 'out'}",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    scores = json.loads((tmp_path / "out" / "metrics.json").read_text())["model"]
    assert set(scores) == {"pearson", "spearman", "kappa"}


@pytest.mark.parametrize("name", METRICS)
def test_errors_are_one_line_and_leave_nothing(name, tmp_path):
    output = tmp_path / "out"
    result = fork_example(name, f"--data={tmp_path / 'nowhere'}", f"--output_dir={output}")
    assert_one_error(result, "nowhere")
    assert not output.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, is_good",
    [
        ("glue", lambda m: m["model"]["accuracy"] > m["model"]["accuracy_of_most_frequent"] + 0.03),
        ("ner", lambda m: m["f1"] > 0.3),
        ("squad", lambda m: m["f1"] > 20),
        ("multiple_choice", lambda m: m["accuracy"] > m["chance"] + 0.1),
        ("ranking", lambda m: m["model"]["map"] > m["random order"]["map"] + 0.1),
        ("long_documents", lambda m: max(map(max, m["accuracy_by_length"].values())) > 60),
    ],
    ids=list(METRICS),
)
def test_default_runs_learn(name, is_good, tmp_path):
    result = run_example(name, f"--output_dir={tmp_path}", timeout=1800)
    assert result.returncode == 0, result.stderr[-3000:]
    assert is_good(json.loads((tmp_path / "metrics.json").read_text()))


run_language_model = functools.partial(fork_example, "language_model")


def test_a_language_model_trains_and_continues_a_prompt(tmp_path):
    text = tmp_path / "mine.txt"
    text.write_text("the cat sat on the mat\nthe dog ran to the cat\n" * 200, encoding="utf-8")
    output = tmp_path / "out"
    result = run_language_model(
        f"--text={text}", f"--output_dir={output}", "--steps=4", "--epochs=2"
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.count("--- after epoch") == 2
    assert {"preset", "tokenizer.keras", "history.csv", "memory.png"} <= set(
        path.name for path in output.iterdir()
    )
    again = run_language_model(f"--load={output}", "--prompt=the cat")
    assert again.returncode == 0, again.stderr[-3000:]
    assert again.stdout.startswith("the cat")
    assert_one_error(run_language_model(f"--text={tmp_path}/none.txt"), "none.txt")


def test_pretraining_writes_a_preset_that_tasks_load(tmp_path):
    text = tmp_path / "mine.txt"
    sentences = [f"the cat {verb} on the mat .\n" for verb in ("sat", "ran", "was", "lay")]
    text.write_text("".join(sentences + ["\n"]) * 80, encoding="utf-8")
    output = tmp_path / "out"
    result = fork_example(
        "pretrain", f"--corpus={text}", f"--held_out={text}", f"--output_dir={output}",
        "--vocabulary_size=31", "--num_layers=1", "--hidden_dim=64", "--epochs=1",
        "--steps_per_epoch=2",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    assert {"preset", "permutation_lm", "history.csv"} <= {path.name for path in output.iterdir()}
    classifier = XLNetTextClassifier.from_preset(output / "preset", num_classes=2)
    assert classifier.predict(["the cat sat"], verbose=0).shape == (1, 2)
    assert_one_error(fork_example("pretrain", f"--corpus={tmp_path}/none*"), "no file matches")
