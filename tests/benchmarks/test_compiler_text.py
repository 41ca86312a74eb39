import pytest

from benchmarks.tpu_compile.compiler_text import for_tpu, too_large


def test_booleans_are_unpacked_lowest_bit_first():
    text = 'dense<"0x0502"> : tensor<2x5xi1>, dense<"0x0502"> : tensor<2xi8>'
    bits = "01 00 01 00 00  00 00 00 00 01".replace(" ", "")
    assert for_tpu(text) == f'dense<"0x{bits}"> : tensor<2x5xi1>, dense<"0x0502"> : tensor<2xi8>'


def test_copies_into_variables():
    assert for_tpu("%2 = mhlo.copy %1 :") == "%2 = stablehlo.optimization_barrier %1 :"


def test_random_numbers_are_those_of_a_tpu():
    text = (
        "%state_1, %bits_2 = stablehlo.rng_bit_generator %7, algorithm =  PHILOX : "
        "(tensor<3xui64>) -> (tensor<3xui64>, tensor<4x8xui32>) loc(#loc3)"
    )
    old_state, key, new, type_of_new = for_tpu(text).split("\n")
    assert old_state.startswith("%state_1 = stablehlo.reshape %7 :")
    assert key.strip().startswith("%state_1_key = stablehlo.slice %7 [0:2] :")
    assert new.strip().startswith(
        "%state_1_next, %bits_2 = stablehlo.rng_bit_generator %state_1_key"
    )
    assert "DEFAULT" in new
    assert (
        type_of_new.strip() == "(tensor<2xui64>) -> (tensor<2xui64>, tensor<4x8xui32>) loc(#loc3)"
    )


@pytest.mark.parametrize(
    "message, gib",
    [
        ("Ran out of memory in memory space hbm. Used 20.03G of 15.75G hbm.", 20.03),
        (
            "the total memory required for HLO temporaries (512.5M) exceeds available HBM",
            512.5 / 1024,
        ),
    ],
    ids=["used", "temporaries"],
)
def test_too_large_is_no_error(message, gib):
    found = too_large(f"RESOURCE_EXHAUSTED: {message}")
    assert (found["gib"], found["fits"]) == (gib, False)


@pytest.mark.parametrize("message", ["INTERNAL: Used 3.0G", "RESOURCE_EXHAUSTED: of registers"])
def test_other_errors_are_errors(message):
    assert too_large(message) is None
