import contextlib
import os
import pathlib
import shutil
import tempfile


@contextlib.contextmanager
def replace_files(directory, names):
    """Writes files that belong together, so that a directory never holds some of each version.

    Yields a new folder to write into. If all goes well, its files take the place of those with
    these names in `directory`; other files there stay. The first of `names` is what makes the
    directory complete: it is removed first and put in place last.

    Args:
        directory: Path of the directory, which is made if it does not exist.
        names: All names of files that may be in the folder. Those that are not there in the end
            are removed from `directory`.

    Yields:
        A `pathlib.Path`.
    """
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    # Inside, so that it is on the same disk.
    folder = pathlib.Path(tempfile.mkdtemp(prefix=".saving-", dir=directory))
    try:
        yield folder
        (directory / names[0]).unlink(missing_ok=True)
        for name in reversed(names):
            if (folder / name).exists():
                (directory / name).parent.mkdir(exist_ok=True)
                os.replace(folder / name, directory / name)
            else:
                (directory / name).unlink(missing_ok=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
