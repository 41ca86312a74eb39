"""Checkpoints of Transformer-XL: Hugging Face's directories and the authors' TensorFlow files."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file

import xlnet_command
from keras_xlnet.checkpoints import (
    detect_format,
    detect_task,
    load_checkpoint,
    load_huggingface,
    load_original,
    save_huggingface,
    save_original,
)
from keras_xlnet.checkpoints.original_files import write_checkpoint
from keras_xlnet.checkpoints.transformer_xl import arguments_of_config
from keras_xlnet.models import TransformerXLLanguageModel

HUGGINGFACE = (
    "plain wt103_style adaptive_shared_r adaptive_untied_projs adaptive_div1_dembed "
    "pre_lnorm_untied_emb"
).split()
ORIGINAL = "base same_length untie_r dembed adaptive_div1 wt103_style lm1b_style".split()


@pytest.fixture
def huggingface_dir(golden_dir):
    return golden_dir / "transformer_xl" / "huggingface"


@pytest.fixture(scope="module")
def original_dir(golden_dir, tmp_path_factory):
    """The TensorFlow checkpoints, by name, and the settings that they do not hold."""
    source, target = golden_dir / "transformer_xl" / "original", tmp_path_factory.mktemp("tf")
    for name in ORIGINAL:
        (target / name).mkdir()
        with np.load(source / f"{name}.npz") as arrays:
            weights = {key[2:]: arrays[key] for key in arrays.files if key.startswith("w/")}
        write_checkpoint(target / name / "model.ckpt", weights)
    return target


def load_original_case(name, original_dir, golden_dir):
    folder = golden_dir / "transformer_xl" / "original"
    config = json.loads((folder / "configs.json").read_text(encoding="utf-8"))[name]
    settings = {"memory_length": config["mem_len"]}
    settings["same_length"] = config["same_length"] and config["mem_len"] + 1
    settings["clamp_length"] = config["clamp_len"] if config["clamp_len"] > 0 else None
    with np.load(folder / f"{name}.npz") as arrays:
        arrays = dict(arrays)
    return load_original(original_dir / name, "language_model", dropout=0.0, **settings), arrays


@pytest.mark.parametrize("name", HUGGINGFACE)
def test_hugging_faces_numbers(name, huggingface_dir):
    model = load_huggingface(huggingface_dir / name, task="language_model")
    assert isinstance(model, TransformerXLLanguageModel)
    with np.load(huggingface_dir / name / "outputs.npz") as arrays:
        memory = {}
        for k in range(2):
            outputs = model({"token_ids": arrays[f"input_ids/{k}"], **memory})
            memory = {key: outputs[key] for key in ("memory", "memory_mask")}
            np.testing.assert_allclose(
                outputs["log_probs"], arrays[f"logprob/{k}"], rtol=0, atol=1e-4
            )
            for layer in range(model.num_layers):
                expected = arrays[f"mems/{k}/{layer}"].transpose(1, 0, 2)
                found = outputs["memory"][:, layer]
                np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", HUGGINGFACE)
def test_saved_files_are_those_that_were_loaded(name, huggingface_dir, tmp_path):
    source = huggingface_dir / name
    save_huggingface(load_huggingface(source), tmp_path)
    written, read = (load_file(d / "model.safetensors") for d in (tmp_path, source))
    read.pop("transformer.pos_emb.inv_freq")  # Computed, not trained.
    assert set(written) == set(read)
    for key, value in read.items():
        np.testing.assert_array_equal(written[key], value, err_msg=key)
    before, after = (
        json.loads((d / "config.json").read_text(encoding="utf-8")) for d in (source, tmp_path)
    )
    unused = {"eos_token_id", "init", "init_range", "init_std", "proj_init_std", "torch_dtype"}
    for key in set(before) - unused - {"transformers_version"}:
        assert after[key] == before[key], key


@pytest.mark.parametrize("name", ORIGINAL)
def test_the_authors_tensorflow_numbers(name, original_dir, golden_dir):
    model, arrays = load_original_case(name, original_dir, golden_dir)
    memory = {}
    for k in range(3):
        token_ids, targets = (arrays[f"{key}/{k}"].T for key in ("data", "target"))
        outputs = model({"token_ids": token_ids, **memory})
        memory = {key: outputs[key] for key in ("memory", "memory_mask")}
        log_probs = np.asarray(outputs["log_probs"])
        losses = -np.take_along_axis(log_probs, targets[..., None], axis=2)[..., 0]
        np.testing.assert_allclose(losses, arrays[f"nll/{k}"].T, rtol=0, atol=1e-4)
        for layer in range(model.num_layers):
            expected = arrays[f"mems/{k}/{layer}"].transpose(1, 0, 2)
            np.testing.assert_allclose(memory["memory"][:, layer], expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", ["untie_r", "adaptive_div1", "wt103_style"])
def test_original_files_come_back(name, original_dir, golden_dir, tmp_path):
    model, _ = load_original_case(name, original_dir, golden_dir)
    save_original(model, tmp_path)
    again = load_original(
        tmp_path, "language_model", dropout=0.0, memory_length=16, same_length=model.same_length
    )
    assert again.get_config()["tie_projections"] == model.get_config()["tie_projections"]
    for a, b in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_formats_and_tasks_are_found(huggingface_dir, original_dir, tmp_path):
    assert detect_format(huggingface_dir / "plain") == "huggingface"
    assert detect_task(huggingface_dir / "plain") == "language_model"
    assert detect_task(original_dir / "base") == "language_model"
    model = load_checkpoint(huggingface_dir / "plain", task="language_model")
    model.save_to_preset(tmp_path)
    assert detect_task(tmp_path) == "language_model"
    again = load_checkpoint(tmp_path, task="language_model")
    token_ids = np.arange(24).reshape(2, 12)
    a, b = (m({"token_ids": token_ids})["log_probs"] for m in (model, again))
    np.testing.assert_array_equal(a, b)


def xlnet(*arguments):
    return xlnet_command.run(xlnet_command.parse(["xlnet", *map(str, arguments)]))


def test_the_command_line_knows_them(huggingface_dir, tmp_path, capsys):
    source = huggingface_dir / "wt103_style"
    assert xlnet("inspect", source) == 0
    shown = capsys.readouterr().out
    assert "TransformerXLLanguageModel (language_model)" in shown
    assert "cutoffs" in shown and "[20, 60]" in shown
    assert xlnet("convert", "--to", "preset", source, tmp_path / "preset") == 0
    assert xlnet("verify", source, tmp_path / "preset") == 0
    assert "the same" in capsys.readouterr().out


@pytest.mark.parametrize(
    "entry, value, message",
    [
        ("attn_type", 2, "has `attn_type` 2, but only 0 is supported"),
        ("d_embed", "32", "has `d_embed` '32'"),
        ("vocab_size", None, "has no \\['vocab_size'\\]"),
        ("cutoffs", [60, 20], "`cutoffs` must be increasing"),
        ("n_layer", 3, "lacks 13 of 51"),
        ("vocab_size", 10**12, "parameters, but the checkpoint"),
    ],
)
def test_bad_configurations(entry, value, message, huggingface_dir, tmp_path):
    directory = tmp_path / "model"
    shutil.copytree(huggingface_dir / "wt103_style", directory)
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    config[entry] = value
    (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load_huggingface(directory, "language_model")


def test_missing_entries_are_the_defaults_of_transformers(huggingface_dir):
    config = json.loads((huggingface_dir / "plain" / "config.json").read_text(encoding="utf-8"))
    for key in ("mem_len", "clamp_len", "same_length", "dropatt"):
        config.pop(key, None)
    _, defaults = arguments_of_config(config, "config.json")
    assert (defaults["memory_length"], defaults["clamp_length"]) == (1600, 1000)
    assert defaults["same_length"] is True and defaults["attention_dropout"] == 0.0


def test_refusals(huggingface_dir, golden_dir, tmp_path):
    with pytest.raises(ValueError, match="fixed by the checkpoint"):
        load_huggingface(huggingface_dir / "plain", "language_model", hidden_dim=64)
    with pytest.raises(ValueError, match="not 'transfo-xl'"):
        config = tmp_path / "config.json"
        config.write_text('{"model_type": "xlnet"}', encoding="utf-8")
        load_huggingface(tmp_path, "language_model")
    model = TransformerXLLanguageModel(20, 1, 2, 8, 12, activation="gelu")
    with pytest.raises(ValueError, match="activation relu. Received: a model with 'gelu'"):
        save_huggingface(model, tmp_path)
    with pytest.raises(ValueError, match="no variable 'transformer/adaptive_softmax"):
        load_original(golden_dir / "tiny_ckpt", "language_model")
