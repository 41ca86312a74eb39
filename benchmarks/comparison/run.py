"""Runs a comparison from the first process to the last file."""

import dataclasses
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from benchmarks.comparison import machine, plot, report
from benchmarks.comparison.interleave import groups_of, measure, starter
from benchmarks.comparison.summary import gemm_peak, summarize
from benchmarks.comparison.worker import ROOT


@dataclasses.dataclass(frozen=True)
class Settings:
    """How to run. `memory_gigabytes` is what the processes may hold at once."""

    output_dir: str
    peers_dir: str
    repetitions: int = 9
    memory_gigabytes: float = 20
    timeout: float = 900


def compare(workloads, subjects, reference, settings, say=print):
    """Measures all subjects on all workloads; writes comparison.md, .json and .png.

    Args:
        workloads: List of `Workload`.
        subjects: List of `Subject`; `reference` need not be among them.
        reference: The `Subject` that the others are compared with.
        settings: `Settings`.
        say: Called with lines that tell of the progress.
    """
    output_dir = pathlib.Path(settings.output_dir)
    (output_dir / "logs").mkdir(parents=True, exist_ok=True)
    results = {
        "machine": machine.describe(),
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "command": sys.argv,
        "reference": reference.name,
        "workloads": [],
    }
    with tempfile.TemporaryDirectory() as assets:
        prepare(workloads, assets, output_dir / "logs" / "prepare.log", say)
        for workload in workloads:
            result = _run(workload, subjects, reference, settings, assets, say)
            results["workloads"].append(result)
            # After each workload: an interrupted run leaves what it has.
            _write(results, output_dir)


def prepare(workloads, assets, log_file, say):
    """Trains the vocabulary, where one is needed; without it those workloads fail, no others."""
    if not any(workload.reads_texts for workload in workloads):
        return
    command = [sys.executable, "-m", "benchmarks.comparison.prepare", assets]
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow"}
    with open(log_file, "w") as log:
        if subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log).returncode:
            say(f"The vocabulary could not be trained: see {log_file}")


def _run(workload, subjects, reference, settings, assets, say):
    """Measures a workload, group by group; returns its part of the results."""
    logs = os.path.join(settings.output_dir, "logs")
    start = starter(workload, settings.peers_dir, assets, logs, settings.timeout)
    able = [subject for subject in subjects if workload.name in subject.workloads]
    groups = groups_of(able, reference, workload.gigabytes, settings.memory_gigabytes)
    cores = machine.describe()["cores"]
    raw, rows = [], []
    for number, members in enumerate(groups, 1):
        say(f"{workload.name}: {workload.title}, group {number} of {len(groups)}")
        raw.append(measure(members, start, settings.repetitions, say))
        rows.append(summarize(raw[-1], reference.name, workload, cores))
    cannot = {s.name: s.cannot[workload.name] for s in subjects if workload.name in s.cannot}
    return {
        "name": workload.name,
        "title": workload.title,
        "flop": workload.flop,
        "cannot": cannot,
        "groups": rows,
        "raw": raw,
    }


def _write(results, output_dir):
    results["gemm_peak"] = gemm_peak(_rows(results, "GEMM"))
    results["versions"] = {
        row["subject"]: row["versions"] for row in _rows(results) if "versions" in row
    }
    text = report.markdown(results)
    (output_dir / "comparison.md").write_text(text, encoding="utf-8")
    (output_dir / "comparison.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    plot.draw(results, output_dir / "comparison.png")


def _rows(results, name=None):
    chosen = [w for w in results["workloads"] if name in (None, w["name"])]
    return [row for workload in chosen for group in workload["groups"] for row in group]
