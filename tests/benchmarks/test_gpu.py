"""benchmarks/gpu.py: the table, and a small run where there is no GPU and no TensorFlow."""

import os
import subprocess
import sys

import pytest

from benchmarks.comparison.worker import ROOT


def test_rows_compare_with_the_same_dtype_and_count_tokens():
    # In this process, the file would choose sizes for all tests.
    code = """if True:
        from benchmarks.gpu import rows_of
        row = dict(gflops=50.0, median=2.0)
        rows = [
            dict(row, subject="huggingface", device_peak_mib=2000.4),
            dict(row, subject="keras_xlnet-jax", median=0.5),
            dict(row, subject="keras_xlnet-jax-bf16"),
            dict(subject="keras_hub-jax", failure="not installed"),
        ]
        found = dict(workloads=[dict(name="W1", groups=[rows])], gemm_peak=dict(float32=200.0))
        print(rows_of(found))
    """
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert found.stdout.strip() == str(
        [
            ("W1", "keras_xlnet-jax", "2,048", "0.25", "25", ""),
            ("W1", "huggingface", "512", "1.00", "25", "2,000"),
            ("W1", "keras_xlnet-jax-bf16", "512", "", "", ""),
        ]
    ), found.stderr


def test_a_small_run_without_tensorflow(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    names = ["tensorflow", "tensorflow_text"]
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys\nsys.modules.update(dict.fromkeys({names}))"
    )
    environment = {**os.environ, "KERAS_BACKEND": "torch", "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "benchmarks.gpu", "--small", "--workloads=W3,W10"]
    command += ["--subjects=huggingface,keras_xlnet-torch", "--repetitions=1", "--starts=2"]
    result = subprocess.run(
        [*command, f"--output_dir={tmp_path}"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    table = (tmp_path / "gpu.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    found = {tuple(row[:2]): row[2:] for row in cells}
    subjects = ["huggingface", "keras_xlnet-torch"]
    assert set(found) == {(name, subject) for name in ("W3", "W10") for subject in subjects}
    for subject in subjects:
        tokens, ratio, *_ = found["W3", subject]
        assert float(tokens.replace(",", "")) > 1 and float(ratio) > 0
