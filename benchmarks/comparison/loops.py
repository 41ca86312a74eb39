"""The loops that run the repetitions of a subject."""

import concurrent.futures
import dataclasses
import time
from collections.abc import Callable


@dataclasses.dataclass
class Subject:
    """A library's program for a workload: `loop(meter)` never returns."""

    loop: Callable
    facts: dict  # for the report: versions, number of parameters


def calling(call, **facts):
    """A repetition is `meter.calls` calls of `call`, a function without arguments."""

    def loop(meter):
        while True:
            meter.begin()
            for _ in range(meter.calls):
                result = call()
            meter.end(result)

    return Subject(loop, facts)


def fitting(fit, callback_class, **facts):
    """A repetition is a step of `fit(callbacks=...)`, timed by a callback."""

    def loop(meter):
        class EachStep(callback_class):
            def on_train_batch_begin(self, batch, logs=None):
                meter.begin()

            def on_train_batch_end(self, batch, logs=None):
                # Reading the loss waits for backends that compute in the background.
                meter.end(float(logs["loss"]))

        fit(callbacks=[EachStep()])

    return Subject(loop, facts)


def answering(answer, texts, workload, **facts):
    """Clients in threads that each wait for an answer before the next request.

    `answer` takes a list of texts. A repetition is `workload.units` texts in all.
    """
    size = workload.batch_size
    requests = [texts[i : i + size] for i in range(0, len(texts), size)]

    def timed(request):
        begin = time.perf_counter()
        return answer(request), time.perf_counter() - begin

    def loop(meter):
        position = 0
        with concurrent.futures.ThreadPoolExecutor(workload.num_clients) as clients:
            while True:
                count = workload.units // size
                chosen = [requests[(position + i) % len(requests)] for i in range(count)]
                position += count
                meter.begin()
                answers = list(clients.map(timed, chosen))
                meter.end(answers[-1][0], latencies=[seconds for _, seconds in answers])

    return Subject(loop, facts)
