"""Texts and labels in every container that people hold them in, in every method."""

import collections
import importlib.util

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from keras_xlnet.evaluation import explain
from keras_xlnet.models import (
    XLNetBackbone,
    XLNetQuestionAnswering,
    XLNetRanker,
    XLNetTextClassifier,
    XLNetTextEmbedder,
    XLNetTokenClassifier,
)
from keras_xlnet.preprocessing import (
    XLNetQuestionAnsweringPreprocessor,
    XLNetRankerPreprocessor,
    XLNetTextClassifierPreprocessor,
    XLNetTextEmbedderPreprocessor,
    XLNetTokenClassifierPreprocessor,
)
from keras_xlnet.preprocessing.labels import Classes, learn_class_names

TEXTS = ["win a free prize", "see you at six", "free cash, call now", "are you home"]
PAIRS = ["now", "then", "not now", "here"]
NAMES = ["spam", "ham", "spam", "ham"]
COLUMNS = {"text": TEXTS, "pair": PAIRS, "label": NAMES, "weight": [1.0, 2.0, 0.0, 1.0]}


def table_of(library):
    if library == "datasets":
        return pytest.importorskip("datasets").Dataset.from_dict(COLUMNS)
    if library == "polars":
        return pytest.importorskip("polars").DataFrame(COLUMNS)
    return pytest.importorskip("pyarrow").table(COLUMNS)


@pytest.fixture(params=["datasets", "polars", "pyarrow"])
def table(request):
    return table_of(request.param)


def classifier(tokenizer, **arguments):
    backbone = XLNetBackbone(200, 1, 2, 16, 32, dropout=0.0, attention_dropout=0.0, seed=1)
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 16)
    model = XLNetTextClassifier(backbone, 2, preprocessor, dropout=0.0, **arguments)
    # To trace a step takes as long as some five eager steps.
    model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    return model


def test_columns_are_what_lists_are(table, tokenizer):
    model = classifier(tokenizer, class_names=["ham", "spam"])
    expected = model.predict((TEXTS, PAIRS), verbose=0)
    found = model.predict((table["text"], table["pair"]), verbose=0)
    np.testing.assert_array_equal(found, expected)
    found = model.predict({"text": table["text"], "pair": table["pair"]}, verbose=0)
    np.testing.assert_array_equal(found, expected)
    kwargs = {"sample_weight": COLUMNS["weight"], "verbose": 0, "return_dict": True}
    expected = model.evaluate(TEXTS, NAMES, **kwargs)
    kwargs["sample_weight"] = table["weight"]
    assert model.evaluate(table["text"], table["label"], **kwargs) == expected


def test_fit_learns_names_of_a_column(table, tokenizer):
    model = classifier(tokenizer)
    model.fit(table["text"], table["label"], verbose=0)
    assert model.class_names == ["ham", "spam"]


def test_a_table_is_refused(table, tokenizer):
    with pytest.raises(ValueError, match="one column of a table.*'text', 'pair'"):
        classifier(tokenizer).fit(table, NAMES)


@pytest.mark.parametrize("library", ["datasets", "polars", "pyarrow"])
def test_lists_of_words_and_tags(library, tokenizer):
    words, tags = [["Ann", "is"], ["it", "is", "Ann"]], [["B-x", "O"], ["O", "O", "B-x"]]
    columns = {"words": words, "tags": tags}
    if library == "datasets":
        table = pytest.importorskip("datasets").Dataset.from_dict(columns)
    elif library == "polars":
        table = pytest.importorskip("polars").DataFrame(columns)
    else:
        table = pytest.importorskip("pyarrow").table(columns)
    model = XLNetTokenClassifier(
        XLNetBackbone(200, 1, 2, 16, 32), 2, XLNetTokenClassifierPreprocessor(tokenizer, 16)
    )
    model.compile(run_eagerly=True)
    model.fit(table["words"], table["tags"], verbose=0)
    assert model.class_names == ["B-x", "O"]
    assert model.tag(table["words"], verbose=0) == model.tag(words, verbose=0)


# === Every form in every method ===


def pandas_column(dtype):
    return lambda values: pd.Series(values, index=range(9, 9 - len(values), -1), dtype=dtype)


def polars_column(dtype):
    def column(values):
        polars = pytest.importorskip("polars")
        kinds = {"enum": polars.Enum(sorted(set(values))), "categorical": polars.Categorical}
        return polars.Series(values, dtype=kinds.get(dtype, polars.String))

    return column


