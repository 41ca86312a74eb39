"""One version of a model, loaded from a SavedModel."""

import json
import logging
import pathlib
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401, registers the kernels of tokenizers
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import prediction_log_pb2

from keras_xlnet.server.request_error import RequestError

_LOG = logging.getLogger(__name__)
_WARMUP = pathlib.Path("assets.extra", "tf_serving_warmup_requests")
# Written by `keras_xlnet.serving.export`. Other programs write none.
_DETAILS = pathlib.Path("assets.extra", "model_details.json")


class ServedVersion:
    """A SavedModel whose signatures can be run.

    Its warm-up requests run before the constructor returns, so that the first request of a client
    is not slow.

    Args:
        name: String, the name of the model.
        number: Int, the version.
        directory: `pathlib.Path` of the SavedModel.
        loaded: Optional, the SavedModel if it is loaded already.
        prefix: String, the beginning of the names of the signatures in the SavedModel. Others are
            of other models.

    Raises:
        Exception: Of any type, if TensorFlow cannot load the SavedModel or run a warm-up request.
    """

    def __init__(
        self,
        name: str,
        number: int,
        directory: pathlib.Path,
        loaded: Any = None,
        prefix: str = "",
    ) -> None:
        self._prefix = prefix
        self.name = name
        self.number = number
        #: Dict of the `SignatureDef` protos by name.
        self.signature_defs = self._own(_read_signature_defs(directory))
        details = _read_details(directory / _DETAILS.parent / prefix / _DETAILS.name)
        #: List of the names of the classes, in the order of the probabilities. Empty if unknown.
        self.class_names: list[str] = details["class_names"]
        #: Dict of the prompts of an embedder.
        self.prompts: dict[str, str] = details["prompts"]
        #: String, the class of the model.
        self.task: str = details["model"]
        #: Int, the Unix time when it was loaded.
        self.created = int(time.time())
        # The functions do not keep the variables alive.
        self._loaded = tf.saved_model.load(str(directory)) if loaded is None else loaded
        self._signatures = self._own(self._loaded.signatures)
        if not self._signatures:
            raise ValueError(f"{directory} has no signatures")
        self._warm_up(directory / _WARMUP)

    def input_specs(self, signature_name: str) -> Mapping[str, tf.TensorSpec]:
        """Returns the `tf.TensorSpec` of the inputs of a signature by name.

        Raises:
            RequestError: If there is no such signature.
        """
        specs = self._signature(signature_name).structured_input_signature[1]
        # Sorted by name: TensorFlow's order differs between processes.
        return dict(sorted(specs.items()))

    def batch_size(self, signature_name: str) -> int | None:
        """Returns the exact number of rows of a signature, `None` for any number.

        Raises:
            RequestError: If there is no such signature.
        """
        inputs, outputs = self.input_specs(signature_name), self.output_specs(signature_name)
        shapes = [spec.shape for spec in [*inputs.values(), *outputs.values()]]
        sizes = {shape[0] if shape.rank else None for shape in shapes}
        return sizes.pop() if len(sizes) == 1 else None

    def row_specs(self, signature_name: str) -> Mapping[str, tf.TensorSpec]:
        """Returns `input_specs` for any number of rows, which a `Batcher` brings to `batch_size`.

        Raises:
            RequestError: If there is no such signature.
        """
        specs = self.input_specs(signature_name)
        if self.batch_size(signature_name) is None:
            return specs
        return {k: tf.TensorSpec((None, *x.shape[1:]), x.dtype, k) for k, x in specs.items()}

    def output_specs(self, signature_name: str) -> Mapping[str, tf.TensorSpec]:
        """Returns the `tf.TensorSpec` of the outputs of a signature by name.

        Raises:
            RequestError: If there is no such signature.
        """
        return self._signature(signature_name).structured_outputs

    def run(self, signature_name: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the outputs of a signature.

        Args:
            signature_name: String.
            inputs: Dict of arrays by name, of the types and shapes of `input_specs`.

        Raises:
            RequestError: If there is no such signature, or the model cannot read the inputs.
        """
        signature = self._signature(signature_name)
        specs = self.input_specs(signature_name)
        tensors = {name: tf.constant(value, specs[name].dtype) for name, value in inputs.items()}
        try:
            outputs = signature(**tensors)
        except tf.errors.InvalidArgumentError as error:
            raise RequestError(f"The model refuses the inputs: {_reason(error)}") from error
        return {name: value.numpy() for name, value in sorted(outputs.items())}

    def _own(self, signatures):
        """Those of a dict by name that are of this model."""
        size = len(self._prefix)
        return {k[size:]: v for k, v in signatures.items() if k.startswith(self._prefix)}

    def _signature(self, name: str) -> Any:
        if name not in self._signatures:
            raise RequestError(
                f"The model {self.name} has no signature {name[:60]!a} but "
                f"{', '.join(sorted(self._signatures))}"
            )
        return self._signatures[name]

    def _warm_up(self, path):
        if not path.exists():
            return
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
            inputs = {name: tf.make_ndarray(proto) for name, proto in request.inputs.items()}
            name = request.model_spec.signature_name or "serving_default"
            if name.startswith(self._prefix):
                self.run(name.removeprefix(self._prefix), inputs)


def load_versions(name: str, number: int, directory: pathlib.Path) -> list[ServedVersion]:
    """Returns the models of a SavedModel, which is loaded once.

    `export` of several models puts their names before the names of their signatures:
    `spam/serving_default`. Such models have these names, others the name of the directory.

    Args:
        name, number, directory: As in `ServedVersion`.

    Raises:
        Exception: As `ServedVersion`.
    """
    loaded = tf.saved_model.load(str(directory))
    names = sorted({s.partition("/")[0] for s in loaded.signatures if "/" in s})
    if not names:
        return [ServedVersion(name, number, directory, loaded)]
    return [ServedVersion(each, number, directory, loaded, f"{each}/") for each in names]


def _reason(error):
    """The message of an operation, without its place in the graph."""
    lines = [line for line in error.message.splitlines() if line and not line.startswith("\t")]
    return lines[-1][:200] if lines else "no reason is given"


def _read_signature_defs(directory):
    saved_model = saved_model_pb2.SavedModel()
    saved_model.ParseFromString((directory / "saved_model.pb").read_bytes())
    (graph,) = (g for g in saved_model.meta_graphs if "serve" in g.meta_info_def.tags)
    # A name that starts so is a step of loading.
    return {k: v for k, v in graph.signature_def.items() if not k.startswith("__")}


def _read_details(file):
    """What the server uses of the details, all of it empty if they are damaged."""
    empty = {"class_names": [], "prompts": {}, "model": "of an unknown task"}
    if not file.exists():
        return empty
    try:
        details = json.loads(file.read_bytes())
        names = details.get("class_names") or []
        prompts = details.get("config", {}).get("prompts") or {}
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("`class_names` are no strings")
        if not all(isinstance(prompt, str) for prompt in prompts.values()):
            raise ValueError("`prompts` are no strings")
    except (AttributeError, ValueError, RecursionError) as error:
        # The model answers without them.
        _LOG.warning("%s is damaged: %s", file, error)
        return empty
    return {
        "class_names": names,
        "prompts": prompts,
        "model": str(details.get("model", empty["model"])),
    }
