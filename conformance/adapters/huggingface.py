"""transformers of Hugging Face, with `gelu_new`: the GELU of the original."""

import re
import shutil
import tempfile

import torch
import transformers

VERSIONS = f"transformers {transformers.__version__}, torch {torch.__version__}"
RENAMED = [
    (r"^model/transformer/word_embedding/lookup_table$", "transformer.word_embedding.weight"),
    (r"^model/transformer/mask_emb/mask_emb$", "transformer.mask_emb"),
    (
        r"^model/transformer/layer_(\d+)/rel_attn/LayerNorm/",
        r"transformer.layer.\1.rel_attn.layer_norm/",
    ),
    (r"^model/transformer/layer_(\d+)/ff/LayerNorm/", r"transformer.layer.\1.ff.layer_norm/"),
    (r"^model/transformer/layer_(\d+)/ff/layer_(\d)/", r"transformer.layer.\1.ff.layer_\2/"),
    (r"^model/transformer/layer_(\d+)/rel_attn/(\w)/kernel$", r"transformer.layer.\1.rel_attn.\2"),
    (r"^model/lm_loss/", "lm_loss/"),
    (r"^model/sequnece_summary/summary/", "sequence_summary.summary/"),
    (r"^(start_logits)/dense/", r"\1.dense/"),
    (r"^(end_logits|answer_class)/(dense_\d|LayerNorm)/", r"\1.\2/"),
]


def load(config, weights, kind="XLNetModel", head=None, num_labels=2, **settings):
    sizes = {
        "vocab_size": config["vocabulary_size"],
        "n_layer": config["num_layers"],
        "n_head": config["num_heads"],
        "d_model": config["hidden_dim"],
        "d_inner": config["intermediate_dim"],
        "layer_norm_eps": config["layer_norm_epsilon"],
    }
    made = transformers.XLNetConfig(
        **sizes, ff_activation="gelu_new", dropout=0.0, summary_last_dropout=0.0,
        num_labels=num_labels, **settings,
    )  # fmt: skip
    model = getattr(transformers, kind)(made).eval()
    state = {name: torch.tensor(value) for name, value in converted(weights, head)}
    if kind == "XLNetModel":
        state = {name.removeprefix("transformer."): value for name, value in state.items()}
    missing, _ = model.load_state_dict(state, strict=False)
    assert not set(missing) - {"lm_loss.weight", "mask_emb", "transformer.mask_emb"}, missing
    return model


def converted(weights, head):
    for name, value in weights.items():
        per_layer = re.fullmatch(r"model/transformer/(r_._bias|seg_embed)", name)
        if per_layer:
            for layer, part in enumerate(value):
                yield f"transformer.layer.{layer}.rel_attn.{per_layer[1]}", part
            continue
        for pattern, new in RENAMED:
            name = re.sub(pattern, new, name)
        if head and name.startswith(head):
            name = name.replace(head, "logits_proj", 1)
        value = value.T if name.endswith("/kernel") else value
        name = re.sub("/(kernel|gamma)$", ".weight", name)
        yield re.sub("/(bias|beta)$", ".bias", name), value


def inputs_of(token_ids, segment_ids=None, padding_mask=None):
    inputs = {"input_ids": torch.tensor(token_ids).long()}
    if segment_ids is not None:
        inputs["token_type_ids"] = torch.tensor(segment_ids).long()
    if padding_mask is not None:
        inputs["attention_mask"] = torch.tensor(padding_mask).float()
    return inputs


@torch.no_grad()
def encode(config, weights, **inputs):
    return load(config, weights)(**inputs_of(**inputs)).last_hidden_state


def settings_of(memory_length=None, reuse_length=None, clamp_length=None, bidirectional_data=False):
    return {
        "mem_len": memory_length,
        "reuse_len": reuse_length,
        "clamp_len": clamp_length or -1,
        "bi_data": bidirectional_data,
    }


