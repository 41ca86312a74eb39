"""Computes the same list of things on whichever backend KERAS_BACKEND names.

    KERAS_BACKEND=jax PYTHONPATH=. python tests/backends/compute.py DIRECTORY [--weights FILE ...]
        [--only NAME ...]

`DIRECTORY` gets `arrays.npz`, with an array for each `computation/name`; `report.json`, which says
for each computation how many seconds it took, or why it could not be done; and `model.weights.h5`.
What the other backends saved comes in with `--weights`.
"""

import argparse
import gc
import json
import os
import pathlib
import sys
import time
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from keras import ops

from keras_xlnet import layers
from keras_xlnet.checkpoints import load_huggingface, load_original
from keras_xlnet.models import (
    XLNetBackbone,
    XLNetMultipleChoice,
    XLNetPermutationLM,
    XLNetQuestionAnswering,
    XLNetTextClassifier,
    XLNetTokenClassifier,
)
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.backends.per_backend import BACKEND, UnsupportedError, gradients, run, run_with_xla

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
MEMORY_VARIANTS = ("base", "bidata_clamp", "uni_same_length", "mask")
POLICIES = ("mixed_bfloat16", "float16")
# They are replaced, and drawing them would cost JAX a compilation for each shape.
INITIALIZER = "zeros"
POOLING_MODES = ("last", "first", "mean", "cls", "attention")

COMPUTATIONS = {}


def computation(function):
    """Registers a function `(directory, weights) -> {name: array}` under its name."""
    COMPUTATIONS[function.__name__] = function
    return function


# === Inputs and weights: the same on every backend ===


def golden(name):
    with np.load(GOLDEN / name) as arrays:
        return dict(arrays)


def original(checkpoint, **kwargs):
    return load_original(GOLDEN / checkpoint, kernel_initializer=INITIALIZER, **kwargs)


def original_variable(checkpoint, name):
    import tensorflow as tf  # The reader of the original's checkpoints.

    return tf.train.load_checkpoint(str(GOLDEN / checkpoint / "xlnet_model.ckpt")).get_tensor(name)


def batch_first(array):
    return np.swapaxes(array, 0, 1)


def encoder_inputs(arrays, prefix="", segments=True, mask=True):
    inputs = {"token_ids": batch_first(arrays[f"{prefix}input_ids"])}
    if segments:
        inputs["segment_ids"] = batch_first(arrays[f"{prefix}seg_ids"])
    if mask:
        inputs["padding_mask"] = batch_first(arrays[f"{prefix}input_mask"]) == 0
    return inputs


def fill(layer, seed=0):
    """Gives a layer weights that matter. Each backend would draw others by itself."""
    rng = np.random.default_rng(seed)
    for weight in layer.trainable_weights:
        value = rng.normal(scale=0.3, size=weight.shape)
        weight.assign(value + 1 if weight.name == "gamma" else value)
    return layer


def small_backbone(**kwargs):
    sizes = {
        "vocabulary_size": 200,
        "num_layers": 1,
        "num_heads": 2,
        "hidden_dim": 12,
        "intermediate_dim": 20,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "kernel_initializer": INITIALIZER,
    }
    return fill(XLNetBackbone(**{**sizes, **kwargs}))


def small_classifier(preprocessor=None, seed=0, num_layers=1, **kwargs):
    backbone = small_backbone(num_layers=num_layers)
    return fill(XLNetTextClassifier(backbone, 3, preprocessor, dropout=0.0, **kwargs), seed)


def token_batch(batch_size=6, length=9, seed=1):
    """Ids with their `<cls>` (3) last, and left padding of another length in each row."""
    rng = np.random.default_rng(seed)
    padding_mask = np.arange(length) >= np.arange(batch_size)[:, None] % (length - 2)
    token_ids = rng.integers(9, 200, (batch_size, length))
    token_ids[:, -1] = 3
    return {
        "token_ids": np.where(padding_mask, token_ids, 5).astype("int32"),
        "segment_ids": np.sort(rng.integers(0, 3, (batch_size, length)), axis=1).astype("int32"),
        "padding_mask": padding_mask,
    }


LABELS = np.array([0, 1, 2, 1, 0, 2])
TEXTS = ["the cat sat", "win 9,000 now!", "Éa ``b'' c", "on the mat at 5", "", "the end of it all"]


def flat(structure):
    """A list of float32 (or bool, or integer) numpy arrays, in the order of Keras."""
    arrays = []
    for leaf in keras.tree.flatten(structure):
        dtype = keras.backend.standardize_dtype(leaf.dtype)
        leaf = ops.cast(leaf, "float32") if "float" in dtype else leaf
        arrays.append(ops.convert_to_numpy(leaf))
    return arrays


def numbered(name, structure):
    return {f"{name}/{i}": array for i, array in enumerate(flat(structure))}


def sequence(model, inputs):
    return flat(run(model, inputs)["sequence_output"])[0]


# === The layers one by one ===

