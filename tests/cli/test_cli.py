"""The command `xlnet`: conversions, reports, and errors that are lines."""

import json
import os
import shutil
import subprocess
import sys

import keras
import numpy as np
import pytest

import xlnet_command
from keras_xlnet.checkpoints import (
    FORMATS,
    TASKS,
    load_original,
    load_tokenizer,
    save_checkpoint,
)
from keras_xlnet.cli.verify import random_inputs
from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM, XLNetTextClassifier
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.preset_files.shipped import adapter_directory
from tests.checkpoints.new_models import new_model


def xlnet(*arguments):
    """Runs the command in this process; returns its exit status."""
    arguments = ["xlnet", *map(str, arguments)]
    return xlnet_command.run(xlnet_command.parse(arguments))


@pytest.fixture(scope="module")
def sources(golden_dir, tmp_path_factory):
    """The same pretraining model, with a tokenizer, in every format."""
    folder = tmp_path_factory.mktemp("sources")
    shutil.copytree(golden_dir / "tiny_ckpt", folder / "original")
    shutil.copy(golden_dir / "spiece.model", folder / "original")
    model = load_original(folder / "original", task="permutation_lm")
    tokenizer = load_tokenizer(folder / "original", "original")
    for format in FORMATS[1:]:
        save_checkpoint(model, folder / format, format, tokenizer=tokenizer)
    return folder


# Reading a format and writing one do not know each other: each format is read and written once.
PAIRS = [*zip(FORMATS, [*FORMATS[1:], FORMATS[0]], strict=True), ("preset", "preset")]


@pytest.mark.parametrize("source, target", PAIRS)
def test_conversions(source, target, sources, tmp_path, capsys):
    flags = "--from", source, "--to", target
    assert xlnet("convert", *flags, sources / source, tmp_path / "out") == 0
    message = capsys.readouterr().out
    assert f"({source}) ->" in message and "XLNetPermutationLM, 35,432 parameters" in message
    assert message.endswith("with a tokenizer\n")
    assert xlnet("verify", sources / "original", tmp_path / "out") == 0
    report = capsys.readouterr().out
    assert "as permutation_lm" in report and "worst difference 0, " in report
    texts = ["the turtle, 12,3"]
    before, after = (
        load_tokenizer(folder, format)
        for folder, format in ((sources / source, source), (tmp_path / "out", target))
    )
    assert before(texts).to_list() == after(texts).to_list()
    assert before.remove_accents == after.remove_accents


# tests/checkpoints/test_formats.py has every task.
@pytest.mark.parametrize("task", ["backbone", "language_model", "token_classifier", "ranker"])
def test_every_model_is_converted_whole_or_refused_by_name(task, tmp_path, capsys):
    model = new_model(None if task == "backbone" else task)
    model.save_to_preset(tmp_path / "preset")
    for format in FORMATS:
        status = xlnet("convert", "--to", format, tmp_path / "preset", tmp_path / format / "out")
        report = capsys.readouterr()
        if status:
            assert f"has no model for the task '{task}' ({type(model).__name__})" in report.err
            assert report.err.count("\n") == 1
            assert format != "preset" and not (tmp_path / format / "out").exists()
            continue
        assert f"{type(model).__name__}, {model.count_params():,} parameters" in report.out
        is_exact = "left out" not in report.out
        assert is_exact or (format, task) == ("original", "language_model")
        status = xlnet("verify", tmp_path / "preset", tmp_path / format / "out")
        assert status == 0 or not is_exact
        assert f" as {task}, random" in capsys.readouterr().out
        assert xlnet("inspect", tmp_path / format / "out") == 0
        report = capsys.readouterr().out
        assert type(model).__name__ in report and "missing               nothing" in report


def test_what_is_left_out_is_said(tmp_path, capsys):
    model = new_model("text_classifier")
    model.backbone.trainable = False
    model.save_to_preset(tmp_path / "preset")
    assert xlnet("convert", "--to", "preset", tmp_path / "preset", tmp_path / "copy") == 0
    assert "left out" not in capsys.readouterr().out
    assert xlnet("convert", "--to", "huggingface", tmp_path / "preset", tmp_path / "out") == 0
    expected = "not in the format huggingface, left out: trainability\n"
    assert capsys.readouterr().out.startswith(expected)


def test_a_task_can_be_left_out(tmp_path, capsys):
    model = XLNetPermutationLM(XLNetBackbone(30, 2, 2, 8, 12))
    model.save_to_preset(tmp_path / "lm")
    assert (
        xlnet("convert", "--to", "preset", "--task", "backbone", tmp_path / "lm", tmp_path / "b")
        == 0
    )
    assert "XLNetBackbone" in capsys.readouterr().out
    # Encoders are compared where only one has a head.
    assert xlnet("verify", tmp_path / "lm", tmp_path / "b") == 0
    assert "as backbone" in capsys.readouterr().out


