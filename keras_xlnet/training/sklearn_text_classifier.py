from typing import Any

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_xlnet.lazy_modules import requires_extra


class SKLearnTextClassifier(keras.wrappers.SKLearnClassifier):
    """A classifier of strings for scikit-learn: `cross_val_score`, pipelines, searches.

    `keras.wrappers.SKLearnClassifier` takes only numbers. This class takes the data of a text
    classifier's `fit`: a list or an array of strings, with names or integers as labels.

    Needs scikit-learn: `pip install ".[examples]"`.

    Args:
        model: Callable that returns a new `XLNetTextClassifier` for the texts `X=` and labels `y=`.
        warm_start: Bool, whether `fit` continues to train the model of the previous `fit`.
        model_kwargs: Dict of further arguments of `model`.
        fit_kwargs: Dict of arguments of the `fit` of the model.

    Attributes:
        model_: The trained model.
        history_: The `History` of its `fit`.
        classes_: Sorted array of the labels, in the order of the columns of `predict_proba`. With
            several labels per text, a list with `[0, 1]` for each class, as in scikit-learn's
            forests.

    Raises:
        ImportError: If scikit-learn is not installed.
        TypeError: If `model` is not callable.

    Example:

    >>> from sklearn.model_selection import cross_val_score
    >>> from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
    >>> from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> texts, labels = ["win a free prize now", "see you at lunch"] * 6, ["spam", "ham"] * 6
    >>> tokenizer = XLNetTokenizer.train(iter(texts), vocabulary_size=36)
    >>> def make(X, y):
    ...     # Or XLNetTextClassifier.from_preset("xlnet_mini_en", num_classes=2)
    ...     backbone = XLNetBackbone(36, 1, 2, 16, 32)
    ...     return XLNetTextClassifier(backbone, 2, XLNetTextClassifierPreprocessor(tokenizer))
    >>> arguments = {"epochs": 1, "verbose": 0}
    >>> classifier = keras_xlnet.training.SKLearnTextClassifier(make, fit_kwargs=arguments)
    >>> cross_val_score(classifier, texts, labels, cv=2).shape
    (2,)
    """

    model_: Any
    _order: np.ndarray  # The label of each class of the model.

    # Keras and scikit-learn determine the names of the arguments.
    def __init__(
        self,
        model: Any,
        warm_start: bool = False,
        model_kwargs: dict[str, Any] | None = None,
        fit_kwargs: dict[str, Any] | None = None,
    ) -> None:
        if not callable(model) or isinstance(model, keras.Model):
            raise TypeError(
                "`model` must be a callable that returns a new model, so that each fold has its "
                f"own. Received: model={model!r}"
            )
        super().__init__(model, warm_start, model_kwargs, fit_kwargs)

    def __sklearn_clone__(self) -> "SKLearnTextClassifier":
        # The method of Keras 3.15 drops `fit_kwargs`.
        return type(self)(**self.get_params(deep=False))

    # scikit-learn passes `X` by name.
    def fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        **kwargs: Any,
    ) -> "SKLearnTextClassifier":
        """Trains a new model.

        Args:
            X: `n` strings, or pairs of strings `(n, 2)`.
            y: `n` labels, strings or any integers; or for a model with `activation="sigmoid"` zeros
                and ones `(n, num_classes)`. Integers from 0 are indices of classes. Other integers
                are names if they are `class_names` of the model; otherwise they are its classes in
                ascending order.
            sample_weight: Optional weights of the texts.
            **kwargs: Arguments of the `fit` of the model, which override `fit_kwargs`. Labels in
                `class_weight` and `validation_data` have the form of `y`.

        Raises:
            ValueError: If the labels are not as above.
        """
        texts, labels = _texts(X), _labels(y)
        if self.warm_start and hasattr(self, "model_"):
            model, order = self.model_, self._order
        else:
            model = self.model(X=list(texts), y=labels, **(self.model_kwargs or {}))
            order = _in_order_of_model(model, labels)
        arguments = {**(self.fit_kwargs or {}), **kwargs}
        if sample_weight is not None:
            arguments["sample_weight"] = sample_weight
        if arguments.get("class_weight"):
            given = arguments["class_weight"]
            arguments["class_weight"] = {_encode([k], order)[0]: w for k, w in given.items()}
        if isinstance(arguments.get("validation_data"), (tuple, list)):
            x, held_out, *weights = arguments["validation_data"]
            held_out = _encode(_labels(held_out), order)
            arguments["validation_data"] = (_texts(x), held_out, *weights)
        self.history_ = model.fit(texts, _encode(labels, order), **arguments)
        self.model_ = model
        # The model has learned the names of its classes, or had them before.
        self._order = np.array(model.class_names) if order is None else order
        self._columns = np.argsort(self._order)
        self.classes_ = self._order[self._columns]
        if self._is_multilabel():
            self.classes_ = [np.array([0, 1])] * model.num_classes
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:  # noqa: N803
        """Returns the labels of strings, as `XLNetTextClassifier.classify` finds them.

        With several labels per text, zeros and ones `(n, num_classes)`.
        """
        probabilities = self._fitted().predict(_texts(X), verbose=0)
        found = np.asarray(self.model_.classes.indices(probabilities, self.model_.threshold))
        if self._is_multilabel():
            return found
        return self._order[found.reshape(-1)]

    def predict_proba(self, X: ArrayLike) -> np.ndarray:  # noqa: N803
        """Returns probabilities `(n, num_classes)`. The columns are in the order of `classes_`."""
        probabilities = self._fitted().predict(_texts(X), verbose=0)
        if self._is_multilabel():
            return probabilities
        if probabilities.shape[1] == 1:
            probabilities = np.concatenate([1 - probabilities, probabilities], axis=1)
        return probabilities[:, self._columns]

    def decision_function(self, X: ArrayLike) -> np.ndarray:  # noqa: N803
        """Returns the probability of the second of two classes, or of each class."""
        probabilities = self.predict_proba(X)
        is_binary = not self._is_multilabel() and probabilities.shape[1] == 2
        return probabilities[:, 1] if is_binary else probabilities

    def _fitted(self):
        with requires_extra("examples", "`SKLearnTextClassifier`"):
            from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "model_")
        return self.model_

    def _is_multilabel(self):
        return self.model_.activation == "sigmoid" and self.model_.num_classes > 1


