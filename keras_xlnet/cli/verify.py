"""`xlnet verify`: whether two checkpoints compute the same."""

import keras
import numpy as np

from keras_xlnet.checkpoints import formats
from keras_xlnet.checkpoints.tasks import backbone_of
from keras_xlnet.cli.arguments import add_source, add_task, task_of

NAME = "verify"
HELP = "run two checkpoints on the same random input, and print the worst difference"
EXAMPLES = """examples:
  xlnet verify xlnet_cased_L-12_H-768_A-12 xlnet-hf
  xlnet verify --task backbone --tolerance 1e-4 before after"""

# An even batch, of which a model with `bidirectional_data` reads one half backwards.
_BATCH_SIZE, _LENGTH, _NUM_CHOICES, _NUM_PREDICTIONS = 4, 16, 3, 5


def add_arguments(parser):
    """Adds the arguments of the command to its parser."""
    add_source(parser, "first", "A", "--first_format", "first_format")
    add_source(parser, "second", "B", "--second_format", "second_format")
    add_task(parser)
    parser.add_argument(
        "--tolerance", type=float, default=1e-5, help="largest difference that is none [1e-5]"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the random input [0]")


def run(arguments):
    """Prints the differences; returns 1 if one is above the tolerance, otherwise 0."""
    paths = arguments.first, arguments.second
    chosen = arguments.first_format, arguments.second_format
    found = [a or formats.detect_format(b) for a, b in zip(chosen, paths, strict=True)]
    tasks = [task_of(arguments.task, *where) for where in zip(paths, found, strict=True)]
    # Where only one has a head, the encoders can still be compared.
    task = tasks[0] if tasks[0] == tasks[1] else None
    inputs, outputs, sizes = None, [], []
    for path, format in zip(paths, found, strict=True):
        model = formats.load(path, format, task)
        sizes.append(backbone_of(model).vocabulary_size)
        if sizes[-1] != sizes[0]:
            raise ValueError(f"{' and '.join(paths)} know other ids: {sizes[0]} and {sizes[1]}")
        inputs = inputs or random_inputs(model, task, arguments.seed)
        outputs.append(_outputs(model, inputs))
        del model  # Two large models need not be in memory at once.
    print(f"{' and '.join(paths)} as {task or 'backbone'}, random input of seed {arguments.seed}")
    worst = _compare(*outputs)
    verdict = "the same" if worst <= arguments.tolerance else "NOT the same"
    print(f"worst difference {worst:.2g}, tolerance {arguments.tolerance:.2g}: {verdict}")
    return 0 if worst <= arguments.tolerance else 1


def random_inputs(model, task, seed):
    """Inputs that reach every weight of a model: two segments, padding, an order.

    Args:
        model: A backbone or a task model.
        task: The name of its task, `None` for a backbone.
        seed: Int.
    """
    rng = np.random.default_rng(seed)
    backbone = backbone_of(model)
    is_choice = task == "multiple_choice"
    shape = (_BATCH_SIZE, _NUM_CHOICES, _LENGTH) if is_choice else (_BATCH_SIZE, _LENGTH)
    inputs = {
        "token_ids": rng.integers(0, backbone.vocabulary_size, shape).astype("int32"),
        "segment_ids": rng.integers(0, 2, shape).astype("int32"),
        "padding_mask": np.arange(_LENGTH) >= rng.integers(0, _LENGTH // 2, (*shape[:-1], 1)),
    }
    if task == "permutation_lm":
        inputs["permutation_mask"] = rng.random((_BATCH_SIZE, _LENGTH, _LENGTH)) < 0.5
        positions = rng.permuted(np.tile(np.arange(_LENGTH), (_BATCH_SIZE, 1)), axis=1)
        inputs["target_positions"] = positions[:, :_NUM_PREDICTIONS].astype("int32")
    return inputs


def _outputs(model, inputs):
    outputs = model(inputs)
    outputs = outputs if isinstance(outputs, dict) else {"output": outputs}
    return {name: keras.ops.convert_to_numpy(value) for name, value in outputs.items()}


def _compare(first, second):
    """Prints a line for each output that both have; returns the worst difference."""
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
