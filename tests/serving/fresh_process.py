"""Runs SavedModels in a process that cannot import keras_xlnet."""

import json
import pathlib
import subprocess
import sys

import numpy as np

_RELOAD = pathlib.Path(__file__).with_name("reload_saved_model.py")


def run_in_a_fresh_process(requests, exported, directory, commands=()):
    """Returns the outputs of requests, and writes what the process printed to `printed.txt`.

    Args:
        requests: Dict of inputs. The keys are tuples whose first values are the name of a model and
            of a signature.
        exported: Dict of directories.
        directory: `pathlib.Path` of a directory for the files of the process.
        commands: Command lines of saved_model_cli.

    Returns:
        A dict of dicts of arrays, with the keys of `requests`.
    """
    names = list(exported)
    keys = {key: f"{names.index(key[0])}.{i}|{key[1]}" for i, key in enumerate(requests)}
    arrays = {
        f"{keys[key]}|{name}": _as_array(value)
        for key, inputs in requests.items()
        for name, value in inputs.items()
    }
    np.savez(directory / "requests.npz", **arrays)
    (directory / "commands.json").write_text(json.dumps(list(commands)))
    arguments = ["commands.json", "requests.npz", "outputs.npz", *map(str, exported.values())]
    done = subprocess.run(
        [sys.executable, str(_RELOAD), *arguments], cwd=directory, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-4000:]
    (directory / "printed.txt").write_text(done.stdout)
    with np.load(directory / "outputs.npz") as outputs:
        return {
            key: {k.rpartition("|")[2]: v for k, v in outputs.items() if k.startswith(start + "|")}
            for key, start in keys.items()
        }


def _as_array(value):
    """An array that can be saved without pickle."""
    values = np.array(value, object)
    if not values.size or not isinstance(values.flat[0], (str, bytes)):
        return np.asarray(value)
    encoded = [text.encode() if isinstance(text, str) else text for text in values.flat]
    return np.array(encoded, "S").reshape(values.shape)
