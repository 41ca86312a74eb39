"""Runs the readers of this folder with pinned releases, and writes docs/compatibility.md's tables.

    pip install uv
    python research/compatibility/write_artifacts.py runs/compatibility/artifacts
    python research/compatibility/run.py runs/compatibility/artifacts

Each row of `ROWS` has an environment of its own, which uv makes and deletes. A finished row is a
line of results.jsonl, so the command continues after an interruption. Delete the line to repeat it.
On Linux, `UV_FIND_LINKS` can name a folder or page with a CPU build of torch.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import time

_HERE = pathlib.Path(__file__).parent
_ROOT = _HERE.parents[1]
sys.path.insert(0, str(_HERE.parent / "tasks"))
from finished_runs import FinishedRuns  # noqa: E402

_TORCH = "torch==2.13.0"
_OLD_TORCH = f"{_TORCH} numpy<2"
# What this package needs besides.
_OF_PACKAGE = "safetensors==0.8.0 sentencepiece==0.2.3"
# The Python and the packages of each row, by script.
ROWS = {
    "read_tensorflow.py": [
        ("3.11", "tensorflow==2.16.2 tensorflow-text==2.16.1"),
        ("3.11", "tensorflow==2.18.1 tensorflow-text==2.18.1"),
        ("3.11", "tensorflow==2.19.1 tensorflow-text==2.19.0"),
        ("3.11", "tensorflow==2.20.0 tensorflow-text==2.20.1"),
        ("3.11", "tensorflow==2.21.0 tensorflow-text==2.21.1"),
        ("3.12", "tensorflow==2.16.2 tensorflow-text==2.16.1"),
        ("3.12", "tensorflow==2.18.1 tensorflow-text==2.18.1"),
        ("3.12", "tensorflow==2.19.1 tensorflow-text==2.19.0"),
        ("3.12", "tensorflow==2.20.0 tensorflow-text==2.20.1"),
        ("3.13", "tensorflow==2.20.0 tensorflow-text==2.20.1"),
        ("3.13", "tensorflow==2.21.0 tensorflow-text==2.21.1"),
    ],
    "read_litert.py": [
        ("3.11", "tflite-runtime==2.14.0 numpy<2"),
        ("3.11", "ai-edge-litert==1.0.1"),
        ("3.11", "ai-edge-litert==1.0.1 numpy<2"),
        ("3.11", "ai-edge-litert==1.4.0"),
        ("3.11", "ai-edge-litert==2.0.3"),
        ("3.11", "ai-edge-litert==2.3.0"),
    ],
    "read_transformers.py": [
        ("3.11", f"transformers==4.30.2 {_OLD_TORCH}"),
        ("3.11", f"transformers==4.40.2 {_OLD_TORCH}"),
        ("3.11", f"transformers==4.57.6 {_TORCH}"),
        ("3.11", f"transformers==5.0.0 {_TORCH}"),
        ("3.11", f"transformers==5.24.0 {_TORCH}"),
    ],
    "read_onnx.py": [
        ("3.11", "onnxruntime==1.17.3 numpy<2"),
        ("3.11", "onnxruntime==1.20.1"),
        ("3.11", "onnxruntime==1.24.4"),
        ("3.11", "onnxruntime==1.32.0"),
        ("3.11", "openvino==2024.6.0"),
        ("3.11", "openvino==2026.4.1"),
    ],
    "read_keras.py": [
        ("3.11", f"keras==3.6.0 tensorflow==2.18.1 tensorflow-text==2.18.1 {_OF_PACKAGE}"),
        ("3.11", f"keras==3.10.0 tensorflow==2.20.0 tensorflow-text==2.20.1 {_OF_PACKAGE}"),
        ("3.11", f"keras==3.12.4 tensorflow==2.21.0 tensorflow-text==2.21.1 {_OF_PACKAGE}"),
        ("3.11", f"keras==3.15.1 tensorflow==2.21.0 tensorflow-text==2.21.1 {_OF_PACKAGE}"),
        ("3.11", f"keras==3.12.0 tensorflow==2.21.0 tensorflow-text==2.21.1 {_OF_PACKAGE}"),
    ],
    "write_with_sentencepiece.py": [
        ("3.10", "sentencepiece==0.1.96 numpy<2"),
        ("3.11", "sentencepiece==0.1.99 numpy<2"),
        ("3.11", "sentencepiece==0.2.0 numpy"),
        ("3.11", "sentencepiece==0.2.3 numpy"),
    ],
    "write_with_transformers.py": [
        ("3.11", f"transformers==4.30.2 sentencepiece protobuf==3.20.3 {_OLD_TORCH}"),
        ("3.11", f"transformers==4.40.2 sentencepiece protobuf {_OLD_TORCH}"),
        ("3.11", f"transformers==5.0.0 sentencepiece protobuf {_TORCH}"),
    ],
}
# The extras of pyproject.toml, each with every Python.
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
EXTRAS = [
    *("text", "tensorflow", "jax", "backends", "transformers", "onnx", "litert", "columns", "hub"),
    *("serving", "serve", "examples", "ranking", "beam", "integrations", "docs", "test"),
]
ROWS["import_extra.py"] = [
    (python, f"xlnet-keras[{extra}]") for extra in EXTRAS for python in PYTHONS
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("artifacts", type=pathlib.Path, help="of write_artifacts.py")
    artifacts = parser.parse_args().artifacts.resolve()
    results = FinishedRuns(_HERE / "results.jsonl")
    for script, rows in ROWS.items():
        for python, packages in rows:
            run = {"script": script, "python": python, "packages": packages}
            if run not in results:
                started = time.perf_counter()
                found = execute(run, artifacts)
                print(run, found, flush=True)
                results.add(run, found, time.perf_counter() - started)
    write_tables(results.rows)


def execute(run, artifacts):
    """Returns the line that a script prints in the environment of a row."""
    command = ["uv", "run", "-q", "--no-project", "--isolated", "--python", run["python"]]
    for package in run["packages"].split():
        if package.startswith("xlnet-keras"):
            package = f"{package} @ {_ROOT.as_uri()}"
        command += ["--with", package]
    ours = {"PYTHONPATH": str(_ROOT), "KERAS_BACKEND": "tensorflow"}
    theirs = ours if run["script"] == "read_keras.py" else {"PYTHONPATH": ""}
    with tempfile.TemporaryDirectory() as folder:
        done = start([*command, "python", _HERE / run["script"], artifacts, folder], folder, theirs)
        if run["script"].startswith("write_") and not done.returncode:
            reader = [sys.executable, _HERE / "read_others.py", artifacts, folder]
            done = start(reader, folder, ours)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if lines:
        return json.loads(lines[-1])
    # Of uv: the cause after its heading.
    message = " ".join(done.stderr.rpartition("cause: ")[2].split())
    return {"error": message[:400] or f"exit status {done.returncode}"}


def start(command, folder, environment):
    """Runs a command in a folder."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def write_tables(rows):
    """Writes the tables between the marks of docs/compatibility.md."""
    page = _ROOT / "docs" / "compatibility.md"
    text = page.read_text(encoding="utf-8")
    for script, pairs in ROWS.items():
        before, rest = text.split(f"<!-- begin {script} -->\n")
        _, after = rest.split(f"<!-- end {script} -->")
        keys = [(script, python, packages) for python, packages in pairs]
        table_of = table_of_extras if script == "import_extra.py" else table_of_readers
        table = "\n".join(table_of([rows[key] for key in keys]))
        text = f"{before}<!-- begin {script} -->\n{table}\n<!-- end {script} -->{after}"
    page.write_text(text, encoding="utf-8")


