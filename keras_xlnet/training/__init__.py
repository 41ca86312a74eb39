"""Optimizers, schedules, callbacks and distribution for `model.fit`."""

from keras_xlnet.training.adam_weight_decay import AdamWeightDecay
from keras_xlnet.training.average_checkpoints import load_average
from keras_xlnet.training.calibration import Calibration
from keras_xlnet.training.checkpoint_evaluation import evaluate_checkpoints
from keras_xlnet.training.cost import TrainingCost, training_cost
from keras_xlnet.training.distributed_training import DistributedTraining
from keras_xlnet.training.dtypes import fastest_dtype
from keras_xlnet.training.exact_backup_and_restore import ExactBackupAndRestore
from keras_xlnet.training.fine_tuning_adamw import FineTuningAdamW
from keras_xlnet.training.gradual_unfreezing import GradualUnfreezing
from keras_xlnet.training.lamb_weight_decay import LambWeightDecay
from keras_xlnet.training.model_parallel import layout_map
from keras_xlnet.training.sklearn_text_classifier import SKLearnTextClassifier
from keras_xlnet.training.strategies import STRATEGIES, make_strategy, worker_directory
from keras_xlnet.training.tokens_per_second import TokensPerSecond
from keras_xlnet.training.warmup_polynomial_decay import WarmupPolynomialDecay

__all__ = [
    "STRATEGIES",
    "AdamWeightDecay",
    "Calibration",
    "DistributedTraining",
    "ExactBackupAndRestore",
    "FineTuningAdamW",
    "GradualUnfreezing",
    "LambWeightDecay",
    "SKLearnTextClassifier",
    "TokensPerSecond",
    "TrainingCost",
    "WarmupPolynomialDecay",
    "evaluate_checkpoints",
    "fastest_dtype",
    "layout_map",
    "load_average",
    "make_strategy",
    "training_cost",
    "worker_directory",
]
