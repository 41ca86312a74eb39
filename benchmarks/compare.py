"""keras_xlnet and its peers, side by side: a table, a plot, and every time that was measured.

    make bench
    make bench ARGS="--workloads W1,W2 --subjects 'keras_xlnet*,keras_hub*' --repetitions 5"
    python -m benchmarks.compare --list

benchmarks/README.md says what is measured and how to read it.
"""

import datetime
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from absl import app, flags

from benchmarks.comparison import machine, plot, report
from benchmarks.comparison.interleave import groups_of, measure, starter
from benchmarks.comparison.subjects import REFERENCE, SUBJECTS
from benchmarks.comparison.summary import summarize
from benchmarks.comparison.worker import ROOT
from benchmarks.comparison.workloads import WORKLOADS

FLAGS = flags.FLAGS
flags.DEFINE_list("workloads", list(WORKLOADS), "Which workloads.")
flags.DEFINE_list("subjects", ["*"], "Names or patterns; the reference is always among them.")
flags.DEFINE_integer("repetitions", 9, "Rounds of every workload.", lower_bound=1)
flags.DEFINE_string("output_dir", "runs/bench", "Where everything is written.")
flags.DEFINE_string("peers_dir", ".bench", "The virtual environments of the peers.")
flags.DEFINE_float("memory_gigabytes", 20, "What processes may hold at once.", lower_bound=1)
flags.DEFINE_float("timeout", 900, "Seconds that a subject may take to get ready or to answer.")
flags.DEFINE_bool("list", False, "Only list workloads and subjects.")


def main(_):
    workloads = [_workload(name) for name in FLAGS.workloads]
    if FLAGS.list:
        list_all(workloads)
        return
    output_dir = pathlib.Path(FLAGS.output_dir)
    (output_dir / "logs").mkdir(parents=True, exist_ok=True)
    results = {
        "machine": machine.describe(),
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "reference": REFERENCE,
        "command": sys.argv,
        "workloads": [],
    }
    with tempfile.TemporaryDirectory() as assets:
        prepare(assets)
        for workload in workloads:
            results["workloads"].append(run(workload, assets, output_dir / "logs"))
            # After each workload: an interrupted run leaves what it has.
            write(results, output_dir)
    print((output_dir / "comparison.md").read_text(encoding="utf-8"))
    print(f"Written to {output_dir}/comparison.md, .json and .png")


def list_all(workloads):
    for workload in workloads:
        flop = f", {workload.flop / 1e9:.1f} GFLOP" if workload.flop else ""
        print(f"{workload.name}: {workload.title}{flop}")
        for subject in chosen_subjects(workload):
            print(f"    {subject.name:28}{subject.peer or 'own environment'}")


def chosen_subjects(workload):
    """The subjects that can do it, the reference first."""
    names = [
        name
        for name in SUBJECTS
        if name == REFERENCE or any(fnmatch.fnmatchcase(name, p) for p in FLAGS.subjects)
    ]
    return [SUBJECTS[name] for name in names if workload.name in SUBJECTS[name].workloads]


def prepare(assets):
    command = [sys.executable, "-m", "benchmarks.comparison.prepare", assets]
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)


def run(workload, assets, logs):
    """Measures a workload, group by group; returns its part of the results."""
    start = starter(workload, FLAGS.peers_dir, assets, logs, FLAGS.timeout)
    reference, cores = SUBJECTS[REFERENCE], machine.describe()["cores"]
    groups = groups_of(
        chosen_subjects(workload), reference, workload.gigabytes, FLAGS.memory_gigabytes
    )
    measured = []
    for number, subjects in enumerate(groups, 1):
        say(f"{workload.name}: {workload.title}, group {number} of {len(groups)}")
        measured.append(measure(subjects, start, FLAGS.repetitions, say))
    return {
        "name": workload.name,
        "title": workload.title,
        "flop": workload.flop,
        "cannot": {
            subject.name: subject.cannot[workload.name]
            for subject in SUBJECTS.values()
            if workload.name in subject.cannot
        },
        "groups": [summarize(group, REFERENCE, workload, cores) for group in measured],
        "raw": measured,
    }


def write(results, output_dir):
    results["gemm_peak"] = gemm_peak(results)
    results["versions"] = {
        row["subject"]: row["versions"]
        for workload in results["workloads"]
        for group in workload["groups"]
        for row in group
        if "versions" in row
    }
    text = report.markdown(results)
    (output_dir / "comparison.md").write_text(text, encoding="utf-8")
    (output_dir / "comparison.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    plot.draw(results, output_dir / "comparison.png")


def gemm_peak(results):
    """GFLOP/s of the best matrix product of PyTorch in this run, by dtype."""
    dtypes = {REFERENCE: "float32", f"{REFERENCE}-bf16": "bfloat16"}
    return {
        dtypes[row["subject"]]: row["best_gflops"]
        for workload in results["workloads"]
        if workload["name"] == "GEMM"
        for group in workload["groups"]
        for row in group
        if row["subject"] in dtypes and "best_gflops" in row
    }


def _workload(name):
    if name not in WORKLOADS:
        raise app.UsageError(f"--workloads: no {name!r}; there are {', '.join(WORKLOADS)}")
    return WORKLOADS[name]


def say(line):
    print(line, flush=True)


if __name__ == "__main__":
    app.run(main)
