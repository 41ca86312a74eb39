"""Continuations of prompts in a TensorFlow graph: greedy, or drawn with a seed for each row."""

from collections.abc import Callable, Collection
from typing import Any

import tensorflow as tf

from keras_xlnet.models.decoding import Decoder
from keras_xlnet.serving.ragged_rows import padded_left

# Replaces the tokens after the end of a continuation.
_NO_TOKEN = -1


class Generator:
    """Continues rows of tokens, as `generate` of language models does.

    Args:
        max_new_tokens: Int, the largest number of tokens that a request may ask for.
        stop_token_ids: Ids of tokens that end a continuation.
    """

    def __init__(self, max_new_tokens: int, stop_token_ids: Collection[int] = ()) -> None:
        self.max_new_tokens = max_new_tokens
        self._stop_token_ids = sorted(stop_token_ids)

    def continue_prompts(
        self,
        decoder: Decoder,
        prompts: tf.RaggedTensor,
        max_new_tokens: tf.Tensor,
        choose: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    ) -> dict[str, tf.Tensor]:
        """Continues prompts.

        Args:
            decoder: A `Decoder` that is not compiled.
            prompts: `(batch, None)` int32. A prompt without tokens is not continued.
            max_new_tokens, choose: As in `continue_state`.

        Returns:
            What `continue_state` returns.
        """
        lengths = tf.cast(prompts.row_lengths(), tf.int32)
        token_ids, num_padding = padded_left(prompts)
        decoder.reserve(tf.shape(token_ids)[1], self.max_new_tokens)
        log_probs, state = decoder.read_prompts(token_ids, num_padding)
        limits = tf.where(lengths > 0, max_new_tokens, 0)
        return self.continue_state(decoder, log_probs, state, limits, choose)

    def continue_state(
        self,
        decoder: Decoder,
        log_probs: tf.Tensor,
        state: Any,
        max_new_tokens: tf.Tensor,
        choose: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    ) -> dict[str, tf.Tensor]:
        """Continues from the state of a decoder.

        Args:
            decoder: A `Decoder` that is not compiled.
            log_probs, state: Its outputs: `(batch, vocabulary_size)`, and its state.
            max_new_tokens: `(batch,)` int32, the largest number of new tokens of each row.
            choose: Function of log-probabilities `(batch, vocabulary_size)` and the number of the
                step. It returns a token for each row.

        Returns:
            Dict of `token_ids` `(batch, new_tokens)`, -1 after the end of a continuation,
            `token_log_probs` of the same shape, 0 there, and `num_tokens` `(batch,)`.

        Raises:
            tf.errors.InvalidArgumentError: If a request asks for more tokens than allowed.
        """
        check = tf.debugging.assert_less_equal(
            max_new_tokens,
            self.max_new_tokens,
            f"`max_new_tokens` must be at most {self.max_new_tokens}",
        )
        with tf.control_dependencies([check]):
            limits = tf.identity(max_new_tokens)
        shape = (tf.shape(log_probs)[0], self.max_new_tokens)
        place = tf.range(self.max_new_tokens)

        def body(step, is_open, log_probs, state, tokens, token_log_probs):
            token = choose(log_probs, step)
            is_new = is_open[:, tf.newaxis] & (place == step)
            tokens = tf.where(is_new, token[:, tf.newaxis], tokens)
            found = tf.gather(log_probs, token, batch_dims=1)
            token_log_probs = tf.where(is_new, found[:, tf.newaxis], token_log_probs)
            is_open &= ~self._is_stop(token) & (step + 1 < limits)
            # The state after the last token is not needed.
            log_probs, state = tf.cond(
                tf.reduce_any(is_open),
                lambda: decoder.read_tokens(token, state),
                lambda: (log_probs, state),
            )
            return step + 1, is_open, log_probs, state, tokens, token_log_probs

        start = (tf.constant(0), limits > 0, log_probs, state)
        *_, tokens, token_log_probs = tf.while_loop(
            lambda step, is_open, *_: tf.reduce_any(is_open),
            body,
            (*start, tf.fill(shape, _NO_TOKEN), tf.zeros(shape)),
            parallel_iterations=1,
        )
        num_tokens = tf.reduce_sum(tf.cast(tokens != _NO_TOKEN, tf.int32), axis=1)
        longest = tf.reduce_max(tf.concat([num_tokens, [0]], axis=0))
        return {
            "token_ids": tokens[:, :longest],
            "token_log_probs": token_log_probs[:, :longest],
            "num_tokens": num_tokens,
        }

    def _is_stop(self, tokens):
        found = tf.zeros_like(tokens, tf.bool)
        for stop in self._stop_token_ids:
            found |= tokens == stop
        return found


