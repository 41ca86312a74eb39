"""The optimizer of the examples that fine-tune: AdamW with warmup and a cosine to zero."""

import keras


def make_optimizer(peak, steps):
    """Returns the optimizer of a fine-tuning run.

    Args:
        peak: Float, the learning rate after the warmup of a tenth of the steps.
        steps: Int, all steps of the run.
    """
    warmup = max(1, steps // 10)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, steps - warmup), warmup_target=peak, warmup_steps=warmup
    )
    return keras.optimizers.AdamW(schedule, weight_decay=0.01, global_clipnorm=1.0)
