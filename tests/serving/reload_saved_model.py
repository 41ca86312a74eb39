"""Runs SavedModels with TensorFlow and tensorflow_text only. Importing keras_xlnet fails.

(TensorFlow imports Keras itself. The C program shows that a SavedModel does not need Keras.)

python reload_saved_model.py COMMANDS.json REQUESTS.npz OUTPUTS.npz DIRECTORY...

COMMANDS.json has a list of command lines of saved_model_cli, the command-line tool of TensorFlow,
which run after the import of the kernels, as in docs/serving.md. What they print is printed.

The names of the arrays in REQUESTS.npz are "directory.request|signature|input" with the numbers of
the directory and of the request, such as "0.3|serving_default|text".
"""

import collections
import json
import pathlib
import sys

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401, registers its kernels


def main(commands_path, requests_path, outputs_path, *directories):
    assert not any(name.split(".")[0] == "keras_xlnet" for name in sys.modules)
    sys.modules["keras_xlnet"] = None
    run_commands(json.loads(pathlib.Path(commands_path).read_text(encoding="utf-8")))
    models = [tf.saved_model.load(directory) for directory in directories]
    requests = collections.defaultdict(dict)
    with np.load(requests_path) as arrays:
        for key, value in arrays.items():
            request, name = key.rsplit("|", 1)
            requests[request][name] = tf.constant(value)
    outputs = {}
    for request, inputs in requests.items():
        number, signature = request.split("|")
        results = models[int(number.split(".")[0])].signatures[signature](**inputs)
        for name, value in results.items():
            value = value.numpy()
            outputs[f"{request}|{name}"] = value.astype("S") if value.dtype == object else value
    np.savez(outputs_path, **outputs)


def run_commands(commands):
    from tensorflow.python.tools import saved_model_cli  # It defines flags.

    for sys.argv in commands:
        try:
            saved_model_cli.main()
        except SystemExit as end:
            assert not end.code


if __name__ == "__main__":
    main(*sys.argv[1:])
