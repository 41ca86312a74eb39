"""Prints what each `fit` of a model costs: the first traces its step, later ones only compute.

    python -m benchmarks.later_fits

Three times an epoch of 64 short messages with `xlnet_mini_en`. Takes half a minute on two cores.
"""

import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags

from benchmarks.comparison.workloads import texts
from benchmarks.tables import markdown
from keras_xlnet.models import XLNetTextClassifier

FLAGS = flags.FLAGS


def main(_):
    model = XLNetTextClassifier.from_preset(FLAGS.preset, num_classes=2)
    messages = texts(FLAGS.num_texts)
    labels = [i % 2 for i in range(len(messages))]
    rows = []
    for number in range(1, FLAGS.num_fits + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(messages, labels, verbose=0)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        rows.append((str(number), f"{cpu:.2f}", f"{wall:.2f}"))
    print(markdown(("fit", "CPU s", "s"), rows))


if __name__ == "__main__":
    flags.DEFINE_string("preset", "xlnet_mini_en", "Which preset.")
    flags.DEFINE_integer("num_texts", 64, "Texts of a fit.", lower_bound=1)
    flags.DEFINE_integer("num_fits", 3, "How often.", lower_bound=1)
    app.run(main)
