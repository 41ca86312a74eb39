"""Makes the Markdown table from the answers of the processes."""

import statistics

import numpy as np

from benchmarks.tables import markdown as table

# A round is quiet if other processes took less than this share of the machine's time.
QUIET = 0.05
# The entry of a row for each column; missing ones are empty cells.
COLUMNS = {
    "ratio to reference": "{ratio:.2f}",
    "median s": "{median:.3g}",
    "min s": "{minimum:.3g}",
    "CPU s": "{cpu:.3g}",
    "GFLOP/s": "{gflops:.0f}",
    "% of GEMM peak": "{share_of_peak:.0f}",
    "a second": "{units_a_second:,.1f}",
    "p50 / p99 ms": "{p50:.0f} / {p99:.0f}",
    "peak MiB": "{peak_mib:,.0f}",
    "GPU MiB": "{device_peak_mib:,.0f}",
    "first call s": "{first_call_seconds:.1f}",
    "quiet rounds": "{quiet} of {rounds}",
}


# === Numbers ===


def summarize(group, reference, workload, cores):
    """Returns a row (dict) for each subject of what `interleave.measure` returned."""
    names = dict.fromkeys([*group["facts"], *group["failures"]])
    return [_row(name, group, reference, workload, cores) for name in names]


def _row(name, group, reference, workload, cores):
    row = {"subject": name, **group["facts"].get(name, {})}
    if name in group["failures"]:
        return {**row, "failure": group["failures"][name]}
    answers = [answers[name] for answers in group["rounds"] if name in answers]
    seconds = [answer["wall"] / workload.calls for answer in answers]
    row |= {
        "median": statistics.median(seconds),
        "minimum": min(seconds),
        "maximum": max(seconds),
        "cpu": statistics.median(answer["cpu"] for answer in answers) / workload.calls,
        "peak_mib": max(answer["peak_mib"] for answer in answers),
        **_largest("device_peak_mib", answers),
        "rounds": len(answers),
        "quiet": sum(is_quiet(answer, cores) for answer in answers),
    }
    both = [found for found in group["rounds"] if name in found and reference in found]
    if both:
        ratios = [answers[name]["wall"] / answers[reference]["wall"] for answers in both]
        row["ratio"] = statistics.median(ratios)
    if workload.flop:
        row["gflops"] = workload.flop / row["median"] / 1e9
        row["best_gflops"] = workload.flop / row["minimum"] / 1e9
    if workload.unit:
        row["units_a_second"] = workload.units / row["median"]
    if latencies := [1e3 * each for answer in answers for each in answer.get("latencies", ())]:
        # The smallest latency not exceeded by this share of the requests.
        row["p50"], row["p99"] = np.percentile(latencies, (50, 99), method="inverted_cdf").tolist()
    return row


def _largest(key, answers):
    values = [answer[key] for answer in answers if key in answer]
    return {key: max(values)} if values else {}


def gemm_peak(rows):
    """Returns GFLOP/s of the best matrix product of any subject by dtype; `rows` are of GEMM.

    No single library represents the machine: MKL, PyTorch's float32 library, reaches half
    of oneDNN's speed on AMD processors.
    """
    peak = {}
    for row in rows:
        if "best_gflops" in row:
            dtype = dtype_of(row["subject"])
            peak[dtype] = max(row["best_gflops"], peak.get(dtype, 0.0))
    return peak


def dtype_of(name):
    """Returns the dtype in which the subject of that name computes."""
    return "bfloat16" if name.endswith("bf16") else "float32"


def is_quiet(answer, cores):
    """Returns whether hardly anything else ran during a repetition."""
    # The kernel counts hundredths of a second per core.
    allowed = QUIET * answer["wall"] * cores + 0.02 * cores
    return "foreign" in answer and answer["foreign"] < allowed


# === Text ===


def markdown(results):
    """Returns the whole report; `results` is what `compare.py` writes as JSON."""
    machine, peak = results["machine"], results["gemm_peak"]
    peaks = ", ".join(f"{gflops:.0f} GFLOP/s in {dtype}" for dtype, gflops in peak.items())
    lines = [
        "# keras_xlnet and its peers",
        "{cpu}, {cores} cores, {memory_gib} GiB, {system}".format(**machine)
        + f"; {results['date']}. bfloat16 in hardware: {', '.join(machine['bfloat16']) or 'no'}.",
        f"Reference: {results['reference']}. Ratios are medians over rounds of time / time of the "
        "reference in the same round; below 1 is faster. Training processes are too large to run "
        "all at once: a row belongs to the reference of its own group.",
        f"GEMM peak of this run (best product of any subject): {peaks or 'not measured'}.",
    ]
    lines = ["\n\n".join(lines), ""]
    for subject, versions in results["versions"].items():
        lines.append(f"- {subject}: {', '.join(map(' '.join, versions.items()))}")
    for workload in results["workloads"]:
        lines += ["", f"## {workload['name']}: {workload['title']}", ""]
        lines += [_table(workload, peak)]
        # Ratios to a reference that varies are not significant.
        lines += [
            f"- The reference took {row['minimum']:.3g} to {row['maximum']:.3g} s, "
            f"{row['cpu'] / row['median']:.2f} cores busy."
            for group in workload["groups"]
            for row in group
            if row["subject"] == results["reference"] and "median" in row
        ]
        lines += [f"- {name}: {reason}" for name, reason in workload["cannot"].items()]
    return "\n".join(lines).rstrip() + "\n"


def _table(workload, peak):
    groups, rows = workload["groups"], []
    for number, group in enumerate(groups, 1):
        suffix = f" (group {number})" if len(groups) > 1 else ""
        rows += [(row.get("ratio", float("inf")), row, suffix) for row in group]
    cells = [
        (row["subject"] + suffix, *_cells(row, peak))
        for _, row, suffix in sorted(rows, key=lambda each: each[0])
    ]
    return table(("subject", *COLUMNS), cells)


def _cells(row, peak):
    if "failure" in row:
        return (f"failed: {row['failure']}".replace("|", "/"),)
    dtype, found = dtype_of(row["subject"]), []
    if "gflops" in row and dtype in peak:
        row = {**row, "share_of_peak": 100 * row["gflops"] / peak[dtype]}
    for form in COLUMNS.values():
        try:
            found.append(form.format(**row))
        except KeyError:
            found.append("")
    return found
