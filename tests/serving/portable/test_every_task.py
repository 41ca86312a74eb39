"""Exports of all tasks give what the methods of the models give."""

import dataclasses
import importlib.util
import shutil

import numpy as np
import pytest

from keras_xlnet import models, preprocessing
from keras_xlnet.cli.inspect_export import export_report
from keras_xlnet.models.scoring import predict
from keras_xlnet.serving import export
from keras_xlnet.serving.portable.litert_format import write_litert
from keras_xlnet.serving.portable.networks import NETWORKS, network_of
from keras_xlnet.serving.portable.predict import TextModel, _start_litert
from tests.serving.portable.conftest import make_backbone
from tests.serving.portable.test_export import run_alone
from tests.serving.portable.test_predict import without_network  # noqa: F401, a fixture

RANDOM = np.random.default_rng(8)
WORDS = "a ship sails from the old harbor at noon ; cold , r\u00e9sum\u00e9 9, free you".split()


def texts(*lengths):
    """Random texts of so many words."""
    return [" ".join(RANDOM.choice(WORDS, length)) for length in lengths]


SENTENCES = texts(3, 40, 1, 12)
QUESTIONS, CONTEXTS = texts(2, 3, 4, 9), [*texts(5, 30, 60), ""]
CHOICES, DOCUMENTS = ([texts(2, 5, 1), texts(1, 1), texts(30, 2, 3, 4)] for _ in range(2))
TAGS = ["O", "B-x", "I-x", "B-y", "I-y"]
# What `results` and the method of the model take.
INPUTS = {
    "texts": (SENTENCES,),
    "classes": (SENTENCES, SENTENCES[::-1]),
    "entities": (SENTENCES,),
    "answers": (QUESTIONS, CONTEXTS),
    "choices": (SENTENCES[:3], QUESTIONS[:3], CHOICES),
    "ranking": (SENTENCES[:3], DOCUMENTS),
    "permutation_lm": (SENTENCES,),
    "causal_lm": (SENTENCES,),
}
# Several options of a model.
OPTIONS = {
    "answers": [{}, {"num_answers": 2, "max_answer_length": 1, "null_threshold": -1.0}],
    "permutation_lm": [{}, {"order": "random", "num_orders": 3, "batch_size": 5}],
    "causal_lm": [{}, {"start_token_id": 7, "segment_length": 16, "batch_size": 3}],
}


def make(task, tokenizer, padding_side):
    side = {"padding_side": padding_side}
    if task == "causal_lm":
        arguments = {"memory_length": 5} if padding_side == "left" else {"cutoffs": [50, 120]}
        initializer = make_backbone().kernel_initializer
        return models.TransformerXLLanguageModel(
            *(200, 1, 2, 32, 64), tokenizer=tokenizer, kernel_initializer=initializer, **arguments
        )
    backbone = make_backbone()
    if task == "permutation_lm":
        return models.XLNetPermutationLM(backbone, tokenizer=tokenizer)
    if task == "texts":
        preprocessor = preprocessing.XLNetTextRegressorPreprocessor(tokenizer, 24, **side)
        return models.XLNetTextRegressor(backbone, preprocessor)
    if task == "classes":
        preprocessor = preprocessing.XLNetTextClassifierPreprocessor(tokenizer, 24, **side)
        return models.XLNetTextClassifier(backbone, 2, preprocessor, class_names=["n", "y"])
    if task == "entities":
        preprocessor = preprocessing.XLNetTokenClassifierPreprocessor(tokenizer, 24, **side)
        return models.XLNetTokenClassifier(
            *(backbone, len(TAGS), preprocessor),
            class_names=TAGS,
            activation={"left": "softmax", "right": "linear"}[padding_side],
        )
    if task == "answers":
        preprocessor = preprocessing.XLNetQuestionAnsweringPreprocessor(
            tokenizer, 40, doc_stride=9, max_question_length=10, **side
        )
        return models.XLNetQuestionAnswering(backbone, preprocessor, 3, 2, null_threshold=0.1)
    if task == "choices":
        preprocessor = preprocessing.XLNetMultipleChoicePreprocessor(tokenizer, 40, 12, **side)
        return models.XLNetMultipleChoice(
            backbone, preprocessor, {"left": "softmax", "right": "linear"}[padding_side]
        )
    preprocessor = preprocessing.XLNetRankerPreprocessor(tokenizer, 24, **side)
    pooling = {"left": "last", "right": "pair"}[padding_side]
    return models.XLNetRanker(backbone, preprocessor, pooling)


def results_of_model(model, inputs, options):
    x = inputs if len(inputs) > 1 else inputs[0]
    task = model.signatures
    if task in ("permutation_lm", "causal_lm"):
        return model.score(x, **options)
    if task == "texts":
        return model.predict(x, verbose=0)
    if task == "classes":
        return [found.label for found in model.classify(x, verbose=0)]
    method = {"answers": "answer", "choices": "choose", "ranking": "rank"}
    method = getattr(model, method.get(task, "find_entities"))
    return method(x, verbose=0, **options)


