"""Runs SavedModels with TensorFlow and tensorflow_text only. Importing keras_xlnet fails.

(TensorFlow imports Keras itself. The C program shows that a SavedModel does not need Keras.)

python reload_saved_model.py REQUESTS.npz OUTPUTS.npz DIRECTORY...

The names of the arrays in REQUESTS.npz are "directory.request|signature|input" with the numbers of
the directory and of the request, such as "0.3|serving_default|text".
"""

import collections
import sys

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401, registers its kernels


def main(requests_path, outputs_path, *directories):
    assert not any(name.split(".")[0] == "keras_xlnet" for name in sys.modules)
    sys.modules["keras_xlnet"] = None
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


if __name__ == "__main__":
    main(*sys.argv[1:])
