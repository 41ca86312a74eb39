"""Whether a tokenizer and a model belong together."""


def check_vocabulary(tokenizer, model, owner="model"):
    """Raises `ValueError` if a tokenizer makes ids that a model does not know.

    Args:
        tokenizer: An `XLNetTokenizer`.
        model: A backbone, or a model that has one.
        owner: What an error calls the model.
    """
    size = tokenizer.vocabulary_size()
    known = getattr(model, "backbone", model).vocabulary_size
    if size > known:
        raise ValueError(
            f"The tokenizer has {size} ids, but the {owner} knows only vocabulary_size={known}"
        )