B, L, M, K, H = 4, 6, 3, 2, 8
_rng = np.random.default_rng(11)
CONTENT, QUERY, FULL_QUERY, MEMORY, POSITIONS, TWO_WAY_POSITIONS = (
    _rng.normal(size=shape).astype("float32")
    for shape in (
        (B, L, H),
        (B, K, H),
        (B, L, H),
        (B, M, H),
        (1, 2 * L + M, H),
        (2, 2 * L + M, H),
    )
)
SEGMENTS, MASK = (_rng.random((B, L, L + M)) < share for share in (0.5, 0.7))
PADDING = np.arange(L) >= np.array([0, 2, 5, 1])[:, None]
IDS = _rng.integers(0, 3, (B, L)).astype("int32")
TARGETS = np.array([[0, 5], [2, 2], [1, 4], [5, 3]], "int32")
BIASES = _rng.normal(size=(3, 2, 3)).astype("float32")
WORD_STARTS = _rng.random((B, 24)) < 0.6
SPAN_DRAWS = _rng.random((B, 32)).astype("float32")
LONG_IDS = _rng.integers(2, 9, (B, 24)).astype("int32")
ORDER_DRAWS = _rng.random((B, 16)).astype("float32")
STREAMS = {
    "content_stream": CONTENT,
    "memory": MEMORY,
    "position_encoding": POSITIONS,
    "segment_matrix": SEGMENTS,
    "content_attention_mask": MASK,
}
LAYERS = {
    "positions_bi": (lambda: layers.RelativePositionEncoding(H), {"content": CONTENT}),
    "positions_uni_both_ways": (
        lambda: layers.RelativePositionEncoding(H, "uni", 4, bidirectional_data=True),
        {"content": CONTENT, "memory": MEMORY},
    ),
    "biases": (lambda: layers.AttentionBiases(2, 4), {"reference": CONTENT}),
    "attention": (
        lambda: layers.RelativeMultiHeadAttention(2, 3),
        {
            "query": CONTENT,
            "context": np.concatenate([MEMORY, CONTENT], axis=1),
            "position_encoding": TWO_WAY_POSITIONS,
            "segment_matrix": SEGMENTS,
            "attention_mask": MASK,
            "attention_biases": BIASES,
        },
    ),
    "feed_forward": (lambda: layers.FeedForward(12), {"inputs": CONTENT}),
    "one_stream": (lambda: layers.TwoStreamBlock(2, 3, 12), STREAMS),
    "two_streams": (
        lambda: layers.TwoStreamBlock(2, 3, 12, activation="gelu"),
        {**STREAMS, "query_stream": FULL_QUERY, "query_attention_mask": MASK[:, ::-1].copy()},
    ),
    "two_streams_of_targets": (
        lambda: layers.TwoStreamBlock(2, 3, 12, activation="relu"),
        {
            **STREAMS,
            "query_stream": QUERY,
            "query_attention_mask": MASK,
            "target_positions": TARGETS,
        },
    ),
    "memory": (lambda: layers.RecurrentMemory(5, 4), {"content": CONTENT, "memory": MEMORY}),
    "memory_of_a_mask": (lambda: layers.RecurrentMemory(4), {"content": PADDING}),
    "mask": (
        lambda: layers.AttentionMask("uni", same_length=True),
        {"content": CONTENT, "padding_mask": PADDING, "memory": MEMORY},
    ),
    "segments": (layers.SegmentMatrix, {"segment_ids": IDS, "memory": MEMORY}),
    "mask_embedding": (lambda: layers.MaskEmbedding(H), {"target_mask": TARGETS}),
    "mask_embedding_in_place": (
        lambda: layers.MaskEmbedding(H),
        {"target_mask": PADDING, "embeddings": CONTENT},
    ),
    "logit_bias": (layers.LogitBias, {"logits": CONTENT}),
    "pair_comparison": (
        lambda: layers.PairComparison(5, dropout=0.1, seed=3),
        {
            "levels": np.stack([CONTENT, CONTENT[::-1], CONTENT**2], axis=2),
            "token_ids": IDS + 8,
            "segment_ids": IDS[::-1],
            "padding_mask": PADDING,
        },
    ),
    "span_targets": (
        lambda: layers.SpanMaskSampler(5),
        {"word_starts": WORD_STARTS, "reverse": WORD_STARTS[:, 0], "draws": SPAN_DRAWS},
    ),
    "permutation": (
        lambda: layers.PermutationMaskGenerator(7, permutation_length=8, reuse_length=16),
        {"token_ids": LONG_IDS, "target_mask": WORD_STARTS, "draws": ORDER_DRAWS},
    ),
    **{
        f"pooling_{mode}": (
            lambda mode=mode: layers.SequencePooling(mode, num_heads=2, head_dim=3, cls_token_id=2),
            {"sequence": CONTENT, "padding_mask": PADDING, "token_ids": IDS},
        )
        for mode in POOLING_MODES
    },
    "summary": (
        layers.SequenceSummary,
        {"sequence": CONTENT, "padding_mask": PADDING},
    ),
    "answer_start": (layers.AnswerStart, {"sequence": CONTENT, "paragraph_mask": PADDING}),
    "answer_end": (
        layers.AnswerEnd,
        {"sequence": CONTENT, "start_positions": TARGETS, "paragraph_mask": PADDING},
    ),
    "answerability": (
        layers.Answerability,
        {
            "sequence": CONTENT,
            "start_probabilities": np.abs(CONTENT[:, :, 0]),
            "cls_index": TARGETS[:, 0],
        },
    ),
}


@computation
def single_layers(directory, weights):
    arrays = {}
    for name, (make, inputs) in LAYERS.items():
        layer = make()
        # Builds it without computing anything, which JAX would compile op by op.
        layer(**{k: keras.KerasTensor(v.shape, v.dtype.name) for k, v in inputs.items()})
        arrays |= numbered(name, run(fill(layer), **inputs))
    return arrays


