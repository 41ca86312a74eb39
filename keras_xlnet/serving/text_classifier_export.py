"""Exports a text classifier as a SavedModel whose signatures take text."""

import pathlib
import tempfile
from collections.abc import Sequence

import keras
import tensorflow as tf

from keras_xlnet.arguments import check_number, check_positive_int
from keras_xlnet.models import XLNetTextClassifier
from keras_xlnet.serving.warmup import make_warmup_requests, write_warmup_requests
from keras_xlnet.types import PathLike

_DEFAULT_THRESHOLD = 0.5
# The preprocessor needs one token of each text, two <sep> and <cls> for a pair.
_MIN_LENGTH_PAIR = 5


def export_text_classifier(
    model: XLNetTextClassifier,
    directory: PathLike,
    threshold: float = _DEFAULT_THRESHOLD,
    batch_size: int | None = None,
    warmup_texts: Sequence[str | bytes] | None = None,
) -> pathlib.Path:
    """Exports a classifier as a SavedModel that takes text and contains its vocabulary.

    To load the SavedModel, a program needs TensorFlow and the kernels of tensorflow_text, but
    neither Keras nor this library. `directory` is the SavedModel itself. TF Serving expects
    numbered versions in a directory with the name of the model, so export the first version of a
    model `spam` with `export_text_classifier(model, "models/spam/1")`.

    The signatures and their inputs:

    - `serving_default`: `text`, string `(batch,)`. UTF-8; invalid bytes are replaced by U+FFFD.
    - `serving_pair`: `text` and `pair`, string `(batch,)`. Not exported if the `sequence_length` of
      the preprocessor is less than 5, which is too short for pairs.
    - `serving_tokens`: `token_ids` and `segment_ids`, int32, and `padding_mask`, bool, each
      `(batch, sequence_length)`, as returned by the model's preprocessor.

    All signatures have the same outputs, which depend on the `activation` of the model:

    - `"softmax"`: `probabilities`, float32 `(batch, num_classes)`, and `label`, string `(batch,)`:
      the name of the class in `model.class_names`, or its index as a decimal number if the model
      has no names. For two classes, the label is the second class if its probability is at least
      `threshold`. For more classes, it is the most probable class.
    - `"sigmoid"`: `probabilities` as above, and `label`, int32 `(batch, num_classes)`: 1 where the
      probability is at least `threshold`, otherwise 0. The columns are in the order of
      `model.class_names`, as in the labels for training.
    - `"linear"`: only `values`, float32 `(batch, num_classes)`.

    The SavedModel is written to a temporary directory and then renamed to `directory`. A server
    that watches the parent directory never reads a partial model, and a failed export leaves no
    files.

    Args:
        model: An `XLNetTextClassifier` with a preprocessor, with any dtype policy.
        directory: Local path of the SavedModel. It must not exist or be an empty directory.
            Missing parents are created.
        threshold: Float from 0 to 1, see `label` above. Only for two classes with `"softmax"`, and
            for `"sigmoid"`.
        batch_size: Int, the exact number of rows that signatures accept. `None` for any number.
        warmup_texts: Optional list of strings or bytes. TF Serving classifies them with
            `serving_default` before it accepts requests, so that the first request is not slow.
            One text per request, or `batch_size` texts per request; at most 1000 requests. Needs
            `pip install "xlnet-keras[serving]"`.

    Returns:
        `pathlib.Path` of the SavedModel.

    Raises:
        TypeError: If `model` is not an `XLNetTextClassifier`.
        ValueError: If `model` has no preprocessor, its tokenizer has no vocabulary, or another
            argument is invalid.
        FileExistsError: If `directory` is a file or a directory that is not empty.
        ImportError: If `warmup_texts` is given and tensorflow-serving-api is not installed.
        RuntimeError: If the backend of Keras is not TensorFlow, which is needed for a graph that
            contains both the text ops and the model.

    Example:

    >>> import tempfile
    >>> import tensorflow as tf
    >>> from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> texts = ["win a free prize now", "see you at lunch", "free cash, call now", "ok, at six"]
    >>> tokenizer = XLNetTokenizer.train(iter(texts * 20), vocabulary_size=40)
    >>> classifier = keras_xlnet.models.XLNetTextClassifier(
    ...     keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32),
    ...     num_classes=2,
    ...     preprocessor=XLNetTextClassifierPreprocessor(tokenizer, sequence_length=16),
    ...     class_names=["ham", "spam"],
    ... )
    >>> path = keras_xlnet.serving.export_text_classifier(
    ...     classifier, tempfile.mkdtemp() + "/spam/1", threshold=0.0
    ... )
    >>> served = tf.saved_model.load(path).signatures["serving_default"]
    >>> outputs = served(text=tf.constant(["a free lunch", ""]))
    >>> outputs["probabilities"].shape, outputs["label"].numpy().tolist()
    (TensorShape([2, 2]), [b'spam', b'spam'])

    Source: "SavedModel Warmup" and "RESTful API" in the documentation of TF Serving.
    """
    _check_backend()
    _check_model(model)
    _check_threshold(threshold, model)
    if batch_size is not None:
        check_positive_int("batch_size", batch_size)
    directory = _check_directory(directory)
    requests = [] if warmup_texts is None else make_warmup_requests(warmup_texts, batch_size)

    directory.parent.mkdir(parents=True, exist_ok=True)
    # TF Serving reads only directories with a number as name, so it ignores this one.
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}.") as staging:
        # A directory in `staging`, because `staging` itself is not readable by other users, and a
        # server often runs as another user.
        saved_model = pathlib.Path(staging) / "saved_model"
        _make_archive(model, threshold, batch_size).write_out(str(saved_model), verbose=False)
        if requests:
            write_warmup_requests(requests, saved_model)
        saved_model.rename(directory)
    return directory


