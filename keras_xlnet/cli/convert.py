"""`xlnet convert`: writes a checkpoint in another format."""

import argparse
import pathlib

from keras_xlnet.checkpoints import (
    convert_bert,
    detect_format,
    load_checkpoint,
    load_tokenizer,
    save_checkpoint,
)
from keras_xlnet.checkpoints.formats import not_in_format
from keras_xlnet.checkpoints.tasks import get_task
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
    if format == "bert":
        model, tokenizer = _convert_bert(source, task, **overrides)
    else:
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


def _convert_bert(source, task, sample_texts=None, **overrides):
    """Prints how close to the BERT its XLNet is. Returns the backbone and the tokenizer."""
    get_task(task, "bert")
    if sample_texts is not None:
        lines = pathlib.Path(sample_texts).read_text(encoding="utf-8").splitlines()
        sample_texts = [line for line in lines if line.strip()]
    conversion = convert_bert(source, sample_texts, **overrides)
    print(conversion)
    return conversion.backbone, conversion.tokenizer
