"""What users pass to models: what is accepted in every form, and what each error says."""

import warnings

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from keras_xlnet.models import (
    TransformerXLLanguageModel,
    XLNetMultipleChoice,
    XLNetPermutationLM,
    XLNetQuestionAnswering,
    XLNetRanker,
    XLNetTextClassifier,
    XLNetTextEmbedder,
    XLNetTextRegressor,
    XLNetTokenClassifier,
)
from keras_xlnet.preprocessing import (
    XLNetTextClassifierPreprocessor,
    XLNetTextEmbedderPreprocessor,
)
from keras_xlnet.training import attention_memory
from tests.small_models import small_backbone

TEXTS = ["win a free prize", "see you at six", "free cash, call now", "are you home"]
NAMES = ["spam", "ham", "spam", "ham"]
LABELS = [1, 0, 1, 0]
FRAME = pd.DataFrame({"text": TEXTS, "label": NAMES})


@pytest.fixture(scope="module")
def preprocessor(tokenizer):
    return XLNetTextClassifierPreprocessor(tokenizer, sequence_length=12)


def backbone(**arguments):
    keras.utils.set_random_seed(3)
    return small_backbone(**arguments)


def classifier(preprocessor, num_classes=2, **arguments):
    model = XLNetTextClassifier(
        backbone(), num_classes, preprocessor, **{"dropout": 0.0, **arguments}
    )
    # The update of Adam takes a second to compile.
    model.compile(keras.optimizers.SGD(0.1))
    return model


@pytest.fixture(scope="module")
def models(preprocessor):
    """Models that the errors are raised by: none of them gets to a train step."""
    by_name = classifier(preprocessor, 3)
    by_name.compile("sgd", loss="sparse_categorical_crossentropy")
    of_vectors = classifier(preprocessor, 3)
    of_vectors.compile("sgd", loss=keras.losses.CategoricalCrossentropy())
    return {
        "classifier": classifier(preprocessor, class_names=["ham", "spam"]),
        "nameless": classifier(preprocessor),
        "comparer": classifier(preprocessor, pooling="pair"),
        "several": classifier(preprocessor, 3, activation="sigmoid"),
        "regressor": XLNetTextRegressor(backbone(), preprocessor),
        "permutation_lm": XLNetPermutationLM(backbone()),
        "question_answering": XLNetQuestionAnswering(backbone()),
        "by_name": by_name,
        "of_vectors": of_vectors,
        "tagger": XLNetTokenClassifier(backbone(), 3),
        "chooser": XLNetMultipleChoice(backbone()),
        "ranker": XLNetRanker(backbone()),
        "embedder": XLNetTextEmbedder(backbone()),
        "transformer_xl": TransformerXLLanguageModel(200, 1, 2, 16, 32),
    }


IDS = np.array([[9, 17, 12, 4]] * 4)
FEATURES = {"token_ids": IDS}
ANSWERS = {"start_positions": np.zeros(4), "end_positions": np.zeros(4), "is_impossible": LABELS}


def spans(**changes):
    return {key: np.asarray(value) for key, value in {**ANSWERS, **changes}.items()}


def dataset(*parts):
    return tf.data.Dataset.from_tensor_slices(parts if len(parts) > 1 else parts[0])


