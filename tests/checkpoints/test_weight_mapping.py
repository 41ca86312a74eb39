"""The weight mapping: each weight of each model has one row, and docs/names.md shows every row."""

import functools
import pathlib
import re

import numpy as np
import pytest

from keras_xlnet.checkpoints.formats import FAMILIES
from keras_xlnet.checkpoints.huggingface import HUGGINGFACE
from keras_xlnet.checkpoints.original import ORIGINAL
from keras_xlnet.checkpoints.tasks import BACKBONE, TASKS, match_model
from keras_xlnet.checkpoints.weight_mapping import layer_prefixes, match_weights, values_to_save
from keras_xlnet.models import TransformerXLLanguageModel, XLNetBackbone
from keras_xlnet.models.weight_rows import Row, dense, norm
from tests.checkpoints.new_models import new_model

NAMES = pathlib.Path(__file__).parents[2] / "docs" / "names.md"
ALL_TASKS = {None: BACKBONE, **TASKS}
CLUSTERS = {"cutoffs": (6, 12), "embedding_dim": 12}


@functools.cache
def models_of(task):
    """Every variant of a task's model that has other weights. Tests may change their values."""
    return [*_models_of(task)]


def _models_of(task):
    if task == "language_model":
        for ties in (False, True):
            variants = ({}, {"embedding_dim": 12}, CLUSTERS, {**CLUSTERS, "div_val": 2})
            for variant in variants:
                yield TransformerXLLanguageModel(
                    *(20, 2, 2, 8, 12),
                    tie_attention_biases=ties,
                    tie_embeddings=ties,
                    tie_projections=ties,
                    **variant,
                )
        return
    for tie_attention_biases in (False, True):
        backbone = XLNetBackbone(20, 2, 2, 8, 12, tie_attention_biases=tie_attention_biases)
        if task is None:
            yield backbone
            continue
        if task == "multi_task":  # It has its tasks' weights, which only presets hold.
            yield new_model(task)
            return
        entry = TASKS[task]
        given = {"num_classes": 3} if "num_classes" in entry.arguments else {}
        yield entry.model(backbone, **given)
        if "pooling" in entry.arguments:
            yield entry.model(backbone, pooling="attention", **given)


@pytest.mark.parametrize("task", ALL_TASKS)
def test_every_weight_has_one_row_and_every_row_a_weight(task):
    rows, used = [], set()
    for model in models_of(task):
        rows = ALL_TASKS[task].rows(model)
        weights = {weight.path: weight for weight in model.weights}
        has_original = task is None or TASKS[task].sign
        formats = ["original"] if has_original and getattr(model, "tie_embeddings", True) else []
        if ALL_TASKS[task].architectures and getattr(model, "pooling", None) != "attention":
            formats.append("huggingface")
        for format in formats:
            matches = match_weights(weights, rows, FAMILIES[format])
            assert {match.path for match in matches} == set(weights)
            used |= {_row_path(match.path) for match in matches}
            stacked = {(match.name, str(match.view)) for match in matches}
            assert len(stacked) == len(matches), "two weights have the same place"
    has_rows = ALL_TASKS[task].architectures or TASKS[task].sign
    assert used == ({row.path for row in rows} if has_rows else set())


def _row_path(path):
    first, _, rest = path.partition("/")
    return f"block_{{layer}}/{rest}" if first.startswith("block_") else path


@pytest.mark.parametrize("format", ["original", "huggingface"])
@pytest.mark.parametrize("task", ALL_TASKS)
def test_values_go_out_and_come_back(task, format, rng):
    if format == "original" and task and not TASKS[task].sign:
        pytest.skip("the original has no such model")
    if format == "huggingface" and not ALL_TASKS[task].architectures:
        pytest.skip("transformers has no such model")
    for model in models_of(task):
        if format == "huggingface" and getattr(model, "pooling", None) == "attention":
            continue
        if format == "original" and not getattr(model, "tie_embeddings", True):
            continue
        for weight in model.weights:
            weight.assign(rng.normal(size=weight.shape))
        matches = match_model(model, FAMILIES[format])
        values = values_to_save(matches)
        for match in matches:
            assert values[match.name].shape == match.shape
            np.testing.assert_array_equal(match.to_model(values[match.name]), match.weight)


def ones(**shapes):
    return {path: np.ones(shape, "float32") for path, shape in shapes.items()}


def test_one_array_of_all_layers():
    rows = [Row("block_{layer}/bias", "biases", "layer.{layer}.bias")]
    weights = {f"block_{i}/bias": np.full(2, i, "float32") for i in (1, 0, 2)}
    stacked = match_weights(weights, rows, ORIGINAL)
    assert [(m.path, m.name, m.view.index, m.shape) for m in stacked] == [
        (f"block_{i}/bias", "biases", (i,), (3, 2)) for i in range(3)
    ]
    values = values_to_save(stacked)
    np.testing.assert_array_equal(values["biases"], [[0, 0], [1, 1], [2, 2]])
    names = [match.name for match in match_weights(weights, rows, HUGGINGFACE)]
    assert names == [f"layer.{i}.bias" for i in range(3)]