def table_of_readers(rows):
    """Returns the lines of a table, a row for each environment."""
    names = next(list(row["metrics"]["found"]) for row in rows if "found" in row["metrics"])
    lines = [["Python", "packages", *(name.replace("_", " ") for name in names)]]
    lines.append(["---"] * len(lines[0]))
    for row in rows:
        found = row["metrics"].get("found", dict.fromkeys(names, row["metrics"].get("error")))
        cells = [cell(found[name]) for name in names]
        lines.append([row["run"]["python"], row["run"]["packages"].replace("==", " "), *cells])
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def table_of_extras(rows):
    """Returns the lines of a table with a column for each Python."""
    lines = [["extra", *PYTHONS], ["---"] * (len(PYTHONS) + 1)]
    for extra in EXTRAS:
        cells = []
        for row in rows:
            if row["run"]["packages"] == f"xlnet-keras[{extra}]":
                metrics = row["metrics"]
                found = metrics["error"] if "error" in metrics else metrics["found"]["imported"]
                cells.append(cell(found) if found else "yes")
        lines.append([f"`{extra}`", *cells])
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def cell(found):
    """Returns a difference or an error for the table."""
    if isinstance(found, str):
        return textwrap.shorten(found, 120, placeholder=" ...").replace("|", r"\|")
    return f"{found:.0e}" if found else "equal"


if __name__ == "__main__":
    main()
