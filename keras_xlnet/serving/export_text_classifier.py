"""Writes a text classifier as a SavedModel whose signatures take raw text."""

import pathlib
import tempfile

import keras
import tensorflow as tf

from keras_xlnet.layers.arguments import check_positive_int
from keras_xlnet.models import XLNetTextClassifier
from keras_xlnet.serving.warmup_requests import warmup_requests, write_warmup_requests

_DEFAULT_THRESHOLD = 0.5
# <sep> twice, <cls> and a token of each text: the preprocessor packs no pair into less.
_MIN_LENGTH_PAIR = 5


def export_text_classifier(
    model, directory, threshold=_DEFAULT_THRESHOLD, batch_size=None, warmup_texts=None
):
    """Writes a classifier as a SavedModel that takes raw text and carries its vocabulary.

    What reads the SavedModel needs TensorFlow and the kernels of tensorflow_text, and neither
    Keras nor this library. `directory` is the SavedModel itself; TF Serving wants a numbered
    version in a directory with the name of the model, so that the first version of a model
    `spam` is `export_text_classifier(model, "models/spam/1")`.

    Signatures, by their inputs:

    - `serving_default`: `text`, string `(batch,)`. UTF-8; other bytes are read as U+FFFD.
    - `serving_pair`: `text` and `pair`, strings `(batch,)`. It is left out where the
      preprocessor's `sequence_length` is below 5, which holds no pair.
    - `serving_tokens`: `token_ids` and `segment_ids`, int32, and `padding_mask`, bool, each
      `(batch, sequence_length)`, as the model's preprocessor makes them.

    All have the same outputs, by the `activation` of the model:

    - `"softmax"`: `probabilities`, float32 `(batch, num_classes)`, and `label`, string
      `(batch,)`: the name of the class in `model.class_names`, or its index in decimal where the
      model has no names. Of two classes it is the second one if its probability is at least
      `threshold`; of more, the most probable one.
    - `"sigmoid"`: `probabilities` as above, and `label`, int32 `(batch, num_classes)`: 1 where
      the probability is at least `threshold`, otherwise 0. It has the form of the labels that
      the model was trained with, and its columns the order of `model.class_names`.
    - `"linear"`: `values`, float32 `(batch, num_classes)`, alone.

    The directory is written under another name beside its place and then moved there: a server
    that watches the parent never sees half a model, and a failure leaves none.

    Args:
        model: An `XLNetTextClassifier` with a preprocessor, of any dtype policy.
        directory: Local path of the SavedModel. It must not exist, or be an empty directory;
            missing parents are made.
        threshold: Float, 0 to 1: see `label` above. Only two softmax classes and `"sigmoid"`
            have one.
        batch_size: Int for signatures that take exactly that many rows, or `None` for any
            number.
        warmup_texts: Optional list of str or bytes. TF Serving runs them through
            `serving_default` before it takes the model into service, so that no client waits
            for the first run. One request a text, or `batch_size` texts a request; at most 1000
            requests. Needs `pip install "xlnet-keras[serving]"`.

    Returns:
        `pathlib.Path` of the SavedModel.

    Raises:
        TypeError: If `model` is not an `XLNetTextClassifier`.
        ValueError: If `model` has no preprocessor, or one without a vocabulary, or another
            argument is not as above.
        FileExistsError: If `directory` is a file or a directory with something in it.
        ImportError: If `warmup_texts` are given without tensorflow-serving-api.
        RuntimeError: If Keras runs on JAX or PyTorch: text goes through TensorFlow ops, and the
            graph that is served has to hold the model too.

    Example:

    >>> import tempfile
    >>> import tensorflow as tf
    >>> from keras_xlnet.text import XLNetPreprocessor, XLNetTokenizer
    >>> texts = ["win a free prize now", "see you at lunch", "free cash, call now", "ok, at six"]
    >>> tokenizer = XLNetTokenizer.train(iter(texts * 20), vocabulary_size=40)
    >>> classifier = keras_xlnet.models.XLNetTextClassifier(
    ...     keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32),
    ...     num_classes=2,
    ...     preprocessor=XLNetPreprocessor(tokenizer, sequence_length=16),
    ...     class_names=["ham", "spam"],
    ... )
    >>> path = keras_xlnet.serving.export_text_classifier(
    ...     classifier, tempfile.mkdtemp() + "/spam/1", threshold=0.0
    ... )
    >>> served = tf.saved_model.load(path).signatures["serving_default"]
    >>> outputs = served(text=tf.constant(["a free lunch", ""]))
    >>> outputs["probabilities"].shape, outputs["label"].numpy().tolist()
    (TensorShape([2, 2]), [b'spam', b'spam'])

    Source: "SavedModel Warmup" and "RESTful API" in the documentation of TF Serving, for the
    form of the warm-up file and for outputs that go into its row format.
    """
    _check_backend()
    _check_model(model)
    _check_threshold(threshold, model)
    if batch_size is not None:
        check_positive_int("batch_size", batch_size)
    directory = _check_directory(directory)
    requests = [] if warmup_texts is None else warmup_requests(warmup_texts, batch_size)

    directory.parent.mkdir(parents=True, exist_ok=True)
    # TF Serving takes only children with a number for a name as versions; this is none.
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}.") as staging:
        # Not `staging` itself, which is closed to other users: a server often is one.
        saved_model = pathlib.Path(staging) / "saved_model"
        _archive(model, threshold, batch_size).write_out(str(saved_model), verbose=False)
        if requests:
            write_warmup_requests(requests, saved_model)
        saved_model.rename(directory)
    return directory


