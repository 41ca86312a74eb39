"""Runs the network in this folder on texts. `keras_xlnet.serving.export` wrote both.

It needs sentencepiece, NumPy and a runtime, but neither Keras nor keras_xlnet:

    pip install numpy sentencepiece onnxruntime        # For model.onnx.
    pip install numpy sentencepiece ai-edge-litert     # For model.tflite.
    python predict.py "a text" "another text"

`TextModel` does the same in a program. `encode` shows how to make token ids, for programs in other
languages.
"""

import functools
import json
import pathlib
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from keras_xlnet.preprocessing.packing import Layout, as_rows, pack_texts
from keras_xlnet.tokenizers.cleaning import clean_text


class TextModel:
    """A network with the conversion of texts to its inputs.

    Args:
        directory: Directory with `model.json`, `spiece.model` and the network.
        num_threads: Int, the number of threads of the runtime. `None`: the runtime chooses.
    """

    def __init__(self, directory: str | pathlib.Path = ".", num_threads: int | None = None) -> None:
        import sentencepiece

        directory = pathlib.Path(directory)
        self.settings = json.loads((directory / "model.json").read_text(encoding="utf-8"))
        self._processor = sentencepiece.SentencePieceProcessor(
            model_file=str(directory / "spiece.model")
        )
        network = str(directory / self.settings["network"])
        start = _start_onnx if network.endswith(".onnx") else _start_litert
        # `encode` needs no runtime.
        self._start = functools.partial(start, network, self.settings["output"], num_threads)
        self._run: Callable[[dict[str, np.ndarray]], np.ndarray] | None = None

    def __call__(
        self, texts: str | Iterable[str], pairs: str | Iterable[str] | None = None
    ) -> np.ndarray:
        """Returns the outputs of the network.

        Args:
            texts: List, array or column of strings, or a string, which is one text.
            pairs: Optional second texts, one per text.

        Returns:
            Float32 array `(texts, n)`: probabilities, values or embeddings.

        Raises:
            ValueError: If a text is not a string, or the numbers of texts and pairs differ.
        """
        return self.run(self.encode(texts, pairs))

    def run(self, features: dict[str, np.ndarray]) -> np.ndarray:
        """Returns the outputs of the network for the inputs that `encode` returned."""
        if self._run is None:
            self._run = self._start()
        num_rows = len(features["token_ids"])
        if not num_rows:  # Runtimes need a row.
            features = {name: np.zeros((1, x.shape[1]), x.dtype) for name, x in features.items()}
        return self._run(features)[:num_rows]

    def labels(self, outputs: np.ndarray) -> list[Any]:
        """Returns the name of the class of each row, or a list of names with sigmoid outputs.

        Args:
            outputs: Array `(texts, n)`, the result of a call.

        Raises:
            ValueError: If the model has no classes, or `outputs` has another shape.
        """
        if "class_names" not in self.settings:
            raise ValueError(
                f"A {self.settings['model']} of {self.settings['output']} has no labels"
            )
        names, threshold = self.settings["class_names"], self.settings["threshold"]
        outputs = np.asarray(outputs)
        if outputs.ndim != 2 or outputs.shape[1] != len(names):
            raise ValueError(
                f"`outputs` must have shape (texts, {len(names)}). Received: {outputs.shape}"
            )
        if self.settings["activation"] == "sigmoid":
            return [[names[i] for i in np.flatnonzero(row >= threshold)] for row in outputs]
        if len(names) == 2:
            return [names[int(row[1] >= threshold)] for row in outputs]
        return [names[i] for i in outputs.argmax(axis=1)]

    def encode(
        self, texts: str | Iterable[str], pairs: str | Iterable[str] | None = None
    ) -> dict[str, np.ndarray]:
        """Returns the inputs of the network, `(texts, length)`, for the arguments of a call.

        A row is `[A, <sep>, <cls>]`, or `[A, <sep>, B, <sep>, <cls>]` for a pair, and padding.
        """
        texts = _strings("texts", texts)
        pairs = [""] * len(texts) if pairs is None else _strings("pairs", pairs)
        if len(pairs) != len(texts):
            raise ValueError(
                f"`pairs` must have a text for each of the {len(texts)} `texts`. Received: "
                f"{len(pairs)}"
            )
        first, second = (as_rows([*map(self._ids, column)]) for column in (texts, pairs))
        layout = Layout(**{name: self.settings[name] for name in Layout._fields})
        return pack_texts(first, second, layout, np, shorten=True)[0]

    def _ids(self, text):
        replaced = self.settings["replaced_ids"]
        flags = (self.settings[name] for name in ("lowercase", "remove_space", "remove_accents"))
        ids = self._processor.encode(clean_text(text, *flags), out_type=int)
        ids = [part for index in ids for part in replaced.get(str(index), [index])]
        return np.array(ids, "int32")


def _strings(name: str, values: Any) -> list[str]:
    """Returns the texts of an argument. Bytes are read as UTF-8."""
    if isinstance(values, np.ndarray) and values.ndim == 0:
        values = values.item()
    if isinstance(values, (str, bytes)):
        values = [values]
    # Iterating over a table gives column names, and a set has no order.
    is_column = isinstance(values, Iterable) and not isinstance(values, (dict, set, frozenset))
    if not is_column or hasattr(values, "columns"):
        raise ValueError(f"`{name}` must be strings. Received: {values!r}")
    strings = [x.decode("utf-8", "replace") if isinstance(x, bytes) else x for x in values]
    for place, string in enumerate(strings):
        if not isinstance(string, str):
            raise ValueError(f"`{name}` must be strings. Received: {string!r} at the place {place}")
    return strings


def _start_onnx(
    network: str, output: str, num_threads: int | None
) -> Callable[[dict[str, np.ndarray]], np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = num_threads or 0
    session = onnxruntime.InferenceSession(network, options, ["CPUExecutionProvider"])
    return lambda features: session.run([output], features)[0]


def _start_litert(
    network: str, output: str, num_threads: int | None
) -> Callable[[dict[str, np.ndarray]], np.ndarray]:
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError:
        # Until TensorFlow removes it.
        from tensorflow import lite

        Interpreter = lite.Interpreter  # noqa: N806  # A class.
    run = Interpreter(network, num_threads=num_threads).get_signature_runner()
    return lambda features: run(**features)[output]


def main(texts: Sequence[str]) -> None:
    """Prints a line of JSON for each text."""
    model = TextModel(pathlib.Path(__file__).parent)
    outputs = model(texts)
    labels = model.labels(outputs) if "class_names" in model.settings else None
    for row, text in enumerate(texts):
        answer = {"text": text, model.settings["output"]: outputs[row].tolist()}
        if labels is not None:
            answer["label"] = labels[row]
        print(json.dumps(answer, ensure_ascii=False))


if __name__ == "__main__":
    main(sys.argv[1:])
