"""What TensorFlow writes of a train step is what a compiler for TPUs takes. No JAX is needed."""

import re

import pytest

from benchmarks.tpu_compile.write_stablehlo import (
    classifier,
    permutation_lm,
    stablehlo_of_train_step,
)

LENGTH, BATCH = 16, 6
TINY = {"num_layers": 1, "num_heads": 2, "head_dim": 4, "hidden_dim": 8, "intermediate_dim": 12}
DTYPES = {"float32": "f32", "bfloat16": "bf16", "int32": "i32", "int64": "i64", "bool": "i1"}


@pytest.fixture(scope="module", params=[classifier, permutation_lm], ids=lambda make: make.__name__)
def step(request):
    """A model, the text of its train step, and the types of the arguments, as `6x16xi32`."""
    model, data = request.param(
        LENGTH, BATCH, "xlnet_tiny", vocabulary_size=40, dtype="mixed_bfloat16", **TINY
    )
    text = stablehlo_of_train_step(model, data)
    signature = re.search(r"func @main\((.*?)\) ->", text)[1]
    return model, text, re.findall(r"tensor<(\w+)>", signature)


def type_of(variable):
    return "x".join([*map(str, variable.shape), DTYPES[variable.dtype]])


def test_every_variable_is_an_argument(step):
    model, _, arguments = step
    left = list(arguments)
    for variable in [*model.trainable_variables, *model.optimizer.variables]:
        assert type_of(variable) in left, variable.path
        left.remove(type_of(variable))
    for variable in model.metrics_variables:
        assert type_of(variable) in left, variable.path
        left.remove(type_of(variable))


def test_batch_and_length_are_those_asked_for(step):
    model, _, arguments = step
    assert f"{BATCH}x{LENGTH}xi32" in arguments
    if "permutation_mask" in model.input:
        assert f"{BATCH}x{LENGTH}x{LENGTH}xi1" in arguments
        assert arguments.count(f"{BATCH}x{3 * LENGTH // 4}x{TINY['hidden_dim']}xbf16") == 1


def test_what_a_tpu_cannot_do_is_not_in_it(step):
    _, text, _ = step
    assert not re.findall(r"custom_call.*|tensor<[^>]*\?[^>]*>|tensor<(?:\d+x)*f64>", text)


def test_only_operations_that_the_compiler_for_tpus_reads(step):
    _, text, _ = step
    operations = set(re.findall(r"= ((?!stablehlo)\w+\.\w+)", text))
    # compile_for_tpu.py translates it.
    assert operations <= {"mhlo.copy", "func.call"}


def test_random_numbers_are_written_as_compile_for_tpu_expects(step):
    _, text, _ = step
    for line in text.splitlines():
        if "rng_bit_generator" in line:
            assert re.search(r"PHILOX : \(tensor<3xui64>\) -> \(tensor<3xui64>, tensor", line), line
