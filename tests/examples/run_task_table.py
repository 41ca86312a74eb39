"""Runs task_table.py with examples that write their metrics at once, and prints what it runs."""

import json
import pathlib
import subprocess
import sys

from tests.examples import EXAMPLES

SCORES = {"tfidf": 60.0, "from_scratch": 50.0, "fine_tuned": 75.0}


def run(command, check):
    print("RUN", command)
    flags = dict(part[2:].split("=", 1) for part in command if "=" in part)
    folder = pathlib.Path(flags["output_dir"])
    if "fails" in str(folder):
        return subprocess.CompletedProcess(command, 1)
    folder.mkdir(parents=True, exist_ok=True)
    if "results.py" in command[1]:
        text = "".join(json.dumps(row) + "\n" for row in sentence_rows(flags["tasks"]))
        (folder / "results.jsonl").write_text(text, encoding="utf-8")
    else:
        value = 0.5 if "--from_scratch" in command else 0.75
        runs = {"runs": [{}] * 3, "mean": {"map": value}, "deviation": {"map": 0.0125}}
        report = {"baselines": {"bm25": {"map": 0.25}}, "all_runs": runs}
        (folder / "metrics.json").write_text(json.dumps(report), encoding="utf-8")
    return subprocess.CompletedProcess(command, 0)


def sentence_rows(task):
    """Rows of a task, of another one, and of other numbers of examples and seeds."""
    return [
        {
            "run": {"task": name, "method": method, "size": size, "seed": seed},
            "metrics": {"accuracy": score + seed, "F1": 1.0},
        }
        for method, score in SCORES.items()
        for seed in range(5)
        for name, size in ((task, "all"), ("sst2", "all"), (task, 50))
    ]


if __name__ == "__main__":
    sys.path.insert(0, str(EXAMPLES))
    # Here, because pytest looks for examples in this file, and its flags can be defined only once.
    import task_table

    task_table.subprocess.run = run
    task_table.app.run(task_table.main)
