"""The command `xlnet`: its arguments. `keras_xlnet.cli` does what they say.

A module outside of the package, because importing the package imports Keras and TensorFlow, which
takes seconds: help, the version and errors in arguments do not need them.
"""

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import NoReturn

_DESCRIPTION = """Converts, inspects and compares checkpoints of XLNet and Transformer-XL.

A checkpoint is a directory in one of three formats: `original` (zihangdai/xlnet or
kimiyoung/transformer-xl, TensorFlow 1), `huggingface` (transformers, safetensors) or `preset`
(keras_xlnet). The prefix of an original checkpoint can be given instead. Four more formats are only
read: `keras_hub` (a directory of KerasHub's XLNetBackbone), `keras_xlnet_h5` (an .h5 file of the
old package keras-xlnet), `bert` and `roberta` (a BERT or RoBERTa of transformers, which becomes an
XLNet). The format of the source is detected. An embedder can also be written as
`sentence-transformers`: as `huggingface`, with the modules that sentence-transformers reads."""


def main() -> NoReturn:
    """Runs the command on the arguments of the process, and exits."""
    sys.exit(run(parse(sys.argv)))


def run(arguments: argparse.Namespace) -> int:
    """Runs a subcommand. Returns the exit status, 1 if a file or an argument is invalid."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        choose_backend()
        importlib.import_module("keras_xlnet")
        command = importlib.import_module(f"keras_xlnet.cli.{arguments.module}")
        return command.run(arguments)
    except (OSError, ValueError, ImportError) as error:
        print(f"xlnet: {' '.join(str(error).split())}", file=sys.stderr)
        return 1


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Returns the arguments of a command line, with the module of the subcommand as `module`."""
    parser = argparse.ArgumentParser(
        prog="xlnet",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = importlib.metadata.version("xlnet-keras")
    parser.add_argument("--version", action="version", version=f"xlnet-keras {version}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add_command in (
        _add_convert,
        _add_inspect,
        _add_predict,
        _add_serve,
        _add_verify,
        _add_presets,
    ):
        add_command(subparsers)
    arguments, others = parser.parse_known_args(argv[1:])
    if arguments.module == "predict":
        _set_paths(parser, arguments, others)
    if others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    return arguments


# === Start ===


def choose_backend() -> None:
    """Sets `KERAS_BACKEND` to an installed backend if the one that Keras would take is missing.

    Raises:
        ImportError: If none is installed.
    """
    if "KERAS_BACKEND" in os.environ:
        return
    home = pathlib.Path(os.environ.get("KERAS_HOME") or pathlib.Path("~/.keras").expanduser())
    try:
        chosen = json.loads((home / "keras.json").read_text(encoding="utf-8")).get("backend")
    except (OSError, ValueError, AttributeError):
        chosen = None
    backends = (chosen or "tensorflow", "tensorflow", "jax", "torch")
    found = next((name for name in backends if importlib.util.find_spec(name)), None)
    if found is None:
        raise ImportError(
            "Keras needs TensorFlow, JAX or PyTorch, and none of them is installed: "
            '`pip install ".[tensorflow]"` in a clone of keras_xlnet'
        )
    os.environ["KERAS_BACKEND"] = found


# === Commands ===


def _add_convert(subparsers):
    parser = _new_command(
        subparsers,
        "convert",
        "convert",
        "write a checkpoint in another format, with its tokenizer",
        "xlnet convert --to huggingface xlnet_cased_L-12_H-768_A-12 xlnet-hf",
        "xlnet convert --from huggingface --to preset --activation gelu_tanh xlnet-base-cased out",
        "xlnet convert --to original --task backbone runs/spam/preset xlnet-original",
        "xlnet convert --to preset --num_heads 12 old_weights.h5 out",
        "xlnet convert --from bert --to preset --sample_texts texts.txt all-MiniLM-L6-v2 out",
    )
    _add_source(parser, "source", "SRC", "--from", "source_format")
    parser.add_argument("destination", metavar="DST", help="directory to write")
    parser.add_argument(
        "--to",
        dest="destination_format",
        metavar="FORMAT",
        required=True,
        help="format to write: see `xlnet --help`",
    )
    _add_task(parser)
    _add_of_format(parser)
    parser.add_argument(
        "--activation",
        help="activation of a model from Hugging Face: gelu_tanh for weights that were converted "
        "from the original. Default: from its config.json",
    )
    parser.add_argument(
        "--sample_texts",
        help="file with a few hundred texts, one per line, to fit the positions of a BERT on. "
        "Default: texts of random words",
    )


def _add_inspect(subparsers):
    parser = _new_command(
        subparsers,
        "inspect",
        "inspect_model",
        "show what a checkpoint, a .keras file or an adapter contains (sizes, parameters, "
        "tokenizer, missing weights), or an export (classes, inputs and outputs, versions, "
        "checksums, training data)",
        "xlnet inspect xlnet_cased_L-12_H-768_A-12",
        "xlnet inspect runs/spam/model.keras",
        "xlnet inspect sentiment",
        "xlnet inspect models/spam/1",
        "xlnet inspect --json models/spam/1",
        "xlnet inspect models/spam_int8/model.onnx",
        "xlnet inspect --config_file xlnet_cased_L-12_H-768_A-12/xlnet_config.json "
        "run/model.ckpt-8000",
    )
    _add_source(parser, "directory", "DIR", "--format", "format")
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")
    _add_task(parser)
    _add_of_format(parser)


def _add_predict(subparsers):
    parser = _new_command(
        subparsers,
        "predict",
        "predict",
        "write what a model predicts for each text of a file: classes, numbers, names, answers",
        "xlnet predict runs/spam/model.keras messages.txt --output scores.csv",
        "xlnet predict my_preset reviews.csv --text_column body --output scores.csv",
        "xlnet predict --adapter sentiment reviews.csv",
        "xlnet predict runs/squad/model.keras faq.csv --text_column question --pair_column context",
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a .keras file, or a preset; with --adapter a preset, if not the adapter's",
    )
    parser.add_argument(
        "texts",
        metavar="TEXTS",
        nargs="?",
        help="file with a text a line, .csv or .tsv with a header, .jsonl, or - for the lines of "
        "stdin",
    )
    parser.add_argument(
        "--adapter", help="adapter that comes with the package, or its directory: see xlnet presets"
    )
    parser.add_argument("--output", default="-", help="CSV file to write [- for stdout]")
    parser.add_argument(
        "--text_column",
        default="text",
        help="column or key of the texts in a .csv, .tsv or .jsonl [text]",
    )
    parser.add_argument(
        "--pair_column",
        help="column or key of the second texts, for models of pairs; of the contexts of questions",
    )


def _set_paths(parser, arguments, others):
    """Sets MODEL and TEXTS. MODEL may be left out with --adapter."""
    # Before Python 3.13, a positional argument that may be left out is not found after a flag.
    if arguments.texts is None and others and not others[0].startswith("--"):
        arguments.texts = others.pop(0)
    if arguments.texts is None:
        if arguments.adapter is None:
            parser.error("the following arguments are required: TEXTS")
        arguments.model, arguments.texts = None, arguments.model


def _add_serve(subparsers):
    parser = _new_command(
        subparsers,
        "serve",
        "serve",
        "answer requests to SavedModels over REST, as TF Serving does, with a page to try them",
        "xlnet serve models",
        "xlnet serve models --port 8080 --max_body_bytes 65536 --timeout 10",
    )
    parser.add_argument(
        "directory", metavar="DIRECTORY", help="directory with SavedModels at NAME/VERSION"
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen at, 0.0.0.0 for all of this machine [127.0.0.1]",
    )
    parser.add_argument(
        "--port", type=_int_from(1), default=8501, help="port to listen at [%(default)s]"
    )
    parser.add_argument(
        "--batch_delay_ms",
        type=_float_from(0),
        default=2.0,
        help="milliseconds that a request waits for others [%(default)s]",
    )
    parser.add_argument(
        "--max_batch_rows",
        type=_int_from(1),
        default=32,
        help="rows of several requests that are read together [%(default)s]",
    )
    parser.add_argument(
        "--num_threads",
        type=_int_from(1),
        default=2,
        help="groups of requests that are read at the same time [%(default)s]",
    )
    parser.add_argument(
        "--max_rows", type=_int_from(1), default=1024, help="rows of a request [%(default)s]"
    )
    parser.add_argument(
        "--max_body_bytes",
        type=_int_from(1),
        default=4 * 2**20,
        help="bytes of the body of a request [%(default)s]",
    )
    parser.add_argument(
        "--timeout",
        type=_float_from(0.001),
        default=60.0,
        help="seconds for a body to arrive, and for its answer [%(default)s]",
    )
    parser.add_argument(
        "--poll_interval",
        type=_float_from(0.01),
        default=1.0,
        help="seconds between two looks for new versions [%(default)s]",
    )


def _int_from(low):
    return _number_from(int, low, "integer")


def _float_from(low):
    return _number_from(float, low, "number")


def _number_from(kind, low, description):
    def parse_number(text):
        try:
            value = kind(text)
        except ValueError:
            value = float("nan")
        if not low <= value < float("inf"):
            raise argparse.ArgumentTypeError(f"must be a {description}, {low} or above: {text!r}")
        return value

    return parse_number


def _add_verify(subparsers):
    parser = _new_command(
        subparsers,
        "verify",
        "verify",
        "run two checkpoints on the same random input, and print the worst difference",
        "xlnet verify xlnet_cased_L-12_H-768_A-12 xlnet-hf",
        "xlnet verify --task backbone --tolerance 1e-4 before after",
    )
    _add_source(parser, "first", "A", "--first_format", "first_format")
    _add_source(parser, "second", "B", "--second_format", "second_format")
    _add_task(parser)
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-5,
        help="largest difference that counts as equal [1e-5]",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the random input [0]")


def _add_presets(subparsers):
    _new_command(
        subparsers,
        "presets",
        "list_presets",
        "list the presets and adapters that come with the package, with sizes and figures",
        "xlnet presets",
    )


def _new_command(subparsers, name, module, help, *examples):
    examples = "\n  ".join(["examples:", *examples])
    parser = subparsers.add_parser(
        name,
        help=help,
        description=f"{help}\n\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(module=module)
    return parser


# === Arguments that several commands have ===


def _add_source(parser, name, metavar, flag, flag_name):
    """Adds a directory to read, and the flag for its format."""
    parser.add_argument(
        name,
        metavar=metavar,
        help="directory, .h5 file, prefix of an original checkpoint, or name of a preset that "
        "comes with the package",
    )
    parser.add_argument(
        flag,
        dest=flag_name,
        metavar="FORMAT",
        help=f"format of {metavar}: see `xlnet --help`. By default it is detected from the files",
    )


def _add_task(parser):
    parser.add_argument(
        "--task",
        default="auto",
        help="auto (detected from the files), backbone (no head), or a task of "
        "keras_xlnet.checkpoints.TASKS, such as text_classifier",
    )


def _add_of_format(parser):
    parser.add_argument(
        "--config_file",
        help="xlnet_config.json of an original checkpoint, if it is not next to it: the original's "
        "fine-tuning leaves it with the pretrained model",
    )
    parser.add_argument(
        "--task_name",
        help="value of the original's --task_name (or --cls_scope) in lower case, part of the "
        "names of a head. Only needed if a checkpoint has several heads",
    )
    parser.add_argument(
        "--num_heads",
        type=int,
        help="number of attention heads of a keras_xlnet_h5 file with only weights: their shapes "
        "do not tell it",
    )


if __name__ == "__main__":
    main()