@computation
def output_shapes(directory, weights):
    """What a layer says of its output, with known and with unknown axes (-1)."""
    arrays = {}
    for name, (make, inputs) in LAYERS.items():
        for kind, shape_of in (("known", _known), ("unknown", _unknown_batch_and_length)):
            symbols = {
                key: keras.KerasTensor(shape_of(key, value), dtype=value.dtype.name)
                for key, value in inputs.items()
            }
            for i, spec in enumerate(keras.tree.flatten(make()(**symbols))):
                arrays[f"{name}/{i}/{kind}"] = _as_array(spec.shape)
                arrays[f"{name}/{i}/{kind}_dtype"] = np.array(spec.dtype)
    for name, inputs in {
        "feed_forward": [CONTENT],
        "positions_uni_both_ways": [CONTENT, MEMORY],
        "pooling_last": [CONTENT],
    }.items():
        shape = LAYERS[name][0]().compute_output_shape(*[x.shape for x in inputs])
        arrays[f"{name}/compute_output_shape"] = _as_array(shape)
    backbone = small_backbone(memory_length=4)
    specs = backbone.compute_output_spec(
        {key: keras.KerasTensor((2, *spec.shape[1:]), spec.dtype)
         for key, spec in backbone.input.items()}
    )  # fmt: skip
    for key, spec in specs.items():
        arrays[f"backbone/{key}"] = _as_array(spec.shape)
    return arrays


def _as_array(shape):
    return np.array([-1 if size is None else size for size in shape])


def _known(key, value):
    return value.shape


def _unknown_batch_and_length(key, value):
    if key == "position_encoding":
        return (len(value), None, H)
    if key == "attention_biases":
        return value.shape
    if key == "levels":
        return (None, None, *value.shape[2:])
    if value.dtype == "float32":
        return (None,) * (value.ndim - 1) + (H,)
    return (None,) * value.ndim


@computation
def implicit_masks(directory, weights):
    """Layers behind an embedding that calls 0 padding."""
    token_ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, H, mask_zero=True)(token_ids)
    positions = layers.RelativePositionEncoding(H)(x)
    x = layers.TwoStreamBlock(2, 3, 16)(x, position_encoding=positions)
    x = layers.TransformerXLBlock(2, 3, 16)(x, position_encoding=positions)
    model = fill(keras.Model(token_ids, layers.SequenceSummary("mean")(x)))
    return {"summary": flat(run(model, np.array([[5, 17, 8, 0, 0], [6, 9, 3, 11, 2]])))[0]}


# === The models, against the original's numbers ===


@computation
def encoder(directory, weights):
    arrays = golden("encoder.npz")
    backbone = original("tiny_ckpt")
    return {
        "output": sequence(backbone, encoder_inputs(arrays)),
        "output_nomask": sequence(backbone, encoder_inputs(arrays, mask=False)),
        "output_noseg": sequence(backbone, encoder_inputs(arrays, segments=False)),
    }


@computation
def memory_over_three_segments(directory, weights):
    arrays = golden("encoder_mems.npz")
    variants = json.loads((GOLDEN / "encoder_mems.json").read_text(encoding="utf-8"))["variants"]
    results = {}
    for variant in MEMORY_VARIANTS:
        settings = variants[variant]
        model = original(
            "tiny_ckpt",
            attention_type=settings["attn_type"],
            bidirectional_data=settings["bi_data"],
            clamp_length=settings["clamp_len"] if settings["clamp_len"] > 0 else None,
            memory_length=settings["mem_len"],
            reuse_length=settings["reuse_len"],
            same_length=settings["same_length"],
        )
        memory = np.zeros((4, 3, settings["mem_len"], 32), "float32")
        for step in range(3):
            inputs = encoder_inputs(arrays, f"seg{step}_", mask=settings["use_mask"])
            outputs = run(model, {**inputs, "memory": memory})
            memory = outputs["memory"]
            results[f"{variant}_seg{step}_output"] = flat(outputs["sequence_output"])[0]
            results[f"{variant}_seg{step}_mems"] = flat(memory)[0]
    return results


def two_stream_model(checkpoint, **kwargs):
    return original(checkpoint, task="permutation_lm", **kwargs)


def two_stream_inputs(arrays, prefix=""):
    return {
        "token_ids": arrays[f"{prefix}input_k"],
        "segment_ids": arrays[f"{prefix}seg_id"],
        "permutation_mask": arrays[f"{prefix}perm_mask"] == 0,
        "target_positions": arrays[f"{prefix}target_mapping"].argmax(-1).astype("int32"),
    }


def two_stream_loss(arrays, prefix=""):
    """The original's: the mean over all predictions of the batch that the mask marks."""
    target, mask = arrays[f"{prefix}target"], arrays[f"{prefix}target_mask"]

    def loss_of(outputs):
        losses = keras.losses.sparse_categorical_crossentropy(
            target, outputs["logits"], from_logits=True
        )
        return ops.sum(ops.multiply(losses, mask)) / float(mask.sum())

    return loss_of


@computation
def two_streams(directory, weights):
    """Two batches of pretraining, and the gradients of the second, whose memory is not empty."""
    arrays = golden("pretrain.npz")
    model = two_stream_model(
        "tiny_ckpt", memory_length=12, reuse_length=16, bidirectional_data=True
    )
    memory = np.zeros((4, 3, 12, 32), "float32")
    results = {}
    for batch in range(2):
        prefix = f"np_batch{batch}_"
        inputs = {**two_stream_inputs(arrays, prefix), "memory": memory}
        outputs = run(model, inputs)
        memory = flat(outputs["memory"])[0]
        loss_of = two_stream_loss(arrays, prefix)
        results |= {
            f"{prefix}logits": flat(outputs["logits"])[0],
            f"{prefix}new_mems": memory,
            f"{prefix}loss": flat(loss_of(outputs))[0],
        }
    loss, by_path = gradients(model, loss_of, inputs)
    results["loss_of_the_gradients"] = loss
    return {**results, **{f"gradient/{path}": value for path, value in by_path.items()}}


@computation
def tied_biases(directory, weights):
    arrays = golden("tied.npz")
    backbone = original("tied_ckpt")
    model = two_stream_model("tied_ckpt", bidirectional_data=True)
    outputs = run(model, two_stream_inputs(arrays))
    return {
        "enc_output": sequence(backbone, encoder_inputs(arrays, "enc_")),
        "loss": flat(two_stream_loss(arrays)(outputs))[0],
    }


