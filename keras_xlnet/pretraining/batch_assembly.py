"""Assembles batches for `XLNetPermutationLM` from token ids and a choice of targets."""

import tensorflow as tf

from keras_xlnet.layers import PermutationMaskGenerator
from keras_xlnet.pretraining.tf_data_ops import call_in_tf_data


def assemble_batch(
    generator: PermutationMaskGenerator,
    token_ids: tf.Tensor,
    segment_ids: tf.Tensor,
    target_mask: tf.Tensor,
    reset_memory: tf.Tensor,
    draws: tf.Tensor,
) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
    """Returns a batch in the form that `model.fit` takes, with a new factorization order.

    Args:
        generator: `PermutationMaskGenerator` with `num_predictions`.
        token_ids: Int32 tensor `(batch, length)`.
        segment_ids: Int32 tensor `(batch, length)`.
        target_mask: Bool tensor `(batch, length)`, `True` for tokens to predict.
        reset_memory: Bool tensor `(batch,)`.
        draws: Float32 tensor `(batch, generator.num_draws(length))`, uniform random numbers.

    Returns:
        Tuple `(inputs, labels, sample_weight)`. Masks are int8.
    """
    batch_size, length = token_ids.shape
    num_predictions = generator.num_predictions
    outputs = call_in_tf_data(
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
    # Not bool: under a strategy Keras averages a batch over replicas to build the model, which
    # fails for bool tensors.
    inputs = {
        "token_ids": token_ids,
        "segment_ids": segment_ids,
        "permutation_mask": tf.cast(outputs["permutation_mask"], tf.int8),
        "target_positions": outputs["target_positions"],
        "reset_memory": tf.cast(reset_memory, tf.int8),
    }
    return inputs, outputs["labels"], outputs["sample_weight"]
