"""The names that the original gives its variables."""

import re

from keras_xlnet.checkpoints.places import Place

_ROOT = "model/transformer"
LAYER_PATTERN = rf"{_ROOT}/layer_\d+/"
# The scope's spelling is the original's.
_SUMMARY = "model/sequnece_summary"
# The scopes in which a fine-tuned head may be, with the name of the task that it was trained for.
HEAD_PATTERNS = {
    "text_classifier": r"model/classification_(.+)/logit/kernel",
    "text_regressor": r"model/regression_(.+)/logit/kernel",
}


def task_of(names):
    """The task that a checkpoint with variables of these names was trained for, or `None`."""
    for task, patterns in _SIGNS.items():
        if any(re.fullmatch(patterns, name) for name in names):
            return task
    return None


def backbone_places(backbone):
    """Yields the `Place` of every weight of a backbone."""
    yield Place(f"{_ROOT}/word_embedding/lookup_table", backbone.token_embedding.embeddings)
    if backbone.attention_biases is not None:
        yield from _biases(backbone.attention_biases)
    for i, block in enumerate(backbone.blocks):
        yield from _block(block, {"layer": i, "num_layers": backbone.num_layers})


_SIGNS = {
    "question_answering": "start_logits/dense/kernel",
    **HEAD_PATTERNS,
    "multiple_choice": "logits/dense/kernel",
    "permutation_lm": "model/lm_loss/bias",
}


def head_places(model, task, task_name):
    """Yields the `Place` of every weight of a task model that its backbone does not have.

    Args:
        model: The task model.
        task: Name of the task.
        task_name: What the original calls the task of a classifier or a regressor.

    Raises:
        ValueError: If the original has no such task.
    """
    if task == "permutation_lm":
        yield Place("model/lm_loss/bias", model.logit_bias.bias)
        yield Place(f"{_ROOT}/mask_emb/mask_emb", model.mask_embedding.embedding)
    elif task == "question_answering":
        yield from _dense("start_logits/dense", model.start_logits.dense)
        yield from _dense("end_logits/dense_0", model.end_logits.dense_0)
        yield from _norm("end_logits", model.end_logits.norm)
        yield from _dense("end_logits/dense_1", model.end_logits.dense_1)
        yield from _dense("answer_class/dense_0", model.answer_class.dense_0)
        yield Place("answer_class/dense_1/kernel", model.answer_class.dense_1.kernel)
    elif task in _LOGITS:
        yield from _summary(model.sequence_summary)
        yield from _dense(_LOGITS[task].format(task_name), model.logits_dense)
    else:
        raise ValueError(
            f"The original has no model for the task {task!r}. Save its `backbone` alone"
        )


_LOGITS = {
    "text_classifier": "model/classification_{}/logit",
    "text_regressor": "model/regression_{}/logit",
    "multiple_choice": "logits/dense",
}


def _block(block, layer):
    attention, feed_forward = block.attention, block.feed_forward
    scope = f"{_ROOT}/layer_{layer['layer']}"
    yield Place(f"{scope}/rel_attn/q/kernel", attention.query_dense.kernel)
    yield Place(f"{scope}/rel_attn/k/kernel", attention.key_dense.kernel)
    yield Place(f"{scope}/rel_attn/v/kernel", attention.value_dense.kernel)
    yield Place(f"{scope}/rel_attn/r/kernel", attention.position_dense.kernel)
    yield _attention_output(f"{scope}/rel_attn", attention.output_dense)
    yield Place(f"{_ROOT}/seg_embed", attention.segment_embeddings, **layer)
    if hasattr(attention, "content_bias"):
        yield from _biases(attention, **layer)
    yield from _norm(f"{scope}/rel_attn", block.attention_add_and_norm.norm)
    yield from _dense(f"{scope}/ff/layer_1", feed_forward.intermediate_dense)
    yield from _dense(f"{scope}/ff/layer_2", feed_forward.output_dense)
    yield from _norm(f"{scope}/ff", block.feed_forward_add_and_norm.norm)


def _biases(owner, **layer):
    yield Place(f"{_ROOT}/r_w_bias", owner.content_bias, **layer)
    yield Place(f"{_ROOT}/r_r_bias", owner.position_bias, **layer)
    yield Place(f"{_ROOT}/r_s_bias", owner.segment_bias, **layer)


def _summary(summary):
    if summary.pooling.mode == "attention":
        attention = summary.pooling.attention
        scope = f"{_SUMMARY}/abs_attn"
        yield Place(f"{_SUMMARY}/summary_bias", summary.pooling.query)
        yield Place(f"{scope}/q/kernel", attention.query_dense.kernel)
        yield Place(f"{scope}/k/kernel", attention.key_dense.kernel)
        yield Place(f"{scope}/v/kernel", attention.value_dense.kernel)
        yield _attention_output(scope, attention.output_dense)
        yield from _norm(scope, summary.pooling.norm)
    yield from _dense(f"{_SUMMARY}/summary", summary.dense)


def _attention_output(scope, dense):
    # Theirs is (hidden, heads, head_dim) like the other kernels, ours (heads, head_dim, hidden).
    return Place(f"{scope}/o/kernel", dense.kernel, axes=(1, 2, 0))


def _dense(scope, dense):
    yield Place(f"{scope}/kernel", dense.kernel)
    yield Place(f"{scope}/bias", dense.bias)


def _norm(scope, norm):
    yield Place(f"{scope}/LayerNorm/gamma", norm.gamma)
    yield Place(f"{scope}/LayerNorm/beta", norm.beta)
