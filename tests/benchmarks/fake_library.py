"""A library for the comparison: sleeps for as long as its options say."""

import time

from benchmarks.comparison.loops import answering, calling


def encode(workload, seconds=0.0, error=None, parameters=7):
    if error:
        raise RuntimeError(error)
    print("libraries print what they like")

    def call():
        time.sleep(seconds)
        return [[1.0, -3.0]]

    return calling(call, versions={"fake": "1.0"}, parameters=parameters)


def serve_texts(workload):
    return answering(lambda texts: [len(text) for text in texts], ["a", "bb", "ccc"], workload)


def finetune(workload):
    calls = []

    def call():
        calls.append(1)
        if len(calls) > 4:  # The warm-up, and one more.
            raise ValueError("there is no memory left")
        return 0.0

    return calling(call)
