"""Compiles StableHLO from TensorFlow for a TPU, and prints the memory that a core needs.

    python benchmarks/tpu_compile/compile_for_tpu.py step.mlir v5e

prints one line of JSON. It needs `requirements.txt` and no TPU: the compiler is in libtpu.
It checks neither numbers nor speed.
"""

import json
import os
import sys
import time

# Without a TPU there is no metadata server, and nothing for two processes to share.
os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
os.environ.setdefault("TPU_WORKER_HOSTNAMES", "localhost")
os.environ.setdefault("TPU_ACCELERATOR_TYPE", "v4-8")
os.environ.setdefault("TPU_MIN_LOG_LEVEL", "3")
os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
os.environ["JAX_PLATFORMS"] = "cpu"

# Modules of `jax._src` are private: hence the exact release in requirements.txt.
from compiler_text import for_tpu, too_large
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir
from jax.experimental import topologies

TOPOLOGIES = {
    "v2": {"topology_name": "v2:2x2"},
    "v3": {"topology_name": "v3:2x2"},
    # As on Cloud TPUs: the two cores of a chip and its 32 GiB are one device.
    "v4": {"topology_name": "v4:2x2x1", "chip_config_name": "megacore"},
    "v5e": {"topology_name": "v5e:2x2"},
    "v6e": {"topology_name": "v6e:2x2"},
}


def main(path, chip):
    with open(path, encoding="utf-8") as file:
        text = for_tpu(file.read())
    start = time.time()
    found = compile_for(chip, text)
    print(json.dumps({"chip": chip, **found, "seconds": round(time.time() - start)}))


def compile_for(chip, text):
    """Returns `gib` of a core and whether it `fits`, or the `error` of the compiler."""
    topology = topologies.get_topology_desc(platform="tpu", **TOPOLOGIES[chip])
    device = topology.devices[0]
    try:
        with mlir.make_ir_context():
            program = device.client.compile(
                ir.Module.parse(text), xla_client.DeviceList((device,)), xla_client.CompileOptions()
            )
    except Exception as error:
        return too_large(str(error)) or {"error": str(error)}
    memory = program.get_compiled_memory_stats()
    parts = ("argument", "output", "temp", "generated_code")
    total = sum(getattr(memory, f"{part}_size_in_bytes") for part in parts)
    # Variables are written where they were read from.
    return {"gib": (total - memory.alias_size_in_bytes) / 2**30, "fits": True}


if __name__ == "__main__":
    main(*sys.argv[1:])
