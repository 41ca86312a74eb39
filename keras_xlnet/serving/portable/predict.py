"""Runs the network in this folder on texts. `keras_xlnet.serving.export` wrote both.

It needs sentencepiece, NumPy and a runtime, but neither Keras nor keras_xlnet:

    pip install numpy sentencepiece onnxruntime        # For model.onnx.
    pip install numpy sentencepiece ai-edge-litert     # For model.tflite.
    python predict.py "a text" "another text"

The first argument is the question, the query or the text, and the others are its contexts,
documents or choices, if the model reads these.

`TextModel` does the same in a program. Its `encode` shows how to make the inputs of the network,
for programs in other languages. The folder next to this file has the modules of keras_xlnet that
make these inputs and read the outputs.
"""

import dataclasses
import functools
import json
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.preprocessing.answer_decoding import decode_answers
from keras_xlnet.preprocessing.answer_windows import answer_limits, encode_questions
from keras_xlnet.preprocessing.choices import encode_choices, most_probable_choices
from keras_xlnet.preprocessing.documents import encode_documents, rank_documents
from keras_xlnet.preprocessing.encoded import Encoded, encode_texts
from keras_xlnet.preprocessing.packing import Layout
from keras_xlnet.preprocessing.scores import Scores, score_orders, score_segments
from keras_xlnet.preprocessing.sentences import encode_sentences, outputs_of_words, tag_sentences
from keras_xlnet.preprocessing.tags import detect_scheme, entity_types
from keras_xlnet.preprocessing.texts import one_row
from keras_xlnet.preprocessing.token_lists import as_token_lists
from keras_xlnet.tokenizers.host_tokenizer import HostTokenizer

# How texts become arrays, by the kind of the model.
_ENCODERS: dict[str, Callable[..., Encoded]] = {
    "texts": encode_texts,
    "classes": encode_texts,
    "words": encode_sentences,
    "entities": encode_sentences,
    "answers": encode_questions,
    "choices": encode_choices,
    "ranking": encode_documents,
}


class TextModel:
    """A network with the conversion of texts to its inputs, and of its outputs to results.

    Args:
        directory: Directory with `model.json`, `spiece.model` and the network.
        num_threads: Int, the number of threads of the runtime. `None`: the runtime chooses.
    """

    def __init__(self, directory: str | pathlib.Path = ".", num_threads: int | None = None) -> None:
        import sentencepiece

        directory = pathlib.Path(directory)
        self.settings = json.loads((directory / "model.json").read_text(encoding="utf-8"))
        flags = [self.settings[x] for x in ("lowercase", "remove_space", "remove_accents")]
        proto = (directory / "spiece.model").read_bytes()
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
        self.tokenizer = HostTokenizer(proto, processor, flags)
        network = str(directory / self.settings["network"])
        start = _start_onnx if network.endswith(".onnx") else _start_litert
        # `encode` needs no runtime.
        self._start = functools.partial(start, network, num_threads)
        self._run: Callable[[dict[str, Any]], dict[str, np.ndarray]] | None = None

    def __call__(self, x: Any, *others: Any) -> Any:
        """Returns the outputs of the network, for any model but a language model.

        Args:
            x, *others: As in `results`.

        Returns:
            An array, or a dict of arrays for a network of several outputs. Their rows are texts,
            or windows of texts for models of words and answers.
        """
        return self.run(self.encode(x, *others).features)

    def encode(self, x: Any, *others: Any, max_answer_length: int = 64) -> Encoded:
        """Returns the inputs of the network as `features`, with what `results` needs.

        Args:
            x, *others: As in `results`.
            max_answer_length: Int, the largest number of tokens of an answer to a question.

        Raises:
            ValueError: If something is not a text, or a language model was exported.
        """
        settings = self.settings
        if settings["task"] not in _ENCODERS:
            raise ValueError(f"A {settings['model']} has only `results`: the scores of texts")
        layout = Layout(**settings["layout"])
        encode = _ENCODERS[settings["task"]]
        encoded = encode(one_row(x, *others)[0], self.tokenizer, layout, **settings["preprocessor"])
        if settings["output"] == "embedding" and "pair" in encoded.columns:
            raise ValueError(f"A {settings['model']} takes single texts. Received: pairs of texts")
        if settings["task"] == "answers":
            ids = encoded.features["token_ids"]
            limits = answer_limits(ids, self.tokenizer, max_answer_length, np)
            encoded.features["max_answer_length"] = limits
        return encoded

    def run(self, features: dict[str, Any]) -> Any:
        """Returns the outputs of the network for its inputs: an array, or a dict of several."""
        outputs = self._outputs(features)
        return outputs if len(outputs) > 1 else next(iter(outputs.values()))

    def _outputs(self, features: dict[str, Any]) -> dict[str, np.ndarray]:
        if self._run is None:
            self._run = self._start()
        return self._run(features)

    def results(self, x: Any, *others: Any, **options: Any) -> Any:
        """Returns the result for each text, as the methods of the model do.

        | model | x, *others | results | options |
        | --- | --- | --- | --- |
        | `XLNetTextClassifier` | texts, pairs | see `labels` | |
        | `XLNetTextRegressor`, `XLNetTextEmbedder` | texts, pairs | an array | |
        | `XLNetTokenClassifier` | sentences | `TaggedSentence`: tags, `entities(scheme)` | |
        | `XLNetQuestionAnswering` | questions, contexts | `AnswerPrediction` | of `answer` |
        | `XLNetMultipleChoice` | texts, questions, choices | `Choice` | |
        | `XLNetRanker` | queries, documents | a list of `RankedDocument` | |
        | language models | texts | `Scores` of all texts | of `score` |

        Pairs and the questions of choices can be left out.

        Args:
            x, *others: Columns of texts in the forms that the model takes. One text for a string.
            **options: The options of the model's method, such as `num_answers`.

        Raises:
            ValueError: If something is not a text.
        """
        task = self.settings["task"]
        x, is_one = one_row(x, *others)
        if task not in _ENCODERS:
            return self._score(x, **options)
        limit = {k: options[k] for k in ("max_answer_length",) if k in options}
        if task == "answers":
            for name in ("num_answers", *limit):
                check_positive_int(name, options.get(name, 1))
            options = {"null_threshold": self.settings["null_threshold"], **options}
        encoded = self.encode(x, **limit)
        outputs = self.run(encoded.features)
        found = self._decode(task, outputs, encoded, options)
        return found[0] if is_one else found

    def _decode(self, task: str, outputs: Any, encoded: Any, options: dict[str, Any]) -> Any:
        if task == "answers":
            return decode_answers(encoded, outputs, **options)
        if options:
            name = next(iter(options))
            raise ValueError(f"`results` of a {self.settings['model']} has no option {name!r}")
        if task == "entities":
            return tag_sentences(outputs, encoded, self.settings["class_names"])
        if task == "words":
            return outputs_of_words(outputs, encoded)
        if task == "choices":
            return most_probable_choices(outputs, encoded)
        if task == "ranking":
            return rank_documents(outputs, encoded)
        return self.labels(outputs) if "class_names" in self.settings else outputs

    def _score(self, x: Any, **options: Any) -> Scores:
        size = self.settings["vocabulary_size"]
        rows = as_token_lists(x, size, self.tokenizer)
        if self.settings["task"] == "permutation_lm":
            sep, cls = map(self.tokenizer.token_to_id, ("<sep>", "<cls>"))
            return score_orders(self.run, rows, special_ids=(sep, cls), **options)
        return score_segments(self._read_segment, rows, self._empty_memory, size, **options)

    def _read_segment(self, features: dict[str, Any]) -> dict[str, np.ndarray]:
        outputs = self._outputs(features)
        return {name.removeprefix("next_"): values for name, values in outputs.items()}

    def _empty_memory(self, num_rows: int) -> dict[str, np.ndarray]:
        shape = self.settings["memory_shape"]
        if shape is None:
            return {}
        mask = np.full((num_rows, shape[1]), self.settings["attend_to_empty_memory"])
        return {"memory": np.zeros((num_rows, *shape), "float32"), "memory_mask": mask}

    def labels(self, outputs: np.ndarray) -> list[Any]:
        """Returns the name of the class of each row, or a list of names with sigmoid outputs.

        Args:
            outputs: Array `(texts, n)`, the result of a call.

        Raises:
            ValueError: If the model has no classes of texts, or `outputs` has another shape.
        """
        if "threshold" not in self.settings:
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


