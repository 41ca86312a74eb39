"""TokensPerSecond measures training steps and their data, not compilation or validation."""

import keras
import numpy as np
import pytest

from keras_xlnet.training import TokensPerSecond, tokens_per_second

STEP_SECONDS = 0.25
TOKENS = 100


class Clock(keras.callbacks.Callback):
    """A clock that advances by each training step, and far in the first step and in validation."""

    def __init__(self):
        super().__init__()
        self.now = 0.0

    def perf_counter(self):
        return self.now

    def on_train_batch_begin(self, batch, logs=None):
        self.now += STEP_SECONDS if self.now else 1000.0

    def on_test_batch_begin(self, batch, logs=None):
        self.now += 1000.0


class Spy(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.seen = logs["tokens_per_second"]


@pytest.fixture
def fit(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(tokens_per_second, "time", clock)

    def fit(rows, callbacks=(), steps_per_execution=1, verbose=0):
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse", steps_per_execution=steps_per_execution, run_eagerly=True)
        x = np.zeros((rows, 1))
        history = model.fit(
            x,
            x,
            batch_size=4,
            epochs=2,
            validation_data=(x[:4], x[:4]),
            callbacks=[clock, TokensPerSecond(TOKENS), *callbacks],
            verbose=verbose,
        )
        return history.history["tokens_per_second"]

    return fit


def test_excludes_the_first_step_and_validation(fit):
    assert fit(rows=20) == pytest.approx([TOKENS / STEP_SECONDS] * 2)


def test_other_callbacks_and_the_progress_bar_show_it(fit, capsys):
    spy = Spy()
    assert fit(rows=8, callbacks=[spy], verbose=2)[-1] == spy.seen
    assert "tokens_per_second: 400.0" in capsys.readouterr().out


def test_counts_every_step_of_an_execution(fit):
    # The clock advances once per execution of four steps.
    assert fit(rows=32, steps_per_execution=4) == pytest.approx([4 * TOKENS / STEP_SECONDS] * 2)


def test_an_incomplete_execution(fit):
    # Six steps: one execution of four, which compiles in the first epoch, and one of two.
    assert fit(rows=24, steps_per_execution=4) == pytest.approx(
        [2 * TOKENS / STEP_SECONDS, 6 * TOKENS / (2 * STEP_SECONDS)]
    )


def test_an_epoch_with_only_the_first_step_gives_nan(fit):
    first, second = fit(rows=4)
    assert np.isnan(first)
    assert second == pytest.approx(TOKENS / STEP_SECONDS)


@pytest.mark.parametrize("tokens", [0, 2.5, None])
def test_wrong_tokens_per_step(tokens):
    with pytest.raises(ValueError, match="`tokens_per_step` must be a positive integer"):
        TokensPerSecond(tokens)
