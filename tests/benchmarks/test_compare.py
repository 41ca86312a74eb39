import dataclasses
import json
import subprocess
import types

import pytest

from benchmarks.comparison import interleave, report, run, workloads
from benchmarks.comparison.run import compare
from benchmarks.comparison.subjects import SUBJECTS, Subject
from benchmarks.comparison.worker import FreshWorker, SubjectError, Worker
from benchmarks.comparison.workloads import WORKLOADS
from benchmarks.flop import encoder_flop

MODULE = "tests.benchmarks.fake_library"


def fake(name, workloads=("W1", "W3"), **options):
    return Subject(name, MODULE, workloads, options=options)


def answer(wall, cpu=1.0, **more):
    return {"wall": wall, "cpu": cpu, "peak_mib": 10.0, "foreign": 0.0, **more}


@pytest.fixture
def worker(tmp_path):
    """Starts workers, and stops them after the test."""
    workers = []

    def start(subject, workload="W1", timeout=60):
        workload = WORKLOADS[workload]
        workers.append(Worker(subject, workload, "none", tmp_path, tmp_path / "log", timeout))
        return workers[-1]

    yield start
    for each in workers:
        each.close()


# === A worker ===


def test_a_worker_is_timed_from_call_to_result(worker):
    process = worker(fake("slow", seconds=0.05))
    assert process.facts["first_call_seconds"] >= 0.05
    assert process.facts["versions"] == {"fake": "1.0"}
    repetition = process.repeat()
    assert repetition["wall"] >= 0.05 > repetition["cpu"]
    assert (repetition["shape"], repetition["mean_absolute"]) == ([1, 2], 2.0)
    assert repetition["peak_mib"] > 1


def test_a_worker_that_cannot_build_its_subject_says_why(worker):
    with pytest.raises(SubjectError, match="^RuntimeError: no such layer$"):
        worker(fake("broken", error="no such layer"))


def test_a_worker_that_fails_later_says_why(worker):
    process = worker(fake("leaky"), "W3")
    process.repeat()
    with pytest.raises(SubjectError, match="^ValueError: there is no memory left$"):
        process.repeat()


def test_a_worker_that_does_not_answer_is_ended(worker):
    with pytest.raises(SubjectError, match="no answer in 0 s"):
        worker(fake("endless", seconds=60), timeout=0.3)


def test_a_peer_that_is_not_installed_is_named(worker):
    with pytest.raises(SubjectError, match="not installed: .*none/peer/bin/python"):
        worker(dataclasses.replace(fake("peer"), peer="peer"))


def test_latencies_of_all_clients_are_reported(worker):
    repetition = worker(fake("served"), "W8c8").repeat()
    assert len(repetition["latencies"]) == WORKLOADS["W8c8"].units


def test_a_first_step_is_timed_from_the_start_of_its_process(tmp_path):
    workload = WORKLOADS["W12"]
    fresh = FreshWorker(fake("fake", ("W12",)), workload, "none", tmp_path, tmp_path / "log", 60)
    repetitions = [fresh.repeat() for _ in range(6)]  # A process that is kept fails in the fifth.
    for repetition in repetitions:
        assert repetition["wall"] >= repetition["start_seconds"] > 0
        assert repetition["cpu"] > 0
    fresh.close()


# === Side by side ===


class FakeWorker:
    """Answers with one of `walls` after the other; a wall of None is a failure."""

    def __init__(self, walls):
        self.facts = {"first_call_seconds": 1.0}
        self.walls = iter(walls)
        self.is_closed = False

    def repeat(self):
        wall = next(self.walls)
        if wall is None:
            raise SubjectError("lost")
        return answer(wall)

    def close(self):
        self.is_closed = True


def measure(monkeypatch, walls, rounds):
    monkeypatch.setattr(interleave, "PAUSE_SECONDS", 0)
    started = {}

    def start(subject):
        if walls[subject.name] is None:
            raise SubjectError("will not start")
        started[subject.name] = FakeWorker(walls[subject.name])
        return started[subject.name]

    group = interleave.measure([fake(name) for name in walls], start, rounds, lambda line: None)
    return group, started


