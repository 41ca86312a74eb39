"""Describes the machine and how busy it is."""

import os
import platform


def describe():
    """Returns CPU model and features, cores, memory and system."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": (_cpu_lines("model name") or [platform.processor() or platform.machine()])[0],
        # Flags of CPUs that multiply bfloat16 faster than float32.
        "bfloat16": [flag for flag in ("amx_bf16", "avx512_bf16") if flag in cpu_flags()],
        "cores": cores,
        "memory_gib": round(memory, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def busy_seconds():
    """Returns CPU seconds of all processes of the machine, or None outside Linux."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    except OSError:
        return None
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def cpu_flags():
    """Returns the features of the CPU, such as "avx2"; an empty list outside Linux."""
    return " ".join(_cpu_lines("flags")[:1]).split()


def _cpu_lines(key):
    """Returns the values of `key`, one per core; an empty list outside Linux."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return [line.split(":", 1)[1].strip() for line in file if line.startswith(key)]
    except OSError:
        return []