@computation
def packed_rows(directory, weights):
    """Two steps of training and predictions, of packed and of padded texts."""
    preprocessor = XLNetTextClassifierPreprocessor(
        XLNetTokenizer(GOLDEN / "spiece.model"), sequence_length=16
    )
    results = {}
    for pack in (True, False):
        model = small_classifier(preprocessor, num_layers=2)
        model.compile(keras.optimizers.SGD(1.0), "sparse_categorical_crossentropy")
        model.fit(TEXTS, LABELS, 3, shuffle=False, verbose=0, pack=pack)
        results[f"outputs_{pack}"] = model.predict(TEXTS, 4, verbose=0, pack=pack)
        results[f"trained_{pack}"] = np.concatenate(
            [weight.ravel() for weight in flat(model.trainable_weights)]
        )
    return results


@computation
def language_models(directory, weights):
    """Transformer-XL with clusters and memory, its loss and gradients; scores, fillings and
    continuations of both language models."""
    folder = GOLDEN / "transformer_xl" / "huggingface" / "wt103_style"
    model = load_huggingface(folder, "language_model", kernel_initializer=INITIALIZER)
    arrays, memory, results = golden(folder / "outputs.npz"), model.empty_memory(2), {}
    for k in range(2):
        inputs = {"token_ids": arrays[f"input_ids/{k}"], **memory}
        outputs = run(model, inputs)
        memory = {key: flat(outputs[key])[0] for key in ("memory", "memory_mask")}
        results[f"log_probs/{k}"] = flat(outputs["log_probs"])[0]
    labels = np.roll(inputs["token_ids"], -1, axis=1).astype("int32")

    def loss_of(outputs):
        return -ops.mean(ops.take_along_axis(outputs["log_probs"], labels[..., None], axis=-1))

    loss, by_path = gradients(model, loss_of, inputs)
    results |= {"loss": loss, **{f"gradient/{path}": value for path, value in by_path.items()}}
    texts = [[5, 17, 8, 30], [9, 80, 11]]
    permutation = fill(XLNetPermutationLM(small_backbone()))
    results["score/causal"] = model.score(texts, start_token_id=0).totals
    results["score/random"] = permutation.score(texts, order="random", num_orders=2).totals
    filled = permutation.fill([[5, 6, 8, 6]], num_results=3)[0].joint
    results["fill"] = np.array([filling.log_prob for filling in filled])
    for name, lm in (("causal", model), ("permutation", permutation)):
        for method in ("greedy", "beam"):
            found = lm.generate(texts, max_new_tokens=3, method=method, beam_size=2)
            results[f"generate/{name}/{method}/tokens"] = np.concatenate(found.token_ids)
            results[f"generate/{name}/{method}/log_probs"] = np.concatenate(found.log_probs)
    terms = model.inspect(inputs).attention(1).terms
    results |= {f"term/{name}": term for name, term in terms.items()}
    # The loss of `fit`, which computes a cluster only for the labels that are in it.
    model.compile(keras.optimizers.SGD(0.1))
    results["trained/loss"] = model.train_on_batch(inputs, labels)
    return results | {f"trained/{v.path}": flat(v)[0] for v in model.trainable_variables}


@computation
def pooling(directory, weights):
    arrays = golden("encoder.npz")
    values = batch_first(arrays["output"])
    padding_mask = arrays["input_mask"].T == 0
    scope = "model/sequnece_summary"
    read = {
        name: original_variable("heads_ckpt", f"{scope}/{name}")
        for name in (
            "summary/kernel", "summary/bias", "summary_bias", "abs_attn/q/kernel",
            "abs_attn/k/kernel", "abs_attn/v/kernel", "abs_attn/o/kernel",
            "abs_attn/LayerNorm/gamma", "abs_attn/LayerNorm/beta",
        )
    }  # fmt: skip

    def summary(pooled):
        projected = ops.matmul(pooled, read["summary/kernel"])
        return flat(ops.tanh(ops.add(projected, read["summary/bias"])))[0]

    last, first, mean, attention = (
        layers.SequencePooling(mode, num_heads=4, head_dim=8)
        for mode in ("last", "first", "mean", "attention")
    )
    for pooling in (last, first, mean, attention):
        pooling.build(values.shape)
    attention.set_weights(
        [read["summary_bias"]]
        + [read[f"abs_attn/{name}/kernel"] for name in "qkv"]
        + [np.transpose(read["abs_attn/o/kernel"], (1, 2, 0))]
        + [read[f"abs_attn/LayerNorm/{name}"] for name in ("gamma", "beta")]
    )
    return {
        "pooled_last_noproj": flat(run(last, values, padding_mask=padding_mask))[0],
        "pooled_last": summary(run(last, values, padding_mask=padding_mask)),
        # The original takes padding for "first" and "mean": ours does without a mask only.
        "pooled_first": summary(run(first, values)),
        "pooled_mean": summary(run(mean, values)),
        "pooled_attn": summary(run(attention, values, padding_mask=padding_mask)),
    }


