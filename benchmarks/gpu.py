"""Compares keras_xlnet on a GPU with its peers, in about ten minutes: speed, memory, peak.

    python -m benchmarks.gpu                 # on a machine with a GPU, JAX, PyTorch, transformers
    python -m benchmarks.gpu --small         # the same steps of tiny models, on any machine

All libraries must be installed in this Python; one that is missing gets a row with the reason.
TensorFlow is not needed. It takes the flags of `benchmarks.compare`, see benchmarks/README.md.
"""

import json
import os
import pathlib
import sys

# The processes of the subjects read these. Several share the GPU.
os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
if "--small" in sys.argv:
    os.environ["COMPARISON_SIZE"] = "small"
    os.environ.setdefault("COMPARISON_MATMUL_SIZE", "256")
# A product of 2048 x 2048 takes less time on a GPU than its start.
os.environ.setdefault("COMPARISON_MATMUL_SIZE", "8192")

from absl import app, flags

from benchmarks import compare
from benchmarks.comparison.report import dtype_of
from benchmarks.comparison.workloads import WORKLOADS
from benchmarks.tables import markdown

SUBJECTS = (
    "huggingface,huggingface-bf16,huggingface-compile,huggingface-compile-bf16,"
    "huggingface-group_by_length,keras_hub-jax,keras_xlnet-jax*,keras_xlnet-torch*"
)
COLUMNS = (
    "workload",
    "subject",
    "tokens a second",
    "of huggingface in the same dtype",
    "% of peak",
    "GPU MiB",
)

FLAGS = flags.FLAGS
flags.DEFINE_bool("small", False, "Tiny models, to try the script.")


def main(arguments):
    compare.main(arguments)
    found = json.loads((pathlib.Path(FLAGS.output_dir) / "comparison.json").read_text("utf-8"))
    table = markdown(COLUMNS, rows_of(found))
    pathlib.Path(FLAGS.output_dir, "gpu.md").write_text(table, encoding="utf-8")
    print(table)


def rows_of(found):
    """The rows of the table, of what comparison.json has."""
    rows = []
    for workload in found["workloads"]:
        measured = [row for group in workload["groups"] for row in group if "median" in row]
        seconds = {row["subject"]: row["median"] for row in measured}
        shape = WORKLOADS[workload["name"]]
        tokens = shape.batch_size * shape.length
        for row in sorted(measured, key=lambda row: row["median"]):
            dtype = dtype_of(row["subject"])
            eager = "huggingface" if dtype == "float32" else "huggingface-bf16"
            ratio = f"{row['median'] / seconds[eager]:.2f}" if eager in seconds else ""
            peak = found["gemm_peak"].get(dtype)
            has_share = peak and "gflops" in row and workload["name"] != "GEMM"
            share = f"{100 * row['gflops'] / peak:.0f}" if has_share else ""
            # The tokens of strings are not counted here.
            is_tokens = workload["name"] in ("W1", "W2", "W3", "W4", "W4m", "W5")
            speed = f"{tokens / row['median']:,.0f}" if is_tokens else ""
            memory = f"{row['device_peak_mib']:,.0f}" if "device_peak_mib" in row else ""
            rows.append((workload["name"], row["subject"], speed, ratio, share, memory))
    return rows


if __name__ == "__main__":
    FLAGS.set_default("workloads", ["GEMM", "W1", "W2", "W3", "W4", "W10"])
    FLAGS.set_default("subjects", SUBJECTS.split(","))
    FLAGS.set_default("repetitions", 5)
    FLAGS.set_default("starts", 4)
    FLAGS.set_default("peers_dir", "")
    FLAGS.set_default("output_dir", "runs/gpu")
    app.run(main)
