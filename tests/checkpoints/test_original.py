"""Bad checkpoints get an error that names the file and the variable. Good ones are golden tests."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.checkpoints import load_original


@pytest.fixture
def checkpoint(tmp_path, golden_dir):
    return shutil.copytree(golden_dir / "tiny_ckpt", tmp_path / "checkpoint")


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
        (lambda d: shutil.rmtree(d), FileNotFoundError, "xlnet_config.json is missing"),
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
            "has no or no known value for 'n_token'",
        ),
        (
            lambda d: edit_config(d, ff_activation="swish"),
            ValueError,
            "has no or no known value for 'swish'",
        ),
        (
            lambda d: edit_config(d, n_layer=4),
            ValueError,
            "seg_embed' .* is of 3 layers, but xlnet_config.json says n_layer=4",
        ),
        (
            lambda d: edit_config(d, n_layer=2),
            ValueError,
            "seg_embed' .* is of 3 layers, but xlnet_config.json says n_layer=2",
        ),
        (
            lambda d: edit_config(d, n_token=300),
            ValueError,
            r"lookup_table' .* has shape \(200, 32\), but xlnet_config.json makes it \(300, 32\)",
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


def test_foreign_checkpoint_is_an_error(checkpoint, golden_dir):
    shutil.copytree(golden_dir / "heads_ckpt", checkpoint, dirs_exist_ok=True)
    with pytest.raises(ValueError, match="has no variable 'model/transformer/word_embedding/"):
        load_original(checkpoint)


def test_truncated_data_is_an_error(checkpoint):
    path = checkpoint / "xlnet_model.ckpt.data-00000-of-00001"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match="Variable 'model/transformer/.*cannot be read"):
        load_original(checkpoint)
