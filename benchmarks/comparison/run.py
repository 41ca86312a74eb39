"""Runs a comparison from the first process to the last file."""

import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from benchmarks.comparison import machine, report
from benchmarks.comparison.interleave import groups_of, measure
from benchmarks.comparison.worker import ROOT, FreshWorker, Worker

# Trains the vocabulary that all tokenizers of the comparison share.
PREPARE = """
import sys
from benchmarks.comparison.workloads import texts
from keras_xlnet.tokenizers import XLNetTokenizer

XLNetTokenizer.train(iter(dict.fromkeys(texts(5000))), 1500).save_assets(sys.argv[1])
"""


def compare(workloads, subjects, reference, options, say=print):
    """Measures all subjects on all workloads; writes comparison.md and comparison.json.

    Args:
        workloads: List of `Workload`.
        subjects: List of `Subject`; `reference` need not be among them.
        reference: The `Subject` that the others are compared with.
        options: The flags of compare.py.
        say: Called with lines that report the progress.
    """
    output_dir, gigabytes = pathlib.Path(options.output_dir), options.memory_gigabytes
    logs = output_dir / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    results = {
        "machine": machine.describe(),
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "command": sys.argv,
        "reference": reference.name,
        "workloads": [],
    }
    with tempfile.TemporaryDirectory() as assets:
        prepare(workloads, assets, logs / "prepare.log", say)
        for workload in workloads:
            able = [subject for subject in subjects if workload.name in subject.workloads]
            raw, rows = [], []
            for members in groups_of(able, reference, workload.gigabytes, gigabytes):
                say(f"{workload.name}: {workload.title}, {len(members)} side by side")

                def start(subject, workload=workload):
                    log = logs / f"{workload.name}-{subject.name}.log"
                    kind = FreshWorker if workload.fresh else Worker
                    return kind(subject, workload, options.peers_dir, assets, log, options.timeout)

                raw.append(measure(members, start, options.repetitions, say, options.starts))
                cores = results["machine"]["cores"]
                rows.append(report.summarize(raw[-1], reference.name, workload, cores))
            name = workload.name
            cannot = {s.name: s.cannot[name] for s in subjects if name in s.cannot}
            found = {"name": name, "title": workload.title, "flop": workload.flop}
            results["workloads"].append(found | {"cannot": cannot, "groups": rows, "raw": raw})
            # After each workload, so that an interrupted run leaves its results.
            _write(results, output_dir)


def prepare(workloads, assets, log_file, say):
    """Trains the vocabulary if one is needed; without it, only those workloads fail."""
    if not any(workload.reads_texts for workload in workloads):
        return
    environment = {"KERAS_BACKEND": "tensorflow", **os.environ}
    command = [sys.executable, "-c", PREPARE, assets]
    with open(log_file, "w") as log:
        if subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log).returncode:
            say(f"The vocabulary could not be trained: see {log_file}")


def _write(results, output_dir):
    rows = [
        (workload["name"], row)
        for workload in results["workloads"]
        for group in workload["groups"]
        for row in group
    ]
    results["gemm_peak"] = report.gemm_peak(row for name, row in rows if name == "GEMM")
    results["versions"] = {r["subject"]: r["versions"] for _, r in rows if "versions" in r}
    (output_dir / "comparison.md").write_text(report.markdown(results), encoding="utf-8")
    (output_dir / "comparison.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
