"""What the examples that fine-tune have in common: optimizer, untrained backbones, float32."""

import tempfile

import keras

from keras_xlnet.models import XLNetBackbone


def make_optimizer(peak, steps):
    """Returns AdamW with a warmup and a cosine to zero.

    Args:
        peak: Float, the learning rate after the warmup of a tenth of the steps.
        steps: Int, all steps of the run.
    """
    warmup = max(1, steps // 10)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, steps - warmup), warmup_target=peak, warmup_steps=warmup
    )
    return keras.optimizers.AdamW(schedule, weight_decay=0.01, global_clipnorm=1.0)


def untrained(backbone):
    """Returns a backbone of the same architecture with new weights."""
    # Larger initial weights than XLNet's, which are meant for long pretraining.
    return XLNetBackbone.from_config(
        {**backbone.get_config(), "kernel_initializer": "glorot_normal"}
    )


def to_float32(model):
    """The model as its weights are, for any device: not each is fast in half precision."""
    if model.backbone.dtype_policy.name == "float32":
        return model
    with tempfile.TemporaryDirectory() as folder:
        model.save_to_preset(folder)
        return type(model).from_preset(folder, dtype="float32")