@torch.no_grad()
def encode_segments(
    config, weights, token_ids, segment_ids, is_causal, begins_with_zeros, **settings
):
    attention = {"attn_type": "uni" if is_causal else "bi"}
    model = load(config, weights, **settings_of(**settings), **attention)
    shape = settings["memory_length"], len(token_ids[0]), config["hidden_dim"]
    mems = [torch.zeros(shape)] * config["num_layers"] if begins_with_zeros else None
    for ids, segments in zip(token_ids, segment_ids, strict=True):
        outputs = model(**inputs_of(ids, segments), mems=mems, use_mems=True)
        mems = outputs.mems
    return outputs.last_hidden_state


def targets_of(config, weights, may_attend, target_positions, memory=None, **inputs):
    settings = {k: inputs.pop(k) for k in list(inputs) if not k.endswith("_ids")}
    model = load(config, weights, "XLNetLMHeadModel", **settings_of(**settings))
    length = may_attend.shape[1]
    mapping = torch.nn.functional.one_hot(torch.tensor(target_positions).long(), length).float()
    mems = None if memory is None else [torch.tensor(layer.swapaxes(0, 1)) for layer in memory]
    perm_mask = torch.tensor(~may_attend).float()
    outputs = model(
        **inputs_of(**inputs), perm_mask=perm_mask, target_mapping=mapping, mems=mems, use_mems=True
    )
    return model, outputs.logits


@torch.no_grad()
def predict_targets(*args, **inputs):
    return targets_of(*args, **inputs)[1]


def loss_of(config, weights, targets, is_target, **inputs):
    model, logits = targets_of(config, weights, **inputs)
    where = torch.tensor(is_target)
    targets = torch.tensor(targets).long()[where]
    return model, torch.nn.functional.cross_entropy(logits[where], targets)


@torch.no_grad()
def pretraining_loss(*args, **inputs):
    return loss_of(*args, **inputs)[1]


def pretraining_gradients(config, weights, **inputs):
    model, loss = loss_of(config, weights, **inputs)
    loss.backward()
    found = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    gradients = {}
    for name, value in weights.items():
        theirs = [n for n, _ in converted({name: value}, None)]
        if all(n in found for n in theirs):
            parts = [found[n] for n in theirs]
            stacked = torch.stack(parts) if len(parts) > 1 else parts[0]
            gradients[name] = (
                stacked.T if name.endswith(("layer_1/kernel", "layer_2/kernel")) else stacked
            )
    return gradients


@torch.no_grad()
def classify(config, weights, **inputs):
    kind, head = "XLNetForSequenceClassification", "model/classification_tiny/logit"
    return load(config, weights, kind, head, num_labels=3)(**inputs_of(**inputs)).logits


@torch.no_grad()
def regress(config, weights, **inputs):
    kind, head = "XLNetForSequenceClassification", "model/regression_tiny/logit"
    return load(config, weights, kind, head, num_labels=1)(**inputs_of(**inputs)).logits[:, 0]


@torch.no_grad()
def choose(config, weights, **inputs):
    return load(config, weights, "XLNetForMultipleChoice", "logits/dense")(
        **inputs_of(**inputs)
    ).logits


@torch.no_grad()
def answer(config, weights, is_context, cls_index, num_starts, num_ends, **inputs):
    beams = {"start_n_top": num_starts, "end_n_top": num_ends}
    model = load(config, weights, "XLNetForQuestionAnswering", **beams)
    masks = {
        "cls_index": torch.tensor(cls_index).long(),
        "p_mask": torch.tensor(~is_context).float(),
    }
    return {key: value for key, value in model(**inputs_of(**inputs), **masks).items()}


def tokenize(vocabulary, texts, lowercase):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(vocabulary, folder)
        tokenizer = transformers.XLNetTokenizer.from_pretrained(folder, do_lower_case=lowercase)
    return [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
