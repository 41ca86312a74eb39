"""The authors' numbers: every variant of their model, over three segments with memory."""

import json

import keras
import numpy as np
import pytest

from keras_xlnet.checkpoints.huggingface import HUGGINGFACE
from keras_xlnet.checkpoints.transformer_xl_weights import transformer_xl_rows
from keras_xlnet.checkpoints.weight_mapping import match_weights
from keras_xlnet.models import TransformerXLLanguageModel
from keras_xlnet.preset_files.weights import model_weights

VARIANTS = (
    "base same_length clamp_len same_length_clamp pre_lnorm untie_r mem_len0 mem_len5 "
    "same_length_mem5 mem_len40 ext_len4 ext_len4_mem0 dhead dhead_big not_tied dembed "
    "dembed_tiedproj adaptive_div1 adaptive_div1_dembed adaptive_div1_dembed_untied adaptive_div2 "
    "adaptive_div2_untied_projs adaptive_div2_dembed adaptive_div2_not_tied"
).split()


@pytest.fixture(scope="module")
def files(golden_dir):
    folder = golden_dir / "transformer_xl"
    configs = json.loads((folder / "authors.json").read_text(encoding="utf-8"))
    with np.load(folder / "authors.npz") as arrays:
        return configs, dict(arrays)


def arrays_of(files, variant):
    """The arrays of a variant. Weights are stored in units of 1/256."""
    found = {}
    for key, value in files[1].items():
        name, _, rest = key.partition(":")
        if name == variant:
            found[rest] = value / np.float32(256) if rest.startswith("w/") else value
    return found


def new_model(config, **overrides):
    """A model with the authors' settings. Overlapping segments remember `tgt_len` rows."""
    cutoffs = config.get("cutoffs") or []
    ties = (config.get("tie_projs") or []) + [False] * 3
    arguments = {
        "vocabulary_size": config["n_token"],
        "num_layers": config["n_layer"],
        "num_heads": config["n_head"],
        "hidden_dim": config["d_model"],
        "intermediate_dim": config["d_inner"],
        "head_dim": config["d_head"],
        "embedding_dim": config.get("d_embed") or config["d_model"],
        "dropout": 0.0,
        "normalize_first": config["pre_lnorm"],
        "memory_length": config["mem_len"],
        "reuse_length": config["tgt_len"] if config["ext_len"] and config["mem_len"] else None,
        "clamp_length": config["clamp_len"] if config["clamp_len"] > 0 else None,
        "same_length": config["same_length"],
        "tie_attention_biases": not config["untie_r"],
        "cutoffs": cutoffs,
        "div_val": config.get("div_val", 1),
        "tie_embeddings": config.get("tie_weight", True),
        "tie_projections": ties[: len(cutoffs) + 1],
    }
    return TransformerXLLanguageModel(**arguments | overrides)


def matches_of(model, names):
    """The authors' names are those of Hugging Face without `transformer.`."""
    rows = transformer_xl_rows(model)
    for match in match_weights(model_weights(model), rows, HUGGINGFACE):
        name = match.name.removeprefix("transformer.")
        assert name in names, f"the authors have no {name}"
        yield name, match


def reversed_clusters(name, value):
    """The authors' PyTorch code counts the tails from the last column of the head."""
    return value[::-1] if name.startswith("crit.cluster_") else value


def load(model, arrays):
    weights = {key[2:]: value for key, value in arrays.items() if key.startswith("w/")}
    used = set()
    for name, match in matches_of(model, weights):
        match.weight.assign(match.to_model(reversed_clusters(name, weights[name])))
        used.add(name)
    assert used == set(weights), "weights of the authors that the model does not have"


def segment(arrays, k):
    return arrays[f"data/{k}"].T.astype("int32"), arrays[f"target/{k}"].T.astype("int32")


