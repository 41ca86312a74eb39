from typing import Any

import keras
import numpy as np
from numpy.typing import ArrayLike


class SKLearnTextClassifier(keras.wrappers.SKLearnClassifier):
    """A classifier of strings for scikit-learn: `cross_val_score`, pipelines, searches.

    `keras.wrappers.SKLearnClassifier` takes numbers only. This one takes what the `fit` of a text
    classifier takes: a list or an array of strings, with names or integers as labels.

    Needs scikit-learn: `pip install ".[examples]"`.

    Args:
        model: Callable that returns a new `XLNetTextClassifier` for the texts `X=` and labels `y=`.
        warm_start: Bool, whether `fit` trains the model of the last `fit` further.
        model_kwargs: Dict of further arguments of `model`.
        fit_kwargs: Dict of arguments of the `fit` of the model.

    Attributes:
        model_: The trained model.
        history_: The `History` of its `fit`.
        classes_: Array of the labels, in the order of the columns of `predict_proba`.

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

    # Keras and scikit-learn give the names of the arguments.
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
        # That of Keras 3.15 drops `fit_kwargs`.
        return type(self)(**self.get_params(deep=False))

    # scikit-learn passes `X` by name.
    def fit(self, X: ArrayLike, y: ArrayLike, **kwargs: Any) -> "SKLearnTextClassifier":  # noqa: N803
        """Trains a new model.

        Args:
            X: `n` strings.
            y: `n` labels, strings or integers.
            **kwargs: Arguments of the `fit` of the model, which override `fit_kwargs`.
        """
        texts, labels = list(np.asarray(X, object)), np.asarray(y)
        if not (self.warm_start and hasattr(self, "model_")):
            self.model_ = self.model(X=texts, y=labels, **(self.model_kwargs or {}))
        arguments = {**(self.fit_kwargs or {}), **kwargs}
        self.history_ = self.model_.fit(texts, labels.tolist(), **arguments)
        names = self.model_.class_names
        self.classes_ = np.array(names if names else range(self.model_.num_classes))
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:  # noqa: N803
        """Returns the labels of strings, as `XLNetTextClassifier.classify`."""
        found = self._fitted().classify(list(np.asarray(X, object)), verbose=0)
        return self.classes_[[[*one.scores].index(one.label) for one in found]]

    def predict_proba(self, X: ArrayLike) -> np.ndarray:  # noqa: N803
        """Returns probabilities `(n, num_classes)`. The columns are in the order of `classes_`."""
        return self._fitted().predict(list(np.asarray(X, object)), verbose=0)

    def decision_function(self, X: ArrayLike) -> np.ndarray:  # noqa: N803
        """Returns the probability of the second of two classes, or of each class."""
        probabilities = self.predict_proba(X)
        return probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities

    def _fitted(self):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "model_")
        return self.model_
