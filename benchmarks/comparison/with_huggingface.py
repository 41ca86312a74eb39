"""Hugging Face transformers on PyTorch: the reference."""

import contextlib
import os

import numpy as np
import torch
import transformers

from benchmarks.comparison import workloads
from benchmarks.comparison.loops import answering, calling

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
VERSIONS = {"torch": torch.__version__, "transformers": transformers.__version__}


def multiply(workload, dtype="float32"):
    shape = (workloads.MATMUL_SIZE, workloads.MATMUL_SIZE)
    a, b = (torch.rand(shape).to(DEVICE, getattr(torch, dtype)) for _ in range(2))
    return calling(lambda: (a @ b)[0, 0].item(), versions=VERSIONS)


def encode(workload, dtype="float32", compiled=False):
    model = _for_inference(transformers.XLNetModel(_config(workload)), dtype)
    inputs = _token_tensors(workload)
    call = torch.compile(model) if compiled else model

    @torch.no_grad()
    def forward():
        return call(**inputs, use_mems=False).last_hidden_state.float().cpu().numpy()

    return calling(forward, **_facts(model))


def finetune(workload, **options):
    model = transformers.XLNetForSequenceClassification(_config(workload, num_labels=2))
    model = model.to(DEVICE).train()
    inputs = _token_tensors(workload)
    inputs["labels"] = torch.tensor(workloads.token_batch(workload)["labels"], device=DEVICE)
    return _training(model, lambda call: call(**inputs, use_mems=False), **options)


def pretrain(workload, **options):
    config = _config(workload, mem_len=workload.memory_length or None)
    model = transformers.XLNetLMHeadModel(config).to(DEVICE).train()
    batch = workloads.pretraining_batch(workload)
    one_hot = np.eye(workload.length, dtype="float32")
    inputs = {
        "input_ids": torch.tensor(batch["token_ids"]).long(),
        "token_type_ids": torch.tensor(batch["segment_ids"]).long(),
        "perm_mask": torch.tensor(~batch["permutation_mask"]).float(),
        "target_mapping": torch.tensor(one_hot[batch["target_positions"]]),
        "labels": torch.tensor(batch["labels"]).long(),
    }
    inputs = {name: value.to(DEVICE) for name, value in inputs.items()}
    inputs["use_mems"] = bool(workload.memory_length)
    memory = {"mems": None}

    def forward(call):
        output = call(**inputs, **memory)
        if workload.memory_length:
            memory["mems"] = [layer.detach() for layer in output.mems]
        return output

    return _training(model, forward, **options)


def generate(workload, dtype="float32"):
    # `generate` with bfloat16 weights fails on a product of two dtypes.
    model = _for_inference(transformers.XLNetLMHeadModel(_config(workload)), "float32")
    ids, count = torch.tensor(workloads.prompt(), device=DEVICE), workload.units
    settings = {"do_sample": False, "min_new_tokens": count, "max_new_tokens": count}

    def call():
        with _autocast(dtype):
            return model.generate(ids, **settings)[:, -count:].cpu().numpy()

    return calling(call, **_facts(model))


def tokenize(workload):
    tokenizer = _tokenizer()
    texts = workloads.texts(workload.units)

    def call():
        ids = tokenizer(texts, add_special_tokens=False)["input_ids"]
        return sum(map(len, ids))

    return calling(call, versions=VERSIONS)


def serve_texts(workload, dtype="float32", padding="max_length"):
    tokenizer, model = _text_classifier(workload)
    answer = _probabilities(tokenizer, _for_inference(model, dtype), workload, padding)
    return answering(answer, workloads.texts(1024), workload, **_facts(model))


def predict_texts(workload, dtype="float32"):
    tokenizer, model = _text_classifier(workload)
    model = _for_inference(model, dtype)
    classify = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)

    def answer(texts):
        return np.array([[found["score"]] for found in classify(texts)])

    return answering(answer, workloads.texts(1024), workload, **_facts(model))


def predict_many_texts(workload, group_by_length=False):
    """Batches in the order of the texts, or by length, each padded to its longest one."""
    tokenizer, model = _text_classifier(workload)
    predict = _probabilities(tokenizer, _for_inference(model, "float32"), workload, True)
    texts, size = workloads.texts(workload.units), workload.batch_size
    if group_by_length:
        texts.sort(key=len)
    batches = [texts[begin : begin + size] for begin in range(0, len(texts), size)]
    return calling(lambda: np.concatenate(list(map(predict, batches))), **_facts(model))


def fit_texts(workload, group_by_length=False):
    """An epoch of a plain training loop, each batch padded to its longest text."""
    tokenizer, model = _text_classifier(workload)
    texts = workloads.texts(workload.units)

    def encode():
        encoded = tokenizer(texts, truncation=True, max_length=workload.length)
        return {**encoded, "labels": np.arange(len(texts)) % 2}

    return _fitting(model, tokenizer, encode, workload, group_by_length)