def test_ratios_are_medians_of_the_ratios_of_a_round(monkeypatch):
    # Round 2 was disturbed for both: the ratio of the medians would be 3, of the minima 1.
    walls = {"reference": [1.0, 10.0, 2.0], "other": [3.0, 20.0, 1.0]}
    group, _ = measure(monkeypatch, walls, 3)
    reference, other = report.summarize(group, "reference", WORKLOADS["W1"], 2)
    assert reference["ratio"] == 1.0
    assert other["ratio"] == 2.0
    assert (other["median"], other["minimum"], other["maximum"]) == (3.0, 1.0, 20.0)
    assert other["gflops"] == pytest.approx(WORKLOADS["W1"].flop / 3e9)


def test_every_subject_is_repeated_in_every_round_and_another_one_goes_first(monkeypatch):
    walls = {name: [1.0] * 3 for name in "abc"}
    group, started = measure(monkeypatch, walls, 3)
    assert [list(answers) for answers in group["rounds"]] == [list("abc"), list("bca"), list("cab")]
    assert all(worker.is_closed for worker in started.values())


def test_a_failure_does_not_stop_the_others(monkeypatch):
    walls = {"reference": [1.0, 1.0, 1.0], "absent": None, "lost": [1.0, None], "last": [2.0] * 3}
    group, _ = measure(monkeypatch, walls, 3)
    rows = {r["subject"]: r for r in report.summarize(group, "reference", WORKLOADS["W1"], 2)}
    assert rows["absent"]["failure"] == "will not start"
    assert rows["lost"]["failure"] == "lost"
    assert rows["last"]["ratio"] == 2.0
    assert rows["last"]["rounds"] == 3


@pytest.mark.parametrize(("gigabytes", "sizes"), [(20, [4, 3]), (100, [6]), (1, [2] * 5)])
def test_groups_fit_in_memory_and_begin_with_the_reference(gigabytes, sizes):
    all_subjects = [fake(name) for name in "abcdef"]
    groups = interleave.groups_of(all_subjects, all_subjects[0], 5, gigabytes)
    assert [len(group) for group in groups] == sizes
    assert all(group[0] is all_subjects[0] for group in groups)
    assert [subject.name for group in groups for subject in group[1:]] == list("bcdef")


@pytest.mark.parametrize(("foreign", "quiet"), [(0.0, True), (0.1, True), (0.5, False)])
def test_a_round_is_quiet_if_other_processes_hardly_ran(foreign, quiet):
    assert report.is_quiet({"wall": 1.0, "foreign": foreign}, cores=2) is quiet


def test_a_round_is_not_quiet_where_that_is_not_known():
    assert not report.is_quiet({"wall": 1.0}, cores=2)


def test_latencies_of_a_row_are_milliseconds():
    latencies = [each / 1000 for each in range(1, 201)]
    rounds = [{"reference": answer(1.0, latencies=latencies)}]
    group = {"rounds": rounds, "facts": {"reference": {}}, "failures": {}}
    (row,) = report.summarize(group, "reference", WORKLOADS["W8"], 2)
    assert [round(row[name]) for name in ("p50", "p99")] == [100, 198]


# === What is computed ===


def test_flop_of_the_workloads():
    # As counted in another way when the peers were measured first.
    expected = {"W1": 187.3, "W2": 227.1, "W3": 561.8, "W4": 156.4, "W4m": 174.5, "W5": 6.4}
    assert {name: round(WORKLOADS[name].flop / 1e9, 1) for name in expected} == expected
    assert WORKLOADS["W8c8"].flop == 64 * encoder_flop(WORKLOADS["W8c8"].shapes)


def test_the_rows_of_a_batch_differ_and_are_padded_on_the_left():
    batch = workloads.token_batch(WORKLOADS["W3"])
    assert len({row.tobytes() for row in batch["token_ids"]}) == 8
    assert [int(row.argmax()) for row in batch["padding_mask"]] == [3 * r for r in range(8)]
    assert set(batch["labels"]) == {0, 1}


