"""XLA's older generator of code: it compiles in two thirds of the time of the newer one."""

import os
from unittest import mock

# The second: the processes of `make test` keep all cores busy, so that a program is compiled in one
# part. TensorFlow's release has both flags; other releases and libraries may not have them.
FLAGS = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"


def with_quick_flags():
    """The value of `XLA_FLAGS` for a process: what this one was given, and the flags."""
    return f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}"


def use_in_this_process():
    """Has TensorFlow read the flags, and leaves no trace of them for other processes."""
    import tensorflow as tf

    with mock.patch.dict(os.environ, XLA_FLAGS=with_quick_flags()):
        # XLA reads them once, with its first program.
        tf.function(lambda: tf.constant(1.0) + 1.0, jit_compile=True)()
