"""`xlnet inspect` of a SavedModel: the details that `export` wrote, or what its files say."""

import math
import pathlib
import re
import shlex
import textwrap
import urllib.parse
from collections.abc import Iterator
from typing import Any

from keras_xlnet.preset_files.export_details import FILE, read_export_details

_MOST_CHARACTERS = 200
# Entries of TensorFlow that are not variables of a model.
_OF_SAVING = re.compile("_CHECKPOINTABLE_OBJECT_GRAPH|save_counter")


def is_export(path: str) -> bool:
    """Returns whether a path is the directory of a SavedModel."""
    return (pathlib.Path(path) / "saved_model.pb").is_file()


def export_report(path: str) -> dict[str, Any]:
    """Returns what is known of a SavedModel: its details, or else what its files say.

    Raises:
        ValueError: If a file is damaged.
    """
    details = read_export_details(path)
    return {"format": "saved_model", **(_read_files(path) if details is None else details)}


def rows_of_export(path: str, report: dict[str, Any]) -> list[tuple[str, Any]]:
    """Returns the rows of a table with an `export_report`.

    Raises:
        ValueError: If the details are damaged.
    """
    try:
        return [
            *(_rows(path, report) if "format_version" in report else _rows_without_details(report))
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{pathlib.Path(path) / FILE} is damaged: {type(error).__name__}: {error}"
        ) from error


def _read_files(path):
    """The contents of a SavedModel without details."""
    try:
        import tensorflow as tf

        from keras_xlnet.serving.saved_model_signatures import saved_model_signatures
    except ImportError as error:
        raise ImportError(f"{path} has no details: TensorFlow reads it ({error})") from error
    found = saved_model_signatures(pathlib.Path(path))
    prefix = pathlib.Path(path, "variables", "variables")
    parameters = 0
    if prefix.with_suffix(".index").exists():
        try:
            shapes = tf.train.load_checkpoint(str(prefix)).get_variable_to_shape_map()
        except (tf.errors.OpError, RuntimeError) as error:
            raise ValueError(f"{prefix}.index is damaged: {error}") from error
        parameters = sum(math.prod(s) for name, s in shapes.items() if not _OF_SAVING.match(name))
    return {
        "versions": {"tensorflow": found["tensorflow"]},
        "parameters": parameters,
        "signatures": found["signatures"],
    }


def _rows_without_details(report):
    yield "format", "SavedModel"
    yield "details", f"none: there is no {FILE}"
    yield "parameters", _parameters(report)
    yield from _signatures(report["signatures"])
    yield "written with", _versions(report)


def _rows(path, report):
    yield "format", "SavedModel"
    yield "model", report["model"]
    yield from _classes(report)
    yield from report["options"].items()
    yield from ((k, v) for k, v in report["lengths"].items() if v is not None)
    yield "batch_size", "any" if report["batch_size"] is None else report["batch_size"]
    yield "parameters", _parameters(report)
    yield "dtype_policy", report["dtype_policy"]
    yield from _signatures(report["signatures"])
    yield "written with", _versions(report)
    yield from _checksums(report)
    yield from _trained_on(report["trained_on"])
    yield from _commands(path, report["run"])


def _classes(report):
    if "class_names" not in report:
        return
    names = report["class_names"]
    several = ", several for a text" if report["multi_label"] else ""
    yield "classes", "without names" + several if names is None else ", ".join(names) + several
    if report.get("entity_types"):
        yield "entity types", ", ".join(report["entity_types"])


def _parameters(report):
    total = report["parameters"]
    return f"{total:,} ({4 * total / 2**20:,.1f} MiB as float32)"


def _signatures(signatures):
    for name, signature in signatures.items():
        yield "signature", name
        for kind in ("inputs", "outputs"):
            for tensor, spec in signature[kind].items():
                shape = "any shape" if spec["shape"] is None else tuple(spec["shape"])
                yield f"  {kind[:-1]}", f"{tensor}: {spec['dtype']} {shape}"


def _versions(report):
    return ", ".join(f"{name} {version}" for name, version in report["versions"].items())


def _checksums(report):
    vocabulary = report["vocabulary"]
    preset = f", of the preset {vocabulary['preset']}" if vocabulary["preset"] else ""
    yield "vocabulary", f"{vocabulary['size']:,} tokens, {vocabulary['file']}{preset}"
    yield "  sha256", vocabulary["sha256"]
    yield "weights", "as float16"
    yield "  sha256", report["weights"]["sha256_as_float16"]


def _trained_on(trained_on: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "trained on", trained_on["notes"] or "not said"
    for kind in ("preset", "adapter"):
        facts = trained_on[kind]
        if facts:
            yield kind, f"{facts['name']}: {facts['description']}"
            if facts["data"]:
                yield (
                    "  data",
                    textwrap.shorten(facts["data"], _MOST_CHARACTERS, placeholder=" ..."),
                )
            figures = (f"{name} {value}" for name, value in facts["figures"].items())
            yield "  figures", "; ".join(figures)


def _commands(path, run):
    """The commands for the place where the export is, if `xlnet serve` finds it there."""
    version = pathlib.Path(path).resolve()
    serve, ask = run["serve"], run["ask"]
    if version.name.isdecimal():
        serve = serve.replace("MODELS", shlex.quote(str(version.parent.parent)))
        ask = ask.replace("/NAME:", f"/{urllib.parse.quote(version.parent.name, safe='')}:")
    else:
        yield "to serve it, copy to", run["directory"]
    yield "serve", serve
    yield "ask", ask
