"""This library, as its users would run it."""

import concurrent.futures
import functools
import multiprocessing
import tempfile

import numpy as np

from benchmarks.comparison import workloads
from benchmarks.comparison.keras_paths import fit, forward, jit_argument, model_facts
from benchmarks.comparison.loops import answering, calling
from keras_xlnet.lazy_modules import tf
from keras_xlnet.models import (
    XLNetBackbone,
    XLNetPermutationLM,
    XLNetQuestionAnswering,
    XLNetTextClassifier,
)
from keras_xlnet.preprocessing import (
    XLNetQuestionAnsweringPreprocessor,
    XLNetTextClassifierPreprocessor,
)
from keras_xlnet.tokenizers import XLNetTokenizer


def multiply(workload, dtype="float32"):
    size = workloads.MATMUL_SIZE
    a, b = (tf.cast(tf.random.uniform((size, size)), dtype) for _ in range(2))
    product = tf.function(tf.matmul)
    return calling(lambda: product(a, b)[0, 0].numpy(), versions=_versions())


def encode(workload, dtype="float32", jit=None):
    batch = workloads.token_batch(workload)
    del batch["labels"]
    backbone = _backbone(workload, dtype)
    return forward(backbone, batch, jit, lambda outputs: outputs["sequence_output"])


def finetune(workload, dtype="float32", jit=None):
    batch = workloads.token_batch(workload)
    labels = batch.pop("labels")
    model = XLNetTextClassifier(_backbone(workload, _mixed(dtype)), num_classes=2)
    model.compile(**jit_argument(jit))
    return fit(model, batch, labels)


def pretrain(workload, dtype="float32", jit=None):
    batch = workloads.pretraining_batch(workload)
    labels = batch.pop("labels")
    memory_length = workload.memory_length or None
    backbone = _backbone(workload, _mixed(dtype), memory_length=memory_length)
    stateful = {"stateful": True, "batch_size": workload.batch_size} if memory_length else {}
    model = XLNetPermutationLM(backbone, **stateful)
    model.compile(**jit_argument(jit))
    return fit(model, batch, labels)


def generate(workload, dtype="float32", jit=None):
    total = workloads.PROMPT_LENGTH + workload.units
    model = XLNetPermutationLM(_backbone(workload, dtype, memory_length=total))
    prompt = tf.constant(workloads.prompt(), "int32")
    from benchmarks.comparison.generation import greedy_generator

    continued = greedy_generator(model, workload.units, jit)
    return calling(lambda: continued(prompt), **model_facts(model))


def tokenize(workload, pipeline=False):
    # As in Hugging Face's tokenizer by default.
    tokenizer = XLNetTokenizer(workloads.vocabulary_file(), remove_accents=True)
    texts = workloads.texts(workload.units)

    if pipeline:
        # Once, as `fit` does for all epochs: it traces the tokenizer.
        batches = tf.data.Dataset.from_tensor_slices(texts).batch(256)
        batches = batches.map(tokenizer, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
        count = functools.partial(map, lambda ids: ids.flat_values.shape[0], batches)
        return calling(lambda: sum(count()), versions=_versions())
    return calling(lambda: tokenizer(texts).flat_values.shape[0], versions=_versions())


def serve_texts(workload, dtype="float32"):
    folder = tempfile.mkdtemp()
    # In its own process: a server of SavedModels does not load this library.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as process:
        process.submit(_export, workload, dtype, folder).result()
    import tensorflow_text  # noqa: F401, registers the kernels that a SavedModel needs

    model = tf.saved_model.load(folder)
    signature = model.signatures["serving_default"]
    parameters = sum(int(np.prod(v.shape)) for v in model.variables if v.dtype.is_floating)
    facts = {"versions": _versions(), "parameters": parameters}

    def answer(texts):
        return signature(text=tf.constant(texts))["probabilities"].numpy()

    return answering(answer, workloads.texts(1024), workload, **facts)


def predict_texts(workload, dtype="float32"):
    model = _text_classifier(workload, dtype)
    answer = functools.partial(model.predict, verbose=0)
    return answering(answer, workloads.texts(1024), workload, **model_facts(model))


def fit_texts(workload, pack=True):
    model, texts, options = _many_texts(workload, pack)
    labels = np.arange(len(texts)) % 2
    call = functools.partial(model.fit, texts, labels, **options)
    return calling(lambda: call().history["loss"][0], **model_facts(model))


def fit_answers(workload, pack=True):
    tokenizer, backbone = _text_backbone(workload)
    stride = workload.length - workloads.OVERLAP
    preprocessor = XLNetQuestionAnsweringPreprocessor(tokenizer, workload.length, stride)
    model = XLNetQuestionAnswering(backbone, preprocessor)
    asked, contexts, starts, answers = zip(*workloads.questions(workload.units), strict=True)
    data = {"question": asked, "context": contexts}, [*zip(starts, answers, strict=True)]
    call = functools.partial(model.fit, *data, workload.batch_size, pack=pack, verbose=0)
    return calling(lambda: call().history["loss"][0], **model_facts(model))


def predict_many_texts(workload, pack=True):
    model, texts, options = _many_texts(workload, pack)
    return calling(lambda: model.predict(texts, **options), **model_facts(model))


def _many_texts(workload, pack):
    options = {"batch_size": workload.batch_size, "pack": pack, "verbose": 0}
    return _text_classifier(workload, "float32"), workloads.texts(workload.units), options


def _versions():
    return {"tensorflow": tf.__version__}


def _export(workload, dtype, folder):
    from keras_xlnet.serving import export

    export(_text_classifier(workload, dtype), folder)


def _text_backbone(workload, dtype="float32"):
    tokenizer = XLNetTokenizer(workloads.vocabulary_file(), remove_accents=True)
    return tokenizer, _backbone(workload, dtype, vocabulary_size=tokenizer.vocabulary_size())


def _text_classifier(workload, dtype):
    tokenizer, backbone = _text_backbone(workload, dtype)
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, workload.length)
    return XLNetTextClassifier(backbone, num_classes=2, preprocessor=preprocessor)


def _backbone(workload, dtype, **more):
    size = more.pop("vocabulary_size", workloads.VOCABULARY_SIZE)
    sizes = (workload.num_layers, workload.num_heads, workload.dim, workload.intermediate_dim)
    rates = {"dropout": workloads.DROPOUT, "attention_dropout": workloads.DROPOUT}
    return XLNetBackbone(size, *sizes, **rates, dtype=dtype, **more)


def _mixed(dtype):
    """Training keeps its weights in float32."""
    return dtype if dtype == "float32" else f"mixed_{dtype}"
