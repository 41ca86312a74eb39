#!/usr/bin/env bash
# One would guess: `interleave` without random numbers and without parallel calls gives the same order everywhere, at least
# after `enable_op_determinism`.
# What happens: the order depends on the number of CPU cores that the process may use. Without `cycle_length`, TensorFlow
# takes that number: one core reads one input after the other, two cores alternate between two inputs. So a run with the
# same seeds trains on other batches on another machine, in a smaller container, or with `taskset`, and a `skip` that
# resumes a run or splits the data gives other elements.
# Where: the default of `cycle_length`; its documentation mentions the CPU, but not the order. `Dataset.load` and
# `snapshot` of several shards pass `multiprocessing.cpu_count()`.
# Since when: not known. Seen in TensorFlow 2.21.0 on Linux. No issue found. It needs two cores and `taskset`.
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tensorflow==2.21.0

cat > "$folder/order.py" <<'PYTHON'
import os

import tensorflow as tf

tf.keras.utils.set_random_seed(0)
tf.config.experimental.enable_op_determinism()
files = tf.data.Dataset.range(4)
dataset = files.interleave(lambda file: tf.data.Dataset.range(10 * file, 10 * file + 3))
print(len(os.sched_getaffinity(0)), "cores:", *dataset.as_numpy_iterator())
PYTHON

export TF_CPP_MIN_LOG_LEVEL=3
"$folder/venv/bin/python" -c "import importlib.metadata as m; print('tensorflow', m.version('tensorflow'))"
read -r first second < <("$python" -c "import os; print(*sorted(os.sched_getaffinity(0))[:2])")
one=$(taskset -c "$first" "$folder/venv/bin/python" "$folder/order.py" 2> "$folder/errors")
two=$(taskset -c "$first,$second" "$folder/venv/bin/python" "$folder/order.py" 2> "$folder/errors")
printf '%s\n' "$one" "$two"
[[ $one == "1 cores: 0 1 2 10 11 12 20 21 22 30 31 32" && $two == "2 cores: 0 10 1 11 2 12 20 30 21 31 22 32" ]]
