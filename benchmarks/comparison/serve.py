"""The process of one subject: builds it, warms it up, and repeats it on request.

    python -m benchmarks.comparison.serve MODULE WORKLOAD '{"option": "value"}'

Writes lines of JSON: one when it is ready, then one for every input line. The output of
libraries goes to standard error.
"""

import importlib
import json
import os
import resource
import sys
import time

import numpy as np

from benchmarks.comparison.workloads import WORKLOADS

WARM_UP = 3
BEGIN = time.perf_counter()


def main(module, workload, options):
    workload = WORKLOADS[workload]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    build = getattr(importlib.import_module(module), workload.kind)
    subject = build(workload, **json.loads(options))
    meter = Meter(answers, workload, subject.facts)
    subject.loop(meter)


class Meter:
    """Times the code between `begin` and `end`. After the warm-up, `begin` waits for a request.

    For fresh workloads, the time counts from the start of the process.
    """

    def __init__(self, answers, workload, facts):
        self.calls = workload.calls
        self._answers = answers
        self._created = time.perf_counter()
        self._ready = {"start_seconds": self._created - BEGIN, **facts}
        self._is_fresh = workload.fresh
        self._remaining = 1 if workload.fresh else WARM_UP

    def begin(self):
        if not self._remaining and not sys.stdin.readline():
            os._exit(0)  # At once: no library needs to clean up.
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def end(self, result, **more):
        """`result` is the computed result; `more` are numbers for the report."""
        since, cpu_before = (BEGIN, 0.0) if self._is_fresh else (self._wall, self._cpu)
        wall, cpu = time.perf_counter() - since, time.process_time() - cpu_before
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        more |= _device_peak()
        answer = {"wall": wall, "cpu": cpu, "peak_mib": peak, **_summary(result), **more}
        if not self._remaining:
            self._answer(answer)
            return
        self._ready.setdefault("first_call_seconds", time.perf_counter() - self._created)
        self._remaining -= 1
        if not self._remaining:
            self._answer({**answer, **self._ready})

    def _answer(self, values):
        print(json.dumps(values), file=self._answers, flush=True)


def _device_peak():
    """Returns the peak memory of a GPU, by the library that uses it; nothing on a CPU."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    peaks = []
    if torch and torch.cuda.is_available():
        peaks.append(torch.cuda.max_memory_allocated())
    if jax and jax.default_backend() == "gpu":
        peaks.append(jax.devices()[0].memory_stats()["peak_bytes_in_use"])
    return {"device_peak_mib": max(peaks) / 2**20} if peaks else {}


def _summary(result):
    """Returns shape and size of a result, which show that all subjects compute the same."""
    result = np.asarray(result, "float32")
    return {"shape": list(result.shape), "mean_absolute": float(np.abs(result).mean())}


if __name__ == "__main__":
    main(*sys.argv[1:])
