"""Strings on JAX and PyTorch where TensorFlow and protobuf cannot be imported."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).parents[2]

PROGRAM = """
    import sys
    for name in ("tensorflow", "tensorflow_text", "google.protobuf", "pandas", "matplotlib"):
        sys.modules[name] = None
    import pathlib
    import keras
    import numpy as np
    from keras_xlnet import models, preprocessing, tokenizers

    tokenizer = tokenizers.XLNetTokenizer(sys.argv[1])
    folder = pathlib.Path(sys.argv[2])
    backbone = models.XLNetBackbone(200, 1, 2, 16, 32)
    texts = ["a ship sails", "the water is cold and wide", "a harbor"] * 3

    def check(model_class, x, y, verb, **arguments):
        preprocessor = model_class.preprocessor_cls(tokenizer, sequence_length=48, **sizes)
        model = model_class(backbone=backbone, preprocessor=preprocessor, **arguments)
        losses = model.fit(x, y, batch_size=4, epochs=2, verbose=0).history["loss"]
        assert np.isfinite(losses).all() and len(losses) == 2
        model.evaluate(x, y, verbose=0)
        expected = keras.tree.flatten(model.predict(x, batch_size=4, verbose=0))
        model.save(folder / "model.keras")
        model.save_to_preset(folder / model.name)
        for loaded in (
            keras.saving.load_model(folder / "model.keras"),
            model_class.from_preset(folder / model.name),
        ):
            found = keras.tree.flatten(loaded.predict(x, batch_size=4, verbose=0))
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, atol=1e-4)
        results = getattr(model, verb)(x, verbose=0) if verb else []
        print(model_class.__name__, len(results))

    sizes = {}
    check(models.XLNetTextClassifier, texts, ["a", "b", "c"] * 3, "classify", num_classes=3)
    check(models.XLNetTextRegressor, [(t, "a rose") for t in texts], range(9), None)
    tasks = {"topic": models.XLNetTextClassifier(backbone, 2)}
    tasks["stars"] = models.XLNetTextRegressor(backbone)
    labels = {"topic": ["a", "b", None] * 3, "stars": [None, 1, 2] * 3}
    check(models.MultiTask, texts, labels, "annotate", tasks=tasks)
    words = [text.split() for text in texts]
    tags = [["B-x", *["O"] * (len(row) - 1)] for row in words]
    check(models.XLNetTokenClassifier, words, tags, "find_entities", num_classes=2)
    check(models.XLNetRanker, [("ship", texts[:2])] * 5, [[1, 0]] * 5, "rank")
    check(models.XLNetTextEmbedder, [("ship", text) for text in texts], None, "predict")
    sizes = {"max_choice_length": 16}
    choices = [("a ship", "it is _", ["cold", "wide", "wet"])] * 5
    check(models.XLNetMultipleChoice, choices, [0, 1, 2, 0, 1], "choose")
    sizes = {"doc_stride": 8, "max_question_length": 8}
    questions = [("what is it?", text + " by the sea" * 9) for text in texts]
    check(models.XLNetQuestionAnswering, questions, ["sea", None, "sea"] * 3, "answer")
    assert not {"tensorflow", "tensorflow_text"} & {k for k, v in sys.modules.items() if v}
"""


@pytest.mark.parametrize("backend", ["jax", pytest.param("torch", marks=pytest.mark.slow)])
def test_all_tasks_take_strings(backend, golden_dir, tmp_path):
    pytest.importorskip(backend)
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), golden_dir / "spiece.model", tmp_path],
        env={**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.splitlines() == [
        "XLNetTextClassifier 9",
        "XLNetTextRegressor 0",
        "MultiTask 2",
        "XLNetTokenClassifier 9",
        "XLNetRanker 5",
        "XLNetTextEmbedder 9",
        "XLNetMultipleChoice 5",
        "XLNetQuestionAnswering 9",
    ]