def fit_answers(workload, group_by_length=False):
    """The same on windows of contexts, with the labels of the example scripts of transformers."""
    tokenizer = _tokenizer()
    config = _config(workload, vocab_size=len(tokenizer))
    model = transformers.XLNetForQuestionAnsweringSimple(config)
    asked, contexts, starts, answers = zip(*workloads.questions(workload.units), strict=True)

    def encode():
        encoded = tokenizer(
            asked,
            contexts,
            truncation="only_second",
            max_length=workload.length,
            stride=workloads.OVERLAP,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        spans = encoded.pop("offset_mapping")
        labels = []
        for window, row in enumerate(encoded.pop("overflow_to_sample_mapping")):
            parts = zip(encoded.sequence_ids(window), spans[window], strict=True)
            context = [(i, span) for i, (part, span) in enumerate(parts) if part == 1]
            found = [
                [i for i, (begin, end) in context if begin <= character < end]
                for character in (starts[row], starts[row] + len(answers[row]) - 1)
            ]
            # A window without the answer has it at <cls>, the last token.
            cls = len(spans[window]) - 1
            labels.append([tokens[0] for tokens in found] if all(found) else [cls, cls])
        first, last = np.transpose(labels)
        return {**encoded, "start_positions": first, "end_positions": last}

    return _fitting(model, tokenizer, encode, workload, group_by_length)


def _fitting(model, tokenizer, encode, workload, group_by_length):
    optimizer = torch.optim.AdamW(model.to(DEVICE).train().parameters(), lr=5e-5)

    def call():
        encoded = encode()
        count = len(encoded["input_ids"])
        rows = [{key: encoded[key][i] for key in encoded} for i in range(count)]
        losses = []
        for inputs in _batches(rows, tokenizer, workload.batch_size, group_by_length):
            optimizer.zero_grad()
            loss = model(**inputs.to(DEVICE), use_mems=False).loss
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return np.mean(losses)

    return calling(call, **_facts(model))


def _batches(rows, tokenizer, batch_size, group_by_length):
    """Shuffled batches, as the `Trainer` of transformers makes them."""
    order = {"shuffle": True}
    if group_by_length:
        lengths = [len(row["input_ids"]) for row in rows]
        sampler = transformers.trainer_pt_utils.LengthGroupedSampler
        order = {"sampler": sampler(batch_size, lengths=lengths)}
    padded = transformers.DataCollatorWithPadding(tokenizer)
    return torch.utils.data.DataLoader(rows, batch_size, collate_fn=padded, **order)


def _config(workload, **more):
    sizes = {
        "vocab_size": workloads.VOCABULARY_SIZE,
        "d_model": workload.dim,
        "n_layer": workload.num_layers,
        "n_head": workload.num_heads,
        "d_inner": workload.intermediate_dim,
        "dropout": workloads.DROPOUT,
    }
    return transformers.XLNetConfig(**{**sizes, **more})


def _for_inference(model, dtype):
    return model.eval().to(DEVICE, getattr(torch, dtype))


def _token_tensors(workload):
    batch = workloads.token_batch(workload)
    inputs = {
        "input_ids": torch.tensor(batch["token_ids"]).long(),
        "token_type_ids": torch.tensor(batch["segment_ids"]).long(),
        "attention_mask": torch.tensor(batch["padding_mask"]).float(),
    }
    return {name: value.to(DEVICE) for name, value in inputs.items()}


def _training(model, forward, dtype="float32", compiled=False, fused=False):
    """Training steps; `forward` gets the model, possibly compiled by `torch.compile`."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused or None)
    call = torch.compile(model) if compiled else model

    def step():
        optimizer.zero_grad()
        with _autocast(dtype):
            loss = forward(call).loss
        loss.backward()
        optimizer.step()
        return loss.item()

    return calling(step, **_facts(model))


def _text_classifier(workload):
    tokenizer = _tokenizer()
    config = _config(workload, num_labels=2, vocab_size=len(tokenizer))
    return tokenizer, transformers.XLNetForSequenceClassification(config)


def _probabilities(tokenizer, model, workload, padding):
    """A function from texts to probabilities."""
    settings = {"padding": padding, "truncation": True, "max_length": workload.length}

    @torch.no_grad()
    def answer(texts):
        inputs = tokenizer(texts, return_tensors="pt", **settings).to(DEVICE)
        return model(**inputs, use_mems=False).logits.float().softmax(-1).cpu().numpy()

    return answer


def _autocast(dtype):
    if dtype == "float32":
        return contextlib.nullcontext()
    return torch.autocast(DEVICE, getattr(torch, dtype))


def _tokenizer():
    """The tokenizer of `tokenizers` (Rust), the only one in transformers 5."""
    return transformers.XLNetTokenizer.from_pretrained(os.path.dirname(workloads.vocabulary_file()))


def _facts(model):
    return {"versions": VERSIONS, "parameters": sum(p.numel() for p in model.parameters())}
