"""`xlnet convert`: writes a checkpoint in another format."""

import argparse

from keras_xlnet.checkpoints import (
    detect_format,
    load_checkpoint,
    load_tokenizer,
    save_checkpoint,
)
from keras_xlnet.checkpoints.formats import not_in_format
from keras_xlnet.cli.arguments import (
    arguments_of_format,
    task_of,
)


def run(arguments: argparse.Namespace) -> int:
    """Converts a checkpoint. Returns the exit status."""
    source, format = arguments.source, arguments.source_format
    format = format or detect_format(source)
    task = task_of(arguments.task, source, format)
    overrides = {"activation": arguments.activation} if arguments.activation else {}
    overrides |= arguments_of_format(arguments, format)
    model = load_checkpoint(source, format, task, **overrides)
    tokenizer = load_tokenizer(source, format)
    save_checkpoint(model, arguments.destination, arguments.destination_format, tokenizer=tokenizer)
    lost = not_in_format(model, arguments.destination_format)
    if lost:
        print(f"not in the format {arguments.destination_format}, left out: {', '.join(lost)}")
    print(
        f"{source} ({format}) -> {arguments.destination} ({arguments.destination_format}): "
        f"{type(model).__name__}, {model.count_params():,} parameters, "
        f"{'with' if tokenizer else 'without'} a tokenizer"
    )
    return 0
