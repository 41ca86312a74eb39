"""Counts the floating point operations of one pretraining step as XLA does, on JAX.

    KERAS_BACKEND=jax python -m benchmarks.training_flop_by_xla --size=xlnet_base --batch_size=2

Nothing is computed, and no weight is updated: the step is traced, translated for XLA, and XLA adds
up its operations. `--compile` counts those of the program that the compiler for this machine makes
of it, which takes minutes for large models.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import jax
import keras
from absl import app, flags

from benchmarks.training_cost import define_shape_flags, shapes_of_flags
from benchmarks.training_flop import training_flop
from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM

FLAGS = flags.FLAGS


def main(_):
    shapes = shapes_of_flags()
    step, arguments = pretraining_step(shapes)
    program = jax.jit(step).lower(*arguments)
    if FLAGS.compile:
        program = program.compile()
    counted, needed = program.cost_analysis()["flops"], sum(training_flop(shapes).values())
    print(f"XLA: {counted:.4g}; matrix products: {needed:.4g}; XLA / matrix products: ", end="")
    print(f"{counted / needed:.3f}")


def pretraining_step(shapes):
    """Returns a function that trains one step, and the shapes of its arguments."""
    backbone = XLNetBackbone(
        shapes.vocabulary_size,
        shapes.num_layers,
        shapes.num_heads,
        shapes.hidden_dim,
        shapes.intermediate_dim,
        head_dim=shapes.head_dim,
        memory_length=shapes.memory_length or None,
        reuse_length=shapes.sequence_length // 2,
        bidirectional_data=shapes.bidirectional_data,
        kernel_initializer="zeros",  # Nothing is computed with them.
    )
    stateful = shapes.memory_length > 0
    model = XLNetPermutationLM(backbone, stateful=stateful, batch_size=shapes.batch_size)
    optimizer = keras.optimizers.AdamW(1e-4)
    optimizer.build(model.trainable_variables)

    def loss_of(trainable, constant, inputs, labels):
        outputs, constant = model.stateless_call(trainable, constant, inputs, training=True)
        losses = keras.losses.sparse_categorical_crossentropy(
            labels, outputs["logits"], from_logits=True
        )
        return keras.ops.mean(losses), constant

    def step(trainable, constant, state, inputs, labels):
        (loss, constant), gradients = jax.value_and_grad(loss_of, has_aux=True)(
            trainable, constant, inputs, labels
        )
        trainable, state = optimizer.stateless_apply(state, gradients, trainable)
        return loss, trainable, constant, state

    batch, length = shapes.batch_size, shapes.sequence_length
    inputs = {
        "token_ids": ((batch, length), "int32"),
        "segment_ids": ((batch, length), "int32"),
        "padding_mask": ((batch, length), "bool"),
        "permutation_mask": ((batch, length, length), "bool"),
        "target_positions": ((batch, shapes.num_predictions), "int32"),
        **({"reset_memory": ((batch,), "bool")} if stateful else {}),
    }
    return step, (
        *(
            [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in variables]
            for variables in (
                model.trainable_variables,
                model.non_trainable_variables,
                optimizer.variables,
            )
        ),
        {name: jax.ShapeDtypeStruct(*spec) for name, spec in inputs.items()},
        jax.ShapeDtypeStruct((batch, shapes.num_predictions), "int32"),
    )


if __name__ == "__main__":
    define_shape_flags()
    flags.DEFINE_bool("compile", False, "Count the compiled program.")
    app.run(main)
