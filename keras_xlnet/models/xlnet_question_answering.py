import math
from typing import Any, ClassVar

import keras
from keras import ops

from keras_xlnet.arguments import check_number, check_positive_int
from keras_xlnet.layers import Answerability, AnswerEnd, AnswerStart
from keras_xlnet.layers.initializers import clone_initializer, spawn_seeds
from keras_xlnet.models.task import Task, check_preprocessor
from keras_xlnet.models.task_graph import check_backbone, token_inputs
from keras_xlnet.models.weight_rows import dense, kernel, norm
from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.preprocessing import Preprocessor, XLNetQuestionAnsweringPreprocessor
from keras_xlnet.preprocessing.answers import has_unanswered
from keras_xlnet.registration import register
from keras_xlnet.types import Tensor

_LABELS = ("start_positions", "end_positions", "is_impossible")
_FORBIDDEN = -1e30


@register
class XLNetQuestionAnswering(Task):
    """Finds the answer to a question in a text, or predicts that there is none (SQuAD 2.0).

    It computes the `start_n_top` most probable starts and, for each, the `end_n_top` most probable
    ends, because the probability of an end depends on the start.

    `fit` and `evaluate` need labels, and pass the labelled start to the model with its inputs. The
    model is compiled with `FineTuningAdamW` and the loss of the original,
    half of the sum of three cross-entropies: of the start, of the end given the labelled start,
    and of whether there is no answer. The accuracy of each is a metric. Call `compile` to change
    that; arguments you leave out keep these defaults.

    With a preprocessor `fit` and `evaluate` take questions, contexts and answers as text, and
    `answer` returns the texts of answers with their positions in the context:

    - questions and contexts: a dict of the columns `question` and `context`, a tuple of these
      columns, a list of pairs `(question, context)`, or what `preprocessor.encode` returns;
    - answers, one per question: the text, `(start, text)` with the first character, the dicts of
      SQuAD, or a list of these (the first one is learned); `None` or `[]` for no answer.

    Args:
        backbone: An `XLNetBackbone`.
        preprocessor: An `XLNetQuestionAnsweringPreprocessor`, for raw text.
        start_n_top: Int, the number of starts.
        end_n_top: Int, the number of ends for each start.
        dropout: Float, dropout rate of the head for unanswerable questions.
        null_threshold: Optional float, the null score above which a question has no answer. `fit`
            on text sets it to 0 if it is `None` and some questions are unanswerable.
            `keras_xlnet.evaluation.answer_scores` finds the best one for a data set. `None`: all
            questions are answered.
        name: Name of the model.

    Inputs, a dict. Only `token_ids` is required:
        token_ids, segment_ids, padding_mask: As in `XLNetBackbone`.
        paragraph_mask: `(batch, length)` bool, `True` where an answer may start or end: in the
            paragraph, and at `<cls>` if the labels of unanswerable questions are there, as in the
            original. It is the inverse of the original's `p_mask`. All real tokens by default.
        cls_index: `(batch,)` int32, the position of `<cls>`. The last real token by default.
        start_positions: `(batch,)` int32, optional. With it, the model returns the outputs of
            training. `fit` and `evaluate` take it from the labels.
        max_answer_length: `(batch, length)` int32, optional: the largest number of tokens of an
            answer that starts there. Longer ones are not searched. Without it, ends can be
            anywhere, as in the original.

    Labels, a dict:
        start_positions, end_positions: `(batch,)` int, the first and the last token of the answer.
        is_impossible: `(batch,)`, 1 where there is no answer.

    Outputs, a dict, all log-probabilities and logits float32:
        start_top_log_probs, start_top_index: `(batch, start_n_top)`, in descending order. If
            fewer positions are allowed, or the sequence is shorter, the log-probabilities of the
            others are -1e30 or lower.
        end_top_log_probs, end_top_index: `(batch, start_n_top * end_n_top)`: the ends of the first
            start, then the ends of the second start, and so on.
        cls_logits: `(batch,)`, above 0 if no answer is more probable than an answer.

    Outputs with `start_positions`, a dict with the keys of the labels:
        start_positions: Log-probabilities `(batch, length)`.
        end_positions: Log-probabilities `(batch, length)`, given the start.
        is_impossible: Logits `(batch, 1)`.

    Raises:
        ValueError: If an argument, the keys of the inputs or the labels are not as above.

    Example:

    >>> model = keras_xlnet.models.XLNetQuestionAnswering(
    ...     keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32), start_n_top=2, end_n_top=3
    ... )
    >>> inputs = {"token_ids": np.random.default_rng(0).integers(9, 40, (4, 8))}
    >>> labels = {
    ...     "start_positions": np.array([2, 0, 4, 7]),
    ...     "end_positions": np.array([3, 1, 4, 7]),
    ...     "is_impossible": np.array([0, 0, 0, 1]),
    ... }
    >>> history = model.fit(inputs, labels, verbose=0)
    >>> model.predict(inputs, verbose=0)["end_top_index"].shape
    (4, 6)

    Source: the original's `get_qa_outputs`, and `get_model_fn` of `run_squad.py`.
    """

    task = "question_answering"
    signatures = "answers"
    checkpoint: ClassVar = {
        "weights": [
            *dense("start_logits/dense", "start_logits/dense", "start_logits.dense"),
            *dense("end_logits/dense_0", "end_logits/dense_0", "end_logits.dense_0"),
            *norm("end_logits/norm", "end_logits/LayerNorm", "end_logits.LayerNorm"),
            *dense("end_logits/dense_1", "end_logits/dense_1", "end_logits.dense_1"),
            *dense("answer_class/dense_0", "answer_class/dense_0", "answer_class.dense_0"),
            kernel("answer_class/dense_1", "answer_class/dense_1", "answer_class.dense_1"),
        ],
        "sign": "start_logits/dense/kernel",
        "architectures": ("XLNetForQuestionAnswering",),
        "config": ("start_n_top", "end_n_top"),
    }
    _arguments = ("preprocessor", "start_n_top", "end_n_top", "dropout", "null_threshold")
    preprocessor_cls = XLNetQuestionAnsweringPreprocessor
    csv_inputs = ("question", "context")
    csv_columns = ("answer", "start", "end", "probability")

    def __init__(
        self,
        backbone: XLNetBackbone,
        preprocessor: Preprocessor | None = None,
        start_n_top: int = 5,
        end_n_top: int = 5,
        dropout: float = 0.1,
        null_threshold: float | None = None,
        name: str = "xlnet_question_answering",
        **kwargs: Any,
    ) -> None:
        check_positive_int("start_n_top", start_n_top)
        check_positive_int("end_n_top", end_n_top)
        if null_threshold is not None:
            check_number("null_threshold", null_threshold, low=-math.inf)
        check_backbone(backbone)
        check_preprocessor(preprocessor, backbone, self.preprocessor_cls)

        # === Layers ===
        def of_backbone():
            initializer = clone_initializer(backbone.kernel_initializer)
            return {"kernel_initializer": initializer, "dtype": backbone.dtype_policy}

        start_logits = AnswerStart(name="start_logits", **of_backbone())
        end_logits = AnswerEnd(backbone.layer_norm_epsilon, name="end_logits", **of_backbone())
        (dropout_seed,) = spawn_seeds(backbone.seed, 1, "XLNetQuestionAnswering")
        answer_class = Answerability(
            dropout, seed=dropout_seed, name="answer_class", **of_backbone()
        )

        # === Functional graph ===
        inputs = token_inputs(backbone)
        sequence = backbone(inputs)["sequence_output"]
        mask = keras.Input((None,), dtype="bool", name="paragraph_mask")
        cls_index = keras.Input((), dtype="int32", name="cls_index")
        inputs |= {"paragraph_mask": mask, "cls_index": cls_index}
        start_log_probs = start_logits(sequence, mask)
        cls_logits = answer_class(sequence, ops.exp(start_log_probs), cls_index)

        find_starts = _TopPositions(start_n_top, name="top_starts")
        find_ends = _TopPositions(end_n_top, name="top_ends")

        def beams(limit=None):
            allowed = start_log_probs if limit is None else _with_answers(start_log_probs, limit)
            top_starts, start_index = find_starts(allowed)
            end_log_probs = end_logits(sequence, start_index, mask)
            if limit is not None:
                end_log_probs = _WithinLength(name="limit")(end_log_probs, start_index, limit)
            top_ends, end_index = find_ends(end_log_probs)
            num_ends = start_n_top * end_n_top
            return {
                "start_top_log_probs": top_starts,
                "start_top_index": start_index,
                "end_top_log_probs": ops.reshape(top_ends, (-1, num_ends)),
                "end_top_index": ops.reshape(end_index, (-1, num_ends)),
                "cls_logits": cls_logits,
            }

        super().__init__(backbone, inputs=inputs, outputs=beams(), name=name, **kwargs)

        # === Functional graph of answers of limited length ===
        limit = keras.Input((None,), dtype="int32", name="max_answer_length")
        limited = beams(limit)

        # === Functional graph of training ===
        start = keras.Input((), dtype="int32", name="start_positions")
        end_log_probs = end_logits(sequence, ops.expand_dims(start, 1), mask)
        of_labels = {
            "start_positions": start_log_probs,
            "end_positions": ops.squeeze(end_log_probs, 1),
            # With an axis of one class: Keras takes the mean over the last axis for sample weights.
            "is_impossible": ops.expand_dims(cls_logits, 1),
        }
        self._hold(preprocessor)
        # Not tracked: they have the layers of this model, and would be saved a second time.
        self._untracked.graphs = {
            "start_positions": keras.Model({**inputs, "start_positions": start}, of_labels),
            "max_answer_length": keras.Model({**inputs, "max_answer_length": limit}, limited),
        }

        # PyTorch accepts submodules only after its module is initialized.
        self.start_logits = start_logits
        self.end_logits = end_logits
        self.answer_class = answer_class

        # === Config ===
        self.start_n_top = start_n_top
        self.end_n_top = end_n_top
        self.dropout = dropout
        self.null_threshold = null_threshold
        self.compile()

    def _compile_defaults(self):
        accuracy = keras.metrics.SparseCategoricalAccuracy
        return {
            "loss": {
                "start_positions": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                "end_positions": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                "is_impossible": keras.losses.BinaryCrossentropy(from_logits=True),
            },
            "loss_weights": dict.fromkeys(_LABELS, 0.5),
            "metrics": {
                "start_positions": [accuracy(name="accuracy")],
                "end_positions": [accuracy(name="accuracy")],
                "is_impossible": [keras.metrics.BinaryAccuracy(name="accuracy", threshold=0.0)],
            },
        }

    # === Graphs for inference and for training ===

    # Keras calls a model of several inputs with no other arguments.
    def call(
        self, inputs: dict[str, Tensor], training: bool | None = None, mask: Any = None
    ) -> dict[str, Tensor]:
        graph = self._graph_for(inputs)
        if graph is None:
            return super().call(inputs, training=training, mask=mask)
        return graph.call(inputs, training=training, mask=mask)

    def compute_output_spec(
        self, inputs: dict[str, Tensor], training: bool | None = None, mask: Any = None
    ) -> dict[str, keras.KerasTensor]:
        graph = self._graph_for(inputs)
        if graph is None:
            return super().compute_output_spec(inputs, training=training, mask=mask)
        return graph.compute_output_spec(inputs)

    @property
    def _inputs_without_default(self):
        return ("max_answer_length", "start_positions", *super()._inputs_without_default)

    def _graph_for(self, inputs):
        """The graph for an input that the model's own graph does not take, or `None`."""
        graphs = self._untracked.graphs
        return next((graph for key, graph in graphs.items() if key in inputs), None)

    def _default(self, key, inputs):
        if key not in ("paragraph_mask", "cls_index"):
            return super()._default(key, inputs)
        mask = inputs.get("padding_mask")
        if mask is None:
            mask = super()._default("padding_mask", inputs)
        if key == "paragraph_mask":
            return mask
        # The first position where the count of real tokens is largest.
        return ops.argmax(ops.cumsum(ops.cast(mask, "int32"), axis=1), axis=1)

    # === Answers ===

    def answer(
        self,
        x: Any,
        context: Any = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        num_answers: int = 5,
        max_answer_length: int = 64,
        null_threshold: float | str | None = "auto",
    ) -> Any:
        """Returns the answers to questions, parts of their contexts.

        Args:
            x: Questions with contexts, as in `fit`, or what `preprocessor.encode` returns. Or
                questions, if `context` is given.
            context: Optional column of contexts. `answer(question, context)` answers one question,
                a string.
            batch_size, verbose: As in `keras.Model.predict`.
            num_answers: Int, the largest number of answers to a question.
            max_answer_length: Int, the largest number of tokens of an answer. Longer ones are not
                searched.
            null_threshold: Float, the null score above which a question has no answer, or `None` to
                answer all questions. `"auto"`: the `null_threshold` of the model.

        Returns:
            A list with an `AnswerPrediction` for each question: `answers`, each with `text`,
            `start` and `end` in characters of the context and `probability`; `null_score`, the
            higher the more probable it is that there is no answer; and `text`, the best answer, or
            `""` if the context has none. For one question that is a string only its
            `AnswerPrediction`.

        Raises:
            ValueError: If an argument is not as above.
        """
        check_positive_int("num_answers", num_answers)
        check_positive_int("max_answer_length", max_answer_length)
        if isinstance(null_threshold, str) and null_threshold != "auto":
            raise ValueError(
                "`null_threshold` must be a number, None or 'auto'. Received: "
                f"null_threshold={null_threshold!r}"
            )
        return self._results(
            x,
            batch_size,
            verbose,
            context,
            inputs=lambda features: {
                "max_answer_length": self.preprocessor.answer_limits(
                    features["token_ids"], max_answer_length
                )
            },
            num_answers=num_answers,
            max_answer_length=max_answer_length,
            null_threshold=self.null_threshold if null_threshold == "auto" else null_threshold,
        )

    def csv_rows(self, texts: Any) -> list[Any]:
        """Returns a row of values for each text: see `Task`."""
        best = [found.answers[0] if found.text else None for found in self.answer(texts, verbose=0)]
        nothing = ("",) * len(self.csv_columns)
        return [(a.text, a.start, a.end, a.probability) if a else nothing for a in best]

    def _learn_from_labels(self, y):
        if self.null_threshold is None and has_unanswered(y):
            self.null_threshold = 0.0

    # === Training: the labelled start is one of the inputs ===

    def train_step(self, *args: Any) -> Any:
        """Computes a train step as `keras.Model` does, with the labelled start as an input."""
        *state, data = args
        return super().train_step(*state, _with_start(data))

    def test_step(self, *args: Any) -> Any:
        """Computes a test step as `keras.Model` does, with the labelled start as an input."""
        *state, data = args
        return super().test_step(*state, _with_start(data))

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Tensor:
        """Computes the loss as `keras.Model` does."""
        y_pred = self._predicted_with_start(x, y, y_pred)
        return super().compute_loss(x, y, y_pred, sample_weight, training=training)

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        """Computes the metrics as `keras.Model` does."""
        y_pred = self._predicted_with_start(x, y, y_pred)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def _predicted_with_start(self, x, y, y_pred):
        # Before the first step Keras may call the model symbolically, without labels.
        if "start_positions" in y_pred:
            return y_pred
        x, *_ = _with_start((x, y))
        return self(x)


