"""Arguments that several commands have."""

from keras_xlnet.checkpoints import FORMATS, TASKS, detect_task


def add_source(parser, name, metavar, flag, flag_name):
    """Adds a directory to read, and the flag for its format."""
    parser.add_argument(
        name,
        metavar=metavar,
        help="directory, prefix of an original checkpoint, or name of a preset that comes with the "
        "package",
    )
    parser.add_argument(
        flag,
        dest=flag_name,
        choices=FORMATS,
        help=f"format of {metavar}. By default it is detected from the files",
    )


def add_task(parser):
    """Adds `--task`."""
    parser.add_argument(
        "--task",
        default="auto",
        choices=("auto", "backbone", *TASKS),
        metavar="TASK",
        help=f"auto (detected from the files), backbone (no head), {', '.join(TASKS)}",
    )


def add_original(parser):
    """Adds the flags for original checkpoints."""
    parser.add_argument(
        "--config_file",
        help="xlnet_config.json of an original checkpoint, if it is not beside it: the original's "
        "fine-tuning leaves it with the pretrained model",
    )
    parser.add_argument(
        "--task_name",
        help="value of the original's --task_name (or --cls_scope) in lower case, part of the "
        "names of a head. Only needed if a checkpoint has several heads",
    )


def original_arguments(arguments, format):
    """Returns the values of the flags of `add_original`, as arguments of `load_original`.

    Raises:
        ValueError: If there are any, and the format is another one.
    """
    given = {"config_file": arguments.config_file, "task_name": arguments.task_name}
    given = {key: value for key, value in given.items() if value is not None}
    if given and format != "original":
        raise ValueError(f"{sorted(given)} are for original checkpoints, not for {format}")
    return given


def task_of(choice, path, format):
    """Returns the task that a value of `--task` means for a path, `None` for a backbone."""
    if choice == "backbone":
        return None
    return detect_task(path, format) if choice == "auto" else choice
