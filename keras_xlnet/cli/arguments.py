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


def task_of(choice, path, format):
    """The task, `None` for a backbone, that `--task` means for the files at `path`."""
    if choice == "backbone":
        return None
    return formats.detect_task(path, format) if choice == "auto" else choice
