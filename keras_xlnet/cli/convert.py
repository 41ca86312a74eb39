"""`xlnet convert`: writes a checkpoint in another format."""

import argparse

from keras_xlnet.arguments import check_choice
from keras_xlnet.checkpoints import FORMATS, load_checkpoint, load_tokenizer, save_checkpoint
from keras_xlnet.checkpoints.formats import FAMILIES, not_in_format
from keras_xlnet.checkpoints.tasks import get_task
from keras_xlnet.cli.arguments import arguments_of_format, format_of, task_of


def run(arguments: argparse.Namespace) -> int:
    """Converts a checkpoint. Returns the exit status."""
    source, to = arguments.source, check_choice("format", arguments.destination_format, FORMATS)
    format = format_of(arguments.source_format, source)
    task = task_of(arguments.task, source, format)
    overrides = {"activation": arguments.activation} if arguments.activation else {}
    overrides |= arguments_of_format(arguments, format)
    family = FAMILIES[format]
    if family.convert:
        get_task(task, family)
        conversion = family.convert(source, **overrides)
        print(conversion)
        model, tokenizer = conversion.backbone, conversion.tokenizer
    else:
        model = load_checkpoint(source, format, task, **overrides)
        tokenizer = load_tokenizer(source, format)
    save_checkpoint(model, arguments.destination, to, tokenizer=tokenizer)
    lost = not_in_format(model, to)
    if lost:
        print(f"not in the format {to}, left out: {', '.join(lost)}")
    print(
        f"{source} ({format}) -> {arguments.destination} ({to}): "
        f"{type(model).__name__}, {model.count_params():,} parameters, "
        f"{'with' if tokenizer else 'without'} a tokenizer"
    )
    if family.no_tokenizer:
        print(family.no_tokenizer)
    return 0
