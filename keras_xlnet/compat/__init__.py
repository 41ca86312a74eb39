"""Code that exists only because Keras or TensorFlow lacks it, does it wrong or does it slowly.

Each module says in its first lines what upstream does, what it costs to be without the module,
which entry of docs/upstream.md reproduces it, and when the module can be deleted.
`tests/compat/test_upstream.py` fails on that day.
"""

from keras_xlnet.compat.replica_seed_generator import ReplicaSeedGenerator

__all__ = ["ReplicaSeedGenerator"]