def assert_same(found, expected, atol):
    if dataclasses.is_dataclass(expected):
        assert type(found).__name__ == type(expected).__name__
        return assert_same(vars(found), vars(expected), atol)
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert_same(found[name], value, atol)
    elif isinstance(expected, (list, tuple)):
        for pair in zip(found, expected, strict=True):
            assert_same(*pair, atol)
    elif isinstance(expected, (float, np.ndarray)):
        np.testing.assert_allclose(found, expected, atol=atol, rtol=atol)
    else:
        assert found == expected


def assert_same_results(text_model, model, atol):
    task = model.signatures
    for options in OPTIONS.get(task, [{}]):
        found = text_model.results(*INPUTS[task], **options)
        if task == "entities":
            tags = [list(sentence.tags) for sentence in found]
            assert tags == model.tag(*INPUTS[task], verbose=0)
            found = [sentence.entities("bio") for sentence in found]
        assert_same(found, results_of_model(model, INPUTS[task], options), atol)


@pytest.fixture(params=["left", "right"])
def padding_side(request):
    return request.param


@pytest.mark.parametrize("task", INPUTS)
def test_results_of_the_network_in_keras(task, padding_side, tokenizer, tmp_path, without_network):  # noqa: F811
    model = make(task, tokenizer, padding_side)
    text_model = TextModel(export(model, tmp_path / "model", format="litert"))
    network = network_of(model)
    text_model._start = lambda: lambda features: predict(network, features)
    assert_same_results(text_model, model, 1e-4)


def test_what_is_refused(tokenizer, tmp_path, without_network):  # noqa: F811
    def text_model(model):
        return TextModel(export(model, tmp_path / model.name, format="litert"))

    embedder = models.XLNetTextEmbedder(
        make_backbone(), preprocessing.XLNetTextEmbedderPreprocessor(tokenizer, 24)
    )
    for task, arguments, options, message in [
        ("answers", (QUESTIONS, CONTEXTS), {"num_answers": 0}, "`num_answers` must be a positive"),
        ("ranking", INPUTS["ranking"], {"top_k": 3}, "XLNetRanker has no option 'top_k'"),
        ("causal_lm", (SENTENCES,), {"start_token_id": 200}, "`start_token_id` must be an id"),
        ("permutation_lm", ([""],), {}, "`texts` must have at least one token each"),
    ]:
        model = text_model(make(task, tokenizer, "left"))
        model._run = lambda features: {"scores": np.zeros((3, 9))}
        with pytest.raises(ValueError, match=message):
            model.results(*arguments, **options)
    with pytest.raises(ValueError, match="XLNetTextEmbedder takes single texts"):
        text_model(embedder)(SENTENCES, SENTENCES)
    with pytest.raises(ValueError, match="has only `results`"):
        model.encode(SENTENCES)


def test_all_are_tried():
    assert INPUTS.keys() | {"words"} == NETWORKS.keys()


def test_outputs_of_words(tokenizer, tmp_path, without_network):  # noqa: F811
    # Of models that others add: CONTRIBUTING.md.
    model = make("entities", tokenizer, "left")
    model.signatures = "words"
    text_model = TextModel(export(model, tmp_path / "model", format="litert"))
    network = network_of(model)
    text_model._start = lambda: lambda features: predict(network, features)
    found = text_model.results([["a", "ship"], ["sails"]])
    assert [row.shape for row in found] == [(2, len(TAGS)), (1, len(TAGS))]
    encoded = model.preprocessor.encode([["sails"]])
    outputs = model.predict(encoded.features, verbose=0)[0]
    np.testing.assert_allclose(found[1], outputs[encoded.word_index[0] == 0][:1], atol=1e-5)


# The most operations: search for starts and ends, and a memory.
@pytest.mark.parametrize("task", ["answers", "causal_lm"])
def test_litert_in_this_process(task, tokenizer, tmp_path, without_network):  # noqa: F811
    model = make(task, tokenizer, "left")
    text_model = TextModel(export(model, tmp_path / "model", format="litert"))
    network = tmp_path / "model" / "model.tflite"
    write_litert(network_of(model), network)
    text_model._start = lambda: _start_litert(str(network), 1)
    assert_same_results(text_model, model, 1e-4)


# A conversion is a process of 10 to 20 seconds. `test_export.py` has the other tasks.
@pytest.mark.slow
@pytest.mark.parametrize("format", ["onnx", "litert"])
@pytest.mark.parametrize("task", [*INPUTS][2:])
def test_files(task, format, tokenizer, tmp_path):
    if format == "onnx" and importlib.util.find_spec("onnxscript") is None:
        pytest.skip("onnxscript is not installed")
    model = make(task, tokenizer, {"onnx": "left", "litert": "right"}[format])
    directory = export(model, tmp_path / "model", format=format)
    text_model = TextModel(directory)
    assert_same_results(text_model, model, 1e-4)
    described = export_report(str(directory))["signatures"]
    # A file without details is read.
    (network,) = directory.glob("model.[ot]*")
    alone = shutil.copy(network, tmp_path / f"alone{network.suffix}")
    assert export_report(alone)["signatures"] == described
    (answer, *_) = run_alone(directory, command_line(task))
    assert INPUTS[task][0][0] in (answer.get(name) for name in ("text", "question", "query"))


def command_line(task):
    first, *others = (column[0] for column in INPUTS[task])
    if task in ("answers", "choices", "ranking"):
        last = others[-1]
        return [first, *([last] if isinstance(last, str) else last)]
    return [first]
