"""The C program of the examples, which uses the same loader as TF Serving and no Python."""

import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text

SOURCE = pathlib.Path(__file__).parents[2] / "examples" / "serving" / "load_saved_model.c"
KERNELS = pathlib.Path(tensorflow_text.__file__).parent / "python" / "ops"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    library, include = tf.sysconfig.get_lib(), tf.sysconfig.get_include()
    if not os.path.exists(f"{library}/libtensorflow_cc.so.2"):
        pytest.skip("this build of TensorFlow has no libtensorflow_cc.so.2")
    path = tmp_path_factory.mktemp("c") / "load_saved_model"
    command = ["gcc", "-Wall", "-Wextra", "-Werror", "-O1", "-o", str(path), str(SOURCE)]
    command += [f"-I{include}", f"-L{library}", f"-Wl,-rpath,{library}"]
    command += ["-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def names(spam):
    """Names of the input and output tensors of the signature."""
    from tensorflow.core.protobuf import saved_model_pb2

    content = (spam.directory / "saved_model.pb").read_bytes()
    (graph,) = saved_model_pb2.SavedModel.FromString(content).meta_graphs
    signature = graph.signature_def["serving_default"]
    infos = (signature.inputs["text"], signature.outputs["probabilities"])
    return [info.name for info in (*infos, signature.outputs["label"])]


def run(program, *arguments):
    # Overwrites freed memory, so that using it after that has an effect.
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "MALLOC_PERTURB_": "165"}
    return subprocess.run([program, *arguments], env=environment, capture_output=True)


def test_equals_python(program, names, spam):
    library = KERNELS / "_fast_sentencepiece_tokenizer.so"
    done = run(program, spam.directory, *names, library, "--", *spam.texts)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    assert [row[0] for row in rows] == spam.labels
    probabilities = np.array([row[1:] for row in rows], "float32")
    np.testing.assert_allclose(probabilities, spam.probabilities, atol=1e-6)


def test_error_messages(program, names, spam, tmp_path):
    library = KERNELS / "_fast_sentencepiece_tokenizer.so"
    assert b"usage" in run(program, spam.directory).stderr
    without_kernels = run(program, spam.directory, *names, "--", "a")
    assert b"Op type not registered" in without_kernels.stderr
    wrong_name = run(program, spam.directory, "text", *names[1:], library, "--", "a")
    assert b"load_saved_model: text: is not the name of a tensor" in wrong_name.stderr
    no_model = run(program, tmp_path, *names, library, "--", "a")
    assert b"Could not find SavedModel" in no_model.stderr
    codes = [d.returncode for d in (without_kernels, wrong_name, no_model)]
    assert codes == [1, 1, 1]
