"""Writes `conformance/cases` from the numbers of the original implementations in `tests/golden`.

python conformance/make_cases.py

Needs TensorFlow, to read the original's checkpoints. The cases themselves need NumPy only.
"""

import json
import pathlib

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file

ROOT = pathlib.Path(__file__).parent
GOLDEN = ROOT.parent / "tests" / "golden"
CASES = ROOT / "cases"
CONFIG = {
    "vocabulary_size": 200,
    "num_layers": 3,
    "num_heads": 4,
    "head_dim": 8,
    "hidden_dim": 32,
    "intermediate_dim": 64,
    "activation": "gelu_tanh",
    "layer_norm_epsilon": 1e-12,
}
# Settings of the memory cases, and what each of them shows.
MEMORY = {
    "noreuse_grow": "memory that grows from nothing, over three segments",
    "base": "memory that begins with zeros; each segment remembers its first 6 rows only",
    "clamp": "distances above 5 count as 5",
    "bidata": "the second half of the batch is read backwards",
    "uni": "each token sees the tokens before it only",
}


class Writer:
    """Collects cases and their arrays."""

    def __init__(self):
        self.cases, self.arrays = [], {}

    def add(self, name, about, method, inputs, expected, settings=None, check="equal", where=None):
        """Adds a case. Values of `inputs` and `expected` are arrays, or lists of arrays.

        `where` has the rows of the output that count, bool `(batch, rows)`.
        """
        self.cases.append(
            {
                "name": name,
                "about": about,
                "method": method,
                "check": check,
                "settings": settings or {},
                "inputs": self._store(f"{name}/inputs", inputs),
                "expected": self._store(f"{name}/expected", expected),
                "where": self._store(name, {} if where is None else {"where": where}),
            }
        )

    def _store(self, prefix, values):
        names = {}
        for key, value in values.items():
            parts = value if isinstance(value, list) else [value]
            stored = [f"{prefix}/{key}/{i}" for i in range(len(parts))]
            self.arrays |= dict(zip(stored, map(np.asarray, parts), strict=True))
            names[key] = stored if isinstance(value, list) else stored[0]
        return names


def main():
    CASES.mkdir(exist_ok=True)
    writer = Writer()
    add_encoder(writer)
    add_memory(writer)
    add_two_streams(writer)
    add_heads(writer)
    add_transformer_xl(writer)
    np.savez_compressed(CASES / "arrays.npz", **writer.arrays)
    weights = {}
    for folder in ("tiny_ckpt", "heads_ckpt", "qa_ckpt"):
        weights |= weights_of(folder)
    np.savez_compressed(CASES / "xlnet_weights.npz", **weights)
    cases = [*writer.cases, *tokenizer_cases()]
    text = json.dumps({"config": CONFIG, "cases": cases}, indent=1, ensure_ascii=True)
    (CASES / "cases.json").write_text(text + "\n", encoding="utf-8")


def weights_of(folder):
    reader = tf.train.load_checkpoint(str(GOLDEN / folder / "xlnet_model.ckpt"))
    names = sorted(set(reader.get_variable_to_shape_map()) - {"global_step"})
    return {name: reader.get_tensor(name) for name in names}


def load(name):
    with np.load(GOLDEN / name) as arrays:
        return dict(arrays)


def batch_first(x):
    return np.swapaxes(x, 0, 1)


def add_encoder(writer):
    arrays = load("encoder.npz")
    inputs = {
        "token_ids": batch_first(arrays["input_ids"]),
        "segment_ids": batch_first(arrays["seg_ids"]),
        "padding_mask": batch_first(arrays["input_mask"]) == 0,
    }
    output = batch_first(arrays["output"])
    first = {key: value[:1] for key, value in inputs.items()}
    writer.add(
        "encoder/one_row", "a batch of one row, padded on the left", "encode", first,
        {"output": output[:1]},
    )  # fmt: skip
    writer.add("encoder/batch", "three different rows, padded on the left", "encode", inputs,
               {"output": output})  # fmt: skip
    right = {key: pad_right(value, inputs["padding_mask"]) for key, value in inputs.items()}
    writer.add(
        "encoder/padding_on_the_right", "the same rows, with their padding on the right", "encode",
        right, {"output": pad_right(output, inputs["padding_mask"])}, where=right["padding_mask"],
    )  # fmt: skip
    without = {key: inputs[key] for key in ("token_ids", "segment_ids")}
    writer.add("encoder/no_padding_mask", "padding is read as text", "encode", without,
               {"output": batch_first(arrays["output_nomask"])})  # fmt: skip
    without = {key: inputs[key] for key in ("token_ids", "padding_mask")}
    writer.add("encoder/no_segment_ids", "attention without its segment term", "encode", without,
               {"output": batch_first(arrays["output_noseg"])})  # fmt: skip


def pad_right(x, padding_mask):
    order = np.argsort(~padding_mask, axis=1, kind="stable")
    return np.take_along_axis(x, order.reshape(order.shape + (1,) * (x.ndim - 2)), axis=1)


def add_memory(writer):
    arrays, variants = (
        load("encoder_mems.npz"),
        json.loads((GOLDEN / "encoder_mems.json").read_text())["variants"],
    )
    for name, about in MEMORY.items():
        variant = variants[name]
        segments = range(3)
        inputs = {
            "token_ids": [batch_first(arrays[f"seg{k}_input_ids"]) for k in segments],
            "segment_ids": [batch_first(arrays[f"seg{k}_seg_ids"]) for k in segments],
        }
        settings = {
            "memory_length": variant["mem_len"],
            "reuse_length": variant["reuse_len"],
            "clamp_length": variant["clamp_len"] if variant["clamp_len"] > 0 else None,
            "bidirectional_data": variant["bi_data"],
            "is_causal": variant["attn_type"] == "uni",
            "begins_with_zeros": variant["start"] == "zeros",
        }
        writer.add(f"memory/{name}", about, "encode_segments", inputs,
                   {"output": batch_first(arrays[f"{name}_seg2_output"])}, settings)  # fmt: skip


