"""Checks that a tokenizer and a model belong together."""


def check_vocabulary(tokenizer, model, owner="model"):
    """Raises `ValueError` if a tokenizer has more ids than a model.

    Args:
        tokenizer: An `XLNetTokenizer`.
        model: A backbone, or a model that has one.
        owner: What the error calls the model.
    """
    size = tokenizer.vocabulary_size()
    expected = getattr(model, "backbone", model).vocabulary_size
    if size > expected:
        raise ValueError(
            f"The tokenizer has {size} ids, but the {owner} knows only vocabulary_size={expected}"
        )
