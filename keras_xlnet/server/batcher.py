"""Requests that arrive together are read together."""

import asyncio
import concurrent.futures
import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from keras_xlnet.server.request_error import RequestError
from keras_xlnet.server.served_version import ServedVersion


@dataclasses.dataclass
class _Group:
    """Requests to one signature that are run together."""

    requests: list[tuple[Mapping[str, np.ndarray], int, asyncio.Future]] = dataclasses.field(
        default_factory=list
    )
    num_rows: int = 0
    is_full: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)


class Batcher:
    """Runs requests, those to one signature together, in threads.

    The first request of a group waits for `delay`, and for a free thread; those that arrive in the
    meantime join it. A request whose outputs could depend on the others in its group runs by
    itself: its inputs or outputs have no axis of rows, or the inputs do not tell the size of an
    axis of an output, such as the longest text. If a group fails, each request runs by itself, so
    that only those fail that have to.

    Args:
        delay: Float, seconds.
        max_rows: Int, a request with more rows is not divided and runs by itself. A signature with
            a batch size reads it in parts of this size.
        num_threads: Int, groups that run at the same time.
        observe: Optional function of a version and the number of rows that it is going to read.
    """

    def __init__(
        self,
        delay: float = 0.002,
        max_rows: int = 32,
        num_threads: int = 2,
        observe: Callable[[ServedVersion, int], None] | None = None,
    ) -> None:
        self.delay = delay
        self.max_rows = max_rows
        self._threads = concurrent.futures.ThreadPoolExecutor(num_threads, "predict")
        self._observe = observe or (lambda version, num_rows: None)
        self._free = asyncio.Semaphore(num_threads)
        self._open: dict[Any, _Group] = {}
        self._tasks: set[asyncio.Task] = set()

    async def run(
        self, version: ServedVersion, signature_name: str, inputs: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Returns the outputs of a signature, as `ServedVersion.run`.

        Raises:
            RequestError: If the model cannot read the inputs.
        """
        batch_size = version.batch_size(signature_name)
        num_rows = _num_rows(version, signature_name, inputs)
        if batch_size is not None and not num_rows:
            sizes = ", ".join(str(len(value)) for value in inputs.values())
            raise RequestError(
                f"{signature_name} takes the same number of rows of each input, at least one. "
                f"Received: {sizes}"
            )
        limit = self.max_rows if batch_size is None else batch_size
        key = (version, signature_name, _trailing_shapes(inputs))
        group = self._open.get(key)
        if num_rows is None or group is None or group.num_rows + num_rows > limit:
            group = _Group()
            task = asyncio.create_task(self._run_group(key, group, batch_size))
            # The event loop has no reference of its own.
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            if num_rows is not None:
                self._open[key] = group
        future = asyncio.get_running_loop().create_future()
        group.requests.append((inputs, num_rows or 0, future))
        group.num_rows += num_rows or 0
        if num_rows is None or group.num_rows >= limit:
            group.is_full.set()
        return await future

    def close(self) -> None:
        """Lets the threads end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _run_group(self, key, group, batch_size):
        version, signature_name, _ = key
        if self.delay:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(group.is_full.wait(), self.delay)
        async with self._free:
            if self._open.get(key) is group:
                del self._open[key]
            # Those of clients that waited for too long are cancelled.
            requests = [request for request in group.requests if not request[2].done()]
            if len(requests) > 1:
                joined = _joined([inputs for inputs, _, _ in requests])
                result = await self._run(version, signature_name, joined, batch_size)
                if _has_rows(result, sum(num_rows for _, num_rows, _ in requests)):
                    _distribute(result, requests)
                    return
            for inputs, _, future in requests:
                result = await self._run(version, signature_name, inputs, batch_size)
                _finish(future, result)

    async def _run(self, version, signature_name, inputs, batch_size):
        """Outputs, or the exception."""
        self._observe(version, max((len(x) for x in inputs.values() if x.ndim), default=0))
        run = asyncio.get_running_loop().run_in_executor
        try:
            return await run(self._threads, _run_rows, version, signature_name, inputs, batch_size)
        except Exception as error:  # The request raises it.
            return error


def _run_rows(version, signature_name, inputs, batch_size):
    """Outputs of any number of rows, in batches of `batch_size` if the signature has one."""
    if batch_size is None:
        return version.run(signature_name, inputs)
    num_rows = len(next(iter(inputs.values())))
    parts = []
    for first in range(0, num_rows, batch_size):
        # The last row is repeated.
        rows = range(first, first + batch_size)
        part = {k: np.take(v, rows, axis=0, mode="clip") for k, v in inputs.items()}
        parts.append(version.run(signature_name, part))
    return {k: _concatenated([part[k] for part in parts])[:num_rows] for k in parts[0]}


def _concatenated(arrays):
    """Joins rows; those of shorter arrays end in zeros or empty strings."""
    shape = np.max([array.shape for array in arrays], axis=0)
    empty = b"" if arrays[0].dtype == object else 0
    padded = []
    for array in arrays:
        missing = [(0, 0), *((0, size) for size in shape[1:] - array.shape[1:])]
        padded.append(np.pad(array, missing, constant_values=empty))
    return np.concatenate(padded)


def _num_rows(version, signature_name, inputs):
    """The number of rows of a request, `None` if it has to run by itself."""
    input_shapes = [spec.shape for spec in version.input_specs(signature_name).values()]
    output_shapes = [spec.shape for spec in version.output_specs(signature_name).values()]
    sizes = {len(value) if value.ndim else None for value in inputs.values()}
    if len(sizes) != 1 or not all(shape.rank for shape in input_shapes + output_shapes):
        return None
    if len({shape[0] for shape in input_shapes + output_shapes}) > 1:
        return None
    # Lengths of inputs are in the key of a group: such outputs have the same.
    of_inputs = all(shape[1:].is_fully_defined() for shape in input_shapes)
    if of_inputs and not all(shape[1:].is_fully_defined() for shape in output_shapes):
        return None
    return sizes.pop()


def _trailing_shapes(inputs):
    return tuple((name, value.shape[1:]) for name, value in sorted(inputs.items()))


def _joined(inputs):
    return {name: np.concatenate([x[name] for x in inputs]) for name in inputs[0]}


def _has_rows(result, num_rows):
    """Whether a result is not an exception, and all outputs have this number of rows."""
    return isinstance(result, dict) and {len(value) for value in result.values()} == {num_rows}


def _distribute(outputs, requests):
    begin = 0
    for _, num_rows, future in requests:
        end = begin + num_rows
        _finish(future, {name: value[begin:end] for name, value in outputs.items()})
        begin = end


def _finish(future, result):
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