def _start_onnx(
    network: str, num_threads: int | None
) -> Callable[[dict[str, Any]], dict[str, np.ndarray]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = num_threads or 0
    session = onnxruntime.InferenceSession(network, options, ["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda features: dict(zip(names, session.run(names, features), strict=True))


def _start_litert(
    network: str, num_threads: int | None
) -> Callable[[dict[str, Any]], dict[str, np.ndarray]]:
    run = litert_interpreter()(network, num_threads=num_threads).get_signature_runner()
    return lambda features: run(**features)


def litert_interpreter() -> Any:
    """Returns the class that reads LiteRT files."""
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError:
        # Until TensorFlow removes it.
        from tensorflow import lite

        Interpreter = lite.Interpreter  # noqa: N806  # A class.
    return Interpreter


def main(arguments: list[str]) -> None:
    """Prints a line of JSON for each text, or for each context of a question."""
    for answer in _answers(TextModel(pathlib.Path(__file__).parent), arguments):
        print(json.dumps(answer, ensure_ascii=False))


def _answers(model: TextModel, arguments: list[str]) -> Iterator[dict[str, Any]]:
    settings = model.settings
    task, first, others = settings["task"], arguments[:1], arguments[1:]
    if task == "answers":
        for found in model.results(first * len(others), others):
            yield {"question": first[0], "answer": found.text, **dataclasses.asdict(found)}
    elif task == "choices":
        (choice,) = model.results(first, [others])
        yield {"text": first[0], "choice": dataclasses.asdict(choice)}
    elif task == "ranking":
        (ranking,) = model.results(first, [others])
        yield {"query": first[0], "documents": [dataclasses.asdict(found) for found in ranking]}
    elif task in ("permutation_lm", "causal_lm"):
        scores = model.results(arguments)
        for text, total, row in zip(arguments, scores.totals, scores.log_probs, strict=True):
            log_probs = [None if np.isnan(x) else float(x) for x in row]
            yield {"text": text, "log_prob": float(total), "token_log_probs": log_probs}
    elif task == "entities":
        names = settings["class_names"]
        for sentence in model.results(arguments):
            found = dataclasses.asdict(sentence)
            if entity_types(names) is not None:
                entities = sentence.entities(detect_scheme(names))
                found["entities"] = [dataclasses.asdict(entity) for entity in entities]
            yield found
    elif task == "words":
        for text, outputs in zip(arguments, model.results(arguments), strict=True):
            yield {"text": text, settings["output"]: outputs.tolist()}
    else:
        outputs = model(arguments)
        labels = model.labels(outputs) if "threshold" in settings else None
        for row, text in enumerate(arguments):
            answer = {"text": text, settings["output"]: outputs[row].tolist()}
            yield answer if labels is None else {**answer, "label": labels[row]}


if __name__ == "__main__":
    main(sys.argv[1:])
