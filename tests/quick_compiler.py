"""XLA's older generator of code, which compiles in half of the time."""

import os

# Processes share it out, so that one program need not be. A release of JAX may know neither flag:
# an unknown one ends a process.
FLAGS = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"


def use_in_this_process():
    """Has TensorFlow read the flags, and leaves no trace of them for other processes."""
    import tensorflow as tf

    given = os.environ.get("XLA_FLAGS")
    os.environ["XLA_FLAGS"] = f"{given or ''} {FLAGS}"
    # XLA reads them once, with its first program.
    tf.function(lambda: tf.constant(1.0) + 1.0, jit_compile=True)()
    if given is None:
        del os.environ["XLA_FLAGS"]
    else:
        os.environ["XLA_FLAGS"] = given
