"""Training examples that are made by rule, for the adapters of `train_adapters.py`.

    cd research/tasks
    python -m made.names

prints examples; so do `made.sentiment`, `made.spam` and `made.duplicates`.
"""


def choice(text, rng):
    """Returns one of the parts of a text that `|` separates. Line breaks do not matter.

    Args:
        text: String.
        rng: A `numpy.random.Generator`.
    """
    return str(rng.choice(text.replace("\n", "").split("|")))
