"""What Keras and TensorFlow lack. A test that fails says which file has become superfluous."""

import gc
import inspect
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_xlnet

ROOT = pathlib.Path(__file__).parents[2]
MODULES = sorted(
    path.stem
    for path in (pathlib.Path(keras_xlnet.__file__).parent / "compat").glob("*.py")
    if path.stem != "__init__"
)


def delete(module):
    return f"upstream works: delete this file, keras_xlnet/compat/{module}.py"


def operations_that_run(build, *arrays):
    """The types of the operations of a graph, after TensorFlow has optimized it."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        inputs = [tf.compat.v1.placeholder(tf.float32, array.shape) for array in arrays]
        output = build(*inputs)
        metadata = tf.compat.v1.RunMetadata()
        session.run(
            output,
            dict(zip(inputs, arrays, strict=True)),
            options=tf.compat.v1.RunOptions(output_partition_graphs=True),
            run_metadata=metadata,
        )
    return {node.op for graph in metadata.partition_graphs for node in graph.node}


# === One for each file ===


def test_cloning():
    class Doubled(keras.Model):
        def __init__(self, units, **kwargs):
            inputs = keras.Input((3,))
            super().__init__(inputs, keras.layers.Dense(units)(inputs), **kwargs)
            self.units = units

        def get_config(self):
            return {"units": self.units}

    clone = keras.models.clone_model(Doubled(4))
    assert type(clone) is not Doubled, delete("cloning")


def test_compiled_update():
    slices = tf.IndexedSlices(tf.ones((2, 1)), tf.constant([0, 0]), tf.constant([2, 1]))
    updated = []
    for gradient in (slices, tf.convert_to_tensor(slices)):
        variable = keras.Variable(np.zeros((2, 1), "float32"))
        optimizer = keras.optimizers.Adam(1.0)
        for scale in (1.0, 3.0):
            values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
            scaled = scale * values
            if isinstance(gradient, tf.IndexedSlices):
                scaled = tf.IndexedSlices(scaled, gradient.indices, gradient.dense_shape)
            optimizer.apply([scaled], [variable])
        updated.append(np.asarray(variable))
    assert np.abs(updated[0] - updated[1]).max() > 1e-3, delete("compiled_update")


def test_eager_variables():
    traces = []

    class Model(keras.Sequential):
        def train_step(self, data):
            traces.append(data)
            return super().train_step(data)

    model = Model([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0)
    assert len(traces) > 1, delete("eager_variables")


def test_distributed_training(two_replicas):
    with two_replicas.scope():
        inputs = keras.Input((3,), dtype="bool")
        outputs = keras.layers.Dense(1)(keras.ops.cast(inputs, "float32"))
        model = keras.Model(inputs, outputs)
        model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensors((np.ones((4, 3), "bool"), np.ones((4, 1)))).repeat(2)
    try:
        model.fit(data, verbose=0)
    except Exception:  # of TensorFlow or Keras, by release
        return
    pytest.fail(delete("distributed_training"))


def test_fused():
    assert tf.config.optimizer.get_jit() == "", delete("fused")


def test_gelu_fusion():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=size).astype("float32") for size in ((64, 32), (32, 64), (64,))]

    def build(first, second):
        def gelu_of_dense(x, kernel, bias):
            with tf.name_scope(first):
                product = tf.nn.bias_add(tf.matmul(x, kernel), bias)
            with tf.name_scope(second):
                return tf.identity(tf.nn.gelu(product, approximate=True))

        return gelu_of_dense

    if "Tanh" in operations_that_run(build("a", "b"), *arrays):
        pytest.skip("on this processor TensorFlow does not fuse GELU in any order of names")
    assert "Tanh" in operations_that_run(build("b", "a"), *arrays), delete("gelu_fusion")


def test_head_projection():
    function = tf.function(lambda x, kernel: keras.ops.einsum("abc,cde->abde", x, kernel))
    graph = function.get_concrete_function(tf.zeros((2, 3, 4)), tf.zeros((4, 5, 6))).graph
    types = {operation.type for operation in graph.get_operations()}
    assert "MatMul" not in types, delete("head_projection")


def test_lora(tmp_path):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.layers[0].enable_lora(2)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras").layers[0]
    assert not np.any(loaded.lora_kernel_a), delete("lora")


def test_optional_inputs():
    a = keras.Input((1,), name="a")
    b = keras.Input((1,), name="b", optional=True)
    model = keras.Model({"a": a, "b": b}, a + b)
    try:
        model({"a": np.ones((2, 1))})
    except Exception:  # of Keras, by release
        return
    pytest.fail(delete("optional_inputs"))


def test_recompute():
    x, dropout = tf.ones((64,)), keras.layers.Dropout(0.5, seed=1)
    drop = keras.remat(lambda x: dropout(x, training=True))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = drop(x)
    # The gradient of 1 is the mask, and so is the output.
    assert not np.array_equal(tape.gradient(y, x), y), delete("recompute")


def test_replica_seed_generator(two_replicas):
    with two_replicas.scope():
        generator = keras.random.SeedGenerator(1)
    draw = tf.function(lambda: keras.random.uniform((), seed=generator))
    numbers = two_replicas.experimental_local_results(two_replicas.run(draw))
    assert float(numbers[0]) == float(numbers[1]), delete("replica_seed_generator")


@pytest.mark.slow
def test_prefetched():
    # In a process of its own: one iterator of a hundred can wait for a minute.
    program = ROOT / "upstream" / "iterator-waits-for-autotuning" / "reproduce.py"
    assert subprocess.run([sys.executable, program]).returncode == 1, delete("prefetched")


def test_quick_deletion():
    full = []

    def callback(phase, info):
        if info["generation"] == 2:
            full.append(phase)

    layer = keras.layers.Dense(2)
    layer.build((1, 3))
    gc.callbacks.append(callback)
    layer.quantize("int8")
    gc.callbacks.remove(callback)
    assert full, delete("quick_deletion")


def test_sequential_map():
    parameters = inspect.signature(keras.ops.map).parameters
    assert set(parameters) == {"f", "xs"}, delete("sequential_map")


def test_sublayers():
    @keras.saving.register_keras_serializable("tests")
    class Composite(keras.layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.dense = keras.layers.Dense(4)

        def build(self, shape):
            self.dense.build(shape)

    layer = Composite()
    layer.build((None, 8))
    layer.dense.trainable = False
    layer.dense.quantize("int8")
    copy = Composite.from_config(layer.get_config())
    copy.build((None, 8))
    inputs = keras.Input((8,))
    model = keras.Model(inputs, keras.layers.Dense(4)(inputs), trainable=False)
    is_mended = (
        copy.dense.quantization_mode is not None,
        not copy.dense.trainable,
        not any(weight.trainable for weight in model.weights),
    )
    assert not all(is_mended), delete("sublayers")


def test_unknown_arguments():
    inputs = keras.Input((3,))
    outputs = keras.layers.Dense(1)(inputs)
    try:
        keras.Model(inputs=inputs, outputs=outputs, mem_len=384)
    except (TypeError, ValueError):
        pytest.fail(delete("unknown_arguments"))


def test_varying_outputs():
    if keras.__version__.startswith("3.12"):
        pytest.skip("Keras 3.12 does not check the number of outputs")

    class OneOrTwo(keras.layers.Layer):
        def call(self, a, b=None):
            return a if b is None else (a, b)

        def compute_output_spec(self, a, b=None):
            a = keras.KerasTensor(a.shape)
            return a if b is None else (a, keras.KerasTensor(b.shape))

    layer, a, b = OneOrTwo(), keras.Input((2,)), keras.Input((2,))
    layer(a)
    try:
        keras.Model([a, b], list(layer(a, b)))
    except ValueError:
        return
    pytest.fail(delete("varying_outputs"))


def test_compiled_function():
    for room in (keras, keras.ops, keras.backend):
        if hasattr(room, "jit") or hasattr(room, "compile"):
            pytest.fail(delete("compiled_function"))


def test_graph_function(caplog):
    class Doubles:
        def __init__(self):
            self.function = tf.function(self.double)

        def double(self, x):
            return 2 * x

    logger = tf.get_logger()
    logger.addHandler(caplog.handler)
    for _ in range(6):
        Doubles().function(tf.zeros(2))
    logger.removeHandler(caplog.handler)
    assert "retracing" in caplog.text, delete("graph_function")


# === And what each file says ===


@pytest.mark.parametrize("module", MODULES)
def test_every_file_says_what_upstream_does_and_has_a_test(module):
    assert f"test_{module}" in globals()
    text = inspect.getdoc(getattr(__import__(f"keras_xlnet.compat.{module}").compat, module))
    for heading in ("Upstream", "Seen in:", "Reproduction", "Delete this file when:"):
        assert heading in text
