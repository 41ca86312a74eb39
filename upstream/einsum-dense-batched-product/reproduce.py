"""`EinsumDense` to heads is a product for each row of the batch, although one product will do."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import time

import keras
import tensorflow as tf

BATCH, LENGTH, HIDDEN, HEADS, HEAD_DIM = 32, 128, 256, 4, 64
layer = keras.layers.EinsumDense("abc,cde->abde", output_shape=(None, HEADS, HEAD_DIM))
layer.build((BATCH, LENGTH, HIDDEN))
x = tf.random.normal((BATCH, LENGTH, HIDDEN))


def with_einsum(x):
    return layer(x)


def with_one_product(x):
    kernel = tf.reshape(layer.kernel, (HIDDEN, HEADS * HEAD_DIM))
    product = tf.matmul(tf.reshape(x, (BATCH * LENGTH, HIDDEN)), kernel)
    return tf.reshape(product, (BATCH, LENGTH, HEADS, HEAD_DIM))


def gradient_of(function):
    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.square(function(x)))
        return tape.gradient(y, [layer.kernel.value])

    graph = gradient.get_concrete_function(x).graph
    products = [op.type for op in graph.get_operations() if "MatMul" in op.type]
    products += [n.op for f in graph.as_graph_def().library.function for n in f.node_def]
    return gradient, sorted({name for name in products if "MatMul" in name or name == "Einsum"})


def seconds(function):
    function(x)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        function(x)
        times.append(time.perf_counter() - start)
    return min(times)


print("Keras", keras.__version__, "TensorFlow", tf.__version__)
for title, function in (("expected:", with_one_product), ("happens: ", with_einsum)):
    gradient, operations = gradient_of(function)
    print(title, operations, f"{1000 * seconds(gradient):.1f} ms for output and gradient")
raise SystemExit("MatMul" not in operations)
