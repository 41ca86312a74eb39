"""Deleting an iterator of `tf.data` can take a minute: it waits for its autotuning thread."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import time

import tensorflow as tf


def seconds_to_delete(autotuned, count=100):
    """The longest time that deleting one of some iterators takes, or the first above a second."""
    options = tf.data.Options()
    options.autotune.enabled = autotuned
    dataset = tf.data.Dataset.range(1_000_000).prefetch(2).with_options(options)
    iterators = [iter(dataset) for _ in range(count)]
    for iterator in iterators:
        next(iterator)
    del iterator
    time.sleep(1.5)
    longest = 0.0
    while iterators:
        start = time.perf_counter()
        iterators.pop()
        longest = max(longest, time.perf_counter() - start)
        if longest > 1.0:
            report(longest)
    return longest


def report(longest):
    """Ends the program at once: another iterator can wait for a minute."""
    print(f"happens:  {longest:.2f} s", flush=True)
    os._exit(longest > 1.0)


print("TensorFlow", tf.__version__)
print(f"expected: {seconds_to_delete(False):.2f} s, as without autotuning", flush=True)
report(max(seconds_to_delete(True) for _ in range(10)))