def arrow_column(convert):
    return lambda values: convert(pytest.importorskip("pyarrow").array(values))


def arrow_dtype(values):
    arrow = pytest.importorskip("pyarrow")
    return pd.Series(values, dtype=pd.ArrowDtype(arrow.large_string()))


def dataset_column(is_iterable):
    def column(values):
        dataset = pytest.importorskip("datasets").Dataset.from_dict({"column": values})
        return (dataset.to_iterable_dataset() if is_iterable else dataset)["column"]

    return column


FORMS = {
    "tuple": tuple,
    "deque": collections.deque,
    "values of a dict": lambda values: dict(enumerate(values)).values(),
    "generator": lambda values: (value for value in values),
    "array": np.array,
    "array of bytes": lambda values: np.array([value.encode() for value in values]),
    "array of objects": lambda values: np.array(values, object),
    "array of one column": lambda values: np.array(values)[:, np.newaxis],
    "tensor": tf.constant,
    "pandas": pandas_column(None),
    "pandas, objects": pandas_column(object),
    "pandas, string": pandas_column("string[python]"),
    "pandas, categories": pandas_column("category"),
    "pandas, index": pd.Index,
    "pandas, Arrow strings": lambda v: (
        pytest.importorskip("pyarrow") and pd.array(v, "string[pyarrow]")
    ),
    "pandas, Arrow dtype": arrow_dtype,
    "polars": polars_column(None),
    "polars, Enum": polars_column("enum"),
    "polars, Categorical": polars_column("categorical"),
    "Arrow": arrow_column(lambda array: array),
    "Arrow, scalars": arrow_column(list),
    "Arrow, dictionary": arrow_column(lambda array: array.dictionary_encode()),
    "Arrow, table": lambda v: pytest.importorskip("pyarrow").table({"column": v})["column"],
    "datasets": dataset_column(False),
    "datasets, iterable": dataset_column(True),
}
# Every method takes these, and the others are tried with a method of each kind: all methods read
# through `ExampleReader`.
IN_EVERY_METHOD = (
    "generator", "array", "tensor", "pandas", "polars", "Arrow, table", "datasets, iterable",
)  # fmt: skip
OF_EACH_KIND = ("evaluate", "predict, pairs", "rank", "find_entities", "encode")
if hasattr(np.dtypes, "StringDType"):
    FORMS["array of NumPy's strings"] = lambda values: np.array(values, np.dtypes.StringDType())


@pytest.fixture(scope="module")
def methods(tokenizer):
    """Functions of a form, which call each method that takes texts or labels."""
    classes = classifier(tokenizer, class_names=["ham", "spam"])
    classes.compile(keras.optimizers.SGD(0.0))
    weights = classes.logits_dense.get_weights()
    backbone = classes.backbone
    embedder = XLNetTextEmbedder(backbone, XLNetTextEmbedderPreprocessor(tokenizer, 16))
    answerer = XLNetQuestionAnswering(
        backbone, XLNetQuestionAnsweringPreprocessor(tokenizer, 32, max_question_length=8)
    )
    ranker = XLNetRanker(backbone, XLNetRankerPreprocessor(tokenizer, 16))
    tagger = XLNetTokenClassifier(
        backbone, 2, XLNetTokenClassifierPreprocessor(tokenizer, 16), class_names=["B-x", "O"]
    )

    def then_predict(change, form):
        change(form(TEXTS), form(NAMES), verbose=0)
        found = classes.predict(TEXTS, verbose=0)
        classes.logits_dense.set_weights(weights)
        return found

    quiet = {"verbose": 0}
    return {
        "fit": lambda form: classes.fit(form(TEXTS), form(NAMES), shuffle=False, **quiet).history,
        "evaluate": lambda form: classes.evaluate(form(TEXTS), form(NAMES), **quiet),
        "predict": lambda form: classes.predict(form(TEXTS), **quiet),
        "predict, pairs": lambda form: classes.predict((form(TEXTS), form(PAIRS)), **quiet),
        "classify": lambda form: classes.classify({"text": form(TEXTS)}, **quiet),
        "fit_head": lambda form: then_predict(classes.fit_head, form),
        "calibrate": lambda form: then_predict(classes.calibrate, form),
        "embed": lambda form: embedder.embed(form(TEXTS), **quiet),
        "similarity": lambda form: embedder.similarity(form(TEXTS), form(PAIRS), **quiet),
        "search": lambda form: embedder.search(form(PAIRS), form(TEXTS), **quiet),
        "answer": lambda form: answerer.answer(form(PAIRS), form(TEXTS), **quiet),
        "rank": lambda form: ranker.rank(form(PAIRS), [form(TEXTS) for _ in PAIRS], **quiet),
        "find_entities": lambda form: tagger.find_entities(form(TEXTS), **quiet),
        "explain": lambda form: explain(classes, form(TEXTS[:2]), num_orders=2, **quiet),
        "encode": lambda form: tokenizer.encode(form(TEXTS)),
    }


