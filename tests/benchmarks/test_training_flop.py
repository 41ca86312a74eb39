"""The formula of docs/recipes.md is what XLA counts, and the page shows what the commands print."""

import dataclasses
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest
from absl import flags

from benchmarks.comparison.flop import pretraining_flop
from benchmarks.comparison.workloads import Workload
from benchmarks.training_cost import (
    Device,
    changes,
    changes_table,
    define_shape_flags,
    hours_table,
    parts_table,
    shapes_of_flags,
    totals_table,
)
from benchmarks.training_flop import Shapes, training_flop
from keras_xlnet.models.xlnet_backbone import CONFIGS

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
# Shapes in which every axis has another length.
TINY = Shapes(2, 3, 128, 320, 700, 48, 40, 24, 7, 4)
BASE = Shapes(12, 12, 768, 3072, 32000)


@pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="JAX is not installed")
def test_xla_counts_the_same_products():
    shapes = [f"--{name}={getattr(TINY, name)}" for name in flag_names()]
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.training_flop_by_xla", *shapes],
        cwd=ROOT,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    ratio = float(re.search(r"XLA / matrix products: ([\d.]+)", result.stdout)[1])
    # XLA adds softmax, dropout, normalization and AdamW: 1.046. With a part of 2.5 % or more
    # missing, or counted twice, the ratio is out of this range.
    assert 1.02 < ratio < 1.07


def flag_names():
    return [f.name for f in dataclasses.fields(Shapes) if f.name != "bidirectional_data"]


def test_forward_products_are_those_of_the_comparison():
    shapes = dataclasses.replace(
        TINY,
        hidden_dim=192,
        num_heads=3,
        head_dim=64,
        intermediate_dim=768,
        bidirectional_data=False,
    )
    parts = training_flop(shapes)
    forward = sum(v // (2 if name == "position keys" else 3) for name, v in parts.items())
    workload = Workload(
        "",
        "",
        "",
        batch_size=4,
        length=40,
        num_layers=2,
        dim=192,
        memory_length=24,
        num_predictions=7,
    )
    # The comparison counts two scores for segments; the package computes their difference.
    segments = 2 * 4 * (40 * 1 + 7 * 2) * 192
    assert forward == pretraining_flop(workload, 700) - segments


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
    (row,) = hours_table(TINY, 1, [Device("two", flop / 3600 / 2, 2)]).splitlines()[2:]
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
