"""`xlnet convert`: writes a checkpoint in another format."""

import argparse

from keras_xlnet.arguments import check_choice
from keras_xlnet.checkpoints import FORMATS, load_checkpoint, load_tokenizer, save_checkpoint
from keras_xlnet.checkpoints.formats import FAMILIES, not_in_format
from keras_xlnet.checkpoints.tasks import get_task
from keras_xlnet.cli.arguments import arguments_of_format, format_of, task_of

_EMBEDDERS = "sentence-transformers"


def run(arguments: argparse.Namespace) -> int:
    """Converts a checkpoint. Returns the exit status."""
    to = check_choice("format", arguments.destination_format, (*FORMATS, _EMBEDDERS))
    source, name = arguments.source, to
    if to == _EMBEDDERS:
        to = "huggingface"  # Of an embedder, it writes a directory of sentence-transformers.
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
    if name == _EMBEDDERS and task != "text_embedder":
        raise ValueError(
            f"--to {_EMBEDDERS} needs an XLNetTextEmbedder. Received: {source}, which holds a "
            f"{type(model).__name__}"
        )
    save_checkpoint(model, arguments.destination, to, tokenizer=tokenizer)
    lost = not_in_format(model, to)
    if lost:
        print(f"not in the format {name}, left out: {', '.join(lost)}")
    print(
        f"{source} ({format}) -> {arguments.destination} ({name}): "
        f"{type(model).__name__}, {model.count_params():,} parameters, "
        f"{'with' if tokenizer else 'without'} a tokenizer"
    )
    if family.no_tokenizer:
        print(family.no_tokenizer)
    return 0