def test_one_weight_in_every_layer():
    rows = [
        Row("bias", "biases", "layer.{layer}.bias"),
        Row("block_{layer}/kernel", "k_{layer}", "layer.{layer}.kernel"),
    ]
    weights = {path: np.ones(2, "float32") for path in ("bias", "block_0/kernel", "block_1/kernel")}
    names = [match.name for match in match_weights(weights, rows, HUGGINGFACE)]
    assert names == ["layer.0.bias", "layer.1.bias", "layer.0.kernel", "layer.1.kernel"]
    assert [match.name for match in match_weights(weights, rows, ORIGINAL)][0] == "biases"
    assert layer_prefixes(rows, ORIGINAL) == {"k_"}
    assert layer_prefixes(rows, HUGGINGFACE) == {"layer."}


def test_alternative_names():
    rows = dense("logits", "task_{task_name}/logit", ("classifier", "qa_outputs"))
    weights = {"logits/kernel": np.ones((4, 3), "float32"), "logits/bias": np.ones(3, "float32")}

    def names(*arguments, **options):
        return [match.name for match in match_weights(weights, rows, *arguments, **options)]

    assert names(HUGGINGFACE) == ["classifier.weight", "classifier.bias"]
    found = {"qa_outputs.weight", "qa_outputs.bias"}
    assert names(HUGGINGFACE, found=found) == ["qa_outputs.weight", "qa_outputs.bias"]
    assert names(ORIGINAL, "imdb") == ["task_imdb/logit/kernel", "task_imdb/logit/bias"]
    shapes = [match.shape for match in match_weights(weights, rows, HUGGINGFACE)]
    assert shapes == [(3, 4), (3,)]


@pytest.mark.parametrize(
    "rows, message",
    [
        ([], "The original has no name for the weight 'norm/gamma'. The `backbone` can be loaded"),
        (norm("norm", None, "theirs"), "The original has no name for the weight 'norm/gamma'"),
        (2 * norm("norm", "theirs", None), "weight 'norm/gamma' fits 2 rows of the mapping"),
    ],
    ids=["no_row", "no_name", "two_rows"],
)
def test_weights_without_exactly_one_name(rows, message):
    weights = {"norm/gamma": np.ones(2, "float32"), "norm/beta": np.ones(2, "float32")}
    with pytest.raises(ValueError, match=message):
        match_weights(weights, rows, ORIGINAL)


# === docs/names.md ===


def cell(row, format):
    names = " or ".join(f"`{name}`" for name in row.names(format)) or "–"
    return names if row.axes(format) is None else f"{names}, axes {row.axes(format)}"


def lines():
    """The lines of the tables of docs/names.md, as the mapping has them."""
    tasks = {}
    for row in BACKBONE.rows(None):
        tasks[row] = "the encoder"
    for name, task in TASKS.items():
        for row in task.weights if task.has_backbone else ():
            tasks[row] = f"{tasks[row]}, `{name}`" if row in tasks else f"`{name}`"
    for row, names in tasks.items():
        cells = (f"`{row.path}`", cell(row, "original"), cell(row, "huggingface"), names)
        yield f"| {' | '.join(cells)} |"


def transformer_xl_lines():
    """The same for Transformer-XL, with the rows of the first cluster for those of all."""
    model = TransformerXLLanguageModel(20, 2, 2, 8, 12, **CLUSTERS, div_val=2)
    for row in TASKS["language_model"].rows(model):
        cells = [f"`{row.path}`", cell(row, "original"), cell(row, "huggingface")]
        if row.path.endswith(("_1", "_2")):
            continue
        if row.path.endswith("_0"):
            cells = [re.sub(r"(?<=_)0|(?<=s\.)0", "{cluster}", c) for c in cells]
        if "qkv" in cells[1]:
            cells[1:] = [f"{c}, a third" for c in cells[1:]]
        yield f"| {' | '.join(cells)} |"


@pytest.mark.parametrize(
    "header, lines",
    [
        ("| here | original | Hugging Face | of |", lines),
        ("| here | original | Hugging Face |", transformer_xl_lines),
    ],
)
def test_the_page_of_names_has_every_row(header, lines):
    page = NAMES.read_text(encoding="utf-8").splitlines()
    missing = [line for line in lines() if line not in page]
    assert not missing, "docs/names.md lacks these lines:\n" + "\n".join(missing)
    first = page.index(header) + 2
    shown = page[first : page.index("", first)]
    assert sorted(shown) == sorted(lines()), "docs/names.md has lines that the mapping does not"
