"""The names that Hugging Face's transformers gives the weights of an XLNet."""

from keras_xlnet.checkpoints.places import Place

LAYER_PATTERN = r"(transformer\.)?layer\.\d+\."
PREFIX = "transformer."
MASK_EMBEDDING = "mask_emb"


def backbone_places(backbone, prefix=PREFIX):
    """Yields the `Place` of every weight of a backbone.

    Args:
        backbone: An `XLNetBackbone`.
        prefix: `"transformer."` in task models, `""` in an `XLNetModel` alone.
    """
    yield Place(f"{prefix}word_embedding.weight", backbone.token_embedding.embeddings)
    for i, block in enumerate(backbone.blocks):
        scope = f"{prefix}layer.{i}"
        yield from _attention(f"{scope}.rel_attn", block.attention, backbone.attention_biases)
        yield from _norm(f"{scope}.rel_attn.layer_norm", block.attention_add_and_norm.norm)
        yield from _dense(f"{scope}.ff.layer_1", block.feed_forward.intermediate_dense)
        yield from _dense(f"{scope}.ff.layer_2", block.feed_forward.output_dense)
        yield from _norm(f"{scope}.ff.layer_norm", block.feed_forward_add_and_norm.norm)


def head_places(model, task, prefix=PREFIX, logits="classifier"):
    """Yields the `Place` of every weight of a task model that its backbone does not have.

    Args:
        model: The task model.
        task: Name of the task.
        prefix: As for `backbone_places`.
        logits: Name of a token classifier's last layer: `"classifier"`, or `"qa_outputs"` in
            `XLNetForQuestionAnsweringSimple`.
    """
    if task == "permutation_lm":
        yield Place("lm_loss.bias", model.logit_bias.bias)
        yield Place(prefix + MASK_EMBEDDING, model.mask_embedding.embedding)
    elif task == "question_answering":
        yield from _dense("start_logits.dense", model.start_logits.dense)
        yield from _dense("end_logits.dense_0", model.end_logits.dense_0)
        yield from _norm("end_logits.LayerNorm", model.end_logits.norm)
        yield from _dense("end_logits.dense_1", model.end_logits.dense_1)
        yield from _dense("answer_class.dense_0", model.answer_class.dense_0)
        yield _kernel("answer_class.dense_1", model.answer_class.dense_1)
    elif task == "token_classifier":
        yield from _dense(logits, model.logits_dense)
    else:
        yield from _dense("sequence_summary.summary", model.sequence_summary.dense)
        yield from _dense("logits_proj", model.logits_dense)


def _attention(scope, attention, shared_biases):
    yield Place(f"{scope}.q", attention.query_dense.kernel)
    yield Place(f"{scope}.k", attention.key_dense.kernel)
    yield Place(f"{scope}.v", attention.value_dense.kernel)
    yield Place(f"{scope}.r", attention.position_dense.kernel)
    # Theirs is (hidden, heads, head_dim) like the other kernels, ours (heads, head_dim, hidden).
    yield Place(f"{scope}.o", attention.output_dense.kernel, axes=(1, 2, 0))
    yield Place(f"{scope}.seg_embed", attention.segment_embeddings)
    # Theirs has biases in every layer: shared ones are written as often.
    biases = attention if shared_biases is None else shared_biases
    yield Place(f"{scope}.r_w_bias", biases.content_bias)
    yield Place(f"{scope}.r_r_bias", biases.position_bias)
    yield Place(f"{scope}.r_s_bias", biases.segment_bias)


def _kernel(scope, dense):
    return Place(f"{scope}.weight", dense.kernel, axes=(1, 0))


def _dense(scope, dense):
    yield _kernel(scope, dense)
    yield Place(f"{scope}.bias", dense.bias)


def _norm(scope, norm):
    yield Place(f"{scope}.weight", norm.gamma)
    yield Place(f"{scope}.bias", norm.beta)