def test_verify_sees_a_difference(sources, tmp_path, capsys):
    model = load_original(sources / "original", task="permutation_lm")
    bias = model.backbone.blocks[1].feed_forward.output_dense.bias
    bias.assign(bias + 1e-3 * np.eye(32)[0])
    model.save_to_preset(tmp_path / "other")
    assert xlnet("verify", sources / "original", tmp_path / "other") == 1
    assert capsys.readouterr().out.endswith("tolerance 1e-05: NOT the same\n")
    assert xlnet("verify", "--tolerance", "10", sources / "original", tmp_path / "other") == 0


def test_verify_sees_another_shape(tmp_path, capsys):
    for name, hidden_dim in (("a", 8), ("b", 12)):
        XLNetBackbone(30, 1, 2, hidden_dim, 12).save_to_preset(tmp_path / name)
    assert xlnet("verify", tmp_path / "a", tmp_path / "b") == 1
    assert "shapes (4, 16, 8) and (4, 16, 12)" in capsys.readouterr().out


def test_verify_of_different_vocabularies_is_a_line(tmp_path, capsys):
    for size in (90, 30):
        XLNetBackbone(size, 1, 2, 8, 12).save_to_preset(tmp_path / str(size))
    assert xlnet("verify", tmp_path / "90", tmp_path / "30") == 1
    error = capsys.readouterr().err
    paths = f"{tmp_path / '90'} and {tmp_path / '30'}"
    assert error == f"xlnet: {paths} have different vocabularies: 90 and 30 ids\n"


def test_verify_of_a_model_that_reads_backwards(tmp_path):
    XLNetBackbone(30, 1, 2, 8, 12, bidirectional_data=True).save_to_preset(tmp_path)
    assert xlnet("verify", tmp_path, tmp_path) == 0


def test_fine_tuned_original_without_its_config(golden_dir, tmp_path, capsys):
    for part in ("index", "data-00000-of-00001"):
        name = f"xlnet_model.ckpt.{part}"
        shutil.copy(golden_dir / "qa_ckpt" / name, tmp_path / f"model.ckpt-8000.{part}")
    prefix, out = tmp_path / "model.ckpt-8000", tmp_path / "out"
    assert xlnet("inspect", prefix) == 1
    assert "xlnet_config.json is missing" in capsys.readouterr().err
    flags = "--config_file", golden_dir / "qa_ckpt" / "xlnet_config.json"
    assert xlnet("inspect", *flags, prefix) == 0
    assert xlnet("convert", "--to", "preset", *flags, prefix, out) == 0
    assert xlnet("verify", golden_dir / "qa_ckpt", out) == 0
    assert xlnet("inspect", *flags, out) == 1
    assert "['config_file'] are for original checkpoints, not for preset" in capsys.readouterr().err


@pytest.mark.parametrize("format", FORMATS)
def test_inspect(format, sources, capsys):
    assert xlnet("inspect", sources / format) == 0
    report = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert report["format"] == format
    assert report["model"] == "XLNetPermutationLM (permutation_lm)"
    assert (report["num_layers"], report["activation"]) == ("3", "gelu_tanh")
    assert report["parameters"] == "35,432 (0.1 MiB as float32)"
    assert report["layers"] == "28,800 (3 of 9,600)"
    assert report["tokenizer"] == "200 pieces, remove_accents"
    assert report["missing"] == "nothing"
    assert report["unused"] == ("1: global_step" if format == "original" else "nothing")


def test_inspect_as_json(sources, golden_dir, capsys):
    assert xlnet("inspect", "--json", sources / "huggingface") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["format"], report["task"]) == ("huggingface", "permutation_lm")
    assert report["sizes"]["num_layers"] == 3
    assert report["parameters"]["total"] == 35_432
    assert report["tokenizer"] == {"pieces": 200, "lowercase": False, "remove_accents": True}
    size = (sources / "huggingface" / "config.json").stat().st_size
    assert report["files"]["huggingface/config.json"] == size
    directory = golden_dir / "tiny_ckpt"
    assert xlnet("inspect", "--json", "--task", "multiple_choice", directory) == 1
    assert len(json.loads(capsys.readouterr().out)["missing"]) == 4