@pytest.fixture(scope="module")
def results_of_lists(methods):
    return {name: repr(method(list)) for name, method in methods.items()}


@pytest.mark.parametrize("form", FORMS)
def test_every_method_takes_every_form(form, methods, results_of_lists):
    for name in methods if form in IN_EVERY_METHOD else OF_EACH_KIND:
        # A single column of sentences of one word each, for a model of words.
        if (form, name) != ("array of one column", "find_entities"):
            assert repr(methods[name](FORMS[form])) == results_of_lists[name], name


def test_the_order_of_categories_is_the_order_of_classes(tokenizer):
    names = ["spam", "ham"]  # Sorted they are the other way around.
    columns = [pd.Series(pd.Categorical(NAMES, names, ordered=True))]
    if importlib.util.find_spec("polars"):
        polars = importlib.import_module("polars")
        columns.append(polars.Series(NAMES, dtype=polars.Enum(names)))
    if importlib.util.find_spec("pyarrow"):
        arrow = importlib.import_module("pyarrow")
        array = arrow.DictionaryArray.from_arrays([0, 1, 0, 1], names, ordered=True)
        columns += [array, arrow.chunked_array([array])]
    for column in columns:
        assert learn_class_names(column, 2) == names
        np.testing.assert_array_equal(Classes(2, names).encode(column), [0, 1, 0, 1])


# === Batches of a `DataLoader` ===


ROWS = {
    "labels": list(zip(TEXTS, [1, 0, 1, 0], strict=True)),
    "names": list(zip(TEXTS, NAMES, strict=True)),
    "weights": list(zip(TEXTS, NAMES, [1.0, 1.0, 1.0, 1.0], strict=True)),
}
ROWS_OF_PAIRS = {
    "tuples": [((a, b), y) for a, b, y in zip(TEXTS, PAIRS, NAMES, strict=True)],
    "dicts": [({"text": a, "pair": b}, y) for a, b, y in zip(TEXTS, PAIRS, NAMES, strict=True)],
}


@pytest.mark.parametrize("rows", [*ROWS, *ROWS_OF_PAIRS])
def test_a_loader_of_pytorch(rows, tokenizer):
    data = pytest.importorskip("torch.utils.data")
    model = classifier(tokenizer, class_names=["ham", "spam"])
    x = (TEXTS, PAIRS) if rows in ROWS_OF_PAIRS else TEXTS
    loader = data.DataLoader({**ROWS, **ROWS_OF_PAIRS}[rows], batch_size=3)
    expected = model.evaluate(x, NAMES, verbose=0)
    np.testing.assert_allclose(model.evaluate(loader, verbose=0), expected, rtol=1e-5)
    found = model.predict(loader, verbose=0)
    np.testing.assert_allclose(found, model.predict(x, verbose=0), atol=1e-6)
    losses = model.fit(loader, epochs=2, validation_data=loader, verbose=0).history["val_loss"]
    np.testing.assert_allclose(losses, expected[0], rtol=1e-5)


