"""Directories of transformers, in and out. What needs no transformers is in the second half."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from keras_xlnet.checkpoints import load_huggingface, load_original, save_huggingface
from keras_xlnet.models import (
    XLNetBackbone,
    XLNetMultipleChoice,
    XLNetPermutationLM,
    XLNetQuestionAnswering,
    XLNetTextClassifier,
    XLNetTextRegressor,
    XLNetTokenClassifier,
)
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.examples import spam_messages
from tests.small_models import small_backbone

SIZES = {"vocab_size": 90, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 24}
LENGTH = 10
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed (extra: transformers)")


@pytest.fixture(scope="module")
def transformers(torch):
    reason = "transformers is not installed (extra: transformers)"
    module = pytest.importorskip("transformers", reason=reason)
    module.logging.set_verbosity_error()
    module.logging.disable_progress_bar()
    return module


@pytest.fixture(scope="module")
def batch():
    """Three rows with two segments, the second padded on the left."""
    rng = np.random.default_rng(7)
    padding_mask = np.ones((3, LENGTH), "bool")
    padding_mask[1, :4] = False
    return {
        "token_ids": rng.integers(0, 90, (3, LENGTH)),
        "segment_ids": rng.integers(0, 3, (3, LENGTH)),
        "padding_mask": padding_mask,
    }


@pytest.fixture
def make(transformers, torch, tmp_path):
    """`make("XLNetModel", **config)`: a model with distinct random weights, and its directory."""

    def make(name, shard=None, **config):
        torch.manual_seed(3)
        model = getattr(transformers, name)(transformers.XLNetConfig(**SIZES, **config)).eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, mean=0.1, std=0.4)
        options = {"max_shard_size": shard} if shard else {}
        model.save_pretrained(tmp_path / "theirs", **options)
        return model, tmp_path / "theirs"

    return make


@pytest.fixture
def reload(transformers, tmp_path):
    """`reload("XLNetModel", ours)`: what transformers reads, nothing missing and nothing left."""

    def reload(name, ours):
        save_huggingface(ours, tmp_path / "ours")
        model, report = getattr(transformers, name).from_pretrained(
            tmp_path / "ours", output_loading_info=True
        )
        assert not any(report.values()), report
        return model.eval()

    return reload


def call(torch, model, batch, **inputs):
    if not batch["padding_mask"].all():
        inputs["attention_mask"] = batch["padding_mask"].astype("float32")
    with torch.no_grad():
        return model(
            input_ids=torch.tensor(batch["token_ids"]),
            token_type_ids=torch.tensor(batch["segment_ids"]),
            **{key: torch.tensor(value) for key, value in inputs.items()},
        )


def assert_close(theirs, ours):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=0, atol=TOLERANCE)


# === The same numbers, both ways ===


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"ff_activation": "relu", "attn_type": "uni", "mem_len": None},
        {"ff_activation": "gelu_new", "clamp_len": 3, "layer_norm_eps": 1e-3},
        {"ff_activation": "silu", "mem_len": 8, "reuse_len": 5},
    ],
    ids=["default", "uni", "clamped", "reuse"],
)
def test_encoder(config, make, reload, torch, batch):
    model, directory = make("XLNetModel", **{"mem_len": 12, **config})
    if config.get("attn_type") == "uni":  # Theirs cannot add padding to a causal mask.
        batch = {**batch, "padding_mask": np.ones((3, LENGTH), "bool")}
    expected = call(torch, model, batch)
    ours = load_huggingface(directory)
    outputs = ours(batch)
    assert_close(expected.last_hidden_state, outputs["sequence_output"])
    if ours.memory_length:
        again = model(input_ids=torch.tensor(batch["token_ids"]), mems=expected.mems)
        second = ours({"token_ids": batch["token_ids"], "memory": outputs["memory"]})
        assert_close(again.last_hidden_state.detach(), second["sequence_output"])
    returned = reload("XLNetModel", ours)
    assert_close(expected.last_hidden_state, call(torch, returned, batch).last_hidden_state)


def test_permutation_lm(make, reload, torch, batch, rng):
    model, directory = make("XLNetLMHeadModel", mem_len=None)
    mask = rng.random((3, LENGTH, LENGTH)) < 0.6
    positions = np.stack([rng.permutation(LENGTH)[:4] for _ in range(3)])
    theirs = {
        "perm_mask": (~mask).astype("float32"),
        "target_mapping": np.eye(LENGTH, dtype="float32")[positions],
    }
    ours = load_huggingface(directory, task="permutation_lm")
    inputs = {**batch, "permutation_mask": mask, "target_positions": positions}
    expected = call(torch, model, batch, **theirs).logits
    assert_close(expected, ours(inputs)["logits"])
    returned = reload("XLNetLMHeadModel", ours)
    assert_close(expected, call(torch, returned, batch, **theirs).logits)


def test_untied_logits_are_refused(make, torch, batch):
    """Their softmax would have weights of its own."""
    model, directory = make("XLNetLMHeadModel", tie_word_embeddings=False)
    with pytest.raises(ValueError, match="config.json has `tie_word_embeddings` false: 'lm_loss.w"):
        load_huggingface(directory, task="permutation_lm")
    expected = call(torch, model.transformer, batch).last_hidden_state
    assert_close(expected, load_huggingface(directory)(batch)["sequence_output"])


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)


@pytest.mark.parametrize(
    "name, task, config, activate",
    [
        ("XLNetForSequenceClassification", "text_classifier", {"num_labels": 3}, softmax),
        (
            "XLNetForSequenceClassification",
            "text_classifier",
            {"num_labels": 4, "problem_type": "multi_label_classification"},
            lambda x: 1 / (1 + np.exp(-x)),
        ),
        ("XLNetForSequenceClassification", "text_regressor", {"num_labels": 1}, np.asarray),
        ("XLNetForTokenClassification", "token_classifier", {"num_labels": 5}, softmax),
        ("XLNetForTokenClassification", "token_classifier", {"num_labels": 1}, np.asarray),
    ],
    ids=["classes", "labels", "number", "tokens", "number_of_tokens"],
)
def test_texts_and_tokens(name, task, config, activate, make, reload, torch, batch):
    model, directory = make(name, **config)
    ours = load_huggingface(directory, task=task)
    expected = call(torch, model, batch).logits
    assert_close(activate(expected.numpy()), ours(batch))
    returned = reload(name, ours)
    assert_close(expected, call(torch, returned, batch).logits)
    assert returned.config.num_labels == config["num_labels"]
    assert returned.config.problem_type == config.get("problem_type", returned.config.problem_type)


@pytest.mark.parametrize("pooling", ["last", "first", "mean", "cls_index"])
def test_poolings_without_padding(pooling, make, torch, batch):
    model, directory = make("XLNetForSequenceClassification", summary_type=pooling)
    batch = {**batch, "padding_mask": np.ones((3, LENGTH), "bool")}
    batch["token_ids"] = np.where(batch["token_ids"] == 3, 4, batch["token_ids"])
    batch["token_ids"][:, -1] = 3  # <cls>
    ours = load_huggingface(directory, task="text_classifier")
    assert_close(softmax(call(torch, model, batch).logits.numpy()), ours(batch))


def test_multiple_choice(make, reload, torch, rng):
    model, directory = make("XLNetForMultipleChoice")
    batch = {
        "token_ids": rng.integers(0, 90, (2, 4, 7)),
        "segment_ids": rng.integers(0, 3, (2, 4, 7)),
        "padding_mask": np.arange(7) >= rng.integers(0, 4, (2, 4, 1)),
    }
    ours = load_huggingface(directory, task="multiple_choice")
    expected = call(torch, model, batch).logits
    assert_close(softmax(expected.numpy()), ours(batch))
    assert_close(expected, call(torch, reload("XLNetForMultipleChoice", ours), batch).logits)


def test_simple_question_answering_is_a_token_classifier(make, reload, torch, batch):
    model, directory = make("XLNetForQuestionAnsweringSimple")
    ours = load_huggingface(directory, task="token_classifier")
    assert ours.class_names == ["start", "end"]
    expected = call(torch, model, batch)
    expected = torch.stack([expected.start_logits, expected.end_logits], -1)
    assert_close(expected, ours(batch))
    returned = reload("XLNetForTokenClassification", ours)
    assert_close(expected, call(torch, returned, batch).logits)


def test_question_answering(make, reload, torch, batch, rng):
    model, directory = make("XLNetForQuestionAnswering", start_n_top=3, end_n_top=2)
    paragraph = rng.random((3, LENGTH)) < 0.7
    cls_index = np.array([9, 8, 9])
    theirs = {"p_mask": (~paragraph).astype("float32"), "cls_index": cls_index}
    ours = load_huggingface(directory, task="question_answering")
    outputs = ours({**batch, "paragraph_mask": paragraph, "cls_index": cls_index})
    expected = call(torch, model, batch, **theirs)
    # Theirs are probabilities in spite of the name, and their ends are ordered by ends first.
    assert_close(expected.start_top_log_probs, np.exp(outputs["start_top_log_probs"]))
    assert_close(expected.start_top_index, outputs["start_top_index"])
    ends = np.asarray(outputs["end_top_log_probs"]).reshape(3, 3, 2).swapaxes(1, 2).reshape(3, 6)
    assert_close(expected.end_top_log_probs, np.exp(ends))
    indices = np.asarray(outputs["end_top_index"]).reshape(3, 3, 2).swapaxes(1, 2).reshape(3, 6)
    assert_close(expected.end_top_index, indices)
    assert_close(expected.cls_logits, outputs["cls_logits"])
    returned = call(torch, reload("XLNetForQuestionAnswering", ours), batch, **theirs)
    assert_close(expected.end_top_log_probs, returned.end_top_log_probs)
    assert_close(expected.cls_logits, returned.cls_logits)


def test_shards(make, torch, batch):
    model, directory = make("XLNetForTokenClassification", shard="4KB", num_labels=3)
    assert len(list(directory.glob("model-*.safetensors"))) > 3
    ours = load_huggingface(directory, task="token_classifier")
    assert_close(softmax(call(torch, model, batch).logits.numpy()), ours(batch))
    index = directory / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    for name, message in [
        ("../away.safetensors", "is outside the directory"),
        ("/etc/passwd", "is outside the directory"),
        ("model-9.safetensors", "model-9.safetensors is missing"),
        ("model-00002-of-00002.safetensors", None),
    ]:
        shards = sorted(set(content["weight_map"].values()))
        name = shards[1] if message is None else name
        changed = {**content["weight_map"], "classifier.bias": name}
        index.write_text(json.dumps({"weight_map": changed}))
        with pytest.raises(
            (ValueError, FileNotFoundError), match=message or "in model-.*: it is not"
        ):
            load_huggingface(directory, task="token_classifier")


def test_original_to_transformers(golden, golden_dir, transformers, torch, tmp_path):
    save_huggingface(load_original(golden_dir / "tiny_ckpt"), tmp_path)
    model = transformers.XLNetModel.from_pretrained(tmp_path).eval()
    numbers = golden("encoder.npz")
    with torch.no_grad():
        output = model(
            input_ids=torch.tensor(numbers["input_ids"].T.astype("int64")),
            token_type_ids=torch.tensor(numbers["seg_ids"].T.astype("int64")),
            input_mask=torch.tensor(numbers["input_mask"].T),
        ).last_hidden_state
    assert_close(numbers["output"].swapaxes(0, 1), output)


# === Texts, with the defaults of transformers ===

SENTENCES = [
    "The turtle sat on 12,345 mats.",
    "(a) £5 - naïve – “quoted”",
    "a cat, a dog and 30, or 3.50 the",
]


@pytest.fixture
def texts_there(transformers, torch, tokenizer, tmp_path):
    """`texts_there("AutoModel", ours, texts)`: their outputs for texts, one by one and together."""

    def call(name, ours, *columns):
        save_huggingface(ours, tmp_path, tokenizer=tokenizer)
        model = getattr(transformers, name).from_pretrained(tmp_path).eval()
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
        with torch.no_grad():
            alone = [
                model(**theirs(*row, return_tensors="pt")) for row in zip(*columns, strict=True)
            ]
            batch = theirs(*columns, padding=True, return_tensors="pt")
            return alone, model(**batch), batch["attention_mask"].bool().numpy()

    return call


def test_summaries_of_texts(texts_there, tokenizer, rng):
    def assert_same(ours, activate, *columns):
        inputs = list(zip(*columns, strict=True)) if len(columns) > 1 else columns[0]
        expected = ours.predict(inputs, verbose=0)
        alone, together, _ = texts_there("AutoModelForSequenceClassification", ours, *columns)
        assert_close(expected, activate(together.logits.numpy()))
        assert_close(expected, activate(np.concatenate([row.logits for row in alone])))

    def classifier(**arguments):
        preprocessor = XLNetTextClassifier.preprocessor_cls(tokenizer)
        return XLNetTextClassifier(small_backbone(), 3, preprocessor, **arguments)

    def sigmoid(logits):
        return 1 / (1 + np.exp(-logits))

    assert_same(classifier(), softmax, SENTENCES)
    assert_same(classifier(pooling="first"), softmax, SENTENCES)
    assert_same(
        classifier(pooling="cls", activation="sigmoid"), sigmoid, SENTENCES, SENTENCES[::-1]
    )
    calibrated = classifier()
    calibrated.calibrate(SENTENCES * 2, np.array([0, 1, 2, 2, 1, 1]))
    assert_same(calibrated, softmax, SENTENCES)
    preprocessor = XLNetTextRegressor.preprocessor_cls(tokenizer)
    assert_same(XLNetTextRegressor(small_backbone(), preprocessor), np.asarray, SENTENCES)


def test_tokens_of_texts(texts_there, tokenizer):
    preprocessor = XLNetTextClassifier.preprocessor_cls(tokenizer)
    features = preprocessor.encode(SENTENCES).features
    backbone = small_backbone()
    tagger = XLNetTokenClassifier(backbone, 3)
    for name, ours, expected, attribute, activate in [
        (
            "AutoModel",
            backbone,
            backbone(features)["sequence_output"],
            "last_hidden_state",
            np.array,
        ),
        ("AutoModelForTokenClassification", tagger, tagger(features), "logits", softmax),
    ]:
        alone, together, is_real = texts_there(name, ours, SENTENCES)
        expected = np.asarray(expected)[np.asarray(features["padding_mask"])]
        assert_close(expected, activate(getattr(together, attribute).numpy())[is_real])
        rows = [getattr(row, attribute)[0].numpy() for row in alone]
        assert_close(expected, activate(np.concatenate(rows)))


def test_pairs_of_texts(transformers, torch, tokenizer, tmp_path):
    """Choices, and answers, whose model transformers has no `AutoModel` for."""
    choices = [["a mat", "30, or 3.50"], ["no", "the dog - a cat"]]
    ours = XLNetMultipleChoice(small_backbone(), XLNetMultipleChoice.preprocessor_cls(tokenizer))
    save_huggingface(ours, tmp_path / "choices")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "choices")
    model = transformers.AutoModelForMultipleChoice.from_pretrained(tmp_path / "choices").eval()
    texts = [text for text in SENTENCES[:2] for _ in range(2)]
    batch = theirs(texts, sum(choices, []), padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = model(**{key: value.reshape(2, 2, -1) for key, value in batch.items()}).logits
    inputs = {"text": SENTENCES[:2], "choices": choices}
    assert_close(ours.predict(inputs, verbose=0), softmax(logits.numpy()))

    preprocessor = XLNetQuestionAnswering.preprocessor_cls(tokenizer)
    ours = XLNetQuestionAnswering(small_backbone(), preprocessor, 3, 2)
    save_huggingface(ours, tmp_path / "answers")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "answers")
    model = transformers.XLNetForQuestionAnswering.from_pretrained(tmp_path / "answers").eval()
    batch = theirs(SENTENCES[::-1], SENTENCES, padding=True, return_tensors="pt")
    # Starts of answers are in the context, or at `<cls>`, as in the original.
    may_start = [[*(part == 0 for part in batch.sequence_ids(i)[:-1]), True] for i in range(3)]
    with torch.no_grad():
        outputs = model(**batch, p_mask=1 - torch.tensor(may_start).float())
    questions = {"question": SENTENCES, "context": SENTENCES[::-1]}
    expected = ours(preprocessor.encode(questions).features)
    assert_close(np.exp(expected["start_top_log_probs"]), outputs.start_top_log_probs)
    assert_close(expected["cls_logits"], outputs.cls_logits)


def test_the_next_token_of_texts(texts_there, torch, transformers, tokenizer, tmp_path):
    ours = XLNetPermutationLM(small_backbone())
    save_huggingface(ours, tmp_path, tokenizer=tokenizer)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    batch = theirs(SENTENCES, padding=True, return_tensors="pt")
    length = batch["input_ids"].shape[1]
    mask = np.arange(length)[:, None] > np.arange(length)
    target = np.eye(length, dtype="float32")[None, [length - 3]].repeat(3, axis=0)
    with torch.no_grad():
        hidden = torch.tensor(~mask).float().expand(3, -1, -1)
        logits = model(**batch, perm_mask=hidden, target_mapping=torch.tensor(target)).logits
    features = XLNetTextClassifier.preprocessor_cls(tokenizer).encode(SENTENCES).features
    # Ours are rounded up in length, on the left.
    features = {key: value[:, -length:] for key, value in features.items()}
    features["permutation_mask"] = np.broadcast_to(mask, (3, length, length))
    features["target_positions"] = np.full((3, 1), length - 3)
    assert_close(logits, ours(features)["logits"])


def test_without_the_names_of_inputs(transformers, torch, tmp_path):
    """How far means are from ours for a tokenizer of others, who do not name `token_type_ids`."""
    backbone = XLNetBackbone.from_preset("xlnet_mini_en")
    save_huggingface(backbone, tmp_path, XLNetTokenizer.from_preset("xlnet_mini_en"))
    model = transformers.AutoModel.from_pretrained(tmp_path).eval()

    def means():
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
        with torch.no_grad():
            rows = [model(**theirs(text, return_tensors="pt")) for text in spam_messages()[:8]]
        rows = np.stack([row.last_hidden_state[0].mean(axis=0) for row in rows])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    expected = means()
    file = tmp_path / "tokenizer_config.json"
    config = json.loads(file.read_text())
    del config["model_input_names"]
    file.write_text(json.dumps(config))
    cosines = (means() * expected).sum(axis=1)
    assert 0.94 < cosines.min() and cosines.max() < 0.99


# === Without transformers ===


def test_another_process_needs_no_torch(tmp_path):
    save_huggingface(XLNetBackbone(20, 1, 2, 8, 8), tmp_path)
    code = (
        "import sys; from keras_xlnet.checkpoints import load_huggingface; "
        f"load_huggingface({str(tmp_path)!r}); "
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def saved(tmp_path):
    """A classifier of three classes as a Hugging Face directory, to damage."""
    backbone = XLNetBackbone(20, 2, 2, 8, 12, dropout=0.2, clamp_length=5)
    names = ["bad", "so so", "good"]
    model = XLNetTextClassifier(backbone, 3, dropout=0.3, class_names=names)
    save_huggingface(model, tmp_path / "saved")
    return tmp_path / "saved"


def edit_config(directory, **changes):
    file = directory / "config.json"
    config = {**json.loads(file.read_text()), **changes}
    file.write_text(json.dumps({k: v for k, v in config.items() if v is not None}))


def edit_tensors(directory, edit):
    from safetensors.numpy import load_file, save_file

    tensors = load_file(directory / "model.safetensors")
    edit(tensors)
    save_file(tensors, directory / "model.safetensors")


def test_config_round_trip(saved):
    model = load_huggingface(saved, task="text_classifier")
    assert model.class_names == ["bad", "so so", "good"]
    assert (model.backbone.dropout, model.dropout, model.backbone.clamp_length) == (0.2, 0.3, 5)
    assert model.backbone.activation.__name__ == "gelu_tanh"
    assert json.loads((saved / "config.json").read_text())["ff_activation"] == "gelu_new"


def test_overrides(saved):
    model = load_huggingface(
        saved, task="text_classifier", dropout=0.0, activation="relu", dtype="mixed_bfloat16"
    )
    assert (model.backbone.dropout, model.dropout) == (0.0, 0.0)
    assert model.backbone.activation.__name__ == "relu"
    assert model.backbone.compute_dtype == "bfloat16"
    with pytest.raises(ValueError, match=r"\['hidden_dim', 'layers'\] are fixed .* passed: \['act"):
        load_huggingface(saved, hidden_dim=8, layers=3)


def test_memory_is_for_what_is_not_fine_tuned(saved):
    edit_config(saved, mem_len=6, reuse_len=2)
    assert load_huggingface(saved).memory_length == 6
    assert load_huggingface(saved, memory_length=None).memory_length is None
    model = load_huggingface(saved, task="text_classifier")
    assert model.backbone.memory_length is None


def test_null_is_the_same_as_nothing(saved):
    file = saved / "config.json"
    config = json.loads(file.read_text())
    required = {"model_type", "vocab_size", "d_model", "n_layer", "n_head", "d_inner", "id2label"}
    file.write_text(json.dumps({k: v if k in required else None for k, v in config.items()}))
    with pytest.warns(UserWarning, match="erf form"):
        model = load_huggingface(saved, task="text_classifier")
    assert model.backbone.clamp_length is None
    assert (model.backbone.dropout, model.dropout, model.activation) == (0.1, 0.1, "softmax")


def test_same_length_is_not_looked_at_in_both_directions(saved):
    edit_config(saved, same_length=True)
    assert not load_huggingface(saved).same_length
    assert load_huggingface(saved, attention_type="uni", same_length=True).same_length
    edit_config(saved, attn_type="uni")
    assert load_huggingface(saved).same_length


def test_gelu_of_a_conversion_gives_a_warning(saved):
    edit_config(saved, ff_activation="gelu")
    with pytest.warns(UserWarning, match="erf form.* pass activation='gelu_tanh'"):
        assert load_huggingface(saved).activation.__name__ == "gelu"
    assert load_huggingface(saved, activation="gelu_tanh").activation.__name__ == "gelu_tanh"


def test_a_tokenizer_without_segments_gives_a_warning(saved, tokenizer):
    backbone = XLNetBackbone(200, 1, 2, 8, 12)
    save_huggingface(XLNetTextClassifier(backbone, 2), saved, tokenizer=tokenizer)
    file = saved / "tokenizer_config.json"
    edit_config(saved, transformers_version="5.1.0")
    load_huggingface(saved, task="text_classifier")
    config = json.loads(file.read_text())
    for names, version in ((None, "5.1.0"), (["input_ids"], "4.30.0")):
        edit_config(saved, transformers_version=version)
        file.write_text(json.dumps({**config, "model_input_names": names}))
        with pytest.warns(UserWarning, match="makes no `token_type_ids` in transformers"):
            load_huggingface(saved, task="text_classifier")


def test_a_missing_head_is_named_in_a_warning(saved):
    with pytest.warns(UserWarning, match="no fine-tuned 'start_logits.dense.weight', .*answer_cla"):
        load_huggingface(saved, task="question_answering")
    backbone = load_huggingface(saved)
    assert backbone.num_layers == 2


def test_shared_biases_are_written_for_every_layer(tmp_path, rng):
    model = XLNetPermutationLM(XLNetBackbone(20, 2, 2, 8, 12, tie_attention_biases=True))
    save_huggingface(model, tmp_path)
    inputs = {
        "token_ids": rng.integers(0, 20, (2, 5)),
        "permutation_mask": rng.random((2, 5, 5)) < 0.5,
        "target_positions": np.array([[1, 4], [0, 2]]),
    }
    for overrides in {}, {"tie_attention_biases": True}:
        loaded = load_huggingface(tmp_path, task="permutation_lm", **overrides)
        np.testing.assert_allclose(loaded(inputs)["logits"], model(inputs)["logits"], atol=1e-6)


def test_different_biases_cannot_be_loaded_as_shared_ones(tmp_path):
    save_huggingface(XLNetBackbone(20, 2, 2, 8, 12), tmp_path)
    message = (
        "content_bias' is one weight of the model, but 'layer.0.rel_attn.r_w_bias' and 'layer.1"
    )
    with pytest.raises(ValueError, match=message):
        load_huggingface(tmp_path, tie_attention_biases=True)


def test_pooling_by_attention_has_no_names(saved):
    with pytest.raises(ValueError, match="has no name for the weight 'sequence_summary/pooling/"):
        load_huggingface(saved, task="text_classifier", pooling="attention")


BAD_DIRECTORIES = {
    "no-config": (lambda d: (d / "config.json").unlink(), "config.json is missing"),
    "config-not-json": (lambda d: (d / "config.json").write_text("{"), "config.json is not JSON"),
    "config-list": (lambda d: (d / "config.json").write_text("[]"), "must hold a JSON object"),
    "bert": (lambda d: edit_config(d, model_type="bert"), "`model_type` 'bert', not 'xlnet'"),
    "no-size": (lambda d: edit_config(d, d_model=None), r"config.json has no \['d_model'\]"),
    "activation": (
        lambda d: edit_config(d, ff_activation="mish"),
        "`ff_activation` 'mish', expected one of",
    ),
    "summary": (
        lambda d: edit_config(d, summary_type="attn"),
        "`summary_type` 'attn', expected one",
    ),
    "no-projection": (lambda d: edit_config(d, summary_use_proj=False), "use_proj` False, but"),
    "nested": (
        lambda d: (d / "config.json").write_text("[" * 10**5),
        "config.json is not JSON: maximum recursion",
    ),
    "text-for-a-number": (
        lambda d: edit_config(d, clamp_len="5"),
        "config.json has `clamp_len` '5', expected int",
    ),
    "number-for-a-list": (
        lambda d: edit_config(d, architectures=3),
        "config.json has `architectures` 3, expected list",
    ),
    "no-heads": (
        lambda d: edit_config(d, n_head=0, d_head=None),
        "config.json: `num_heads` must be a positive integer",
    ),
    "dropout": (lambda d: edit_config(d, dropout=2), "config.json: `dropout` must be a dropout"),
    "problem": (lambda d: edit_config(d, problem_type="x"), "config.json has `problem_type` 'x'"),
    "labels": (
        lambda d: edit_config(d, id2label={"a": "b"}),
        "config.json has `id2label` {'a': 'b'}, expected names by number",
    ),
    "labels-of-other-numbers": (
        lambda d: edit_config(d, id2label={"1": "a", "2": "b", "3": "c"}),
        "config.json has `id2label` {'1': 'a', '2': 'b', '3': 'c'}, expected names by number",
    ),
    "reversed-half": (
        lambda d: edit_config(d, bi_data=True),
        "config.json has `bi_data` True, .*Pass `bidirectional_data`",
    ),
    "endless": (
        lambda d: edit_config(d, n_layer=10**12),
        "config.json: it describes a model of [0-9,]+ parameters, but the checkpoint .* has only",
    ),
    "few-layers": (
        lambda d: edit_config(d, n_layer=1),
        "'transformer.layer.1.* is not a weight of the model that its conf",
    ),
    "many-layers": (lambda d: edit_config(d, n_layer=3), "lacks 17 of 56 weights"),
    "vocabulary": (
        lambda d: edit_config(d, vocab_size=21),
        r"word_embedding.weight' in .*model.safetensors has shape \(20, 8\), expected \(21, 8\)",
    ),
    "no-weights": (
        lambda d: (d / "model.safetensors").unlink(),
        "model.safetensors is missing",
    ),
    "truncated": (
        lambda d: (d / "model.safetensors").write_bytes(
            (d / "model.safetensors").read_bytes()[:-10]
        ),
        "model.safetensors cannot be read as safetensors",
    ),
    "not-safetensors": (
        lambda d: (d / "model.safetensors").write_bytes(b"not at all"),
        "model.safetensors cannot be read as safetensors",
    ),
    "foreign": (
        lambda d: edit_tensors(d, lambda t: (t.clear(), t.update(x=np.ones(3)))),
        "lacks 35 of 35 weights .* for example, 'x'",
    ),
    "integers": (
        lambda d: edit_tensors(
            d, lambda t: t.update({"logits_proj.bias": t["logits_proj.bias"].astype("int64")})
        ),
        "logits_proj.bias' in .*model.safetensors is of dtype int64, expected float32",
    ),
    "undeclared-half": (
        lambda d: edit_tensors(
            d, lambda t: t.update({"logits_proj.bias": t["logits_proj.bias"].astype("float16")})
        ),
        "logits_proj.bias' in .* is of dtype float16, expected float32. .* pass dtype='float16'",
    ),
}


@pytest.mark.parametrize("damage, message", BAD_DIRECTORIES.values(), ids=BAD_DIRECTORIES)
def test_bad_directories(damage, message, saved):
    damage(saved)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        load_huggingface(saved, task="text_classifier")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_declared_half_precision(dtype, saved):
    expected = load_huggingface(saved)

    def halve(tensors):
        for name in tensors:
            tensors[name] = tensors[name].astype(dtype)

    edit_tensors(saved, halve)
    edit_config(saved, dtype=dtype)
    model = load_huggingface(saved)
    assert model.dtype == "float32"
    for ours, before in zip(model.weights, expected.weights, strict=True):
        np.testing.assert_array_equal(ours, np.asarray(before).astype(dtype).astype("float32"))


def test_pickles_are_refused_with_what_to_do(saved):
    os.rename(saved / "model.safetensors", saved / "pytorch_model.bin")
    message = "pytorch_model.bin is a PyTorch pickle, .*import XLNetForSequenceClassification as M"
    with pytest.raises(ValueError, match=message):
        load_huggingface(saved)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_symlinks_out_of_the_directory_are_refused(name, saved, tmp_path):
    os.rename(saved / name, tmp_path / name)
    (saved / name).symlink_to(tmp_path / name)
    with pytest.raises(ValueError, match=f"{name} is a symlink to .*outside its directory"):
        load_huggingface(saved)


def test_what_transformers_does_not_have(tmp_path):
    def backbone(**arguments):
        return XLNetBackbone(20, 1, 2, 8, 8, **arguments)

    for model, message in [
        (backbone(head_dim=3), r"num_heads \* head_dim = hidden_dim. Received: 2 \* 3 and 8"),
        (backbone(activation="tanh"), "a model with 'tanh'"),
        (XLNetTextClassifier(backbone(), 2, pooling="attention"), "no pooling 'attention'"),
    ]:
        with pytest.raises(ValueError, match=message):
            save_huggingface(model, tmp_path / "out")
    quantized = XLNetTokenClassifier(backbone(), 2)
    quantized.quantize("int8")
    with pytest.raises(ValueError, match="`model` is quantized: .* of dtype int8"):
        save_huggingface(quantized, tmp_path / "out")
    assert not (tmp_path / "out").exists()
