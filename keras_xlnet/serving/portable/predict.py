"""Runs the network in this folder on texts. `keras_xlnet.serving.export` wrote both.

It needs sentencepiece, NumPy and a runtime, but neither Keras nor keras_xlnet:

    pip install numpy sentencepiece onnxruntime        # For model.onnx.
    pip install numpy sentencepiece ai-edge-litert     # For model.tflite.
    python predict.py "a text" "another text"

`TextModel` does the same in a program. `encode` shows what a program in another language has to do
to make token ids.
"""

import functools
import json
import pathlib
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

_SURROGATE = re.compile("[\ud800-\udfff]")
# Arrays are as long as the longest text, rounded up to a multiple of this.
_STEP = 16


class TextModel:
    """A network, and what converts texts to its inputs.

    Args:
        directory: Directory with `model.json`, `spiece.model` and the network.
        num_threads: Int, the number of threads of the runtime. `None` for its own choice.
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
            texts: List, array or column of strings, or one string, which is one text.
            pairs: Optional second texts, one for each text.

        Returns:
            Float32 array `(texts, n)`: probabilities, values or embeddings.

        Raises:
            ValueError: If something is not a string, or there is another number of `pairs`.
        """
        return self.run(self.encode(texts, pairs))

    def run(self, features: dict[str, np.ndarray]) -> np.ndarray:
        """Returns the outputs of the network for what `encode` returned."""
        if self._run is None:
            self._run = self._start()
        num_rows = len(features["token_ids"])
        if not num_rows:  # Runtimes need a row.
            features = {name: np.zeros((1, _STEP), x.dtype) for name, x in features.items()}
        return self._run(features)[:num_rows]

    def labels(self, outputs: np.ndarray) -> list[Any]:
        """Returns the name of the class of each row, or a list of names with sigmoid outputs.

        Args:
            outputs: Array `(texts, n)`, what a call returned.

        Raises:
            ValueError: If the model has no classes, or `outputs` is of another shape.
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
        rows = [*map(self._row, texts, pairs)]
        longest = max((len(ids) for ids, _ in rows), default=0)
        length = max(-(-longest // _STEP), 1) * _STEP
        length = min(length, self.settings["sequence_length"])
        shape = (len(rows), length)
        token_ids = np.full(shape, self.settings["padding_token_id"], "int32")
        segment_ids = np.full(shape, self.settings["padding_segment_id"], "int32")
        padding_mask = np.zeros(shape, bool)
        for row, (ids, segments) in enumerate(rows):
            first = length - len(ids) if self.settings["padding_side"] == "left" else 0
            place = slice(first, first + len(ids))
            token_ids[row, place], segment_ids[row, place] = ids, segments
            padding_mask[row, place] = True
        return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}

    def _row(self, text, pair):
        a, b = self._ids(text), self._ids(pair)
        # The longer text is truncated first. Each keeps what the other does not use.
        room = self.settings["sequence_length"] - 2 - bool(b)
        half_b = room // 2
        half_a = room - half_b
        kept_a, kept_b = max(half_a, room - len(b)), max(half_b, room - len(a))
        a = [*self._first_or_ends(a, kept_a), self.settings["sep_token_id"]]
        if b:
            b = [*self._first_or_ends(b, kept_b), self.settings["sep_token_id"]]
        ids = [*a, *b, self.settings["cls_token_id"]]
        return ids, [*[0] * len(a), *[1] * len(b), 2]

    def _first_or_ends(self, ids, length):
        if self.settings["truncation"] == "end" or len(ids) <= length:
            return ids[:length]
        head = length // 4
        return [*ids[:head], *ids[len(ids) - (length - head) :]]

    def _ids(self, text):
        replaced = self.settings["replaced_ids"]
        ids = self._processor.encode(self._clean(text), out_type=int)
        return [part for index in ids for part in replaced.get(str(index), [index])]

    def _clean(self, text):
        text = _SURROGATE.sub("\ufffd", text)
        if self.settings["remove_space"]:
            text = " ".join(text.split())
        text = text.replace("``", '"').replace("''", '"')
        if self.settings["remove_accents"]:
            decomposed = unicodedata.normalize("NFKD", text)
            text = "".join(c for c in decomposed if not unicodedata.combining(c))
        return text.lower() if self.settings["lowercase"] else text


def _strings(name: str, values: Any) -> list[str]:
    """Returns the texts of an argument; bytes are UTF-8."""
    if isinstance(values, np.ndarray) and values.ndim == 0:
        values = values.item()
    if isinstance(values, (str, bytes)):
        values = [values]
    # A table is its columns, not texts; a set has no order.
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
