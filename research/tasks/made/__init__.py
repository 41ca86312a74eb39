"""Training examples that are made by rule, for the adapters of `train_adapters.py`."""


def choice(text, rng):
    """Returns one of the parts of a text that `|` separates. Line breaks do not matter.

    Args:
        text: String.
        rng: A `numpy.random.Generator`.
    """
    return str(rng.choice(text.replace("\n", "").split("|")))
