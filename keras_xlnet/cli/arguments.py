"""Arguments that several commands have."""

from keras_xlnet.checkpoints import formats
from keras_xlnet.checkpoints.tasks import TASKS


def add_source(parser, name, metavar, flag, flag_name):
    """Adds a directory to read, and the flag that says which format it is in."""
    parser.add_argument(
        name, metavar=metavar, help="directory, or prefix of an original checkpoint"
    )
    parser.add_argument(
        flag,
        dest=flag_name,
        choices=formats.FORMATS,
        help=f"format of {metavar}. By default what its files look like",
    )


def add_task(parser):
    """Adds `--task`."""
    parser.add_argument(
        "--task",
        default="auto",
        choices=("auto", "backbone", *TASKS),
        metavar="TASK",
        help=f"auto (what the files were written for), backbone (no head), {', '.join(TASKS)}",
    )


def add_original(parser):
    """Adds what is said about a checkpoint of the original beside its place."""
    parser.add_argument(
        "--config_file",
        help="xlnet_config.json of an original checkpoint, if it is not beside it: the original's "
        "fine-tuning leaves it with the pretrained model",
    )
    parser.add_argument(
        "--task_name",
        help="the original's --task_name (or --cls_scope) in small letters, part of the names of a "
        "head. Only needed to read where there are several",
    )


def original_arguments(arguments, format):
    """What `add_original` was given, as arguments of `load_original`.

    Raises:
        ValueError: If it was given for another format.
    """
    given = {"config_file": arguments.config_file, "task_name": arguments.task_name}
    given = {key: value for key, value in given.items() if value is not None}
    if given and format != "original":
        raise ValueError(f"{sorted(given)} are for original checkpoints, not for {format}")
    return given


def task_of(choice, path, format):
    """The task, `None` for a backbone, that `--task` means for the files at `path`."""
    if choice == "backbone":
        return None
    return formats.detect_task(path, format) if choice == "auto" else choice