def _archive(model, threshold, batch_size):
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
        # The ragged ops of the preprocessor lose the static shape.
        return classify(**{key: tf.ensure_shape(value, shape) for key, value in features.items()})

    text, pair = (tf.TensorSpec((batch_size,), tf.string, name) for name in ("text", "pair"))
    tokens = [
        tf.TensorSpec(shape, tf.int32, "token_ids"),
        tf.TensorSpec(shape, tf.int32, "segment_ids"),
        tf.TensorSpec(shape, tf.bool, "padding_mask"),
    ]
    archive = keras.export.ExportArchive()
    archive.track(model)
    # The model does not hold its preprocessor as a layer.
    archive.track(preprocessor)
    # The text signatures call this one, so that the model is traced and stored once for all.
    classify = archive.add_endpoint("serving_tokens", classify_tokens, tokens)
    archive.add_endpoint("serving_default", classify_text, [text])
    if preprocessor.sequence_length >= _MIN_LENGTH_PAIR:
        archive.add_endpoint("serving_pair", classify_text, [text, pair])
    return archive


def _outputs(predictions, model, threshold):
    if model.activation == "linear":
        return {"values": predictions}
    return {"probabilities": predictions, "label": _label(predictions, model, threshold)}


def _label(probabilities, model, threshold):
    if model.activation == "sigmoid":
        return tf.cast(probabilities >= threshold, tf.int32)
    if model.num_classes == 2:
        index = tf.cast(probabilities[:, 1] >= threshold, tf.int32)
    else:
        index = tf.argmax(probabilities, axis=-1)
    names = range(model.num_classes) if model.class_names is None else model.class_names
    return tf.gather(tf.constant([str(name) for name in names]), index)


def _check_backend():
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise RuntimeError(
            "export_text_classifier needs the TensorFlow backend: the SavedModel takes text, and "
            f"only TensorFlow graphs do. The backend is {backend!r}. Save the model with "
            "`model.save('model.keras')`, and load and export it in a process with "
            "KERAS_BACKEND=tensorflow."
        )


def _check_model(model):
    if not isinstance(model, XLNetTextClassifier):
        raise TypeError(f"`model` must be an XLNetTextClassifier. Received: {type(model).__name__}")
    if model.preprocessor is None:
        raise ValueError(
            "`model` must have a preprocessor, which turns served text into ids. Received: an "
            "XLNetTextClassifier with preprocessor=None"
        )
    if not model.preprocessor.tokenizer.has_vocabulary:
        raise ValueError(
            "`model` must have a tokenizer with a vocabulary. Received: one made from a config "
            "alone; call its load_assets(directory)"
        )


def _check_threshold(threshold, model):
    is_number = isinstance(threshold, (int, float)) and not isinstance(threshold, bool)
    if not is_number or not 0 <= threshold <= 1:
        raise ValueError(
            f"`threshold` must be a number from 0 to 1. Received: threshold={threshold!r}"
        )
    has_threshold = model.activation == "sigmoid" or (
        model.activation == "softmax" and model.num_classes == 2
    )
    if threshold != _DEFAULT_THRESHOLD and not has_threshold:
        raise ValueError(
            "`threshold` is for two softmax classes or activation='sigmoid'. Received: "
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
