"""Exports of all tasks give the same in a process that has neither this library nor its models.

What they give is compared with Python by the tests of the signatures.
"""

import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet import models, preprocessing
from keras_xlnet.serving import export
from tests.serving import test_answer_signatures, test_entity_signatures
from tests.serving.fresh_process import run_in_a_fresh_process
from tests.serving.test_answer_signatures import CONTEXTS, QUESTIONS
from tests.serving.test_entity_signatures import NAMES, SENTENCES
from tests.serving.test_signatures import QUERIES, STORIES, padded

STORY = {"text": STORIES["text"], "choices": padded(STORIES["choices"])}
REQUESTS = {
    ("regressor", "serving_default"): {"text": SENTENCES},
    ("regressor", "serving_pair"): {"text": SENTENCES, "pair": SENTENCES[::-1]},
    ("embedder", "serving_default"): {"text": SENTENCES},
    ("choice", "serving_default"): STORY,
    ("choice", "serving_question"): {**STORY, "question": STORIES["question"]},
    ("ranker", "serving_default"): {
        "query": QUERIES["query"],
        "documents": padded(QUERIES["documents"]),
    },
    ("entities", "serving_default"): {"text": SENTENCES},
    ("entities", "serving_words"): {"words": [["Ann", "sees"], ["home", ""]]},
    ("answers", "serving_default"): {"question": QUESTIONS, "context": CONTEXTS},
}


@pytest.mark.slow
@pytest.mark.optimized_graphs
def test_every_task_without_this_library(preprocessor, tmp_path):
    tokenizer = preprocessor.tokenizer
    entities = test_entity_signatures.make(preprocessor, NAMES)
    backbone = entities.backbone
    made = {
        "regressor": models.XLNetTextRegressor(
            backbone, preprocessing.XLNetTextRegressorPreprocessor(tokenizer, 24)
        ),
        "embedder": models.XLNetTextEmbedder(
            backbone, preprocessing.XLNetTextEmbedderPreprocessor(tokenizer, 24)
        ),
        "choice": models.XLNetMultipleChoice(
            backbone, preprocessing.XLNetMultipleChoicePreprocessor(tokenizer, 32, 12)
        ),
        "ranker": models.XLNetRanker(
            backbone, preprocessing.XLNetRankerPreprocessor(tokenizer, 24)
        ),
        "entities": entities,
        "answers": test_answer_signatures.make(preprocessor),
    }
    exported = {name: export(model, tmp_path / name / "1") for name, model in made.items()}
    outputs = run_in_a_fresh_process(REQUESTS, exported, tmp_path)
    for (name, signature), inputs in REQUESTS.items():
        loaded = tf.saved_model.load(exported[name]).signatures[signature]
        expected = loaded(**{key: tf.constant(value) for key, value in inputs.items()})
        found = outputs[name, signature]
        assert sorted(found) == sorted(expected)
        for key, value in expected.items():
            if value.dtype == tf.string:
                assert found[key].tolist() == value.numpy().tolist()
            else:
                np.testing.assert_allclose(found[key], value, atol=1e-6)