def add_two_streams(writer):
    arrays = load("pretrain.npz")
    settings = {"memory_length": 12, "reuse_length": 16, "bidirectional_data": True}
    inputs = two_stream_inputs(arrays, "np_batch1_")
    inputs["memory"] = np.swapaxes(arrays["np_batch0_new_mems"], 1, 2)
    is_target = arrays["np_batch1_target_mask"] == 1
    targets = {**inputs, "targets": arrays["np_batch1_target"], "is_target": is_target}
    writer.add(
        "two_streams/logits", "logits of the targets, with memory and data in two directions",
        "predict_targets", inputs, {"logits": batch_first(arrays["np_batch1_logits"])}, settings,
    )  # fmt: skip
    writer.add("two_streams/loss", "the mean cross-entropy of the targets", "pretraining_loss",
               targets, {"loss": arrays["np_batch1_loss"]}, settings)  # fmt: skip
    gradients = {k.removeprefix("np_grad/"): v for k, v in arrays.items() if "np_grad/" in k}
    writer.add("two_streams/gradients", "the gradient of the loss for every weight",
               "pretraining_gradients", targets, gradients, settings)  # fmt: skip
    writer.add(
        "two_streams/no_leak", "no token changes its own prediction, in any layer",
        "predict_targets", inputs, {}, settings, check="no_leak",
    )  # fmt: skip
    blind = two_stream_inputs(arrays, "blind_batch0_")
    writer.add(
        "two_streams/nothing_visible", "a query that may see nothing attends to all uniformly",
        "predict_targets", blind, {"logits": batch_first(arrays["blind_batch0_logits"])},
        where=arrays["blind_batch0_target_mask"] == 1,
    )  # fmt: skip


def two_stream_inputs(arrays, prefix):
    return {
        "token_ids": arrays[f"{prefix}input_k"],
        "segment_ids": arrays[f"{prefix}seg_id"],
        "may_attend": arrays[f"{prefix}perm_mask"] == 0,
        "target_positions": arrays[f"{prefix}target_mapping"].argmax(-1).astype("int32"),
    }


def add_heads(writer):
    arrays = load("heads.npz")
    for prefix, method, about in (
        ("cls", "classify", "logits of three classes: last token, dense, tanh, dense"),
        ("reg", "regress", "one number, with the same summary"),
        ("race", "choose", "logits of four choices: rows `(batch, choices, length)`"),
    ):
        inputs = head_inputs(arrays, prefix)
        if prefix == "race":
            inputs = {key: value.reshape(2, 4, 14) for key, value in inputs.items()}
        writer.add(f"heads/{method}", about, method, inputs,
                   {"logits": arrays[f"{prefix}_logits"]})  # fmt: skip
    inputs = head_inputs(arrays, "qa_eval")
    inputs["is_context"] = arrays["qa_eval_p_mask"] == 0
    inputs["cls_index"] = arrays["qa_eval_cls_index"]
    names = ("start_top_log_probs", "start_top_index", "end_top_log_probs", "end_top_index")
    writer.add(
        "heads/answer", "the 4 best starts, the 3 best ends of each, and the score of no answer",
        "answer", inputs, {n: arrays[f"qa_eval_{n}"] for n in (*names, "cls_logits")},
        {"num_starts": 4, "num_ends": 3},
    )  # fmt: skip


def head_inputs(arrays, prefix):
    return {
        "token_ids": arrays[f"{prefix}_input_ids"],
        "segment_ids": arrays[f"{prefix}_segment_ids"],
        "padding_mask": arrays[f"{prefix}_input_mask"] == 0,
    }


def add_transformer_xl(writer):
    for name, about in (
        ("plain", "softmax over all tokens, two segments with memory"),
        ("wt103_style", "adaptive softmax and embeddings (div_val 2), same_length, clamp_len 8"),
    ):
        folder = GOLDEN / "transformer_xl" / "huggingface" / name
        arrays = load(folder / "outputs.npz")
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        weights = load_file(folder / "model.safetensors")
        np.savez_compressed(CASES / f"transformer_xl_{name}_weights.npz", **weights)
        writer.add(
            f"transformer_xl/{name}", about, "score_segments",
            {"token_ids": [arrays[f"input_ids/{k}"] for k in range(2)]},
            {"log_probs": [arrays[f"logprob/{k}"] for k in range(2)]},
            {"config": config, "weights": f"transformer_xl_{name}_weights.npz"},
        )  # fmt: skip


def tokenizer_cases():
    strings = json.loads((GOLDEN / "text.json").read_text(encoding="utf-8"))["strings"]
    (CASES / "spiece.model").write_bytes((GOLDEN / "spiece.model").read_bytes())
    for name, key, about in (
        ("cased", "encode_cased", "64 texts with numbers, accents, emoji, odd spaces, CJK"),
        ("lowercase", "encode_uncased", "the same in lower case without accents"),
    ):
        yield {
            "name": f"tokenizer/{name}",
            "about": about,
            "method": "tokenize",
            "check": "same_ids",
            "settings": {"lowercase": name == "lowercase"},
            "texts": [string["input"] for string in strings],
            "ids": [string[key]["ids"] for string in strings],
        }


if __name__ == "__main__":
    main()