def test_pretraining_targets_are_distinct_places_that_do_not_see_themselves():
    batch = workloads.pretraining_batch(WORKLOADS["W4"])
    assert all(len(set(row)) == 42 for row in batch["target_positions"].tolist())
    assert not batch["permutation_mask"].diagonal(axis1=1, axis2=2).any()


def test_every_subject_exists_for_its_workloads():
    for subject in SUBJECTS.values():
        assert set(subject.workloads) <= set(WORKLOADS)
        assert not set(subject.workloads) & set(subject.cannot)


# === From the first process to the last file ===


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder that a comparison of fake subjects wrote."""
    folder = tmp_path_factory.mktemp("comparison")
    reference = fake("reference")
    others = [
        fake("keras_xlnet", parameters=8),
        fake("broken", error="no such layer"),
        Subject("other", MODULE, (), cannot={"W1": "has no encoder"}),
    ]
    options = types.SimpleNamespace(
        output_dir=folder,
        peers_dir="none",
        starts=2,
        repetitions=3,
        memory_gigabytes=20,
        timeout=60,
    )
    compare([WORKLOADS["W1"]], others, reference, options, lambda line: None)
    return folder


def test_all_that_was_measured_is_written(written):
    results = json.loads((written / "comparison.json").read_text())
    (workload,) = results["workloads"]
    rows = {row["subject"]: row for row in workload["groups"][0]}
    assert rows["reference"]["ratio"] == 1.0
    assert rows["keras_xlnet"]["ratio"] > 0
    assert rows["keras_xlnet"]["parameters"] == 8
    assert rows["broken"]["failure"] == "RuntimeError: no such layer"
    assert len(workload["raw"][0]["rounds"]) == 3
    assert results["machine"]["cores"] >= 1


def test_the_table_has_a_row_for_everyone(written):
    lines = (written / "comparison.md").read_text().splitlines()
    rows = [line.split(" | ")[0] for line in lines if line.startswith("| ")]
    assert rows[:2] == ["| subject", "| ---"]
    assert sorted(rows[2:]) == ["| broken", "| keras_xlnet", "| reference"]
    assert "| broken | failed: RuntimeError: no such layer |" in lines
    assert "- other: has no encoder" in lines


@pytest.mark.parametrize(("subject", "share"), [("x", "200"), ("x-bf16", "50")])
def test_the_table_says_which_share_of_the_peak_was_reached(subject, share):
    group = [{"subject": subject, "gflops": 500.0, "ratio": 1.0}]
    results = {
        "machine": dict.fromkeys(("cpu", "cores", "memory_gib", "system"), "") | {"bfloat16": []},
        "gemm_peak": {"float32": 250.0, "bfloat16": 1000.0},
        "date": "", "reference": "y", "versions": {},
        "workloads": [{"name": "W1", "title": "", "flop": 1, "groups": [group], "cannot": {}}],
    }  # fmt: skip
    (row,) = (line for line in report.markdown(results).splitlines() if line[2:].startswith("x"))
    assert row.split(" | ")[5:7] == ["500", share]


def test_the_peak_is_the_best_product_of_anyone_in_each_dtype():
    rows = [
        {"subject": "reference", "best_gflops": 160.0},
        {"subject": "a", "best_gflops": 360.0},
        {"subject": "a-bf16", "best_gflops": 600.0},
        {"subject": "reference-bf16", "best_gflops": 690.0},
        {"subject": "b", "failure": "MemoryError"},
    ]
    assert report.gemm_peak(rows) == {"float32": 360.0, "bfloat16": 690.0}
    assert report.gemm_peak([]) == {}


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_vocabulary_is_trained_for_workloads_of_text_alone(name, tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(
        run.subprocess,
        "run",
        lambda command, **_: commands.append(command) or subprocess.CompletedProcess(command, 0),
    )
    run.prepare([WORKLOADS[name]], "assets", tmp_path / "log", print)
    assert bool(commands) == (
        name in {"W7", "W8", "W8c1", "W8c8", "W9", "W10", "W11", "W13", "W14"}
    )
