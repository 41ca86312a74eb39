"""The formula of docs/recipes.md is that of a train step; the page has what the command prints."""

import dataclasses
import math
import os
import pathlib
import re
import subprocess
import sys

import pytest
from absl import flags

from benchmarks.flop import Shapes, encoder_flop, forward_flop, training_flop
from benchmarks.tpu_compile.write_stablehlo import permutation_lm, stablehlo_of_train_step
from benchmarks.training_cost import (
    changes,
    changes_table,
    define_shape_flags,
    hours_table,
    parts_table,
    shapes_of_flags,
    totals_table,
)
from keras_xlnet.models.xlnet_backbone import CONFIGS

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
# Shapes in which every axis has another length.
TINY = Shapes(2, 3, 128, 320, 700, 48, 40, 30, 6, 4)
# Contracted axes, shape of the left factor, shape of the product.
PRODUCT = re.compile(
    r"stablehlo\.dot(?:_general)? [^:]*?(?:contracting_dims = \[([\d, ]*)\] [^:]*?)?"
    r": \(tensor<([\dx]+)x\w+>, [^)]*\) -> tensor<([\dx]+)x\w+>"
)
BASE = Shapes(12, 12, 768, 3072, 32000)


def test_products_of_the_train_step():
    names = ("num_layers", "num_heads", "hidden_dim", "intermediate_dim", "head_dim")
    sizes = {name: getattr(TINY, name) for name in names}
    model, data = permutation_lm(
        TINY.sequence_length, TINY.batch_size, "xlnet_tiny", vocabulary_size=700, **sizes
    )
    text = stablehlo_of_train_step(model, data)
    products = PRODUCT.findall(text)
    assert len(products) == text.count("stablehlo.dot") > 50
    counted = 0
    for contracted, left, result in products:
        left, result = ([*map(int, shape.split("x"))] for shape in (left, result))
        axes = map(int, contracted.split(",")) if contracted else [len(left) - 1]
        counted += 2 * math.prod(result) * math.prod(left[axis] for axis in axes)
    assert counted == sum(training_flop(TINY).values())


def test_flop_of_a_small_encoder_by_hand():
    small = Shapes(1, 1, 4, 16, 10, 4, 3, 0, 2, 2, bidirectional_data=False)
    projections = 4 * 2 * (2 * 3) * 4 * 4  # queries, keys, values, output of 6 rows
    positions = 2 * 6 * 4 * 4  # distances 3 .. -2, once for the batch
    feed_forward = 2 * 2 * (2 * 3) * 4 * 16
    # Each of 6 rows: 3 contents, 6 distances, the difference of segments; then 3 values.
    attention = 2 * 6 * 4 * (3 + 6 + 1 + 3)
    assert encoder_flop(small) == projections + positions + feed_forward + attention


def test_flop_of_a_small_permutation_lm_by_hand():
    small = Shapes(1, 1, 4, 16, 10, 4, 3, 2, 2, 1, bidirectional_data=False)
    keys_and_values = 2 * 2 * 5 * 4 * 4
    positions = 2 * 8 * 4 * 4
    query_stream = 2 * 2 * 2 * 4 * 4 + 2 * 2 * 2 * 4 * 16 + 2 * 2 * 4 * (5 + 8 + 1 + 5)
    softmax = 2 * 2 * 4 * 10
    expected = keys_and_values + positions + query_stream + softmax  # the top has no content
    assert sum(forward_flop(small).values()) == expected


def test_operations_grow_with_the_rows_except_those_of_the_positions():
    once, twice = (training_flop(dataclasses.replace(TINY, batch_size=n)) for n in (4, 8))
    ratios = {name: twice[name] / once[name] for name in once}
    assert ratios.pop("position keys") == 1 and set(ratios.values()) == {2}


def test_long_rows_use_fewer_distances():
    def positions(length):
        shapes = dataclasses.replace(TINY, sequence_length=length)
        return training_flop(shapes)["content stream: relative positions and segments"] / length

    assert positions(256) > positions(257)


@pytest.mark.parametrize("change", changes(BASE))
def test_changes_read_as_many_positions(change):
    changed = dataclasses.replace(BASE, **changes(BASE)[change])
    assert changed != BASE
    assert changed.batch_size * changed.sequence_length == 256 * 512


def test_flags_change_a_size():
    values = flags.FlagValues()
    define_shape_flags(values)
    values(["", "--size=xlnet_small", "--num_layers=6", "--sequence_length=128"])
    shapes = shapes_of_flags(values)
    assert shapes.num_layers == 6 and shapes.hidden_dim == CONFIGS["xlnet_small"]["hidden_dim"]
    assert shapes.sequence_length == 128 and shapes.num_predictions == 85


def test_hours_are_operations_by_peak_and_utilisation():
    # 3600e12 operations at 20 % of 2 x 0.5e12 a second.
    flop = sum(training_flop(TINY).values())
    (row,) = hours_table(TINY, 1, {"two": flop / 3600}).splitlines()[2:]
    assert row.split(" | ")[2:] == ["5.0", "2.9", "2.0 |"]


LARGE = Shapes(24, 16, 1024, 4096, 32000, batch_size=8192)
SMALL = Shapes(4, 4, 256, 1024, 8000, 64, 128, 96, 42, 32)


@pytest.mark.parametrize(
    "table",
    [
        totals_table(BASE, 1_000_000),
        parts_table(BASE),
        changes_table(BASE),
        hours_table(BASE, 1_000_000),
        hours_table(dataclasses.replace(BASE, batch_size=8192), 500_000),
        hours_table(LARGE, 500_000),
        totals_table(SMALL, 100_000),
    ],
    ids=["totals", "parts", "changes", "hours", "hours_long", "hours_large", "small"],
)
def test_the_page_has_the_tables_of_today(table):
    assert table in PAGE


def test_the_paper_used_a_fifth_of_its_chips():
    seconds = 5.5 * 24 * 3600
    used = 500_000 * sum(training_flop(LARGE).values()) / (512 * 123e12 * seconds)
    assert f"= {used:.0%}".replace("%", " %") in PAGE


@pytest.mark.slow
def test_the_program_of_the_page_trains_a_small_model(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    small = {
        "ROWS, ACCUMULATED = 64, 4": "ROWS, ACCUMULATED = 4, 2",
        "STEPS, WARMUP, RATE = 1_000_000, 10_000, 1e-4": "STEPS, WARMUP, RATE = 1000, 10, 1e-4",
        'SIZE = {"name": "xlnet_base"}': 'SIZE = {"name": "xlnet_tiny", "num_layers": 1}',
        "LENGTH, MEMORY, PREDICTIONS = 512, 384, 85": "LENGTH, MEMORY, PREDICTIONS = 16, 12, 2",
        "vocabulary_size=32000": "vocabulary_size=30",
        "num_processes=16": "verbose=0",
        "epochs=1000": "epochs=1",
    }
    for long, short in small.items():
        assert code.count(long) == 1, long
        code = code.replace(long, short)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("a cat sat\non a mat\n\na dog ran\n" * 50)
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "KERAS_BACKEND": "tensorflow"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert (tmp_path / "preset" / "model.safetensors").is_file()