def test_a_loader_without_a_length(tokenizer):
    data = pytest.importorskip("torch.utils.data")

    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(ROWS["names"])

    model = classifier(tokenizer, class_names=["ham", "spam"])
    expected = model.evaluate(TEXTS, NAMES, verbose=0)
    found = model.evaluate(data.DataLoader(Stream(), batch_size=3), verbose=0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_every_epoch_reads_a_loader_without_a_length(tokenizer):
    data = pytest.importorskip("torch.utils.data")

    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(ROWS["labels"])

    histories = []
    for x in (data.DataLoader(Stream(), batch_size=3), tf_batches(TEXTS, [1, 0, 1, 0])):
        keras.utils.set_random_seed(0)
        model = classifier(tokenizer)
        model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
        histories.append(model.fit(x, epochs=3, shuffle=False, verbose=0).history["loss"])
    np.testing.assert_allclose(*histories, rtol=1e-5)


def tf_batches(*parts):
    return tf.data.Dataset.from_tensor_slices(parts if len(parts) > 1 else parts[0]).batch(3)


def streamed(rows):
    datasets = pytest.importorskip("datasets")
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return datasets.Dataset.from_dict(columns).to_iterable_dataset()


def grain_dataset(rows):
    return pytest.importorskip("grain").MapDataset.source(rows)


def torch_loader(rows):
    return pytest.importorskip("torch.utils.data").DataLoader(rows, batch_size=3)


LOADERS = {
    "datasets, streamed": lambda rows: streamed(rows).batch(3),
    "datasets, streamed, in a loader of PyTorch": lambda rows: torch_loader(streamed(rows)),
    "grain, dataset": lambda rows: grain_dataset(rows).batch(3),
    "grain, iterator": lambda rows: grain_dataset(rows).to_iter_dataset().batch(3),
    "PyTorch": torch_loader,
    "tf.data": lambda rows: tf_batches({name: [r[name] for r in rows] for name in rows[0]}),
}


@pytest.mark.parametrize("columns", [("text", "label"), ("text", "pair", "labels")])
@pytest.mark.parametrize("loader", LOADERS)
def test_batches_of_named_columns(loader, columns, tokenizer):
    table = {"text": TEXTS, "pair": PAIRS, columns[-1]: [1, 0, 1, 0]}
    rows = [{name: table[name][row] for name in columns} for row in range(len(TEXTS))]
    batches = LOADERS[loader](rows)
    x = (TEXTS, PAIRS) if "pair" in columns else TEXTS
    model = classifier(tokenizer)
    expected = model.evaluate(x, table[columns[-1]], verbose=0)
    np.testing.assert_allclose(model.evaluate(batches, verbose=0), expected, rtol=1e-5)
    found = model.predict(batches, verbose=0)
    np.testing.assert_allclose(found, model.predict(x, verbose=0), atol=1e-6)
    losses = model.fit(batches, epochs=2, verbose=0).history["loss"]
    np.testing.assert_allclose(losses, expected[0], rtol=1e-5)


def test_tuples_of_grain(tokenizer):
    model = classifier(tokenizer, class_names=["ham", "spam"])
    expected = model.evaluate(TEXTS, NAMES, verbose=0)
    batches = grain_dataset(ROWS["names"]).batch(3)
    np.testing.assert_allclose(model.evaluate(batches, verbose=0), expected, rtol=1e-5)


def test_examples_that_are_not_batches_are_refused(tokenizer):
    rows = [{"text": text, "label": 1} for text in TEXTS]
    for examples in (grain_dataset(ROWS["names"]), streamed(rows)):
        with pytest.raises(ValueError, match=r"x.batch\(32\).*with the text 'win a free prize'"):
            classifier(tokenizer).fit(examples)


# === Several classes a text ===


def test_lists_of_names_are_vectors(tokenizer):
    lists = [["red"], [], {"blue", "red"}, ("blue",)]
    vectors = np.array([[0, 1], [0, 0], [1, 1], [1, 0]])
    model = classifier(tokenizer, activation="sigmoid")
    model.fit(TEXTS, lists, verbose=0)
    assert model.class_names == ["blue", "red"]
    kwargs = {"verbose": 0, "return_dict": True}
    assert model.evaluate(TEXTS, lists, **kwargs) == model.evaluate(TEXTS, vectors, **kwargs)
    # What comes out goes in again.
    found = [each.label for each in model.classify(TEXTS, threshold=0.4, verbose=0)]
    again = model.classes.encode(found) if any(found) else np.zeros((4, 2))
    np.testing.assert_array_equal(again, model.predict(TEXTS, verbose=0) >= 0.4)


def test_unknown_names_are_told(tokenizer):
    model = classifier(tokenizer, activation="sigmoid", class_names=["blue", "red"])
    with pytest.raises(ValueError, match="row 1: 'green'"):
        model.evaluate(TEXTS, [["red"], ["green"], [], []])
    with pytest.raises(ValueError, match="needs `class_names`"):
        classifier(tokenizer, activation="sigmoid").evaluate(TEXTS, [["red"], [], [], []])
