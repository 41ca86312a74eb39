"""From rows of tokens and a choice of targets to what a permutation LM is trained on."""

import tensorflow as tf

from keras_xlnet.pretraining.graph_or_twin import graph_or_twin


def permutation_features(generator, token_ids, segment_ids, target_mask, reset_memory, draws):
    """Puts a batch together, as `model.fit` takes it.

    Args:
        generator: a `PermutationMaskGenerator` with `num_predictions`.
        token_ids: int32 `(batch, length)`.
        segment_ids: int32 `(batch, length)`.
        target_mask: bool `(batch, length)`.
        reset_memory: bool `(batch,)`.
        draws: float32 `(batch, generator.num_draws(length))`, uniform random numbers.

    Returns:
        Tuple `(inputs, labels, sample_weight)`, masks as int8.
    """
    batch_size, length = token_ids.shape
    num_predictions = generator.num_predictions
    features = graph_or_twin(
        generator,
        generator.generate,
        {"token_ids": token_ids, "target_mask": target_mask, "draws": draws},
        {
            "permutation_mask": tf.TensorSpec((batch_size, length, length), tf.bool),
            "target_positions": tf.TensorSpec((batch_size, num_predictions), tf.int32),
            "labels": tf.TensorSpec((batch_size, num_predictions), tf.int32),
            "sample_weight": tf.TensorSpec((batch_size, num_predictions), tf.float32),
        },
    )
    # Under a strategy Keras averages a batch to build the model, and there is no mean of bools.
    inputs = {
        "token_ids": token_ids,
        "segment_ids": segment_ids,
        "permutation_mask": tf.cast(features["permutation_mask"], tf.int8),
        "target_positions": features["target_positions"],
        "reset_memory": tf.cast(reset_memory, tf.int8),
    }
    return inputs, features["labels"], features["sample_weight"]


def uniform_draws(shape, seed, step, dtype="float32"):
    """Uniform random numbers in [0, 1) that depend on the seed and the step alone.

    Args:
        shape: tuple of ints.
        seed: int.
        step: int64 scalar tensor.
        dtype: `"float32"` or `"float64"`.

    Returns:
        A tensor of that shape, the same on every kind of device.
    """
    seed = tf.stack([tf.constant(seed, tf.int64), step])
    return tf.random.stateless_uniform(shape, seed, dtype=dtype, alg="philox")
