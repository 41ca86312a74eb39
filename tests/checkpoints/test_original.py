"""Checkpoints of the original, loaded and saved: names, numbers and errors."""

import json
import os
import shutil
import warnings

import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.checkpoints import load_original, save_original
from keras_xlnet.checkpoints.original_files import write_checkpoint
from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier, XLNetTokenClassifier
from tests.checkpoints.conftest import values_of


def edit_config(directory, **changes):
    path = directory / "xlnet_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_overrides_reach_the_backbone(checkpoint):
    model = load_original(checkpoint, dropout=0.3, memory_length=5, dtype="mixed_bfloat16")
    assert (model.dropout, model.memory_length, model.compute_dtype) == (0.3, 5, "bfloat16")
    assert model.activation.__name__ == "gelu_tanh"
    kernel = model.blocks[2].attention.output_dense.kernel
    reader = tf.train.load_checkpoint(str(checkpoint / "xlnet_model.ckpt"))
    original = reader.get_tensor("model/transformer/layer_2/rel_attn/o/kernel")
    np.testing.assert_array_equal(np.einsum("ndh->hnd", kernel), original)


def test_training_checkpoint_with_optimizer_slots(golden_dir):
    names = tf.train.load_checkpoint(
        str(golden_dir / "tied_ckpt" / "xlnet_model.ckpt")
    ).get_variable_to_shape_map()
    assert any(name.endswith("adam_m") for name in names)
    assert load_original(golden_dir / "tied_ckpt").tie_attention_biases


@pytest.mark.parametrize(
    "damage, error, message",
    [
        (lambda d: shutil.rmtree(d), FileNotFoundError, "checkpoint.index is missing"),
        (
            lambda d: (d / "xlnet_config.json").unlink(),
            FileNotFoundError,
            "xlnet_config.json is missing",
        ),
        (
            lambda d: (d / "xlnet_model.ckpt.index").unlink(),
            FileNotFoundError,
            "xlnet_model.ckpt.index is missing",
        ),
        (
            lambda d: (d / "xlnet_config.json").write_text("{"),
            ValueError,
            "xlnet_config.json is not JSON",
        ),
        (
            lambda d: (d / "xlnet_config.json").write_text('{"n_layer": 3}'),
            ValueError,
            "has no value, or an unknown value, for 'n_token'",
        ),
        (
            lambda d: edit_config(d, ff_activation="swish"),
            ValueError,
            "has no value, or an unknown value, for 'swish'",
        ),
        (
            lambda d: (d / "xlnet_config.json").write_text("[" * 10**5),
            ValueError,
            "xlnet_config.json is not JSON: maximum recursion",
        ),
        (
            lambda d: edit_config(d, n_layer="3"),
            ValueError,
            "xlnet_config.json: `num_layers` must be a positive integer. Received: .*'3'",
        ),
        (
            lambda d: edit_config(d, n_token=10**12),
            ValueError,
            "xlnet_config.json: it describes a model of [0-9,]+ parameters, but the checkpoint .*"
            "xlnet_model.ckpt has only",
        ),
        (
            lambda d: edit_config(d, n_layer=4),
            ValueError,
            "lacks 13 of 57 weights of the model: .*layer_3.* and 10 more",
        ),
        (
            lambda d: edit_config(d, n_layer=2),
            ValueError,
            "layer_2/.* in .*xlnet_model.ckpt is not a weight of the model that its configuration",
        ),
        (
            lambda d: edit_config(d, n_token=300),
            ValueError,
            r"lookup_table' .* has shape \(200, 32\), expected \(300, 32\) by its configuration",
        ),
        (
            lambda d: (d / "xlnet_model.ckpt.index").write_bytes(b"nonsense"),
            ValueError,
            "cannot be read as a checkpoint",
        ),
    ],
)
def test_bad_checkpoints(checkpoint, damage, error, message):
    damage(checkpoint)
    with pytest.raises(error, match=message):
        load_original(checkpoint)


def test_other_biases_are_a_contradiction(checkpoint):
    edit_config(checkpoint, untie_r=False)
    with pytest.raises(ValueError, match=r"r_w_bias' in .*xlnet_model.ckpt has shape \(3, 4, 8\)"):
        load_original(checkpoint)


