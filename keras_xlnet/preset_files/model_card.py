"""Model cards: the `README.md` of a preset or adapter, with its description and use."""

import json
import re
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
{front_matter}---
# {name}

{description}

## How to use it

```python
from keras_xlnet.models import {class_name}

model = {class_name}.from_preset({arguments})
```

{use}

## Sizes

| | |
| --- | --- |
{sizes}
"""
_USE = 'Give the path of this folder, or `"hf://owner/{name}"` on the Hugging Face Hub.'
_USE_OF_ADAPTER = """\
Give the path of this folder, or the name of an adapter that comes with the package. `base` is the
preset that the adapter was trained on: its backbone has to have the same weights."""
_OTHERS = """ Other models of `keras_xlnet` take
the encoder out of it: `XLNetTextClassifier.from_preset("{name}", num_classes=2)`."""
_ABOUT = {
    "XLNetBackbone": "The encoder of an XLNet. It has no head: if it came from a language model, "
    "the head is in that model's preset.",
    "XLNetPermutationLM": "An XLNet with the head of a permutation language model.",
    "TransformerXLLanguageModel": "A Transformer-XL language model.",
}


def check_card(card: Any) -> None:
    """Raises `ValueError` if a card has an unknown key or a value of a wrong type.

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
    class_name = type(model).__name__
    use = _USE + _OTHERS if class_name.startswith("XLNet") else _USE
    about = _ABOUT.get(class_name, f"A {class_name}.")
    return _format(model, name, card, f'"{name}"', use.format(name=name), about, _sizes(model))


def format_adapter_card(
    model: keras.Model, name: str, sizes: dict[str, Any], base: str | None, card: Any = None
) -> str:
    """Returns the text of the card of an adapter.

    Args:
        model: The model of the adapter.
        name: String, the name of the adapter.
        sizes: Dict, the rows of the table of sizes.
        base: Name of the preset that the adapter belongs to, if it comes with the package.
        card: As in `check_card`.
    """
    arguments = f'adapter="{name}"' if base else f'base, adapter="{name}"'
    about = f"LoRA and the head of a {type(model).__name__}."
    rows = [("base", base or "not of the package"), *sizes.items()]
    return _format(model, name, card, arguments, _USE_OF_ADAPTER, about, rows, "- lora\n")


def _format(model, name, card, arguments, use, about, sizes, tags=""):
    """Returns the text of any card. `about` is the description of a card that has none."""
    card, classes = card or {}, getattr(model, "class_names", None)
    sizes = [*sizes, *([("classes", ", ".join(map(str, classes)))] if classes else [])]
    text = _CARD.format(
        name=name,
        class_name=type(model).__name__,
        front_matter=tags + _license_line(card),
        description=card.get("description") or about,
        arguments=arguments,
        use=use,
        sizes=_table(sizes),
    )
    return text + _sections(card)


def data_section(card: str) -> str | None:
    """Returns the section about data in the text of a card, `None` if it has none.

    Example:

    >>> from keras_xlnet.preset_files.model_card import data_section
    >>> data_section("# spam\\n\\n## Data\\n\\nMessages of 2012.\\n\\n## Metrics\\n")
    'Messages of 2012.'
    """
    found = re.search(r"^## Data.*\n((?:(?!## ).*\n?)*)", card, re.MULTILINE)
    return found[1].strip() if found else None


def _license_line(card):
    return f"license: {json.dumps(card['license'])}\n" if "license" in card else ""


def _table(rows):
    return "\n".join(f"| {key} | {value} |" for key, value in rows)


def _sections(card):
    text = ""
    if "data" in card:
        text += f"\n## Data\n\n{card['data']}\n"
    if card.get("metrics"):
        rows = _table(card["metrics"].items())
        text += f"\n## Metrics\n\n| | |\n| --- | --- |\n{rows}\n"
    return text


def _sizes(model):
    yield "weights", f"{model.count_params():,}"
    backbone = getattr(model, "backbone", model)
    for key, title in _SIZES.items():
        value = getattr(backbone, key, None)
        if value is not None:
            yield title, f"{value:,}"
