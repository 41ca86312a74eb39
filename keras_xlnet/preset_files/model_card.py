"""Model cards: the `README.md` of a preset, which says what it is and how it is used."""

import json
from typing import Any

import keras

KEYS = ("description", "data", "metrics", "license")
_KINDS = {"description": str, "data": str, "metrics": dict, "license": str}
_SIZES = {
    "num_layers": "layers",
    "hidden_dim": "width",
    "num_heads": "heads",
    "vocabulary_size": "tokens of the vocabulary",
    "memory_length": "length of the memory",
}
_CARD = """\
---
library_name: keras
tags:
- keras_xlnet
{license}---
# {name}

{description}

## How to use it

```python
from keras_xlnet.models import {class_name}

model = {class_name}.from_preset("{name}")
```

Give the path of this folder, or `"hf://owner/{name}"` on the Hugging Face Hub.{others}

## Sizes

| | |
| --- | --- |
{sizes}
"""
_OTHERS = """ Other models of `keras_xlnet` take
the encoder out of it: `XLNetTextClassifier.from_preset("{name}", num_classes=2)`."""
_ABOUT = {
    "XLNetBackbone": "The encoder of an XLNet. It has no head: a language model that it was taken "
    "out of keeps its own in its own preset.",
    "XLNetPermutationLM": "An XLNet with the head of a permutation language model.",
    "TransformerXLLanguageModel": "A Transformer-XL language model.",
}


def check_card(card: Any) -> None:
    """Raises `ValueError` if what a card says has another key or type than it can have.

    Args:
        card: Dict with some of `description`, `data`, `license` (strings) and `metrics` (a dict
            from names to numbers or strings), or `None`.
    """
    if card is None:
        return
    if not isinstance(card, dict):
        raise ValueError(f"`card` must be a dict with some of {KEYS}. Received: card={card!r}")
    for key, value in card.items():
        kind = _KINDS.get(key)
        if kind is None:
            raise ValueError(f"`card` must be a dict with some of {KEYS}. Received the key {key!r}")
        if not isinstance(value, kind):
            raise ValueError(
                f"`card` must have a {kind.__name__} for {key!r}. Received: {key}={value!r}"
            )


def format_card(model: keras.Model, name: str, card: dict[str, Any] | None = None) -> str:
    """Returns the text of a model card.

    Args:
        model: A Keras model; its `backbone`, or itself, has the sizes.
        name: String, the name of the preset.
        card: As in `check_card`.
    """
    card = card or {}
    class_name = type(model).__name__
    license_line = f"license: {json.dumps(card['license'])}\n" if "license" in card else ""
    text = _CARD.format(
        name=name,
        class_name=class_name,
        license=license_line,
        others=_OTHERS.format(name=name) if class_name.startswith("XLNet") else "",
        description=card.get("description") or _ABOUT.get(class_name, f"A {class_name}."),
        sizes="\n".join(f"| {key} | {value} |" for key, value in _sizes(model)),
    )
    if "data" in card:
        text += f"\n## Data\n\n{card['data']}\n"
    if card.get("metrics"):
        rows = "\n".join(f"| {key} | {value} |" for key, value in card["metrics"].items())
        text += f"\n## Metrics\n\n| | |\n| --- | --- |\n{rows}\n"
    return text


def _sizes(model):
    yield "weights", f"{model.count_params():,}"
    backbone = getattr(model, "backbone", model)
    for key, title in _SIZES.items():
        value = getattr(backbone, key, None)
        if value is not None:
            yield title, f"{value:,}"
    if getattr(model, "class_names", None):
        yield "classes", ", ".join(map(str, model.class_names))
