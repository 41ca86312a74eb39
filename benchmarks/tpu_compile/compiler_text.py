"""Translates the input and output text of the TPU compiler, without JAX."""

import math
import re

# TensorFlow's `auto_select` is Philox on the CPU that wrote the text. On a TPU it is the compiler's
# own generator (DefaultRngAlgForDeviceType in TensorFlow's tf2xla), whose state is shorter.
PHILOX = re.compile(
    r"(%\w+), (%\w+) = stablehlo.rng_bit_generator (%\w+), algorithm = +PHILOX : "
    r"\(tensor<3xui64>\) -> \(tensor<3xui64>, (tensor<\w+>)\)"
)
DEFAULT = r"""\1 = stablehlo.reshape \3 : (tensor<3xui64>) -> tensor<3xui64>
    \1_key = stablehlo.slice \3 [0:2] : (tensor<3xui64>) -> tensor<2xui64>
    \1_next, \2 = stablehlo.rng_bit_generator \1_key, algorithm = DEFAULT :
      (tensor<2xui64>) -> (tensor<2xui64>, \4)"""
BITS = re.compile(r'dense<"0x(\w+)"> : tensor<([\dx]+)xi1>')


def for_tpu(text):
    """Returns `text` as this release of StableHLO reads it, with random numbers as on a TPU."""
    # TensorFlow copies the values of variables, which is not a StableHLO operation.
    text = text.replace("mhlo.copy", "stablehlo.optimization_barrier")
    # Random numbers are stateless here: the generator's new state is not read.
    return BITS.sub(_bytes_of_bits, PHILOX.sub(DEFAULT, text))


def _bytes_of_bits(match):
    """Unpacks booleans: TensorFlow's MLIR has 8 per byte, JAX's has one."""
    size = math.prod(int(axis) for axis in match[2].split("x"))
    bits = (byte >> i & 1 for byte in bytes.fromhex(match[1]) for i in range(8))
    return f'dense<"0x{bytes(bits)[:size].hex().upper()}"> : tensor<{match[2]}xi1>'


def too_large(message):
    """Returns the minimum memory of a program that is too large, or `None` for other errors."""
    found = re.search(r"(?:Used |HLO temporaries \()([\d.]+)([KMGT])", message)
    if "RESOURCE_EXHAUSTED" not in message or found is None:
        return None
    unit = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}[found[2]]
    return {"gib": float(found[1]) * unit / 2**30, "fits": False, "message": message[:500]}
