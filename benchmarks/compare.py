"""Compares keras_xlnet and its peers: a table, and every measured time.

    make bench
    make bench ARGS="--workloads=W1,W2 --subjects=keras_xlnet*,keras_hub* --repetitions=5"
    python -m benchmarks.compare --list

benchmarks/README.md describes the workloads and how to read the results.
"""

import fnmatch
import functools
import os
import pathlib

from absl import app, flags

from benchmarks.comparison.run import compare
from benchmarks.comparison.subjects import REFERENCE, SUBJECTS
from benchmarks.comparison.workloads import WORKLOADS

FLAGS = flags.FLAGS
flags.DEFINE_list("workloads", list(WORKLOADS), "Which workloads.")
flags.DEFINE_list("subjects", ["*"], "Names or patterns; the reference is always among them.")
flags.DEFINE_integer("repetitions", 9, "Rounds of every workload.", lower_bound=1)
flags.DEFINE_string("texts", None, "A TSV with a column `text`. [the bundled short messages]")
flags.DEFINE_string("questions", None, "A file of SQuAD, for W14. [examples/data]")
flags.DEFINE_string("output_dir", "runs/bench", "Where everything is written.")
flags.DEFINE_string("peers_dir", ".bench", "Environments of the peers; none: this Python.")
flags.DEFINE_float("memory_gigabytes", 20, "What processes may hold at once.", lower_bound=1)
flags.DEFINE_float("timeout", 900, "Seconds that a subject may take to get ready or to answer.")
flags.DEFINE_integer("starts", 1, "Subjects that start at once.", lower_bound=1)
flags.DEFINE_bool("list", False, "Only list workloads and subjects.")


def main(_):
    if unknown := set(FLAGS.workloads) - set(WORKLOADS):
        raise app.UsageError(f"--workloads: {unknown} are none of {', '.join(WORKLOADS)}")
    workloads = [WORKLOADS[name] for name in FLAGS.workloads]
    chosen = {name for each in FLAGS.subjects for name in fnmatch.filter(SUBJECTS, each)}
    subjects = [subject for name, subject in SUBJECTS.items() if name in chosen]
    reference = SUBJECTS[REFERENCE]
    if FLAGS.list:
        _list(workloads, subjects)
        return
    # The processes of the subjects read these variables.
    for name, path in (("TEXTS", FLAGS.texts), ("QUESTIONS", FLAGS.questions)):
        if path:
            os.environ[f"COMPARISON_{name}"] = os.path.abspath(path)
    compare(workloads, subjects, reference, FLAGS, say=functools.partial(print, flush=True))
    output_dir = pathlib.Path(FLAGS.output_dir)
    print((output_dir / "comparison.md").read_text(encoding="utf-8"))
    print(f"Written: comparison.md and comparison.json in {output_dir}")


def _list(workloads, subjects):
    for workload in workloads:
        flop = f", {workload.flop / 1e9:.1f} GFLOP" if workload.flop else ""
        print(f"{workload.name}: {workload.title}{flop}")
        for subject in subjects:
            if workload.name in subject.workloads:
                print(f"    {subject.name:28}{subject.peer or 'own environment'}")


if __name__ == "__main__":
    app.run(main)
