"""`xlnet verify`: compares the outputs of two checkpoints."""

import argparse

import keras
import numpy as np

from keras_xlnet.checkpoints import load_checkpoint
from keras_xlnet.cli.arguments import format_of, task_of
from keras_xlnet.models.base_model import backbone_of

# An even batch: a model with `bidirectional_data` reads the second half backwards.
_BATCH_SIZE, _LENGTH = 4, 16


def run(arguments: argparse.Namespace) -> int:
    """Prints the differences. Returns 1 if one is above the tolerance, otherwise 0."""
    paths = arguments.first, arguments.second
    chosen = arguments.first_format, arguments.second_format
    found = [format_of(*where) for where in zip(chosen, paths, strict=True)]
    tasks = [task_of(arguments.task, *where) for where in zip(paths, found, strict=True)]
    # If the heads differ, the encoders are compared.
    task = tasks[0] if tasks[0] == tasks[1] else None
    inputs, outputs, sizes = None, [], []
    for path, format in zip(paths, found, strict=True):
        model = load_checkpoint(path, format, task)
        sizes.append(backbone_of(model).vocabulary_size)
        if sizes[-1] != sizes[0]:
            raise ValueError(
                f"{' and '.join(paths)} have different vocabularies: {sizes[0]} and {sizes[1]} ids"
            )
        inputs = inputs or random_inputs(model, arguments.seed)
        outputs.append(_outputs(model, inputs))
        del model  # So that two large models are not in memory at once.
    print(f"{' and '.join(paths)} as {task or 'backbone'}, random input of seed {arguments.seed}")
    worst = _compare(*outputs)
    verdict = "the same" if worst <= arguments.tolerance else "NOT the same"
    print(f"worst difference {worst:.2g}, tolerance {arguments.tolerance:.2g}: {verdict}")
    return 0 if worst <= arguments.tolerance else 1


def random_inputs(model: keras.Model, seed: int) -> dict[str, np.ndarray]:
    """Returns random inputs for a model, according to the shapes and dtypes of `model.input`.

    Memory is left out, because an original checkpoint does not state its length: without an input
    for it, a model has none.

    Args:
        model: A backbone or a task model.
        seed: Int.
    """
    rng = np.random.default_rng(seed)
    return {
        key: _random_input(rng, key, spec, backbone_of(model).vocabulary_size)
        for key, spec in model.input.items()
        if "memory" not in key
    }


def _random_input(rng, key, spec, vocabulary_size):
    batch_size, *shape = spec.shape
    shape = (batch_size or _BATCH_SIZE, *(size or _LENGTH for size in shape))
    if spec.dtype == "bool":
        return rng.random(shape) < 0.5
    if key == "token_ids":
        return rng.integers(0, vocabulary_size, shape).astype(spec.dtype)
    if "int" in spec.dtype:  # Segments or positions.
        return rng.integers(0, _LENGTH, shape).astype(spec.dtype)
    return rng.normal(size=shape).astype(spec.dtype)


def _outputs(model, inputs):
    outputs = model(inputs)
    outputs = outputs if isinstance(outputs, dict) else {"output": outputs}
    return {name: keras.ops.convert_to_numpy(value) for name, value in outputs.items()}


def _compare(first, second):
    """Prints a line for each output. Returns the worst difference of those that both have."""
    worst = 0.0
    for name in sorted(set(first) | set(second)):
        a, b = first.get(name), second.get(name)
        if a is None or b is None:
            print(f"  {name:24}only one of them has it")
        elif a.shape != b.shape:
            print(f"  {name:24}shapes {a.shape} and {b.shape}")
            worst = np.inf
        else:
            a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
            difference = float(np.max(np.abs(a - b), initial=0))
            print(f"  {name:24}{difference:.2g} (largest value {np.max(np.abs(a), initial=0):.3g})")
            worst = max(worst, difference) if difference == difference else np.inf
    return worst