# What is called, with what, and what the message has to say.
ERRORS = {
    "predict: no texts": ("classifier", "predict", ([],), r"`x` must have at least one text"),
    "predict: empty array": ("classifier", "predict", (np.array([], object),), "at least one text"),
    "predict: empty column": ("classifier", "predict", (FRAME["text"][:0],), "at least one text"),
    "fit: no texts": ("classifier", "fit", ([], []), r"`x` must have at least one text"),
    "one text": ("classifier", "predict", ("hello",), r"`x` must be a batch of texts"),
    "None": ("classifier", "predict", (["a", None],), r"`x` must be strings.* row 1: None"),
    "NaN": ("classifier", "predict", (np.array(["a", "b", np.nan], object),), "row 2: nan"),
    "pd.NA": ("classifier", "predict", (pd.Series(["a", pd.NA], dtype="string"),), "row 1: <NA>"),
    "number": ("classifier", "predict", (["a", "b", 7],), "row 2: 7"),
    "only None": ("classifier", "predict", ([None, None],), "row 0: None"),
    "only NaN": ("classifier", "classify", ([np.nan, np.nan],), "row 0: nan"),
    "empty rows": ("classifier", "predict", ([[], []],), r"row 0: \[\]"),
    "None in a row": ("classifier", "predict", ([["a", None]],), "`pair` .* row 0: None"),
    "rows with other keys": (
        "classifier", "predict", ([{"text": "a"}, {"txt": "b"}],), "row 1: {'txt'"),
    "nothing": ("classifier", "predict", (None,), "`x` must be texts.* None"),
    "token ids": ("classifier", "predict", ([[9, 17], [12, 4]],), "token ids in a dict"),
    "token ids of several lengths": (
        "classifier", "fit", ([[9, 17], [12]], [0, 1]), "token ids in a dict"),
    "number in place of a pair": ("classifier", "classify", (TEXTS, 0.5), "by name. Received: 0.5"),
    "single texts to compare": ("comparer", "classify", (TEXTS,), "`x` must be pairs of texts"),
    "single texts to compare, dataset": (
        "comparer", "predict", (dataset(TEXTS).batch(2),), "`x` must be pairs of texts"),
    "None in the second of a pair": (
        "classifier", "predict", ((["a", "b"], ["c", None]),), r"`pair` must be strings.* row 1"),
    "lengths of pairs": (
        "classifier", "predict", ((["a"], ["b", "c"]),), "must have equal lengths"),
    "table": ("classifier", "predict", (FRAME[["text"]],), r"df\['text'\].*columns \['text'\]"),
    "unbatched texts": ("classifier", "predict", (dataset(TEXTS),), r"x\.batch\(32\)"),
    "unbatched texts and labels": (
        "classifier", "fit", (dataset(TEXTS, LABELS),), r"x\.batch\(32\)"),
    "unbatched pairs": (
        "classifier", "predict", (dataset({"text": TEXTS, "pair": TEXTS}),), r"x\.batch\(32\)"),
    "unbatched features": ("classifier", "fit", (dataset(FEATURES, LABELS),), r"x\.batch\(32\)"),
    "unknown name": (
        "classifier", "fit", (TEXTS, ["spam", "ham", "Spam", "ham"]),
        r"class_names=\['ham', 'spam'\].* row 2: 'Spam'"),
    "name in evaluate": ("classifier", "evaluate", (TEXTS, ["spam", "ham", "spam", "x"]), "row 3"),
    "too many names to learn": (
        "nameless", "fit", (TEXTS, ["a", "b", "c", "a"]), r"3 names.*num_classes=2"),
    "names that nothing was learned of": (
        "nameless", "evaluate", (TEXTS, NAMES), r"need `class_names`"),
    "names in a dataset": (
        "nameless", "fit", (dataset(TEXTS, NAMES).batch(2),), "need `class_names`"),
    "names and numbers": ("classifier", "fit", (TEXTS, ["spam", 0, 1, 1]), r"row 1: 0"),
    "category missing": (
        "classifier", "fit", (TEXTS, pd.Series(["ham", None, "spam", "ham"], dtype="category")),
        "row 1: nan"),
    "label out of range": (
        "classifier", "fit", (TEXTS, [1, 0, 2, 0]), r"from 0 to 1 \(num_classes=2\).* row 2: 2"),
    "negative label": ("classifier", "fit", (TEXTS, [1, 0, 0, -1]), "row 3: -1"),
    "half a label": ("classifier", "fit", (TEXTS, [1, 0.5, 0, 1]), "row 1: 0.5"),
    "label of validation": (
        "classifier", "fit", (TEXTS, LABELS), "row 0: 5", {"validation_data": (["a"], [5])}),
    "NaN label": ("classifier", "fit", (TEXTS, [1, 0, np.nan, 0]), "missing values.* row 2: nan"),
    "None label": ("classifier", "fit", (TEXTS, [1, None, 1, 0]), "missing values.* row 1: nan"),
    "pd.NA label": (
        "classifier", "fit", (TEXTS, pd.Series([1, 0, pd.NA, 0], dtype="Int64")), "row 2: nan"),
    "label of another kind": ("classifier", "fit", (TEXTS, [1, 0, (), 0]), "`y` must be"),
    "vectors for softmax": (
        "classifier", "fit", (TEXTS, np.eye(4)[:, :2]), "categorical_crossentropy.*sigmoid"),
    "width of several classes": (
        "several", "fit", (TEXTS, np.ones((4, 2))), r"shape \(texts, 3\).*\(4, 2\)"),
    "indices for several classes": ("several", "fit", (TEXTS, LABELS), r"\(texts, 3\).*\(4,\)"),
    "ragged labels": (
        "several", "fit", (TEXTS, [[1, 0, 1], [1, 0], [0, 0, 0], [0, 1, 1]]), "equal lengths"),
    "NaN of several classes": (
        "several", "fit", (TEXTS, [[0, 1, 0], [0, np.nan, 1]] * 2), "missing values.* row 1"),
    "NaN of a number": ("regressor", "fit", (TEXTS, [0.5, 1, 2, np.nan]), "row 3: nan"),
    "two numbers": (
        "regressor", "fit", (TEXTS, np.ones((4, 2))), r"one number for each text.*\(4, 2\)"),
    "label out of range, loss by name": (
        "by_name", "fit", (TEXTS, [1, 2, 3, 1]), r"from 0 to 2 \(num_classes=3\).* row 2: 3"),
    "label out of range, loss of vectors": (
        "of_vectors", "evaluate", (TEXTS, [0, 1, 2, 3]), r"from 0 to 2 .* row 3: 3"),
    "vectors, loss by name": ("by_name", "fit", (TEXTS, np.eye(4)[:, :3]), "`y` must be class ind"),
    "vectors that are no probabilities": (
        "of_vectors", "fit", (TEXTS, [[0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 0]]),
        r"the sum 1.* row 1: \[0 1 1\]"),
    "negative probability": (
        "of_vectors", "fit", (TEXTS, [[0, 1, 0], [1, 0, 0], [2, -1, 0], [1, 0, 0]]), "row 2"),
    "two of several classes": (
        "several", "fit", (TEXTS, [[0, 1, 0], [0, 2, 1], [1, -1, 0], [0, 0, 0]]),
        r"`y` must be 1 for each class.* row 1: \[0 2 1\]"),
    "infinite number": ("regressor", "fit", (TEXTS, [0.5, 1, -np.inf, 2]), r"finite.* row 2: -inf"),
    "infinite number as a string": ("regressor", "fit", (TEXTS, ["1", "inf", "2", "3"]), "row 1"),
    "string that is no number": (
        "regressor", "evaluate", (TEXTS, ["1", "2.5", "three", "4"]), r"numbers.* row 2: 'three'"),
    "class of a token": (
        "tagger", "fit", (FEATURES, np.array([[0, 1, 2, -100], [0, 3, 1, 1]] * 2)), "row 1: 3"),
    "index of a choice": (
        "chooser", "fit", ({"token_ids": IDS[:, None].repeat(3, 1)}, [0, 2, 3, 1]),
        r"from 0 to 2 .* row 2: 3"),
    "infinite relevance": (
        "ranker", "fit", ({"token_ids": IDS[:, None].repeat(2, 1)}, [[0, 1], [1, np.inf]] * 2),
        r"finite.* row 1"),
    "NaN sample weight": (
        "classifier", "fit", (TEXTS, LABELS), r"`sample_weight` must be finite.* row 2: nan",
        {"sample_weight": [1, 1, np.nan, 1]}),
    "too few sample weights": (
        "classifier", "evaluate", (TEXTS, LABELS), r"`sample_weight` .* each of 4 rows.* 2",
        {"sample_weight": [1, 1]}),
    "class_weight of an index that is no class": (
        "classifier", "fit", (TEXTS, LABELS), r"`class_weight`.*from 0 to 1\. Received: 7",
        {"class_weight": {0: 1.0, 7: 2.0}}),
    "two class weights": (
        "classifier", "fit", (TEXTS, LABELS), r"`class_weight`.*two for class 1",
        {"class_weight": {1: 1.0, "spam": 2.0}}),
    "NaN class weight": (
        "classifier", "fit", (TEXTS, LABELS), r"`class_weight` must have finite.*'spam': nan",
        {"class_weight": {"spam": np.nan}}),
    "class_weight that is no dict": (
        "classifier", "fit", (TEXTS, LABELS), r"`class_weight` must be a dict",
        {"class_weight": [1.0, 2.0]}),
    "class_weight of several classes": (
        "several", "fit", (TEXTS, np.eye(4)[:, :3]), r"`class_weight` needs exclusive.*sigmoid",
        {"class_weight": {0: 0.0}}),
    "class_weight of an unknown tag": (
        "tagger", "fit", (FEATURES, IDS % 3), r"`class_weight`.*Received: 3",
        {"class_weight": {3: 2.0}}),
    **{
        f"class_weight of a {model}": (
            model, "fit", (FEATURES, LABELS), r"`class_weight` needs labels that are classes",
            {"class_weight": {0: 2.0}})
        for model in ("regressor", "question_answering", "permutation_lm", "chooser", "ranker",
                      "embedder", "transformer_xl")
    },
    "class_weight of an unknown name": (
        "classifier", "fit", (TEXTS, NAMES), r"`class_weight`.*'spma'",
        {"class_weight": {"spma": 2.0}}),
    "id out of range": (
        "classifier", "predict", ({"token_ids": IDS + 190},), r"`token_ids` .* row 0"),
    "target position": (
        "permutation_lm", "predict",
        ({"token_ids": IDS, "target_positions": np.array([[1], [2], [9], [0]])},),
        r"`target_positions` must be from -1 to 3 .* 9 in row 2"),
    "answer after the text": (
        "question_answering", "fit", (FEATURES, spans(end_positions=[0, 0, 4, 0])),
        r"`end_positions` must be from 0 to 3 .* 4 in row 2"),
    "answer before the text": (
        "question_answering", "evaluate", (FEATURES, spans(start_positions=[0, -2, 0, 0])),
        r"`start_positions` must be from 0 to 3 .*-2.* in row 1"),
    "HDF5": ("classifier", "save", ("model.h5",), r"'\.keras'.*filepath='model.h5'"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_error_names_the_argument_and_the_row(case, models):
    model, method, args, message, *others = ERRORS[case]
    keywords = others[0] if others else {}
    if method != "save":
        keywords = {"verbose": 0, **keywords}
    before = models[model].get_weights()
    with pytest.raises(ValueError, match=f"(?s){message}"):
        getattr(models[model], method)(*args, **keywords)
    for weight, value in zip(models[model].get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, value)


# === Accepted ===


def losses(model, *args, **keywords):
    keywords = {"epochs": 2, "batch_size": 2, "shuffle": False, "verbose": 0, **keywords}
    return model.fit(*args, **keywords).history["loss"]


@pytest.fixture(scope="module")
def expected_losses(preprocessor):
    return losses(classifier(preprocessor), TEXTS, np.array(LABELS))


LABEL_FORMS = {
    "names": NAMES,
    "array": np.array(NAMES),
    "objects": np.array(NAMES, object),
    "bytes": [name.encode() for name in NAMES],
    "string tensor": tf.constant(NAMES),
    "column": FRAME["label"],
    "categories": FRAME["label"].astype("category"),
    "Categorical": pd.Categorical(NAMES),
    "numbers": LABELS,
    "bools": [label == 1 for label in LABELS],
    "column of numbers": pd.Series(LABELS, dtype="Int64"),
    "width of 1": np.array(LABELS)[:, None],
    "table of one column": FRAME[["label"]],
    "names with a width of 1": np.array(NAMES)[:, None],
    "tensor": tf.constant(LABELS),
}


@pytest.mark.parametrize("form", LABEL_FORMS)
def test_labels_in_every_form_are_the_same(form, models):
    found = models["classifier"].evaluate(TEXTS, LABEL_FORMS[form], verbose=0)
    expected = models["classifier"].evaluate(TEXTS, np.array(LABELS), verbose=0)
    assert found == pytest.approx(expected, rel=1e-6)


def test_names_are_learned_and_train_as_numbers_do(preprocessor, expected_losses):
    model = classifier(preprocessor)
    # Lists and columns by turns, whose index is not 0, 1, 2, 3.
    reversed_frame = FRAME[::-1]
    found = losses(model, reversed_frame["text"][::-1], reversed_frame["label"][::-1])
    np.testing.assert_allclose(found, expected_losses, rtol=1e-5)
    assert model.class_names == ["ham", "spam"]
    assert losses(model, TEXTS, NAMES)[0] < found[0]
    shuffled = FRAME.sample(frac=1.0, random_state=0)
    found = model.predict(shuffled["text"], verbose=0)
    np.testing.assert_allclose(found, model.predict(list(shuffled["text"]), verbose=0), atol=1e-6)
    assert model.predict((shuffled["text"], NAMES), verbose=0).shape == (4, 2)


def test_names_are_learned_from_a_table_of_one_column(preprocessor):
    model = classifier(preprocessor)
    model.fit(TEXTS, FRAME[["label"]].astype("category"), verbose=0)
    assert model.class_names == ["ham", "spam"]


def test_numbers_of_a_regressor_may_be_strings(models):
    numbers = ["1", "2.5", "-1e1", "0"]
    expected = models["regressor"].evaluate(TEXTS, [1.0, 2.5, -10.0, 0.0], verbose=0)
    for form in ((TEXTS, numbers), (TEXTS, pd.DataFrame({"score": numbers}))):
        assert models["regressor"].evaluate(*form, verbose=0) == pytest.approx(expected)
    found = models["regressor"].evaluate(dataset(TEXTS, numbers).batch(4), verbose=0)
    assert found == pytest.approx(expected)


def test_names_in_datasets(preprocessor, expected_losses):
    model = classifier(preprocessor, class_names=["ham", "spam"])
    batches = dataset(TEXTS, NAMES).batch(2)
    found = losses(model, batches, batch_size=None, validation_data=batches)
    np.testing.assert_allclose(found, expected_losses, rtol=1e-5)


def test_learned_names_are_kept(preprocessor, tmp_path):
    model = classifier(preprocessor)
    model.fit(TEXTS, pd.Categorical(NAMES, categories=["spam", "ham"]), verbose=0)
    assert model.class_names == ["spam", "ham"]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.classify(TEXTS)[0] == model.classify(TEXTS)[0]
    assert loaded.classify(TEXTS)[0].label in ("ham", "spam")


def test_a_loss_that_ignores_a_class(preprocessor):
    model = classifier(preprocessor)
    model.compile("sgd", loss=keras.losses.SparseCategoricalCrossentropy(ignore_class=-1))
    assert np.isfinite(model.evaluate(TEXTS, [1, 0, -1, 1], verbose=0)[0])


def test_a_loss_for_vectors(preprocessor):
    model = classifier(preprocessor)
    model.compile("sgd", loss="categorical_crossentropy")
    assert np.isfinite(model.evaluate(TEXTS, np.eye(2)[LABELS], verbose=0)[0])


class Halves(keras.utils.PyDataset):
    """The texts in two batches, without labels, or with labels and weights."""

    def __init__(self, *parts):
        super().__init__()
        self.parts = parts
        self.epochs = 0

    def __len__(self):
        return 2

    def __getitem__(self, index):
        rows = slice(2 * index, 2 * index + 2)
        batch = tuple(
            np.asarray(part, object if part is TEXTS else None)[rows] for part in self.parts
        )
        return batch if len(batch) > 1 else batch[0]

    def on_epoch_end(self):
        self.epochs += 1


def as_generator(*parts):
    halves = Halves(*parts)
    return (halves[i] for i in range(2))


@pytest.mark.parametrize("form", [Halves, as_generator])
def test_batches_that_python_makes(form, models):
    model, weights = models["classifier"], [1.0, 0.5, 0.25, 2.0]
    expected = model.evaluate(TEXTS, LABELS, sample_weight=np.array(weights), verbose=0)
    found = model.evaluate(form(TEXTS, LABELS, weights), verbose=0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    predicted = model.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(model.predict(form(TEXTS), verbose=0), predicted, atol=1e-6)
    # Batches without text are left as they are.
    features = {key: value.numpy() for key, value in model.preprocessor(TEXTS).items()}
    found = model.predict((batch for batch in [(features,)]), verbose=0)
    np.testing.assert_allclose(found, predicted, atol=1e-6)


def test_fit_on_a_py_dataset(preprocessor, expected_losses):
    model = classifier(preprocessor, class_names=["ham", "spam"])
    training, validation = Halves(TEXTS, NAMES), Halves(TEXTS, LABELS)
    found = losses(model, training, batch_size=None, shuffle=False, validation_data=validation)
    np.testing.assert_allclose(found, expected_losses, rtol=1e-5)
    assert min(training.epochs, validation.epochs) >= 2


def test_lists_of_sample_weights(models):
    model, weights = models["classifier"], [1.0, 0.5, 0.25, 2.0]
    found, expected = (
        model.evaluate(TEXTS, LABELS, sample_weight=w, verbose=0)
        for w in (weights, np.array(weights))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_class_weight_by_name(preprocessor, expected_losses):
    model = classifier(preprocessor)
    start, found = model.get_weights(), []
    for weights in ({"spam": 3.0}, {1: 3.0}):
        model.set_weights(start)
        found.append(losses(model, TEXTS, NAMES, class_weight=weights))
    by_name, by_index = found
    np.testing.assert_allclose(by_name, by_index, rtol=1e-6)
    assert abs(by_name[0] - expected_losses[0]) > 1e-3


# === What a model does not see of texts ===


KOREAN = ["정말 재미있는 영화였어요.", "다시 보고 싶지 않아요."]
LONG = ["win a free prize " * 9, "see you"]


def losses_of_texts(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    kinds = ("unknown to the vocabulary", "longer than the preprocessor takes")
    return [str(w.message) for w in caught if any(kind in str(w.message) for kind in kinds)]


@pytest.mark.parametrize("texts", [KOREAN, LONG], ids=["unknown", "cut"])
@pytest.mark.parametrize("method", ["fit", "evaluate", "predict", "classify"])
def test_a_loss_is_told_once(texts, method, preprocessor):
    model = classifier(preprocessor)
    labels = ([0, 1],) if method in ("fit", "evaluate") else ()
    call = getattr(model, method)
    (message,) = losses_of_texts(lambda: call(texts, *labels))
    if texts is KOREAN:
        assert "pretrain_your_language.md" in message
    else:
        cut = len(preprocessor.tokenizer.encode(texts)[0]) - (12 - 2)
        assert "1 of 2 texts" in message and f"{cut} tokens on average" in message
    assert not losses_of_texts(lambda: call(texts, *labels))
    # Each kind by itself.
    assert losses_of_texts(lambda: model.predict(LONG if texts is KOREAN else KOREAN))


def test_losses_that_are_small_or_wanted_are_not_told(tokenizer, preprocessor):
    longer = XLNetTextClassifierPreprocessor(tokenizer, 64)
    assert not losses_of_texts(lambda: classifier(longer).predict([*TEXTS, "제"] * 3))
    assert not losses_of_texts(lambda: classifier(preprocessor).predict([*["ok"] * 40, "a b " * 5]))
    middle = XLNetTextClassifierPreprocessor(tokenizer, 12, truncation="middle")
    assert not losses_of_texts(lambda: classifier(middle).predict(LONG))
    documents = XLNetTextClassifierPreprocessor(tokenizer, 512)
    model = classifier(documents, long_document="windows", segment_length=16)
    assert not losses_of_texts(lambda: model.predict(LONG))


def test_losses_of_an_embedder(tokenizer):
    embedder = XLNetTextEmbedder(backbone(), XLNetTextEmbedderPreprocessor(tokenizer, 12))
    assert len(losses_of_texts(lambda: embedder.search(KOREAN, LONG, verbose=0))) == 2


# === Attention that does not fit in memory ===


def test_a_length_that_does_not_fit_is_said(monkeypatch):
    # 3 arrays of 2 rows x 2 heads x 64 x 64 scores of 4 bytes.
    needed = 3 * 2 * 2 * 64 * 64 * 4
    monkeypatch.setattr(attention_memory, "machine_bytes", lambda: needed - 1)
    with pytest.warns(UserWarning, match="(?s)64 tokens.*attention_chunk_size.*gradient_check"):
        attention_memory.warn_of_attention_memory(backbone(), batch_size=2, length=64)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        attention_memory.warn_of_attention_memory(backbone(), batch_size=1, length=64)
        chunked = backbone(attention_chunk_size=16)
        attention_memory.warn_of_attention_memory(chunked, batch_size=2, length=64)


@pytest.mark.parametrize(
    "form", [lambda x, y: (x, y), lambda *data: (dataset(*data).batch(2, drop_remainder=True),)]
)
def test_fit_says_that_a_length_does_not_fit(form, monkeypatch):
    monkeypatch.setattr(attention_memory, "machine_bytes", lambda: 1)
    model = XLNetTextRegressor(backbone())
    # The warning comes before the first step, and so before what is compiled for it.
    monkeypatch.setattr(keras.Model, "fit", lambda *args, **kwargs: None)
    data = form({"token_ids": np.full((2, 8), 9)}, np.zeros(2))
    with pytest.warns(UserWarning, match="8 tokens in batches of 2"):
        model.fit(*data, verbose=0)


def test_memory_of_this_machine():
    assert 2**28 < attention_memory.machine_bytes() < 2**46
