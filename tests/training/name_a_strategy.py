"""Makes a strategy in a process of its own, and prints its name or the error.

python name_a_strategy.py ARGUMENTS TF_CONFIG

Both are JSON. TF_CONFIG is set as the environment variable, unless it is `null`.
"""

import json
import os
import sys

from keras_xlnet.training import make_strategy, worker_directory

if __name__ == "__main__":
    arguments, tf_config = sys.argv[1:]
    if json.loads(tf_config) is not None:
        os.environ["TF_CONFIG"] = tf_config
    try:
        strategy = make_strategy(**json.loads(arguments))
        directory = worker_directory(strategy, "d")
        print(type(strategy).__name__, strategy.num_replicas_in_sync, directory)
    except (ValueError, RuntimeError) as error:
        print(type(error).__name__, error)