@computation
def answers(directory, weights):
    """Beams, and the outputs of training with the gradients of their loss."""
    arrays = golden("heads.npz")
    model = original("qa_ckpt", task="question_answering", start_n_top=4, end_n_top=3)
    results = {}
    for prefix in ("qa_eval", "qa_train"):
        inputs = {
            "token_ids": arrays[f"{prefix}_input_ids"],
            "segment_ids": arrays[f"{prefix}_segment_ids"],
            "padding_mask": arrays[f"{prefix}_input_mask"] == 0,
            "paragraph_mask": arrays[f"{prefix}_p_mask"] == 0,
            "cls_index": arrays[f"{prefix}_cls_index"],
        }
        if prefix == "qa_eval":
            outputs = run(model, inputs)
            results |= {f"beams/{key}": flat(value)[0] for key, value in outputs.items()}
    start, end = arrays["qa_train_start_positions"], arrays["qa_train_end_positions"]
    is_impossible = arrays["qa_train_is_impossible"]

    def loss_of(outputs):
        nll = keras.losses.sparse_categorical_crossentropy
        total = ops.mean(nll(start, outputs["start_positions"], from_logits=True))
        total += ops.mean(nll(end, outputs["end_positions"], from_logits=True))
        total += ops.mean(
            ops.binary_crossentropy(is_impossible, outputs["is_impossible"][:, 0], from_logits=True)
        )
        return 0.5 * total

    inputs["start_positions"] = start
    loss, by_path = gradients(model, loss_of, inputs)
    results["loss"] = loss
    return results | {f"gradient/{path}": value for path, value in by_path.items()}


# === Precision, compilation, unknown shapes ===


@computation
def half_precision(directory, weights):
    arrays = golden("encoder.npz")
    results = {}
    for policy in POLICIES:
        model = original("tiny_ckpt", dtype=policy)
        output = run(model, encoder_inputs(arrays))["sequence_output"]
        results[f"{policy}/output"] = flat(output)[0]
        results[f"{policy}/dtype"] = np.array(keras.backend.standardize_dtype(output.dtype))
        table = run(model.position_encoding, np.zeros((1, 300, 1), "float32"))
        results[f"{policy}/positions"] = flat(table)[0]
    return results


def memory_batch():
    """For two computations that JAX does op by op: alike in shape, so that it compiles once."""
    memory = np.random.default_rng(2).normal(size=(6, 1, 4, 12)).astype("float32")
    memory_mask = np.arange(4) >= np.arange(6)[:, None] % 4
    return {**token_batch(), "memory": memory, "memory_mask": memory_mask}


@computation
def xla(directory, weights):
    model = small_backbone(memory_length=4, bidirectional_data=True)
    inputs = memory_batch()
    results = {}
    for key, value in run_with_xla(model, inputs).items():
        results[f"compiled/{key}"] = flat(value)[0]
    for key, value in model(inputs).items():
        results[f"eager/{key}"] = flat(value)[0]
    return results


@computation
def unknown_batch_and_length(directory, weights):
    """A user's functional model: one graph for every shape."""
    token_ids = keras.Input((None,), dtype="int32")
    segment_ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(200, H)(token_ids)
    block = layers.TwoStreamBlock(2, 3, 12)(
        x,
        x,
        position_encoding=layers.RelativePositionEncoding(H, bidirectional_data=True)(x),
        segment_matrix=layers.SegmentMatrix()(segment_ids),
    )
    pooled = layers.SequencePooling("attention", num_heads=2, head_dim=3)(block[1])
    model = fill(keras.Model([token_ids, segment_ids], [block[0], pooled]))
    causal = small_backbone(attention_type="uni", memory_length=5, same_length=True)
    results = {}
    for batch_size, length in ((2, 5), (6, 11)):
        inputs = token_batch(batch_size, length)
        pair = [inputs["token_ids"], inputs["segment_ids"]]
        name = f"{batch_size}x{length}"
        # `predict` compiles where the backend does; the last of two batches is a smaller one.
        results |= numbered(f"user/{name}", model.predict(pair, batch_size=4, verbose=0))
        results |= numbered(f"backbone/{name}", run(causal, inputs))
    return results


# === Saving ===


@computation
def saving(directory, weights):
    """`before` and `after` of each way of saving; the test compares them with each other too."""
    inputs = token_batch()
    backbone = small_backbone(num_layers=2, memory_length=4, remember_segment_ids=True)
    results = numbered("backbone/before", run(backbone, inputs))
    backbone.save(directory / "backbone.keras")
    copy = keras.saving.load_model(directory / "backbone.keras")
    results |= numbered("backbone/after", run(copy, inputs))
    backbone.save_to_preset(directory / "preset")
    copy = XLNetBackbone.from_preset(directory / "preset")
    results |= numbered("preset/before", run(backbone, inputs)) | numbered(
        "preset/after", run(copy, inputs)
    )

    classifier = small_classifier(num_layers=2, pooling="attention")
    results |= numbered("classifier/before", run(classifier, inputs))
    classifier.save(directory / "classifier.keras")
    copy = keras.saving.load_model(directory / "classifier.keras")
    results |= numbered("classifier/after", run(copy, inputs))

    # This file goes to the other backends.
    results |= numbered("weights/before", run(classifier, inputs))
    classifier.save_weights(directory / "model.weights.h5")
    copy = small_classifier(num_layers=2, pooling="attention", seed=1)
    copy.load_weights(directory / "model.weights.h5")
    results |= numbered("weights/after", run(copy, inputs))
    return results


@computation
def weights_of_other_backends(directory, weights):
    """Outputs with the weights of each file, in a model that had others."""
    results = {}
    for path in weights:
        model = small_classifier(num_layers=2, pooling="attention", seed=2)
        model.load_weights(path)
        results[path.parent.name] = flat(run(model, token_batch()))[0]
    return results


@computation
def quantization(directory, weights):
    inputs = token_batch()
    model = small_backbone(memory_length=4)
    results = numbered("exact", run(model, inputs))
    try:
        model.quantize("int8")
    except NotImplementedError as error:
        raise UnsupportedError(f"Keras cannot quantize to int8 on {BACKEND}: {error}") from error
    results |= numbered("before", run(model, inputs))
    model.save(directory / "int8.keras")
    copy = keras.saving.load_model(directory / "int8.keras")
    results |= numbered("after", run(copy, inputs))
    modes = {block.attention.query_dense.quantization_mode for block in copy.blocks}
    return {**results, "mode": np.array(sorted(modes))}


