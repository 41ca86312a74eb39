"""The signatures in the files of a SavedModel."""

import pathlib
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2


def saved_model_signatures(directory: pathlib.Path) -> dict[str, Any]:
    """Returns the signatures of a SavedModel, and the TensorFlow that wrote it.

    The graph is read from its file, and not loaded: no kernels are needed.

    Args:
        directory: `pathlib.Path` of the SavedModel.

    Returns:
        A dict with `tensorflow`, a version, and `signatures`. A signature is a dict of `inputs` and
        `outputs`, each a dict from names to `dtype` and `shape`: a list with `None` for a size that
        is not fixed, or `None` for any shape.

    Raises:
        ValueError: If the file is damaged, or has no graph for serving.

    Example:

    >>> import pathlib, tempfile
    >>> import tensorflow as tf
    >>> from keras_xlnet.serving.saved_model_signatures import saved_model_signatures
    >>> model, directory = tf.Module(), pathlib.Path(tempfile.mkdtemp())
    >>> spec = tf.TensorSpec((None, 2), tf.float32, "x")
    >>> model.half = tf.function(lambda x: {"y": x / 2}, input_signature=[spec])
    >>> tf.saved_model.save(model, str(directory), {"serving_default": model.half})
    >>> saved_model_signatures(directory)["signatures"]["serving_default"]["inputs"]
    {'x': {'dtype': 'float32', 'shape': [None, 2]}}
    """
    file = directory / "saved_model.pb"
    saved_model = saved_model_pb2.SavedModel()
    try:
        saved_model.ParseFromString(file.read_bytes())
    except DecodeError as error:
        raise ValueError(f"{file} is damaged: {error}") from error
    graphs = [g for g in saved_model.meta_graphs if "serve" in g.meta_info_def.tags]
    if not graphs:
        raise ValueError(f"{file} has no graph with the tag 'serve', which signatures are in")
    signatures = {
        name: {"inputs": _tensors(s.inputs), "outputs": _tensors(s.outputs)}
        for name, s in sorted(graphs[0].signature_def.items())
        # Names with this prefix are steps of loading.
        if not name.startswith("__")
    }
    return {"tensorflow": graphs[0].meta_info_def.tensorflow_version, "signatures": signatures}


def _tensors(infos):
    return {
        name: {"dtype": tf.as_dtype(info.dtype).name, "shape": _shape(info.tensor_shape)}
        for name, info in sorted(infos.items())
    }


def _shape(proto):
    if proto.unknown_rank:
        return None
    return [None if dim.size < 0 else dim.size for dim in proto.dim]