def new_tokens(outputs: dict[str, tf.Tensor]) -> tf.RaggedTensor:
    """Returns the tokens in the outputs of a `Generator`, up to their ends."""
    return tf.RaggedTensor.from_tensor(outputs["token_ids"], outputs["num_tokens"])


def greedy(log_probs: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
    """Returns the most probable token of each row, `(batch,)` int32. `step` is not used."""
    return tf.argmax(log_probs, axis=1, output_type=tf.int32)


class Sampler:
    """Draws tokens as `Sampling` does. The tokens of a row depend only on the row and its seed.

    Args:
        num_steps: Int, the largest number of tokens that are drawn.
        temperature: `(batch,)` float32. 0: always the most probable token.
        top_k: `(batch,)` int32, sample from the `top_k` most probable tokens. 0: from all.
        top_p: `(batch,)` float32, sample from the most probable tokens whose probabilities add up
            to this.
        seed: `(batch,)` int64, of each row.
    """

    def __init__(
        self,
        num_steps: int,
        temperature: tf.Tensor,
        top_k: tf.Tensor,
        top_p: tf.Tensor,
        seed: tf.Tensor,
    ) -> None:
        checks = [
            tf.debugging.assert_non_negative(temperature, "`temperature` must be at least 0"),
            tf.debugging.assert_non_negative(top_k, "`top_k` must be at least 0"),
            tf.debugging.assert_positive(top_p, "`top_p` must be above 0"),
            tf.debugging.assert_less_equal(top_p, 1.0, "`top_p` must be at most 1"),
        ]
        with tf.control_dependencies(checks):
            self._temperature = tf.cast(temperature, tf.float64)[:, tf.newaxis]
        self._top_k, self._top_p = top_k[:, tf.newaxis], tf.cast(top_p, tf.float64)[:, tf.newaxis]
        self._uniform = tf.map_fn(
            lambda row: tf.random.stateless_uniform((num_steps,), (row, 0), dtype=tf.float64),
            seed,
            fn_output_signature=tf.TensorSpec((num_steps,), tf.float64),
        )

    def __call__(self, log_probs: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
        """Returns a token for each row, `(batch,)` int32."""
        count = tf.shape(log_probs)[1]
        values, order = tf.math.top_k(tf.cast(log_probs, tf.float64), count)
        is_kept = (self._top_k == 0) | (tf.range(count) < self._top_k)
        is_greedy = self._temperature == 0
        scaled = (values - values[:, :1]) / (self._temperature + tf.cast(is_greedy, tf.float64))
        weights = tf.exp(scaled) * tf.cast(is_kept, tf.float64)
        probs = weights / tf.reduce_sum(weights, axis=1, keepdims=True)
        # The token that reaches the sum is among them.
        sums = tf.cumsum(probs, axis=1)
        probs *= tf.cast(sums - probs < self._top_p, tf.float64)
        sums = tf.cumsum(probs, axis=1)
        drawn = self._uniform[:, step, tf.newaxis] * sums[:, -1:]
        place = tf.reduce_sum(tf.cast(sums <= drawn, tf.int32), axis=1)
        place = tf.where(is_greedy[:, 0], 0, tf.minimum(place, count - 1))
        return tf.gather(order, place, batch_dims=1)