@computation
def frozen(directory, weights):
    """Frozen and LoRA state of a model that was saved and loaded, and of its copies."""
    model = small_classifier()
    model.enable_lora(2)
    fill(model)  # What is trainable, as training does.
    model.backbone.blocks[0].attention.value_dense.lora_kernel_a.trainable = False
    model.save(directory / "frozen.keras")
    model.save_to_preset(directory / "frozen")
    copies = {
        "file": keras.saving.load_model(directory / "frozen.keras"),
        "preset": XLNetTextClassifier.from_preset(directory / "frozen"),
        "copy": model.with_arguments(name="copy"),
        "made": XLNetTextClassifier(small_backbone(), 3, trainable=False),
    }
    results = {
        f"{name}/{variable.path}": np.array(variable.trainable)
        for name, copy in copies.items()
        for variable in copy.weights
    }
    outputs = [flat(run(m, token_batch()))[0] for m in (model, copies["file"], copies["preset"])]
    return results | {
        "differs": np.array(max(np.abs(x - outputs[0]).max() for x in outputs) > 1e-6)
    }


@computation
def adapter(directory, weights):
    """A classifier with LoRA; its adapter, merged into its base; and the preset of both."""
    base = small_classifier()
    base.save_to_preset(directory / "base")
    model = XLNetTextClassifier.from_preset(directory / "base")
    before = flat(run(model, token_batch()))[0]
    model.enable_lora(2, projections=("query", "output", "feed_forward"))
    fill(model, seed=5)
    model.save_adapter(directory / "adapter", dtype=None)
    merged = XLNetTextClassifier.from_preset(directory / "base", adapter=directory / "adapter")
    merged.save_to_preset(directory / "merged")
    loaded = XLNetTextClassifier.from_preset(directory / "merged")
    trained, *others = (flat(run(m, token_batch()))[0] for m in (model, merged, loaded))
    return {"before": before, "trained": trained, "merged": others[0], "loaded": others[1]}


# === Training ===


@computation
def classifier_gradients(directory, weights):
    """Through the functional graph, for every variable."""
    model = small_classifier(pooling="attention")

    def loss_of(probabilities):
        return ops.mean(keras.losses.sparse_categorical_crossentropy(LABELS, probabilities))

    loss, by_path = gradients(model, loss_of, token_batch())
    return {"loss": loss, **{f"gradient/{path}": value for path, value in by_path.items()}}


@computation
def no_gradient_through_memory(directory, weights):
    """Gradients of a loss of the output alone, and of the output and the new memory together."""
    model = small_backbone(num_layers=2, memory_length=4)
    factors = np.random.default_rng(6).normal(size=(6, 9, 12)).astype("float32")

    def of_output(outputs):
        return ops.mean(ops.multiply(outputs["sequence_output"], factors))

    def of_both(outputs):
        return of_output(outputs) + ops.mean(ops.square(outputs["memory"]))

    results = {}
    for name, loss_of in (("of_output", of_output), ("of_both", of_both)):
        loss, by_path = gradients(model, loss_of, token_batch())
        results[f"{name}/loss"] = loss
        results |= {f"{name}/{path}": value for path, value in by_path.items()}
    return results


def _fit(model, x, y, **kwargs):
    """Losses of three steps of SGD, and the weights after them."""
    model.compile(keras.optimizers.SGD(0.1), **kwargs)
    history = model.fit(x, y, epochs=3, batch_size=len(LABELS), shuffle=False, verbose=0).history
    return {"losses": np.array(history["loss"]), "accuracy": np.array(history["accuracy"])} | {
        f"weights/{variable.path}": flat(variable)[0] for variable in model.trainable_variables
    }


@computation
def fit_on_tokens(directory, weights):
    """As Keras chooses to compile (XLA on JAX), and where it does not choose XLA but can, with."""
    model = small_classifier()
    results = _fit(model, token_batch(), LABELS)
    results["chose_xla"] = np.array(bool(model.jit_compile))
    if BACKEND != "torch":
        with_xla = _fit(small_classifier(), token_batch(), LABELS, jit_compile=True)
        results |= {f"xla/{key}": value for key, value in with_xla.items()}
    return results


@computation
def averaged_weights(directory, weights):
    """A model with averages of its weights is used, saved and trained further."""
    model, batch = small_classifier(), token_batch()
    model.compile(keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5))
    losses, predictions = [], []
    for _ in range(2):
        losses += model.fit(batch, LABELS, shuffle=False, epochs=2, verbose=0).history["loss"]
        predictions.append(model.predict(batch, verbose=0))
        model.save(directory / "averaged.keras")
    return {"losses": np.array(losses), "predictions": np.array(predictions)}


