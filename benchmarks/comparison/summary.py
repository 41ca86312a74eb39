"""From the answers of a group's subjects to the numbers of the table."""

import statistics

# A round is quiet if other processes took less than this share of the machine's time.
QUIET = 0.05


def summarize(group, reference, workload, cores):
    """A list of rows (dicts), one a subject of what `interleave.measure` returned."""
    rounds = group["rounds"]
    names = list(dict.fromkeys([*group["facts"], *group["failures"]]))
    return [_row(name, group, rounds, reference, workload, cores) for name in names]


def _row(name, group, rounds, reference, workload, cores):
    row = {"subject": name, **group["facts"].get(name, {})}
    if name in group["failures"]:
        return {**row, "failure": group["failures"][name]}
    answers = [answers[name] for answers in rounds if name in answers]
    seconds = [answer["wall"] / workload.calls for answer in answers]
    row.update(
        median=statistics.median(seconds),
        minimum=min(seconds),
        maximum=max(seconds),
        cpu=statistics.median(answer["cpu"] for answer in answers) / workload.calls,
        peak_mib=max(answer["peak_mib"] for answer in answers),
        rounds=len(answers),
        quiet=sum(is_quiet(answer, cores) for answer in answers),
        ratio=ratio(rounds, name, reference),
    )
    if workload.flop:
        row["gflops"] = workload.flop / row["median"] / 1e9
        row["best_gflops"] = workload.flop / row["minimum"] / 1e9
    if workload.unit:
        row["units_a_second"] = workload.units / row["median"]
    latencies = [seconds for answer in answers for seconds in answer.get("latencies", ())]
    if latencies:
        row["p50"], row["p99"] = percentile(latencies, 50), percentile(latencies, 99)
    return row


def gemm_peak(rows):
    """GFLOP/s of the best matrix product, whoever computed it, by dtype; `rows` are of GEMM.

    No library can stand for the machine: MKL, which PyTorch multiplies float32 with, reaches half
    of oneDNN's speed on processors of AMD.
    """
    peak = {}
    for row in rows:
        if "best_gflops" in row:
            dtype = dtype_of(row["subject"])
            peak[dtype] = max(row["best_gflops"], peak.get(dtype, 0.0))
    return peak


def dtype_of(name):
    """What the subject of that name computes in."""
    return "bfloat16" if name.endswith("bf16") else "float32"


def ratio(rounds, name, reference):
    """The median of the ratios to the reference of the same round, or None without any."""
    both = [answers for answers in rounds if name in answers and reference in answers]
    if not both:
        return None
    return statistics.median(answers[name]["wall"] / answers[reference]["wall"] for answers in both)


def is_quiet(answer, cores):
    """Whether hardly anything else ran during a repetition."""
    # The kernel counts in hundredths of a second, for each core.
    allowed = QUIET * answer["wall"] * cores + 0.02 * cores
    return "foreign" in answer and answer["foreign"] < allowed


def percentile(values, percent):
    """The smallest of `values` that at least `percent` % of them do not exceed."""
    values = sorted(values)
    return values[max(0, -(-len(values) * percent // 100) - 1)]
