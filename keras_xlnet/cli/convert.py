"""`xlnet convert`: writes a checkpoint in another format."""

from keras_xlnet.checkpoints import (
    FORMATS,
    detect_format,
    load_checkpoint,
    load_tokenizer,
    save_checkpoint,
)
from keras_xlnet.cli.arguments import (
    add_original,
    add_source,
    add_task,
    original_arguments,
    task_of,
)

NAME = "convert"
HELP = "write a checkpoint in another format, with its tokenizer"
EXAMPLES = """examples:
  xlnet convert --to huggingface xlnet_cased_L-12_H-768_A-12 xlnet-hf
  xlnet convert --from huggingface --to preset --activation gelu_tanh xlnet-base-cased xlnet-preset
  xlnet convert --to original --task backbone runs/spam/preset xlnet-original"""


def add_arguments(parser):
    """Adds the arguments of the command to its parser."""
    add_source(parser, "source", "SRC", "--from", "source_format")
    parser.add_argument("destination", metavar="DST", help="directory to write")
    parser.add_argument(
        "--to",
        dest="destination_format",
        choices=FORMATS,
        required=True,
        help="format to write",
    )
    add_task(parser)
    add_original(parser)
    parser.add_argument(
        "--activation",
        help="activation of a model from Hugging Face: gelu_tanh for weights that were converted "
        "from the original. By default that of its config.json",
    )


def run(arguments):
    """Converts a checkpoint. Returns the exit status."""
    source, format = arguments.source, arguments.source_format
    format = format or detect_format(source)
    task = task_of(arguments.task, source, format)
    overrides = {"activation": arguments.activation} if arguments.activation else {}
    overrides |= original_arguments(arguments, format)
    model = load_checkpoint(source, format, task, **overrides)
    tokenizer = load_tokenizer(source, format)
    save_checkpoint(model, arguments.destination, arguments.destination_format, tokenizer=tokenizer)
    print(
        f"{source} ({format}) -> {arguments.destination} ({arguments.destination_format}): "
        f"{type(model).__name__}, {model.count_params():,} parameters, "
        f"{'with' if tokenizer else 'without'} a tokenizer"
    )
    return 0