@computation
def sequential(directory, weights):
    """Layers in a `Sequential`, each called with what the one before returned."""
    model = keras.Sequential(
        [
            keras.layers.Embedding(60, 16, mask_zero=True),
            layers.TwoStreamBlock(2, 8, 32),
            layers.RelativeMultiHeadAttention(2, 8),
            layers.TransformerXLBlock(2, 8, 32),
            layers.SequencePooling("mean"),
            keras.layers.Dense(3, "softmax"),
        ]
    )
    batch = token_batch()
    token_ids = np.where(batch["padding_mask"], batch["token_ids"] % 59 + 1, 0)
    model(token_ids)  # Builds it.
    fill(model)
    loss = {"loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]}
    results = _fit(model, token_ids, LABELS, **loss)
    model.save(directory / "sequential.keras")
    copy = keras.saving.load_model(directory / "sequential.keras")
    return results | {
        "before": model.predict(token_ids, verbose=0),
        "after": copy.predict(token_ids, verbose=0),
    }


@computation
def fit_on_some_of_the_inputs(directory, weights):
    """The other inputs have defaults, in training too."""
    return _fit(small_classifier(), {"token_ids": token_batch()["token_ids"]}, LABELS)


@computation
def fit_with_memory(directory, weights):
    """Permutation language modelling with stateful memory, validated while it trains."""
    model = XLNetPermutationLM(small_backbone(memory_length=5), stateful=True, batch_size=2)
    fill(model)
    model.compile(keras.optimizers.SGD(0.1))
    rng = np.random.default_rng(2)
    token_ids = rng.integers(9, 200, (8, 12)).astype("int32")
    generator = layers.PermutationMaskGenerator(4, seed=0)
    features = generator.generate(token_ids, rng.random(token_ids.shape) < 0.5)
    labels, sample_weight = features.pop("labels"), features.pop("sample_weight")
    inputs = {"token_ids": token_ids, **features, "reset_memory": np.arange(8) == 3}
    data = inputs, labels, sample_weight
    history = model.fit(
        *data[:2],
        sample_weight=sample_weight,
        validation_data=data,
        epochs=2,
        batch_size=2,
        validation_batch_size=2,
        shuffle=False,
        verbose=0,
    ).history
    states = {m.name: m.training_state for m in model.memories}
    before = {name: flat(state)[0] for name, state in states.items()}
    predicted = model.predict(inputs, batch_size=2, verbose=0)["logits"]
    for name, state in states.items():
        np.testing.assert_array_equal(flat(state)[0], before[name])
    return {
        "losses": np.array(history["loss"]),
        "validation_losses": np.array(history["val_loss"]),
        "predicted": predicted,
        **{f"memory/{name}": state for name, state in before.items()},
    }


def _document_classifier(long_document):
    arguments = {"long_document": long_document, "segment_length": 5}
    return XLNetTextClassifier(small_backbone(memory_length=4), 3, dropout=0.0, **arguments)


@computation
def fit_task_models(directory, weights):
    """Three steps of the tasks whose data have other shapes than a text and a label."""
    inputs = token_batch(length=9)
    rng = np.random.default_rng(9)
    labels = {
        "start_positions": np.array([0, 2, 4, 3, 8, 5]),
        "end_positions": np.array([1, 2, 6, 7, 8, 8]),
        "is_impossible": np.array([0, 0, 0, 1, 1, 0]),
    }
    choices = {key: np.stack([value, value[::-1]], axis=1) for key, value in inputs.items()}
    tagging = (inputs, rng.integers(0, 3, (6, 9)), inputs["padding_mask"].astype("float32"))
    models = {
        "token_classifier": (XLNetTokenClassifier(small_backbone(), 3, dropout=0.0), tagging),
        "multiple_choice": (
            XLNetMultipleChoice(small_backbone(), dropout=0.0), (choices, LABELS % 2, None)
        ),
        "question_answering": (
            XLNetQuestionAnswering(small_backbone(), None, 2, 3, dropout=0.0),
            (inputs, labels, None),
        ),
        "segments": (_document_classifier("memory"), (inputs, LABELS, None)),
        "windows": (_document_classifier("windows"), (inputs, LABELS, None)),
    }  # fmt: skip
    import tensorflow as tf  # tf.data feeds every backend.

    results = {}
    for name, (model, (x, y, sample_weight)) in models.items():
        # Without the graphs of TensorFlow, which take a second each: `_fit` has some.
        eager = BACKEND == "tensorflow"
        fill(model).compile(keras.optimizers.SGD(0.1), run_eagerly=eager)
        arguments = {"sample_weight": sample_weight, "batch_size": 6}
        history = model.fit(x, y, epochs=3, shuffle=False, verbose=0, **arguments).history
        results[f"{name}/losses"] = np.array(history["loss"])
        data = (x, y) if sample_weight is None else (x, y, sample_weight)
        dataset = tf.data.Dataset.from_tensor_slices(data).batch(6)
        logs = model.evaluate(dataset, verbose=0, return_dict=True)
        results[f"{name}/evaluated"] = np.array([logs[key] for key in sorted(logs)])
        results |= numbered(f"{name}/predicted", model.predict(x, verbose=0))
    return results


@computation
def fit_on_text(directory, weights):
    preprocessor = XLNetTextClassifierPreprocessor(
        XLNetTokenizer(GOLDEN / "spiece.model"), sequence_length=16
    )
    model = small_classifier(preprocessor)
    results = _fit(model, TEXTS, LABELS)
    results["predicted"] = model.predict(TEXTS, verbose=0)
    results["pairs"] = model.predict((TEXTS, TEXTS[::-1]), verbose=0)
    model.save(directory / "text.keras")
    copy = keras.saving.load_model(directory / "text.keras")
    results["predicted_by_the_copy"] = copy.predict(TEXTS, verbose=0)
    import tensorflow as tf  # tf.data feeds every backend.

    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(len(LABELS))
    results["loss_of_a_dataset"] = np.array(model.evaluate(dataset, verbose=0))
    results["losses_of_a_stream"] = np.array(
        model.fit(Stream(), epochs=2, verbose=0).history["loss"]
    )
    return results


class Stream:
    """Batches without a length, which Keras does not know."""

    def __iter__(self):
        yield from [{"text": TEXTS, "label": LABELS}] * 2


class TextCounts(keras.metrics.Metric):
    """How often each text was read, by its sample weight, a number of its own."""

    def __init__(self, size):
        super().__init__(name="texts")
        self.counts = self.add_variable((size,), "zeros", name="counts")

    def update_state(self, y_true, y_pred, sample_weight=None):
        index = ops.cast(ops.reshape(sample_weight, (-1,)), "int32")
        self.counts.assign_add(ops.sum(ops.one_hot(index, self.counts.shape[0]), axis=0))

    def result(self):
        return ops.sum(self.counts)

    def reset_state(self):
        """Nothing: over all epochs."""


@computation
def steps_and_batch_sizes(directory, weights):
    """What `fit` reads with `steps_per_epoch`; what `evaluate` says of batches of any size."""
    preprocessor = XLNetTextClassifierPreprocessor(
        XLNetTokenizer(GOLDEN / "spiece.model"), sequence_length=64
    )
    texts = [" ".join(TEXTS[:i] + TEXTS[j:]) for i in range(1, 5) for j in range(2, 6)]
    labels = np.resize(LABELS, 16)
    model = small_classifier(preprocessor)
    results = {}
    for pack in (True, False):
        counts = TextCounts(16)
        model.compile(keras.optimizers.SGD(0.0), weighted_metrics=[counts])
        # Three passes over four batches of four texts, in steps that do not divide a pass.
        model.fit(
            texts, labels, 4, 4, 0, sample_weight=np.arange(16), steps_per_epoch=3,
            pack=pack,
        )  # fmt: skip
        results[f"counts_{pack}"] = ops.convert_to_numpy(counts.counts)
    loss = keras.losses.SparseCategoricalCrossentropy(ignore_class=1)
    model.compile(keras.optimizers.SGD(0.0), loss)
    sample_weight = np.linspace(0.5, 2.0, 16)
    for size in (5, 16):
        found = model.evaluate(texts, labels, size, 0, sample_weight=sample_weight)
        results[f"evaluated_{size}"] = np.array(found)
    found = model.evaluate(texts, labels, 4, 0, sample_weight=sample_weight, steps=2)
    results["evaluated_steps"] = np.array(found)
    found = model.evaluate(texts[:8], labels[:8], 4, 0, sample_weight=sample_weight[:8])
    results["evaluated_first"] = np.array(found)
    inputs = token_batch(length=9)
    tagger = fill(XLNetTokenClassifier(small_backbone(), 3, dropout=0.0))
    tags = np.where(np.random.default_rng(9).random((6, 9)) < 0.6, -100, LABELS[:, np.newaxis])
    for size in (2, 6):
        results[f"tagged_{size}"] = np.array(tagger.evaluate(inputs, tags, size, 0))
    answers = fill(XLNetQuestionAnswering(small_backbone(), None, 2, 3, dropout=0.0))
    places = np.array([0, 2, 4, 3, 8, 5])
    places = {"start_positions": places, "end_positions": places, "is_impossible": LABELS % 2}
    for size in (4, 6):
        logs = answers.evaluate(inputs, places, size, 0, return_dict=True)
        results[f"answered_{size}"] = np.array([logs[key] for key in sorted(logs)])
    return results


@computation
def off_the_cpu(directory, weights):
    """A tensor of another device cannot be mixed with numpy arrays; "meta" is one that all have."""
    if BACKEND != "torch":
        raise UnsupportedError(f"{BACKEND} has no device without numbers")
    with keras.device("meta"):
        model = small_backbone(
            num_layers=2, memory_length=3, tie_attention_biases=True, bidirectional_data=True
        )
        outputs = model({"token_ids": np.zeros((2, 5), "int32")})
        outputs = model({"token_ids": np.zeros((2, 5), "int32"), "memory": outputs["memory"]})
        classifier = XLNetTextClassifier(small_backbone(), 3, pooling="attention")
        outputs["probabilities"] = classifier({"token_ids": np.zeros((2, 5), "int32")})
    return {name: np.array(value.device.type) for name, value in outputs.items()}


@computation
def dropout(directory, weights):
    """Whether dropout acts: each backend draws its own numbers."""
    rates = {"dropout": 0.2, "attention_dropout": 0.2}

    def outputs(seed, training):
        model = small_backbone(seed=seed, memory_length=4, bidirectional_data=True, **rates)
        return flat(model(memory_batch(), training=training)["sequence_output"])[0]

    noisy, calm = outputs(3, True), outputs(3, False)
    model = fill(XLNetTextClassifier(small_backbone(**rates), 3, dropout=0.2))
    model.compile(keras.optimizers.SGD(0.1))
    history = model.fit(token_batch(), LABELS, epochs=2, verbose=0).history
    return {
        "off_when_not_training": calm,
        "acts": np.array(np.abs(noisy - calm).max() > 0.1),
        "follows_its_seed": np.array(np.array_equal(noisy, outputs(3, True))),
        "other_seeds_differ": np.array(np.abs(noisy - outputs(4, True)).max() > 0.1),
        "losses_differ": np.array(history["loss"][0] != history["loss"][1]),
        "losses_are_finite": np.isfinite(history["loss"]),
    }


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--weights", type=pathlib.Path, nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=list(COMPUTATIONS))
    options = parser.parse_args(arguments)
    arrays, report = {}, {"backend": BACKEND, "seconds": {}, "failed": {}, "unsupported": {}}
    for name in options.only:
        # Quantizing collects garbage once a weight: 0.5 s each, were everything looked through.
        gc.freeze()
        start = time.perf_counter()
        try:
            results = COMPUTATIONS[name](options.directory, options.weights)
        except UnsupportedError as reason:
            report["unsupported"][name] = str(reason)
        except Exception:  # One broken computation must not hide the others.
            report["failed"][name] = traceback.format_exc()
        else:
            arrays |= {f"{name}/{key}": value for key, value in results.items()}
        report["seconds"][name] = round(time.perf_counter() - start, 2)
    np.savez(options.directory / "arrays.npz", **arrays)
    (options.directory / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
