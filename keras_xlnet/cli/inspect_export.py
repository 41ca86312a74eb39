"""`xlnet inspect` of an export: the details that `export` wrote, or what its files say."""

import math
import pathlib
import re
import shlex
import textwrap
import urllib.parse
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_xlnet.lazy_modules import requires_extra
from keras_xlnet.preset_files.export_details import (
    FILE,
    NETWORK_FILES,
    PORTABLE_FILE,
    read_export_details,
)

_MOST_CHARACTERS = 200
_ONNX_DTYPES = {"tensor(float)": "float32", "tensor(int32)": "int32", "tensor(bool)": "bool"}
# Entries of TensorFlow that are not variables of a model.
_OF_SAVING = re.compile("_CHECKPOINTABLE_OBJECT_GRAPH|save_counter")


_NAMES = {"saved_model": "SavedModel", "onnx": "ONNX", "litert": "LiteRT"}


def is_export(path: str) -> bool:
    """Returns whether a path is the directory of an export, or an ONNX or LiteRT file."""
    return format_of_export(path) is not None


def format_of_export(path: str) -> str | None:
    """Returns `"saved_model"`, `"onnx"`, `"litert"`, or `None` for anything else."""
    found = pathlib.Path(path)
    for format, file in {"saved_model": "saved_model.pb", **NETWORK_FILES}.items():
        if (found / file).is_file():
            return format
    suffixes = {pathlib.Path(file).suffix: format for format, file in NETWORK_FILES.items()}
    return suffixes.get(found.suffix) if found.is_file() else None


def export_report(path: str) -> dict[str, Any]:
    """Returns what is known of an export: its details, or else what its files say.

    Raises:
        ValueError: If a file is damaged.
        ImportError: If a package that reads a file without details is not installed.
    """
    format = format_of_export(path)
    assert format is not None
    file = pathlib.Path(path)
    # A file of another name is not the one that the details next to it are about.
    is_network = file.is_file()
    if is_network and file.name != NETWORK_FILES[format]:
        details = None
    else:
        details = read_export_details(file.parent if is_network else file)
    if details is None:
        details = _read_files(path) if format == "saved_model" else _read_network(file, format)
    return {"format": format, **details}


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
            f"{_details_file(path, report)} is damaged: {type(error).__name__}: {error}"
        ) from error


def _details_file(path, report):
    if report["format"] == "saved_model":
        return pathlib.Path(path) / FILE
    folder = pathlib.Path(path)
    return (folder.parent if folder.is_file() else folder) / PORTABLE_FILE


def _read_files(path):
    """The contents of a SavedModel without details."""
    with requires_extra("tensorflow", f"{path}, which has no details,"):
        import tensorflow as tf

        from keras_xlnet.serving.saved_model_signatures import saved_model_signatures
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


def _read_network(path, format):
    """The inputs and outputs of an ONNX or LiteRT network without details."""
    file = path if path.is_file() else path / NETWORK_FILES[format]
    with requires_extra(format, f"{path}, which has no details next to it,"):
        try:
            signature = {"onnx": _read_onnx, "litert": _read_litert}[format](str(file))
        except ImportError:
            raise
        except Exception as error:  # Runtimes have errors of their own.
            raise ValueError(f"{file} is damaged: {type(error).__name__}: {error}") from error
    return {"signatures": {"network": signature}}


def _read_onnx(file):
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    parts = {"inputs": session.get_inputs(), "outputs": session.get_outputs()}
    return {
        kind: {
            x.name: {
                "dtype": _ONNX_DTYPES.get(x.type, x.type),
                "shape": [size if isinstance(size, int) else None for size in x.shape],
            }
            for x in tensors
        }
        for kind, tensors in parts.items()
    }


def _read_litert(file):
    from keras_xlnet.serving.portable.predict import litert_interpreter

    run = litert_interpreter()(file).get_signature_runner()
    parts = {"inputs": run.get_input_details(), "outputs": run.get_output_details()}
    return {
        kind: {
            name: {
                "dtype": np.dtype(x["dtype"]).name,
                "shape": [None if size < 0 else int(size) for size in x["shape_signature"]],
            }
            for name, x in tensors.items()
        }
        for kind, tensors in parts.items()
    }


def _rows_without_details(report):
    is_saved_model = report["format"] == "saved_model"
    yield "format", _NAMES[report["format"]]
    yield "details", f"none: there is no {FILE if is_saved_model else PORTABLE_FILE}"
    if "parameters" in report:
        yield "parameters", _parameters(report)
    yield from _signatures(report["signatures"])
    if "versions" in report:
        yield "written with", _versions(report)


def _rows(path, report):
    yield "format", _NAMES[report["format"]]
    yield "model", report["model"]
    yield from _classes(report)
    yield from ((name, "none" if x is None else x) for name, x in report["options"].items())
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
    if "command" in run:
        yield from run.items()
        return
    version = pathlib.Path(path).resolve()
    serve, ask = run["serve"], run["ask"]
    if version.name.isdecimal():
        serve = serve.replace("MODELS", shlex.quote(str(version.parent.parent)))
        ask = ask.replace("/NAME:", f"/{urllib.parse.quote(version.parent.name, safe='')}:")
    else:
        yield "to serve it, copy to", run["directory"]
    yield "serve", serve
    yield "ask", ask