def _texts(x):
    """An object array of strings `(n,)`, or of rows of strings."""
    texts = np.asarray(x, object)
    return texts.ravel() if texts.shape[1:] == (1,) else texts


def _labels(y):
    """An array of labels `(n,)`, of a dtype other than object, or of zeros and ones."""
    try:
        labels = np.asarray(np.asarray(y).tolist())
    except ValueError:
        raise ValueError(
            "`y` must be a label for each text, or zeros and ones (n, num_classes), as from "
            "sklearn.preprocessing.MultiLabelBinarizer. Received: rows of several lengths"
        ) from None
    return labels.ravel() if labels.shape[1:] == (1,) else labels


def _encode(labels, order):
    """Labels in the form of the model: names and vectors unchanged, others as indices."""
    labels = np.asarray(labels)
    if order is None or order.dtype.kind == "U" or labels.ndim > 1:
        return labels.tolist()
    index = {label: i for i, label in enumerate(order.tolist())}
    unknown = {*labels.tolist()} - index.keys()
    if unknown:
        raise ValueError(f"`y` must be labels in {[*index]}. Received: {[*unknown]}")
    return [index[label] for label in labels.tolist()]


def _in_order_of_model(model, labels):
    """Returns the label of each class of a model; `None` if labels are names of its classes."""
    activation = getattr(model, "activation", None)
    if getattr(model, "num_classes", None) is None or activation not in ("softmax", "sigmoid"):
        raise ValueError(
            "`model` must return an XLNetTextClassifier with activation='softmax' or 'sigmoid'. "
            f"Received: {type(model).__name__}, activation={activation!r}"
        )
    if labels.dtype.kind == "U":
        return None
    size = model.num_classes if activation == "softmax" else max(2, model.num_classes)
    given = np.unique(labels)
    is_index = np.isin(given, np.arange(size)).all()
    if labels.ndim > 1:
        return np.arange(size)
    names = [str(label) for label in given]
    if model.class_names is not None and {*names} == {*model.class_names}:
        return given[[names.index(name) for name in model.class_names]]
    if len(given) == size and (is_index or model.class_names is None):
        return given
    if is_index and given.dtype.kind in "iu":
        return np.arange(size)
    raise ValueError(
        f"`y` must have {size} different labels, names in class_names={model.class_names}, or "
        f"indices from 0 to {size - 1}. Received: {given[:10].tolist()}"
    )
