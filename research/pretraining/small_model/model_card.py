"""Writes the card of a pretrained model: `README.md` beside its weights."""

import json
import pathlib
import shutil

import keras_xlnet

CARD = """\
# {name}

An XLNet, pretrained by permutation language modelling with `keras_xlnet` {version}.

```python
from keras_xlnet.models import XLNetTextClassifier

classifier = XLNetTextClassifier.from_preset("{name}", num_classes=2)
```

| | |
| --- | --- |
| weights | {weights:,}: {layers} layers of width {width}, {heads} heads, {pieces:,} pieces |
| text | {words:,} words, {tokens:,} tokens |
| pretraining | {steps:,} steps of {rows} rows of {length} tokens: {read:,} tokens |
| processor time | {cpu_hours:.1f} hours of CPU cores |
| to continue | `python research/pretraining/pretrain.py --preset {name} --corpus mine.txt` |

## Held-out text

Whole documents that were not trained on. {share:.0%} of their tokens are predicted from the others.

| source | bits per character |
| --- | --- |
{bits}

![loss of each epoch](curves.png)

## Recipe

    python research/pretraining/pretrain.py {flags}

{notes}
"""
# The flags of pretrain.py that are not paths of a machine.
SHOWN = (
    "num_layers", "hidden_dim", "sequence_length", "memory_length", "predicted_share", "unit",
    "bidirectional_data", "segment_pairs", "embeddings", "batch_size", "optimizer",
    "learning_rate", "cpu_minutes", "dtype", "lines", "seed",
)  # fmt: skip


def write_card(preset, name, model, run, num_words, notes=None):
    """Writes the card and its picture into the folder of a preset.

    Args:
        preset: `pathlib.Path` of the preset.
        name: Name of the preset.
        model: The `XLNetPermutationLM`.
        run: `pathlib.Path` of the run of research/pretraining/pretrain.py.
        num_words: Int, the number of words of its text.
        notes: Path of a Markdown file about data, licences and limits, or `None`.

    Returns:
        Dict, the figures of the card by name.
    """
    metrics, budget = (
        json.loads((run / f"{file}.json").read_text(encoding="utf-8"))
        for file in ("metrics", "budget")
    )
    flags, bits = metrics["flags"], metrics["bits_per_character"]
    backbone = model.backbone
    read = budget["steps"] * flags["batch_size"] * flags["sequence_length"]
    shown = [f"--{key}={flags[key]}" for key in SHOWN if flags.get(key) is not None]
    card = CARD.format(
        name=name,
        version=keras_xlnet.__version__,
        weights=model.count_params(),
        layers=backbone.num_layers,
        width=backbone.hidden_dim,
        heads=backbone.num_heads,
        pieces=backbone.vocabulary_size,
        read=read,
        steps=budget["steps"],
        rows=flags["batch_size"],
        length=flags["sequence_length"],
        words=num_words,
        tokens=metrics["tokens"],
        cpu_hours=budget["cpu_minutes"] / 60,
        share=flags["predicted_share"],
        bits="\n".join(f"| {source} | {value:.3f} |" for source, value in bits.items()),
        flags=" \\\n        ".join(shown),
        notes=pathlib.Path(notes).read_text(encoding="utf-8") if notes else "",
    )
    (preset / "README.md").write_text(card.rstrip() + "\n", encoding="utf-8")
    shutil.copy(run / "curves.png", preset)
    figures = {f"bits per character, {name}": round(value, 3) for name, value in bits.items()}
    return {"words read": int(round(read * num_words / metrics["tokens"], -5))} | figures