@pytest.mark.parametrize("variant", VARIANTS)
def test_three_segments_with_memory(variant, files):
    arrays, config = arrays_of(files, variant), files[0][variant]
    model = new_model(config)
    load(model, arrays)
    memory = {}
    for k in range(3):
        token_ids, targets = segment(arrays, k)
        outputs = model({"token_ids": token_ids, **memory})
        memory = {key: outputs[key] for key in ("memory", "memory_mask") if key in outputs}
        log_probs = np.asarray(outputs["log_probs"])[:, -targets.shape[1] :]
        losses = -np.take_along_axis(log_probs, targets[..., None], axis=2)[..., 0]
        np.testing.assert_allclose(losses, arrays[f"nll/{k}"].T, rtol=0, atol=1e-4)
    for layer in range(config["n_layer"]) if memory else ():
        expected = arrays[f"mems/2/{layer}"].transpose(1, 0, 2)
        found = np.asarray(memory["memory"])[:, layer, -expected.shape[1] :]
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("tail_share", [0.25, 0.9, 0])
@pytest.mark.parametrize("variant", ["pre_lnorm", "untie_r", "adaptive_div2"])
def test_gradients_of_the_loss_with_memory(variant, tail_share, files):
    if tail_share != 0.25 and variant != "adaptive_div2":
        pytest.skip("the share matters to an adaptive softmax only")
    import tensorflow as tf

    arrays = arrays_of(files, variant)
    model = new_model(files[0][variant])
    model.softmax.tail_share = tail_share
    load(model, arrays)
    first = model({"token_ids": segment(arrays, 0)[0]})
    memory = {key: first[key] for key in ("memory", "memory_mask")}
    token_ids, targets = segment(arrays, 1)
    inputs = {"token_ids": token_ids, **memory}
    with tf.GradientTape() as tape:
        loss = model.compute_loss(inputs, targets, model(inputs, training=True))
    np.testing.assert_allclose(float(loss), np.mean(arrays["nll/1"]), rtol=0, atol=2e-5)
    variables = model.trainable_variables
    found = tape.gradient(loss, [v.value for v in variables])
    gradients = {v.path: g for v, g in zip(variables, found, strict=True)}
    for name, match in matches_of(model, {key[7:] for key in arrays if "grad/1/" in key}):
        expected = match.to_model(reversed_clusters(name, arrays[f"grad/1/{name}"]))
        found = keras.ops.convert_to_numpy(tf.convert_to_tensor(gradients[match.weight.path]))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4, err_msg=name)


# === Continuations: the prompt is one segment, and each new token is another ===

CONTINUED = [
    ("base", 8),
    ("base", 64),
    ("adaptive_div2", 16),
    ("same_length_clamp", 8),
]


@pytest.fixture(scope="module", params=CONTINUED, ids=lambda param: f"{param[0]}-{param[1]}")
def continued(request, files, golden_dir):
    """A model, a prompt, a continuation, and what the authors' code finds with this memory."""
    variant, memory_length = request.param
    golden = json.loads((golden_dir / "transformer_xl" / "greedy.json").read_text("utf-8"))
    model = new_model(files[0][variant], memory_length=memory_length)
    load(model, arrays_of(files, variant))
    found = golden[variant]
    prompt, continuation = found["prompt"], found["continuation"]
    return model, prompt, continuation, found["by_memory_length"][str(memory_length)]


def test_greedy_continuation(continued):
    model, prompt, _, expected = continued
    found = model.generate([prompt], max_new_tokens=len(expected["greedy_ids"]))
    assert found.token_ids[0].tolist() == expected["greedy_ids"]
    np.testing.assert_allclose(found.log_probs[0], expected["greedy_log_probs"], atol=1e-4)


def test_log_probs_of_a_given_continuation(continued):
    model, prompt, continuation, expected = continued
    segments, memory, log_probs = [prompt, *([token] for token in continuation)], {}, []
    for segment, following in zip(segments, continuation, strict=False):
        outputs = model({"token_ids": np.array([segment]), **memory})
        log_probs.append(np.asarray(outputs["log_probs"])[0, -1, following])
        memory = {key: outputs[key] for key in ("memory", "memory_mask")}
    np.testing.assert_allclose(log_probs, expected["continuation_log_probs"], atol=1e-4)