class _TopPositions(keras.Operation):
    """The `k` largest log-probabilities of the last axis and their positions, padded to `k`."""

    def __init__(self, k, name):
        super().__init__(name=name)
        self.k = k

    def call(self, log_probs):
        length = ops.shape(log_probs)[-1]
        # Less than all others, so that short and long sequences have the same number of beams.
        pad_width = [(0, 0)] * (len(log_probs.shape) - 1) + [(0, self.k)]
        padded = ops.pad(log_probs, pad_width, constant_values=-2e30)
        log_probs, index = ops.top_k(padded, self.k)
        # A tensor, because the graph of an ONNX file would have the length of its example.
        last = ops.arange(length, dtype="int32")[-1]
        return log_probs, ops.minimum(ops.cast(index, "int32"), last)

    def compute_output_spec(self, log_probs):
        shape = (*log_probs.shape[:-1], self.k)
        return keras.KerasTensor(shape, "float32"), keras.KerasTensor(shape, "int32")


class _WithinLength(keras.Operation):
    """Log-probabilities of ends, -1e30 for ends too far from the start."""

    def call(self, log_probs, start, limit):
        # With a dtype, because Keras does not know the one of a symbolic size of PyTorch.
        place = ops.arange(ops.shape(log_probs)[-1], dtype="int32")
        distance = place - ops.expand_dims(start, -1)
        is_near = distance < ops.expand_dims(ops.take_along_axis(limit, start, axis=1), -1)
        return ops.where(ops.logical_and(distance >= 0, is_near), log_probs, _FORBIDDEN)

    def compute_output_spec(self, log_probs, start, limit):
        return keras.KerasTensor(log_probs.shape, "float32")


def _with_answers(start_log_probs, limit):
    """Log-probabilities of starts, -1e30 where answers may have no token."""
    return ops.where(limit > 0, start_log_probs, _FORBIDDEN)


def _with_start(data):
    """Inputs, labels and sample weights, with the labelled start among the inputs."""
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    if not isinstance(y, dict) or set(y) != set(_LABELS):
        given = sorted(y) if isinstance(y, dict) else type(y).__name__
        raise ValueError(f"`y` must be a dict with the keys {list(_LABELS)}. Received: {given}")
    if isinstance(x, dict) and x.get("start_positions") is None:
        x = {**x, "start_positions": y["start_positions"]}
    return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)