def edit_values(directory, edit):
    values = values_of(directory / "xlnet_model.ckpt")
    edit(values)
    write_checkpoint(directory / "xlnet_model.ckpt", values)


def test_biases_of_too_few_layers(checkpoint):
    name = "model/transformer/r_w_bias"
    edit_values(checkpoint, lambda values: values.update({name: values[name][:2]}))
    with pytest.raises(
        ValueError, match=r"r_w_bias' in .* has shape \(2, 4, 8\), expected \(3, 4, 8\)"
    ):
        load_original(checkpoint)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_another_dtype_is_an_error(dtype, checkpoint):
    name = "model/transformer/layer_1/ff/layer_1/bias"
    edit_values(checkpoint, lambda values: values.update({name: values[name].astype(dtype)}))
    with pytest.raises(
        ValueError, match=f"layer_1/bias' in .* is of dtype {dtype}, expected float32"
    ):
        load_original(checkpoint)


def test_half_precision_that_is_asked_for(checkpoint):
    def halve(values):
        for name, value in values.items():
            values[name] = value.astype("float16") if value.dtype == "float32" else value

    edit_values(checkpoint, halve)
    model = load_original(checkpoint, dtype="float16")
    name = "model/transformer/word_embedding/lookup_table"
    embeddings = values_of(checkpoint / "xlnet_model.ckpt")[name]
    np.testing.assert_array_equal(model.token_embedding.embeddings, embeddings)


def test_foreign_checkpoint_is_an_error(checkpoint):
    write_checkpoint(
        checkpoint / "xlnet_model.ckpt", {"bert/embeddings/word_embeddings": np.ones((3, 2))}
    )
    message = "lacks 44 of 44 weights .* It has, for example, 'bert/embeddings/word_embeddings'"
    with pytest.raises(ValueError, match=message):
        load_original(checkpoint)


def test_truncated_data_is_an_error(checkpoint):
    path = checkpoint / "xlnet_model.ckpt.data-00000-of-00001"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match="'model/transformer/.*xlnet_model.ckpt cannot be read"):
        load_original(checkpoint)


@pytest.mark.parametrize(
    "name", ["xlnet_config.json", "xlnet_model.ckpt.index", "xlnet_model.ckpt.data-00000-of-00001"]
)
def test_symlinks_out_of_the_directory_are_refused(name, checkpoint, tmp_path):
    os.rename(checkpoint / name, tmp_path / name)
    (checkpoint / name).symlink_to(tmp_path / name)
    with pytest.raises(ValueError, match=f"{name} is a symlink to .*outside its directory"):
        load_original(checkpoint)


