"""Optimizers, schedules and callbacks for pretraining and fine-tuning with `model.fit`."""

from keras_xlnet.training.adam_weight_decay import AdamWeightDecay
from keras_xlnet.training.exact_backup_and_restore import ExactBackupAndRestore
from keras_xlnet.training.lamb_weight_decay import LambWeightDecay
from keras_xlnet.training.layout_map import layout_map
from keras_xlnet.training.make_strategy import make_strategy, worker_directory
from keras_xlnet.training.tokens_per_second import TokensPerSecond
from keras_xlnet.training.warmup_polynomial_decay import WarmupPolynomialDecay

__all__ = [
    "AdamWeightDecay",
    "ExactBackupAndRestore",
    "LambWeightDecay",
    "TokensPerSecond",
    "WarmupPolynomialDecay",
    "make_strategy",
    "worker_directory",
    "layout_map",
]
