"""MatMul, BiasAdd and GELU are one oneDNN operation, or not: their names decide.

On processors where TensorFlow fuses them with no names, this prints that and exits with 2.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
ARRAYS = [np.ones(shape, "float32") for shape in ((64, 32), (32, 64), (64,))]


def operations_that_run(scope_of_product, scope_of_gelu):
    with tf.Graph().as_default(), tf1.Session() as session:
        x, kernel, bias = inputs = [tf1.placeholder(tf.float32, a.shape) for a in ARRAYS]
        with tf.name_scope(scope_of_product):
            product = tf.nn.bias_add(tf.matmul(x, kernel), bias)
        with tf.name_scope(scope_of_gelu):
            output = tf.identity(tf.nn.gelu(product, approximate=True))
        metadata = tf1.RunMetadata()
        options = tf1.RunOptions(output_partition_graphs=True)
        session.run(output, dict(zip(inputs, ARRAYS, strict=True)), options, metadata)
    nodes = (node.op for graph in metadata.partition_graphs for node in graph.node)
    return sorted({op for op in nodes if op in ("Tanh", "Pow") or "MatMul" in op})


first, second = operations_that_run("a", "b"), operations_that_run("b", "a")
print("TensorFlow", tf.__version__)
print("expected, product in scope a, GELU in b:", first)
print("happens,  product in scope b, GELU in a:", second)
raise SystemExit(2 if "Tanh" in first else int("Tanh" in second))
