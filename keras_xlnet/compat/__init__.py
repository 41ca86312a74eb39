"""Code that exists only because Keras or TensorFlow lacks it, does it wrong or does it slowly.

Each module says in its first lines what upstream does, in which versions, how to reproduce it, and
what makes the module superfluous. `tests/compat` has a test for each that fails on that day.
"""

from keras_xlnet.compat.distributed_training import DistributedTraining
from keras_xlnet.compat.replica_seed_generator import ReplicaSeedGenerator

__all__ = ["DistributedTraining", "ReplicaSeedGenerator"]
