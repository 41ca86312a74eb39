"""The conformance cases: this library passes them, and wrong implementations fail."""

import json
import pathlib
import subprocess
import sys
import types

import numpy as np
import pytest

from conformance import run, table

ROOT = pathlib.Path(__file__).parents[2]
ADAPTERS = ROOT / "conformance" / "adapters"
CASES = {case["name"]: case for case in run.read_cases()}
QUICK = ["encoder/batch", "two_streams/no_leak", "heads/answer", "tokenizer/cased"]


@pytest.fixture(scope="module")
def ours():
    return run.load_adapter(ADAPTERS / "keras_xlnet.py")


@pytest.mark.parametrize(
    "name",
    [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in CASES if n not in QUICK)],
)
def test_this_library_passes(name, ours):
    result = run.run_case(CASES[name], ours)
    assert result["state"] == run.PASSED, result


def wrong(method, function):
    return types.SimpleNamespace(VERSIONS="wrong", **{method: function})


def mean_of_rows(config, weights, token_ids, **inputs):
    """Mixes the rows of a batch: right for one row."""
    expected = CASES["encoder/batch"]["expected"]["output"][: len(token_ids)]
    return np.broadcast_to(expected.mean(axis=0), expected.shape)


def test_mixed_rows_pass_alone_and_fail_in_a_batch():
    adapter = wrong("encode", mean_of_rows)
    assert run.run_case(CASES["encoder/one_row"], adapter)["state"] == run.PASSED
    result = run.run_case(CASES["encoder/batch"], adapter)
    assert result["state"] == run.FAILED and result["worst"] > 0.1


def one_hot_sum(token_ids, visible):
    """Logits of targets that are the sum of the visible tokens, `(batch, targets, 200)`."""
    return np.einsum("btj,bjv->btv", visible, np.eye(200)[token_ids])


def visible_to_targets(may_attend, target_positions):
    return np.take_along_axis(may_attend, target_positions[..., None], axis=1).astype(float)


def leaking(config, weights, token_ids, may_attend, target_positions, **inputs):
    visible = visible_to_targets(may_attend, target_positions)
    np.put_along_axis(visible, target_positions[..., None], 1.0, axis=2)
    return one_hot_sum(token_ids, visible)


def tight(config, weights, token_ids, may_attend, target_positions, **inputs):
    return one_hot_sum(token_ids, visible_to_targets(may_attend, target_positions))


def blind(config, weights, token_ids, target_positions, **inputs):
    return np.zeros((*target_positions.shape, 200))


@pytest.mark.parametrize(
    "function, state, reason",
    [
        (tight, run.PASSED, ""),
        (leaking, run.FAILED, ""),
        (blind, run.FAILED, "AssertionError: no prediction depends on the other tokens"),
    ],
)
def test_leaks_are_found(function, state, reason):
    result = run.run_case(CASES["two_streams/no_leak"], wrong("predict_targets", function))
    assert (result["state"], result["reason"]) == (state, reason)


@pytest.mark.parametrize(
    "function, reason",
    [
        (lambda *args, **inputs: np.zeros((3, 14, 31)), "AssertionError: shape (3, 14, 31), not"),
        (lambda *args, **inputs: np.full((3, 14, 32), np.nan), ""),
        (lambda *args: None, "TypeError"),
    ],
)
def test_other_shapes_nan_and_errors_fail(function, reason):
    result = run.run_case(CASES["encoder/batch"], wrong("encode", function))
    assert result["state"] == run.FAILED and result["reason"].startswith(reason)


def test_missing_functions_are_not_supported():
    def refuses(*args, **inputs):
        raise NotImplementedError("needs segment ids")

    case = CASES["encoder/no_segment_ids"]
    assert run.run_case(case, types.SimpleNamespace())["state"] == run.UNSUPPORTED
    result = run.run_case(case, wrong("encode", refuses))
    assert (result["state"], result["reason"]) == (run.UNSUPPORTED, "needs segment ids")


def test_runs_without_this_library(tmp_path):
    """With NumPy only: neither Keras nor TensorFlow can be imported."""
    adapter = tmp_path / "mine.py"
    adapter.write_text("VERSIONS = 'mine 1'\ndef tokenize(vocabulary, texts, lowercase):\n"
                       "    return [[1] for _ in texts]\n")  # fmt: skip
    program = (
        "import runpy, sys\n"
        "for name in ('keras', 'tensorflow', 'keras_xlnet', 'torch'): sys.modules[name] = None\n"
        f"sys.argv = ['run.py', {str(adapter)!r}, '--json', {str(tmp_path / 'out.json')!r}]\n"
        f"runpy.run_path({str(ROOT / 'conformance' / 'run.py')!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("mine: mine 1\nencoder/one_row                 not supported")
    report = json.loads((tmp_path / "out.json").read_text())
    states = {result["case"]: result["state"] for result in report["results"]}
    assert states["tokenizer/cased"] == run.FAILED and len(states) == len(CASES)
    (*_, last, empty, versions) = table.table({"mine": report})
    assert last == f"| passed, of {len(CASES)} | 0 |" and versions == "- mine: mine 1"


def test_the_page_has_a_row_for_each_case():
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert rows == list(CASES)
