"""Writes the card of a pretrained model: `README.md` next to its weights."""

import json
import pathlib
import shutil

import keras_xlnet

# The flags of run_pretraining.py that are not local paths.
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
        run: `pathlib.Path` of the run of research/pretraining/run_pretraining.py.
        num_words: Int, the number of words of its text.
        notes: Path of a Markdown file about data, licences and limits, or `None`.

    Returns:
        Dict, the figures of the card by name.
    """
    metrics, budget = (json.loads((run / f"{f}.json").read_text()) for f in ("metrics", "budget"))
    flags, bits, backbone = metrics["flags"], metrics["bits_per_character"], model.backbone
    read = budget["steps"] * flags["batch_size"] * flags["sequence_length"]
    shown = [f"--{key}={flags[key]}" for key in SHOWN if flags.get(key) is not None]
    card = pathlib.Path(__file__).with_name("card_template.txt").read_text(encoding="utf-8")
    card = card.format(
        name=name,
        version=keras_xlnet.__version__,
        backbone=backbone,
        weights=model.count_params(),
        read=read,
        budget=budget,
        run=flags,
        words=num_words,
        tokens=metrics["tokens"],
        cpu_hours=budget["cpu_minutes"] / 60,
        bits="\n".join(f"| {source} | {value:.3f} |" for source, value in bits.items()),
        flags=" \\\n        ".join(shown),
        notes=pathlib.Path(notes).read_text(encoding="utf-8") if notes else "",
    )
    (preset / "README.md").write_text(card.rstrip() + "\n", encoding="utf-8")
    shutil.copy(run / "curves.png", preset)
    figures = {f"bits per character, {name}": round(value, 3) for name, value in bits.items()}
    return {"words read": int(round(read * num_words / metrics["tokens"], -5))} | figures
