"""Language models in EleutherAI's lm-evaluation-harness."""

import functools
import itertools
import json
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.models.utils import normalize_gen_kwargs, postprocess_generated_text
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from keras_xlnet.arguments import check_int, check_positive_int, check_token_id
from keras_xlnet.models import TransformerXLLanguageModel, XLNetPermutationLM
from keras_xlnet.models.scoring import check_orders, score_in_segments, score_with_ranks

_SAMPLING = ("temperature", "top_k", "top_p")
_GENERATION_KWARGS = ("until", "max_gen_toks", "do_sample", *_SAMPLING)
# The largest number of new tokens if a task does not set it, as in other models of lm-eval.
_MAX_GEN_TOKS = 256


class HarnessLM(LM):
    """A language model for the tasks of lm-eval, EleutherAI's lm-evaluation-harness.

    `lm_eval.simple_evaluate(HarnessLM(model), tasks=[...])` runs tasks of all its kinds: multiple
    choice, log-likelihood, perplexity and generation.

    - **Where a continuation starts.** Context and continuation are tokenized together. The
      continuation has the tokens after those that the context also has when it is tokenized
      separately. If it continues a word of the context, the last tokens of the context can be among
      them.
    - **Transformer-XL.** A text is scored after the `start_token_id`. With memory, texts of any
      length are read in segments of `max_length` tokens.
    - **XLNet.** The context is given: its tokens see each other in both directions, as tokens that
      are not predicted do in pretraining. The tokens of the continuation are predicted from left to
      right. As in `score`, they see that the text ends after them, with `<sep><cls>`; in
      `generate_until` the end is open. Texts of perplexity tasks have no context.
    - **Greedy.** A continuation is greedy if each of its tokens is the most probable one, given
      those before it.

    Args:
        model: A `TransformerXLLanguageModel` or an `XLNetPermutationLM` that is not stateful, with
            a tokenizer.
        batch_size: Int, the number of texts at a time.
        max_length: Int, at least 2, the number of tokens that are read at a time. Without memory,
            and in an `XLNetPermutationLM`, a longer context loses its first tokens, and a longer
            text of a perplexity task is read in windows: those of
            `lm_eval.utils.get_rolling_token_windows`, with one token of context.
        start_token_id: Int, the token before each text for a `TransformerXLLanguageModel`. `None`
            for the `end_token` of a `VocabularyTokenizer`. Without either, a text without a context
            cannot be scored.

    Raises:
        ValueError: If an argument is not as above; if a text without a context has no start token;
            or if a task has `generation_kwargs` other than `until`, `max_gen_toks`, `do_sample`,
            `temperature`, `top_k` and `top_p`.

    Example:

    >>> from lm_eval.api.instance import Instance
    >>> from keras_xlnet.integrations import HarnessLM
    >>> from keras_xlnet.tokenizers import VocabularyTokenizer
    >>> tokenizer = VocabularyTokenizer.train(["a rose is a rose"], end_token="<eos>")
    >>> model = keras_xlnet.models.TransformerXLLanguageModel(4, 1, 2, 16, 32, tokenizer)
    >>> request = Instance("loglikelihood", {}, ("a rose", " is a rose"), 0)
    >>> ((log_likelihood, is_greedy),) = HarnessLM(model).loglikelihood([request], True)
    >>> scores = model.score(["a rose is a rose"], start_token_id=tokenizer.token_to_id("<eos>"))
    >>> bool(np.isclose(log_likelihood, scores.log_probs[0][2:5].sum(), atol=1e-5))
    True

    Source: EleutherAI/lm-evaluation-harness, `lm_eval.api.model.LM`.
    """

    def __init__(
        self,
        model: Any,
        batch_size: int = 16,
        max_length: int = 512,
        start_token_id: int | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.batch_size = check_positive_int("batch_size", batch_size)
        self.max_length = check_int("max_length", max_length, 2)
        self._is_causal = isinstance(model, TransformerXLLanguageModel)
        if not self._is_causal and not isinstance(model, XLNetPermutationLM):
            raise ValueError(
                "`model` must be a TransformerXLLanguageModel or an XLNetPermutationLM. Received: "
                f"{type(model).__name__}"
            )
        if model.tokenizer is None:
            raise ValueError("`model` must have a tokenizer: set `model.tokenizer`")
        end_token = getattr(model.tokenizer, "end_token", None)
        self._end = [] if end_token is None else [model.tokenizer.token_to_id(end_token)]
        if not self._is_causal:
            check_orders(model)
            if start_token_id is not None:
                raise ValueError(
                    "`start_token_id` is for a TransformerXLLanguageModel: an XLNetPermutationLM "
                    f"predicts the first token too. Received: {start_token_id!r}"
                )
            self._start = []
            return
        if model.stateful:
            raise ValueError(
                "`model` must not be stateful: use "
                "`model.with_arguments(stateful=False, batch_size=None)`"
            )
        self._start = self._end
        if start_token_id is not None:
            check_token_id("start_token_id", start_token_id, model.vocabulary_size)
            self._start = [start_token_id]

    # === The methods of lm-eval ===

    def loglikelihood(
        self, requests: Sequence[Instance], disable_tqdm: bool = False
    ) -> list[tuple[float, bool]]:
        """Returns the log-likelihood of each continuation, and whether it is greedy.

        Args:
            requests: Instances whose `args` are a context and a continuation.
            disable_tqdm: Bool, whether there is no progress bar.
        """
        contexts = self._encode([request.args[0] for request in requests])
        wholes = self._encode(["".join(request.args) for request in requests])
        pairs = []
        for context, whole in zip(contexts, wholes, strict=True):
            same = [a == b for a, b in zip(context, whole, strict=False)]
            start = (*same, False).index(False)
            pairs.append((self._start + whole[:start], whole[start:]))
        return self._score(pairs, disable_tqdm)

    def loglikelihood_rolling(
        self, requests: Sequence[Instance], disable_tqdm: bool = False
    ) -> list[float]:
        """Returns the log-likelihood of each text.

        Args:
            requests: Instances whose `args` are a text.
            disable_tqdm: Bool, whether there is no progress bar.
        """
        texts = self._encode([request.args[0] for request in requests])
        windows = [
            (row, *window) for row, text in enumerate(texts) for window in self._windows(text)
        ]
        found = self._score([window[1:] for window in windows], disable_tqdm, find_best=False)
        totals = np.zeros(len(texts))
        for (row, *_), (log_likelihood, _) in zip(windows, found, strict=True):
            totals[row] += log_likelihood
        return totals.tolist()

    def generate_until(self, requests: Sequence[Instance], disable_tqdm: bool = False) -> list[str]:
        """Returns the continuation of each context, up to the first stop string.

        A continuation ends with a token that contains a stop string, with the end token of the
        tokenizer, or after `max_gen_toks` tokens, 256 by default. Then it is cut at the first stop
        string, which can have several tokens.

        Args:
            requests: Instances whose `args` are a context and the `generation_kwargs` of the task.
            disable_tqdm: Bool, whether there is no progress bar.
        """
        alike: dict[str, list[int]] = {}
        for row, request in enumerate(requests):
            alike.setdefault(json.dumps(request.args[1], sort_keys=True), []).append(row)
        found = [""] * len(requests)
        for rows in alike.values():
            contexts = self._encode([requests[row].args[0] for row in rows])
            prompts = [self._shortened(self._start + context) for context in contexts]
            continue_batch = self._continuing(requests[rows[0]].args[1])
            texts = self._in_batches(continue_batch, prompts, len, disable_tqdm)
            for row, text in zip(rows, texts, strict=True):
                found[row] = text
        return found

    # === Tokens ===

    def _encode(self, texts):
        """Lists of the token ids of texts, without the end token."""
        rows = self.model.tokenizer.encode(texts) if texts else []
        return [row[: len(row) - len(self._end)].tolist() for row in rows]

    @property
    def _reads_segments(self):
        """Whether texts of any length are read, with memory."""
        return self._is_causal and bool(self.model.memory_length)

    def _shortened(self, context, num_new=0):
        """The last tokens of a context, at least one, so that there is room for new ones."""
        if self._reads_segments:
            return context
        return context[-max(1, self.max_length - num_new) :]

    def _windows(self, text):
        """Pairs of the tokens that are given and those that are predicted, in order."""
        if self._reads_segments:
            return [(self._start, text)]
        start = self._start[0] if self._start else None
        windows = get_rolling_token_windows(text, start, self.max_length - 1, context_len=1)
        return [
            ([token for token in given if token is not None], predicted)
            for given, predicted in map(make_disjoint_window, windows)
        ]

    def _in_batches(self, function, items, length, disable_tqdm):
        """The results of a function of batches of like length, in the order of the items."""
        # The longest first: if they need too much memory, this shows at the start.
        order = sorted(range(len(items)), key=lambda row: -length(items[row]))
        found = [None] * len(items)
        progress = keras.utils.Progbar(len(items), verbose=0 if disable_tqdm else 1)
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            for row, result in zip(rows, function([items[row] for row in rows]), strict=True):
                found[row] = result
            progress.add(len(rows))
        return found

    # === Scores ===

    def _score(self, pairs, disable_tqdm, find_best=True):
        """For each pair (given, new) the log-likelihood of the new tokens, and `is_greedy`."""
        if self._is_causal and not all(given for given, _ in pairs):
            raise ValueError(
                "`start_token_id` is needed for a text without a context: a "
                "TransformerXLLanguageModel predicts its first token from the token before"
            )
        score_batch = functools.partial(self._score_batch, find_best=find_best)
        return self._in_batches(score_batch, pairs, lambda pair: sum(map(len, pair)), disable_tqdm)

    def _score_batch(self, pairs, find_best):
        pairs = [(self._shortened(given, len(new)), new) for given, new in pairs]
        rows = [np.array([*given, *new], "int32") for given, new in pairs]
        if self._is_causal:
            found = score_in_segments(self.model, rows, None, self.max_length, find_best)
        else:
            ranks = [np.array([-1] * len(given) + [*range(len(new))]) for given, new in pairs]
            found = score_with_ranks(self.model, rows, ranks)
        is_best = found.get("is_best") or [np.array([])] * len(pairs)
        return [
            (log_probs[len(given) :].sum(dtype="float64").item(), bool(np.all(best[len(given) :])))
            for (given, _), log_probs, best in zip(pairs, found["log_probs"], is_best, strict=True)
        ]

    # === Generation ===

    def _continuing(self, gen_kwargs):
        """A function from a batch of prompts to their continuations."""
        kwargs = normalize_gen_kwargs(gen_kwargs, _MAX_GEN_TOKS)
        unknown = sorted(kwargs.keys() - set(_GENERATION_KWARGS))
        if unknown:
            raise ValueError(
                f"`generation_kwargs` must be of {', '.join(_GENERATION_KWARGS)}. Received: "
                f"{', '.join(unknown)}"
            )
        until = [stop for stop in kwargs["until"] if stop]
        stops = [i for i, text in enumerate(self._token_texts) if any(s in text for s in until)]
        arguments = {"max_new_tokens": kwargs["max_gen_toks"], "stop_token_ids": stops + self._end}
        if kwargs["do_sample"]:
            arguments["method"] = "sample"
            arguments |= {key: kwargs[key] for key in _SAMPLING if key in kwargs}
        # Equal prompts in different batches get different samples.
        seeds = itertools.count()

        def continue_batch(prompts):
            found = self.model.generate(prompts, seed=next(seeds), **arguments)
            # The text of the new tokens by themselves would lack the space before them.
            texts = zip(found.texts, map(self.model.tokenizer.decode, prompts), strict=True)
            return [
                postprocess_generated_text(text[len(prompt) :], until, None)
                for text, prompt in texts
            ]

        return continue_batch

    @functools.cached_property
    def _token_texts(self):
        """The text of each token."""
        tokenizer = self.model.tokenizer
        return [tokenizer.decode([i]) for i in range(tokenizer.vocabulary_size())]