def test_inspect_a_keras_file(tokenizer, tmp_path, capsys):
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 12, padding_side="right")
    backbone = XLNetBackbone(200, 1, 2, 16, 32)
    model = XLNetTextClassifier(backbone, 2, preprocessor, class_names=["ham", "spam"])
    model.save(tmp_path / "spam.keras")
    assert xlnet("inspect", tmp_path / "spam.keras", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["format"], report["task"]) == ("keras", "text_classifier")
    assert report["class_names"] == ["ham", "spam"]
    assert report["parameters"]["total"] == model.count_params()
    assert report["tokenizer"]["pieces"] == tokenizer.vocabulary_size()
    assert report["sizes"]["hidden_dim"] == 16
    assert [*report["files"]] == ["spam.keras"]
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]).save(tmp_path / "other.keras")
    for arguments, message in (
        (["other.keras"], "must be an XLNetBackbone or a task model"),
        (["none.keras"], "There is no"),
        (["spam.keras", "--task", "ranker"], "--task is for checkpoints"),
        (["spam.keras", "--num_heads", "2"], "not for keras"),
    ):
        assert xlnet("inspect", tmp_path / arguments[0], *arguments[1:]) == 1
        assert message in capsys.readouterr().err


def test_inspect_an_adapter(tmp_path, capsys):
    shipped = adapter_directory("names", ())
    shutil.copytree(shipped, tmp_path / "mine")
    lines = []
    for location in ("names", tmp_path / "mine"):
        assert xlnet("inspect", location) == 0
        lines.append(capsys.readouterr().out.splitlines())
    (named, directory) = ([line for line in found if "file  " not in line] for found in lines)
    assert named == directory
    report = dict(line.split(maxsplit=1) for line in named if len(line.split()) > 1)
    assert report["format"] == "adapter"
    assert report["model"] == "XLNetTokenClassifier (token_classifier)"
    parts = {"query": 6, "key": 6, "value": 6, "output": 12, "intermediate": 6}
    assert report["LoRA"] == ", ".join(
        f"{name}: {count} of rank 8" for name, count in parts.items()
    )
    assert "of the preset         xlnet_mini_en" in named
    assert any(line.endswith(" bytes)") and "adapter.safetensors" in line for line in lines[0])
    assert xlnet("inspect", "nams") == 1
    assert "There is no nams" in capsys.readouterr().err


def test_inspect_names_what_is_missing(golden_dir, capsys):
    assert xlnet("inspect", "--task", "multiple_choice", golden_dir / "tiny_ckpt") == 1
    report = capsys.readouterr().out
    assert "4: model/sequnece_summary/summary/kernel, " in report
    assert "3: global_step, model/lm_loss/bias, model/transformer/mask_emb/mask_emb" in report
    prefix = golden_dir / "tied_ckpt" / "xlnet_model.ckpt"
    assert xlnet("inspect", prefix) == 0
    assert "and 59 more" in capsys.readouterr().out  # slots of an optimizer


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["inspect", "/nowhere"], "There is no /nowhere"),
        (["inspect", "EMPTY"], "contains no model: neither an original checkpoint"),
        (
            ["convert", "--to", "preset", "--from", "huggingface", "EMPTY", "x"],
            "config.json is mis",
        ),
        (["convert", "--to", "onnx", "EMPTY", "x"], "`format` must be one of ('original', 'hugg"),
        (["convert", "--to", "bert", "EMPTY", "x"], "Received: format='bert'"),
        (["convert", "--to", "preset", "--from", "onnx", "EMPTY", "x"], "Received: format='onnx'"),
        (["inspect", "--format", "onnx", "PRESET"], "Received: format='onnx'"),
        (["verify", "--second_format", "onnx", "PRESET", "PRESET"], "Received: format='onnx'"),
        (["convert", "--to", "original", "--activation", "relu", "ORIGINAL", "x"], "activation"),
        (["convert", "--to", "preset", "--task", "token_classifier", "PRESET", "x"], "not 'token"),
    ],
)
def test_errors_are_one_line(arguments, message, sources, tmp_path, capsys):
    places = {
        "EMPTY": tmp_path,
        "ORIGINAL": sources / "original",
        "PRESET": sources / "preset",
        "x": tmp_path / "x",
    }
    assert xlnet(*(places.get(argument, argument) for argument in arguments)) == 1
    error = capsys.readouterr().err
    assert error.startswith("xlnet: ") and message in error and error.count("\n") == 1
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("command", [[], ["convert"], ["inspect"], ["verify"]])
def test_help(command, capsys):
    with pytest.raises(SystemExit) as status:
        xlnet_command.parse(["xlnet", *command, "--help"])
    assert status.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: xlnet")
    assert "examples:" in text if command else "convert" in text


