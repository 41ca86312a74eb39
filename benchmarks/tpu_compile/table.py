"""Prints which train steps at XLNet's sizes fit on which TPU, without one.

    make tpu-compile
    make tpu-compile ARGS="--sizes=xlnet_base --chips=v3,v5e --workloads=classify:128:32 --largest"

TensorFlow writes the train step (write_stablehlo.py), the TPU compiler compiles it
(compile_for_tpu.py, in its own environment), and a Markdown table is printed row by row: GiB
per core, in brackets a lower bound if the core has less. Each cell takes minutes on one
processor. The exit status is nonzero if a step fails to compile for a reason other than memory.
"""

import itertools
import json
import pathlib
import subprocess
import sys

from absl import app, flags

FLAGS = flags.FLAGS
# GiB of a core, as TensorFlow sees it: on v4 the two cores of a chip are one device.
MEMORY = {"v2": 8, "v3": 16, "v4": 32, "v5e": 16, "v6e": 32}
HERE = pathlib.Path(__file__).parent


def define_flags():
    flags.DEFINE_string(
        "compiler_python", ".venv-tpu/bin/python", "Python that has requirements.txt."
    )
    flags.DEFINE_list("sizes", ["xlnet_base", "xlnet_large"], "Names of backbones' sizes.")
    workloads = ["classify:128:32", "classify:512:8", "pretrain:512:8"]
    flags.DEFINE_list("workloads", workloads, "Task:length:batch of a core.")
    flags.DEFINE_list("chips", list(MEMORY), "Generations of TPUs.")
    flags.DEFINE_bool("gradient_checkpointing", False, "Keep only the inputs of blocks.")
    flags.DEFINE_bool("largest", False, "Double the batch until no chip holds it.")
    flags.DEFINE_string("output_dir", "build/tpu_compile", "Where StableHLO and results are kept.")


def main(_):
    output_dir = pathlib.Path(FLAGS.output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    print_row("model", "task", "length", "batch", *(f"{c} ({MEMORY[c]})" for c in FLAGS.chips))
    print_row(*["---"] * 4, *["---:"] * len(FLAGS.chips))
    errors = []
    for size, workload in itertools.product(FLAGS.sizes, FLAGS.workloads):
        chips = FLAGS.chips
        while chips:
            found = measure(size, workload, chips, output_dir)
            task, length, batch = workload.split(":")
            print_row(size, task, length, batch, *(cell(found.get(c)) for c in FLAGS.chips))
            errors += [f"{chip}: {f['error']}" for chip, f in found.items() if "error" in f]
            chips = [chip for chip, f in found.items() if FLAGS.largest and f.get("fits")]
            workload = f"{task}:{length}:{2 * int(batch)}"
    if errors:
        sys.exit("\n".join(errors))


def measure(size, workload, chips, output_dir):
    """Returns what compile_for_tpu.py found, by chip."""
    checkpointing = FLAGS.gradient_checkpointing
    name = "-".join([size, *workload.split(":"), *["checkpointing"] * checkpointing])
    path = output_dir / f"{name}.mlir"
    write = [sys.executable, HERE / "write_stablehlo.py", f"--size={size}", f"--path={path}"]
    write += [f"--workload={workload}", f"--gradient_checkpointing={checkpointing}"]
    subprocess.run(write, check=True)
    found = {}
    for chip in chips:
        # A process per chip, because it never frees its memory.
        command = [FLAGS.compiler_python, HERE / "compile_for_tpu.py", path, chip]
        process = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        error = f"{name}: the compiler ended with status {process.returncode}"
        failed = {"chip": chip, "error": error}
        found[chip] = failed if process.returncode else json.loads(process.stdout)
        print(f"{name} on {chip}: {cell(found[chip])}", file=sys.stderr, flush=True)
        with open(output_dir / "results.jsonl", "a", encoding="utf-8") as results:
            results.write(json.dumps({"step": name, **found[chip]}) + "\n")
    return found


def cell(found):
    if found is None or "error" in found:
        return "error" if found else "-"
    return f"{found['gib']:.1f}" if found["fits"] else f"({found['gib']:.1f})"


def print_row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    define_flags()
    app.run(main)
