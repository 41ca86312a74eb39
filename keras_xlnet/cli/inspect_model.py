"""`xlnet inspect`: shows what a checkpoint or an export contains, and missing weights."""

import argparse
import json
import pathlib

from keras_xlnet.checkpoints import load_tokenizer
from keras_xlnet.checkpoints.formats import FAMILIES
from keras_xlnet.checkpoints.tasks import task_of_model
from keras_xlnet.cli.arguments import arguments_of_format, format_of, load_keras_file, task_of
from keras_xlnet.cli.inspect_export import export_report, is_export, rows_of_export
from keras_xlnet.models import Task
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.preset_files import adapter, adapters, shipped_directory
from keras_xlnet.preset_files.shipped import adapter_directory

_SIZES = (
    "vocabulary_size num_layers num_heads head_dim hidden_dim intermediate_dim embedding_dim "
    "cutoffs div_val tie_embeddings activation normalize_first attention_type memory_length "
    "reuse_length clamp_length same_length tie_attention_biases"
).split()
_MOST_NAMES = 8


def run(arguments: argparse.Namespace) -> int:
    """Prints the report; returns 1 if weights are missing, otherwise 0."""
    path = arguments.directory
    if arguments.format is None and is_export(path):
        arguments_of_format(arguments, "exports")
        if arguments.task != "auto":
            raise ValueError(f"--task is for checkpoints, and {path} is an export")
        report = export_report(path)
        rows = rows_of_export(path, report)
    else:
        report = _report(arguments, path)
        rows = [*_rows(report)]
    files = [*_files(_directory(path))]
    if arguments.json:
        print(json.dumps({**report, "files": dict(files)}, indent=1, ensure_ascii=False))
    else:
        _print_table([*rows, *(("file", f"{name} ({size:,} bytes)") for name, size in files)])
    return 1 if report.get("missing") else 0


def _report(arguments, path):
    """The contents of a checkpoint, a `.keras` file or an adapter."""
    if arguments.format is None and (opened := _opened_whole(path)) is not None:
        format, model, details = opened
        arguments_of_format(arguments, format)
        if arguments.task != "auto":
            raise ValueError(f"--task is for checkpoints. Received: {path}")
        tokenizer = getattr(getattr(model, "preprocessor", None), "tokenizer", None)
        report = _report_of(format, model, task_of_model(model), tokenizer)
        return {**report, **details, "missing": [], "unused": []}
    format = format_of(arguments.format, path)
    task = task_of(arguments.task, path, format)
    given = arguments_of_format(arguments, format)
    family = FAMILIES[format]
    opened = family.open(path, task, **given)
    tokenizer = load_tokenizer(path, format) if family.tokenizer else None
    missing = opened.missing_of_encoder() + opened.missing_of_head()
    report = _report_of(format, opened.model, task, tokenizer)
    return {**report, "missing": missing, "unused": opened.unused()}


def _opened_whole(path):
    """The format, the model and more details of a file that has all of a model, or `None`."""
    if path.endswith(".keras"):
        if not pathlib.Path(path).is_file():
            raise FileNotFoundError(f"There is no {path}")
        return "keras", load_keras_file(path), {}
    if path in adapters() or (pathlib.Path(path) / adapter.CONFIG).is_file():
        opened = adapter.Adapter.open(path, Task)
        details = {"preset": opened.base["preset"], "lora": _ranks(opened.lora)}
        return "adapter", Task.from_preset(adapter=path), details
    return None


def _ranks(lora):
    """`{"query": [layers, rank]}` by the name of the projection."""
    found: dict[str, list[int]] = {}
    for path, (rank, _) in lora.items():
        name = path.rpartition("/")[2]
        found[name] = [found.get(name, [0])[0] + 1, rank]
    return found


def _report_of(format, model, task, tokenizer):
    backbone = backbone_of(model)
    sizes = {name: getattr(backbone, name) for name in _SIZES if hasattr(backbone, name)}
    return {
        "format": format,
        "model": type(model).__name__,
        "task": task,
        "class_names": getattr(model, "class_names", None),
        "sizes": {name: getattr(value, "__name__", value) for name, value in sizes.items()},
        "parameters": _parameters(model, backbone),
        "tokenizer": _tokenizer(tokenizer),
    }


def _parameters(model, backbone):
    total = model.count_params()
    embeddings = backbone.token_embedding.count_params()
    layers = sum(block.count_params() for block in backbone.blocks)
    other = total - embeddings - layers
    return {"total": total, "embeddings": embeddings, "layers": layers, "other": other}


def _tokenizer(tokenizer):
    if tokenizer is None:
        return None
    flags = {name: getattr(tokenizer, name) for name in ("lowercase", "remove_accents")}
    return {"pieces": tokenizer.vocabulary_size(), **flags}


def _directory(path):
    if path in adapters():
        return adapter_directory(path, ())
    return shipped_directory(path) or path


def _files(path):
    """Names and sizes of the files of a checkpoint."""
    path = pathlib.Path(path)
    found = path.rglob("*") if path.is_dir() else [path, *path.parent.glob(f"{path.name}.*")]
    for file in sorted(file for file in found if file.is_file()):
        yield str(file.relative_to(path.parent)), file.stat().st_size


# === The table ===


def _print_table(rows):
    for label, value in rows:
        # Details and names can come from others: no control characters for the terminal.
        text = "".join(c if c.isprintable() else "\ufffd" for c in " ".join(str(value).split()))
        print(f"{label:22}{text}".rstrip())


def _rows(report):
    task, sizes, tokenizer = report["task"], report["sizes"], report["tokenizer"]
    yield "format", report["format"]
    yield "model", report["model"] + (f" ({task})" if task else "")
    if report["class_names"]:
        yield "classes", ", ".join(map(str, report["class_names"]))
    if report.get("lora"):
        yield "of the preset", report["preset"] or "none with a name"
        ranks = (f"{name}: {n} of rank {rank}" for name, (n, rank) in report["lora"].items())
        yield "LoRA", ", ".join(ranks)
    yield from ((k, list(v) if isinstance(v, tuple) else v) for k, v in sizes.items())
    yield from _rows_of_parameters(report["parameters"], sizes["num_layers"])
    flags = [name for name, value in (tokenizer or {}).items() if value is True]
    pieces = ", ".join([f"{tokenizer['pieces']:,} pieces", *flags]) if tokenizer else "none"
    yield "tokenizer", pieces
    yield "missing", _names(report["missing"])
    yield "unused", _names(report["unused"])


def _rows_of_parameters(parameters, num_layers):
    total, layers = parameters["total"], parameters["layers"]
    yield "parameters", f"{total:,} ({4 * total / 2**20:,.1f} MiB as float32)"
    yield "  embeddings", f"{parameters['embeddings']:,}"
    yield "  layers", f"{layers:,} ({num_layers} of {layers // num_layers:,})"
    yield "  other", f"{parameters['other']:,}"


def _names(names):
    if not names:
        return "nothing"
    more = len(names) - _MOST_NAMES
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{len(names)}: {shown}" + (f" and {more} more" if more > 0 else "")
