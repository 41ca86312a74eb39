"""Tokenizers of models: where they come from, and whether they belong together."""

from types import ModuleType

import keras


def import_text() -> ModuleType:
    """Returns `keras_xlnet.text`, which the models do not depend on.

    It registers tokenizers and preprocessors with Keras. On backends other than TensorFlow it is
    imported when it is needed first.

    Raises:
        ImportError: If a package that it needs is not installed.
    """
    import keras_xlnet

    return keras_xlnet.text


def check_vocabulary(
    tokenizer: keras.layers.Layer, model: keras.Model, owner: str = "model"
) -> None:
    """Raises `ValueError` if a tokenizer has more ids than a model, or another vocabulary.

    Args:
        tokenizer: An `XLNetTokenizer`.
        model: A backbone, or a model that has one.
        owner: What the error calls the model.
    """
    size = tokenizer.vocabulary_size()
    backbone = getattr(model, "backbone", model)
    expected = backbone.vocabulary_size
    if size > expected:
        raise ValueError(
            f"The tokenizer has {size} ids, but the {owner} knows only vocabulary_size={expected}"
        )
    recorded = recorded_vocabulary(model)
    if recorded not in (None, tokenizer.vocabulary_sha256):
        raise ValueError(
            f"The tokenizer is of another model: the sha256 of its vocabulary is "
            f"{tokenizer.vocabulary_sha256}, and the {owner} was loaded with {recorded}. To train "
            "it for another vocabulary, set `backbone.vocabulary_sha256 = None`"
        )


def recorded_vocabulary(model: keras.Model) -> str | None:
    """Returns the SHA-256 of the vocabulary that a model was loaded with, `None` if unknown."""
    return getattr(getattr(model, "backbone", model), "vocabulary_sha256", None)