def test_prefix_of_a_training_checkpoint(checkpoint, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    for step in (100, 2000):
        values = values_of(checkpoint / "xlnet_model.ckpt")
        values["model/transformer/layer_0/ff/layer_1/bias"][:] = step
        write_checkpoint(run / f"model.ckpt-{step}", values)
    config_file = checkpoint / "xlnet_config.json"
    model = load_original(run / "model.ckpt-2000", config_file=config_file)
    bias = model.blocks[0].feed_forward.intermediate_dense.bias
    np.testing.assert_array_equal(bias, np.full(64, 2000.0))
    with pytest.raises(ValueError, match="several checkpoints.*model.ckpt-100.*pass the prefix"):
        load_original(run, config_file=config_file)
    with pytest.raises(FileNotFoundError, match="xlnet_config.json is missing"):
        load_original(run / "model.ckpt-100")


@pytest.mark.parametrize(
    "overrides, refused",
    [
        ({"hidden_dim": 64}, r"\['hidden_dim'\]"),
        ({"activation": "relu", "tie_attention_biases": True}, "'activation', 'tie_attention"),
        ({"num_classes": 3}, r"\['num_classes'\]"),
        ({"droput": 0.1}, r"\['droput'\] are fixed .* can be passed: .*'attention_dropout'"),
    ],
)
def test_overrides_that_a_checkpoint_fixes(overrides, refused, golden_dir):
    with pytest.raises(ValueError, match=refused):
        load_original(golden_dir / "tiny_ckpt", **overrides)


def test_unknown_tasks(golden_dir):
    with pytest.raises(ValueError, match="`task` must be one of .*'multiple_choice'"):
        load_original(golden_dir / "tiny_ckpt", task="translation")
    with pytest.raises(ValueError, match="no model for the task 'token_classifier'"):
        load_original(golden_dir / "tiny_ckpt", task="token_classifier")


# === Heads ===

HEADS = {
    "text_classifier": ["model/sequnece_summary/summary/{}", "model/classification_tiny/logit/{}"],
    "text_regressor": ["model/sequnece_summary/summary/{}", "model/regression_tiny/logit/{}"],
    "multiple_choice": ["model/sequnece_summary/summary/{}", "logits/dense/{}"],
}


@pytest.mark.parametrize("task", HEADS)
def test_fine_tuned_heads(task, fine_tuned):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = load_original(fine_tuned, task=task, dropout=0.3)
    values = values_of(fine_tuned / "xlnet_model.ckpt")
    layers = model.sequence_summary.dense, model.logits_dense
    for layer, name in zip(layers, HEADS[task], strict=True):
        np.testing.assert_array_equal(layer.kernel, values[name.format("kernel")])
        np.testing.assert_array_equal(layer.bias, values[name.format("bias")])
    assert model.dropout == model.backbone.dropout == 0.3


def test_a_text_task_comes_with_a_preprocessor(fine_tuned, checkpoint):
    model = load_original(fine_tuned, task="text_classifier")
    assert model.num_classes == 3
    assert model.preprocessor.tokenizer.remove_accents
    assert model.predict(["the turtle"], verbose=0).shape == (1, 3)
    plain = load_original(fine_tuned, task="text_classifier", preprocessor=None)
    assert plain.preprocessor is None


def test_damaged_vocabulary_is_named(fine_tuned, tmp_path):
    copy = shutil.copytree(fine_tuned, tmp_path / "copy")
    (copy / "spiece.model").write_bytes(b"no model")
    with pytest.raises(ValueError, match="spiece.model: `proto` must be a SentencePiece model"):
        load_original(copy, task="text_classifier")


def test_attention_pooling(fine_tuned, golden_checkpoint):
    model = load_original(fine_tuned, task="text_classifier", pooling="attention")
    read = golden_checkpoint("heads_ckpt")
    pooling = model.sequence_summary.pooling
    scope = "model/sequnece_summary"
    np.testing.assert_array_equal(pooling.query, read(f"{scope}/summary_bias"))
    ours = np.einsum("ndh->hnd", pooling.attention.output_dense.kernel)
    np.testing.assert_array_equal(ours, read(f"{scope}/abs_attn/o/kernel"))


def test_a_missing_head_is_named_in_a_warning(checkpoint):
    message = "has no fine-tuned 'model/sequnece_summary/summary/kernel', .*logits/dense/bias"
    with pytest.warns(UserWarning, match=message):
        model = load_original(checkpoint, task="multiple_choice")
    assert model.backbone.num_layers == 3
    with pytest.warns(UserWarning, match="'model/classification_tiny/logit/bias'"):
        load_original(checkpoint, task="text_classifier", num_classes=2, task_name="tiny")
    with pytest.raises(ValueError, match="pass `num_classes`"):
        load_original(checkpoint, task="text_classifier")


def test_a_missing_bias_is_the_only_one_named(fine_tuned, tmp_path):
    copy = shutil.copytree(fine_tuned, tmp_path / "copy")
    edit_values(copy, lambda values: values.pop("model/regression_tiny/logit/bias"))
    with pytest.warns(UserWarning) as caught:
        load_original(copy, task="text_regressor")
    (warning,) = caught
    assert "no fine-tuned 'model/regression_tiny/logit/bias': these" in str(warning.message)
    assert warning.filename == __file__


def test_heads_of_several_tasks(fine_tuned, tmp_path):
    copy = shutil.copytree(fine_tuned, tmp_path / "copy")
    edit_values(
        copy,
        lambda values: values.update(
            {
                "model/classification_imdb/logit/kernel": np.ones((32, 2), "float32"),
                "model/classification_imdb/logit/bias": np.ones(2, "float32"),
            }
        ),
    )
    with pytest.raises(ValueError, match=r"several heads: pass one of \['imdb', 'tiny'\]"):
        load_original(copy, task="text_classifier")
    assert load_original(copy, task="text_classifier", task_name="imdb").num_classes == 2
    with pytest.raises(ValueError, match=r"logit/kernel' in .* has shape \(32, 2\), .* \(32, 5\)"):
        load_original(copy, task="text_classifier", task_name="imdb", num_classes=5)


# === Out ===


@pytest.mark.parametrize(
    "source, task, left_out",
    [
        ("tiny_ckpt", "permutation_lm", {"global_step"}),
        ("qa_ckpt", "question_answering", set()),
        ("tied_ckpt", "permutation_lm", {"global_step"}),
    ],
)
def test_saving_gives_the_same_checkpoint(source, task, left_out, golden_dir, tmp_path):
    before = values_of(golden_dir / source / "xlnet_model.ckpt")
    model = load_original(golden_dir / source, task=task)
    save_original(model, tmp_path / "out")
    after = values_of(tmp_path / "out" / "xlnet_model.ckpt")
    slots = {name for name in before if name.endswith(("/adam_m", "/adam_v"))}
    assert set(before) - set(after) == left_out | slots
    assert set(after) <= set(before)
    for name, value in after.items():
        assert value.dtype == before[name].dtype
        np.testing.assert_array_equal(value, before[name])
    configs = [d / "xlnet_config.json" for d in (golden_dir / source, tmp_path / "out")]
    assert configs[0].read_text() == configs[1].read_text()


@pytest.mark.parametrize("task", HEADS)
def test_saving_heads(task, fine_tuned, tmp_path):
    model = load_original(fine_tuned, task=task)
    save_original(model, tmp_path, task_name="tiny")
    before = values_of(fine_tuned / "xlnet_model.ckpt")
    after = values_of(tmp_path / "xlnet_model.ckpt")
    heads = {name.format(kind) for name in HEADS[task] for kind in ("kernel", "bias")}
    encoder = {name for name in before if "transformer" in name and "mask_emb" not in name}
    assert set(after) == heads | encoder
    for name, value in after.items():
        np.testing.assert_array_equal(value, before[name])
    assert (tmp_path / "spiece.model").exists()


def test_what_the_original_does_not_have(tmp_path):
    def backbone(**arguments):
        return XLNetBackbone(20, 1, 2, 8, 8, **arguments)

    for model, message in [
        (backbone(activation="gelu"), "gelu_tanh', 'relu'.* a model with 'gelu'"),
        (backbone(layer_norm_epsilon=1e-6), "1e-12. Received: a model with 1e-06"),
        (XLNetTokenClassifier(backbone(), 2), "no model for the task 'token_classifier'"),
        (tf.keras.Sequential(), "must be an XLNetBackbone or a task model.*Sequential"),
    ]:
        with pytest.raises(ValueError, match=message):
            save_original(model, tmp_path / "out")
    quantized = backbone()
    quantized.quantize("int8")
    with pytest.raises(ValueError, match="`model` is quantized: .* of dtype int8"):
        save_original(quantized, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_lora_is_merged(tmp_path, rng):
    model = XLNetBackbone(20, 1, 2, 8, 8)
    dense = model.blocks[0].feed_forward.output_dense
    dense.enable_lora(2)
    dense.lora_kernel_b.assign(rng.normal(size=(2, 8)))
    save_original(model, tmp_path)
    inputs = {"token_ids": rng.integers(0, 20, (2, 5))}
    expected = model(inputs)["sequence_output"]
    merged = load_original(tmp_path)(inputs)["sequence_output"]
    np.testing.assert_allclose(merged, expected, atol=1e-6)


def test_half_precision_is_saved_as_float32(tmp_path):
    model = XLNetTextClassifier(XLNetBackbone(20, 1, 2, 8, 8, dtype="bfloat16"), 2)
    save_original(model, tmp_path)
    kernel = values_of(tmp_path / "xlnet_model.ckpt")["model/classification_task/logit/kernel"]
    assert kernel.dtype == "float32"
    np.testing.assert_array_equal(kernel, np.asarray(model.logits_dense.kernel, "float32"))