def _make_archive(model, threshold, batch_size):
    """Returns an `ExportArchive` with the signatures of a model."""
    preprocessor = model.preprocessor
    shape = (batch_size, preprocessor.sequence_length)

    def classify_tokens(token_ids, segment_ids, padding_mask):
        inputs = {
            "token_ids": token_ids,
            "segment_ids": segment_ids,
            "padding_mask": padding_mask,
        }
        return _outputs(model(inputs, training=False), model, threshold)

    def classify_text(text, pair=None):
        features = preprocessor(text if pair is None else (text, pair))
        # Ragged ops in the preprocessor lose the static shape.
        return classify(**{key: tf.ensure_shape(value, shape) for key, value in features.items()})

    text, pair = (tf.TensorSpec((batch_size,), tf.string, name) for name in ("text", "pair"))
    tokens = [
        tf.TensorSpec(shape, tf.int32, "token_ids"),
        tf.TensorSpec(shape, tf.int32, "segment_ids"),
        tf.TensorSpec(shape, tf.bool, "padding_mask"),
    ]
    archive = keras.export.ExportArchive()
    archive.track(model)
    # Tracked separately: the preprocessor is not a layer of the model.
    archive.track(preprocessor)
    # The text signatures call this one, so that the model is traced and stored only once.
    classify = archive.add_endpoint("serving_tokens", classify_tokens, tokens)
    archive.add_endpoint("serving_default", classify_text, [text])
    if preprocessor.sequence_length >= _MIN_LENGTH_PAIR:
        archive.add_endpoint("serving_pair", classify_text, [text, pair])
    return archive


def _outputs(predictions, model, threshold):
    if model.activation == "linear":
        return {"values": predictions}
    found = model.classes.indices(predictions, threshold)
    if model.activation != "sigmoid":
        found = tf.gather(tf.constant(model.label_names), found)
    return {"probabilities": predictions, "label": found}


def _check_backend():
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise RuntimeError(
            "export_text_classifier needs the TensorFlow backend, because only TensorFlow graphs "
            f"can process text. Received: the backend {backend!r}. Save the model with "
            "`model.save('model.keras')`, then load and export it in a process with "
            "KERAS_BACKEND=tensorflow."
        )


def _check_model(model):
    if not isinstance(model, XLNetTextClassifier):
        raise TypeError(f"`model` must be an XLNetTextClassifier. Received: {type(model).__name__}")
    if model.preprocessor is None:
        raise ValueError(
            "`model` must have a preprocessor, which converts text to ids. Received: an "
            "XLNetTextClassifier with preprocessor=None"
        )
    if not model.preprocessor.tokenizer.has_vocabulary:
        raise ValueError(
            "`model` must have a tokenizer with a vocabulary. Received: a tokenizer without one; "
            "call its load_assets(directory)"
        )


def _check_threshold(threshold, model):
    check_number("threshold", threshold, high=1)
    has_threshold = model.activation == "sigmoid" or (
        model.activation == "softmax" and model.num_classes == 2
    )
    if threshold != _DEFAULT_THRESHOLD and not has_threshold:
        raise ValueError(
            "`threshold` can only be given for two classes with activation='softmax', or for "
            "activation='sigmoid'. Received: "
            f"threshold={threshold!r} for activation={model.activation!r}, "
            f"num_classes={model.num_classes}"
        )


def _check_directory(directory):
    directory = pathlib.Path(directory)
    if directory.is_dir() and not any(directory.iterdir()):
        return directory
    if directory.exists():
        raise FileExistsError(
            "`directory` must not exist or be an empty directory. Received: "
            f"{directory}, which is {'not empty' if directory.is_dir() else 'a file'}"
        )
    return directory
