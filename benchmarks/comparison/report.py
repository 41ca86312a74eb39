"""The table: Markdown of the rows of every workload."""

from benchmarks.comparison.summary import dtype_of

COLUMNS = (
    ("subject", "---"),
    ("ratio to reference", "---:"),
    ("median s", "---:"),
    ("min s", "---:"),
    ("CPU s", "---:"),
    ("GFLOP/s", "---:"),
    ("% of GEMM peak", "---:"),
    ("a second", "---:"),
    ("p50 / p99 ms", "---:"),
    ("peak MiB", "---:"),
    ("first call s", "---:"),
    ("quiet rounds", "---:"),
)


def markdown(results):
    """The whole report; `results` is what `compare.py` writes as JSON."""
    machine = results["machine"]
    lines = [
        "# keras_xlnet and its peers",
        "",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['system']}; {results['date']}. bfloat16 in hardware: "
        f"{', '.join(machine['bfloat16']) or 'no'}.",
        "",
        f"Reference: {results['reference']}. Ratios are medians over rounds of time / time of the "
        "reference in the same round; below 1 is faster. Training processes are too large to run "
        "all at once: a row belongs to the reference of its own group.",
        "",
        *_peak_lines(results),
        *_version_lines(results),
    ]
    for workload in results["workloads"]:
        lines += ["", f"## {workload['name']}: {workload['title']}", ""]
        if workload["flop"]:
            lines += [f"{workload['flop'] / 1e9:.1f} GFLOP needed.", ""]
        lines += _table(workload, results)
        lines += ["", *_spread_lines(workload, results["reference"])]
        lines += [f"- {name}: {reason}" for name, reason in workload["cannot"].items()]
    return "\n".join(lines).rstrip() + "\n"


def _table(workload, results):
    several = len(workload["groups"]) > 1
    lines = [_line(name for name, _ in COLUMNS), _line(rule for _, rule in COLUMNS)]
    rows = []
    for number, group in enumerate(workload["groups"], 1):
        rows += [(f" (group {number})" if several else "", row) for row in group]
    rows.sort(key=lambda pair: pair[1].get("ratio") or float("inf"))
    return lines + [_row(row, suffix, results) for suffix, row in rows]


def _spread_lines(workload, reference):
    """How steady the reference was: what its ratios are worth."""
    rows = [row for group in workload["groups"] for row in group if row["subject"] == reference]
    return [
        f"- The reference took {row['minimum']:.3g} to {row['maximum']:.3g} s, "
        f"{row['cpu'] / row['median']:.2f} cores busy."
        for row in rows
        if "median" in row
    ]


def _row(row, suffix, results):
    if "failure" in row:
        return _line([row["subject"] + suffix, f"failed: {row['failure']}".replace("|", "/")])
    values = [
        row["subject"] + suffix,
        _number(row.get("ratio"), ".2f"),
        _number(row["median"], ".3g"),
        _number(row["minimum"], ".3g"),
        _number(row["cpu"], ".3g"),
        _number(row.get("gflops"), ".0f"),
        share_of_peak(row, results["gemm_peak"]),
        _number(row.get("units_a_second"), ",.1f"),
        f"{1e3 * row['p50']:.0f} / {1e3 * row['p99']:.0f}" if "p50" in row else "",
        _number(row["peak_mib"], ",.0f"),
        _number(row["first_call_seconds"], ".1f"),
        f"{row['quiet']} of {row['rounds']}",
    ]
    return _line(values)


def share_of_peak(row, peak):
    """Percent of the float32 peak; of the bfloat16 peak too where the subject computes in it."""
    if "gflops" not in row or "float32" not in peak:
        return ""
    share = f"{100 * row['gflops'] / peak['float32']:.0f}"
    if dtype_of(row["subject"]) == "bfloat16" and "bfloat16" in peak:
        share += f" ({100 * row['gflops'] / peak['bfloat16']:.0f} of bf16)"
    return share


def _peak_lines(results):
    peak = results["gemm_peak"]
    if not peak:
        return ["GEMM was not measured: there is no share of the peak.", ""]
    peaks = ", ".join(f"{gflops:.0f} GFLOP/s in {dtype}" for dtype, gflops in peak.items())
    return [f"GEMM peak of this run (best 2048^3 product of any subject): {peaks}.", ""]


def _version_lines(results):
    lines = []
    for subject, versions in results["versions"].items():
        listed = ", ".join(f"{name} {version}" for name, version in versions.items())
        lines.append(f"- {subject}: {listed}")
    return lines


def _number(value, format):
    return "" if value is None else f"{value:{format}}"


def _line(cells):
    return "| " + " | ".join(cells) + " |"
