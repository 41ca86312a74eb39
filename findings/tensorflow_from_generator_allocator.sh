#!/usr/bin/env bash
# One would guess: a `tf.data.Dataset.from_generator` has no effect on code that does not use it.
# What happens: on Python 3.11 and later, creating its first iterator calls glibc's
# `mallopt(M_MMAP_THRESHOLD, 131072)`. From then on, in the whole process, nearly each tensor of more
# than 128 KiB is mapped when it is made and unmapped when it is freed, and the kernel clears its
# pages: eager sums of tensors of 1 MiB take about twice the time. Keras reads generators and
# `PyDataset`s with `from_generator`.
# Since when: the call came as a remedy for tensorflow#65675. Seen in TensorFlow 2.21.0 with
# Python 3.11.7 and glibc 2.36 on Linux. Not seen with the same releases on Linux 6.18 (AMD EPYC).
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tensorflow==2.21.0

cat > "$folder/page_faults.py" <<'PYTHON'
import resource
import sys
import time

import tensorflow as tf

spec = tf.TensorSpec((), tf.int32)
dataset = tf.data.Dataset.from_tensors(1)
if sys.argv[1] == "from_generator":
    dataset = tf.data.Dataset.from_generator(lambda: iter([1]), output_signature=spec)
assert len(list(dataset)) == 1

x = tf.random.normal((512, 512))


def work(times):
    for _ in range(times):
        tf.add_n([x + float(i) for i in range(50)])


work(5)
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.perf_counter()
work(20)
seconds = time.perf_counter() - start
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(f"{sys.argv[1]}: {seconds:.2f} s", file=sys.stderr)
PYTHON

export TF_CPP_MIN_LOG_LEVEL=3
"$folder/venv/bin/python" -c "import sys, platform; print(sys.version.split()[0], *platform.libc_ver())"
faults() { "$folder/venv/bin/python" "$folder/page_faults.py" "$1" 2> "$folder/errors"; grep " s$" "$folder/errors" >&2; }
without=$(faults from_tensors)
with=$(faults from_generator)
echo "page faults of 1,000 tensors of 1 MiB and their sums: $without after from_tensors, $with after from_generator"
(( without < 20000 && with > 100000 ))
