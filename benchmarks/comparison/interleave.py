"""Runs the subjects of a workload side by side, one repetition each in turn."""

import concurrent.futures
import time

from benchmarks.comparison.machine import busy_seconds
from benchmarks.comparison.worker import SubjectError

# Pool threads spin for some milliseconds while waiting for work, which must not slow down the
# next subject.
PAUSE_SECONDS = 0.1


def groups_of(subjects, reference, gigabytes, memory_gigabytes):
    """Splits `subjects` into groups that fit in memory, each with the reference in front.

    Groups have equal sizes, so that no subject runs with only the reference.
    """
    others = [subject for subject in subjects if subject is not reference]
    size = max(1, int(memory_gigabytes / gigabytes) - 1)
    count = -(-len(others) // size) or 1
    size = -(-len(others) // count)
    return [[reference, *others[i * size : (i + 1) * size]] for i in range(count)]


def measure(subjects, start, repetitions, say=print, starts=1):
    """Starts every subject, repeats them in turn, and stops them.

    Args:
        subjects: Subjects, the reference first.
        start: Function that makes a `Worker` of a subject.
        repetitions: Int, number of rounds.
        say: Called with lines that report the progress.
        starts: Int, how many subjects start at once. First calls then take longer.

    Returns:
        A dict: `rounds`, a list of dicts (name of a subject: its answer, with the `foreign` CPU
        seconds of other processes); `facts` and `failures`, dicts by name.
    """
    workers, facts, failures, rounds = {}, {}, {}, []
    try:
        with concurrent.futures.ThreadPoolExecutor(starts) as threads:
            started = [threads.submit(start, subject) for subject in subjects]
            for subject, worker in zip(subjects, started, strict=True):
                try:
                    workers[subject.name] = worker.result()
                    facts[subject.name] = workers[subject.name].facts
                    say(f"  {subject.name} is ready")
                except SubjectError as failure:
                    failures[subject.name] = str(failure)
                    say(f"  {subject.name} failed: {failure}")
        for i in range(repetitions):
            answers = {}
            names = list(workers)
            # Each round starts with a different subject, so that the order favors none.
            for name in names[i % len(names) :] + names[: i % len(names)] if names else []:
                try:
                    answers[name] = _repeat(workers[name])
                except SubjectError as failure:
                    failures[name] = str(failure)
                    say(f"  {name} failed: {failure}")
                    del workers[name]
            rounds.append(answers)
            walls = ", ".join(f"{name} {answer['wall']:.3g}" for name, answer in answers.items())
            say(f"  round {i + 1} of {repetitions}: {walls}")
    finally:
        for worker in workers.values():
            worker.close()
    return {"rounds": rounds, "facts": facts, "failures": failures}


def _repeat(worker):
    time.sleep(PAUSE_SECONDS)
    before = busy_seconds()
    answer = worker.repeat()
    if before is not None:
        answer["foreign"] = busy_seconds() - before - answer["cpu"]
    return answer