def test_help_and_version_load_no_keras():
    code = "import sys, xlnet_command; xlnet_command.parse(sys.argv)"
    check = "; assert not {'keras', 'tensorflow', 'numpy'} & set(sys.modules)"
    for argument in ("--help", "--version"):
        program = f"import atexit\ndef check():\n    import sys{check}\n    print('none')\n"
        program += f"atexit.register(check)\n{code}"
        result = subprocess.run(
            [sys.executable, "-c", program, argument], capture_output=True, text=True
        )
        assert result.stdout.endswith("none\n"), result.stderr
        assert "xlnet" in result.stdout


@pytest.mark.parametrize(
    "source, flags, model, unused",
    [
        ("keras_hub/preset", [], "XLNetBackbone", "1: layers/xl_net_attention_mask_layer/vars/0"),
        ("keras_xlnet_h5/encoder.h5", [], "XLNetBackbone", "nothing"),
        (
            "keras_xlnet_h5/trainer.h5",
            ["--num_heads", "2"],
            "XLNetPermutationLM (permutation_lm)",
            "nothing",
        ),
    ],
)
def test_formats_that_are_only_read(source, flags, model, unused, golden_dir, tmp_path, capsys):
    source = golden_dir / source
    assert xlnet("inspect", *flags, source) == 0
    report = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert (report["model"], report["unused"]) == (model, unused)
    assert report["file"].endswith(" bytes)")
    assert xlnet("convert", *flags, "--to", "preset", source, tmp_path / "out") == 0
    assert "without a tokenizer" in capsys.readouterr().out
    if not flags:
        assert xlnet("verify", source, tmp_path / "out") == 0
        assert "worst difference 0, " in capsys.readouterr().out


def test_flags_of_another_format(golden_dir, capsys):
    assert xlnet("inspect", "--num_heads", "2", golden_dir / "tiny_ckpt") == 1
    error = capsys.readouterr().err
    assert "['num_heads'] are for files of the old keras-xlnet, not for original" in error


@pytest.fixture(scope="module")
def inspected(sources):
    """What `xlnet inspect` of a preset does in a process of its own."""
    program = [sys.executable, "-m", "xlnet_command", "inspect", sources / "preset"]
    return subprocess.run(program, capture_output=True, text=True)


def test_as_a_program(inspected, monkeypatch, capsys):
    assert inspected.returncode == 0
    assert inspected.stdout.startswith("format                preset\nmodel")
    monkeypatch.setattr(sys, "argv", ["xlnet", "inspect", "/nowhere"])
    with pytest.raises(SystemExit) as end:
        xlnet_command.main()
    assert end.value.code == 1
    assert capsys.readouterr().err.splitlines()[-1] == "xlnet: There is no /nowhere"


@pytest.mark.parametrize("task", [None, *TASKS])
def test_random_inputs_fit_every_model(task):
    model = new_model(task, 30, memory_length=3 if task is None else None)
    first, again, other = (random_inputs(model, seed) for seed in (0, 0, 1))
    assert set(first) == {key for key in model.input if "memory" not in key}
    for key, value in first.items():
        np.testing.assert_array_equal(value, again[key])
        assert (value != other[key]).any(), key
        assert value.dtype == model.input[key].dtype
        assert len(np.unique(value)) > 1, key
    model(first)


@pytest.mark.parametrize(
    "installed, config, given, expected",
    [
        (["tensorflow", "jax", "torch"], None, None, "tensorflow"),
        (["jax", "torch"], None, None, "jax"),
        (["torch"], {"backend": "tensorflow"}, None, "torch"),
        (["jax", "torch"], {"backend": "torch"}, None, "torch"),
        (["jax", "torch"], "damaged", None, "jax"),
        (["jax"], None, "torch", "torch"),  # Keras says what is missing.
    ],
)
def test_the_backend_is_one_that_is_installed(
    installed, config, given, expected, tmp_path, monkeypatch
):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    if given:
        monkeypatch.setenv("KERAS_BACKEND", given)
    if config:
        text = config if isinstance(config, str) else json.dumps(config)
        (tmp_path / "keras.json").write_text(text)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name in installed or None)
    xlnet_command.choose_backend()
    assert os.environ["KERAS_BACKEND"] == expected


def test_no_backend_is_a_line(monkeypatch, capsys):
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert xlnet("presets") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("xlnet: Keras needs TensorFlow, JAX or PyTorch")


def test_start_of_tensorflow_is_quiet(inspected):
    assert inspected.returncode == 0
    assert not inspected.stderr
