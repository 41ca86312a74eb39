"""The plain ways to run a Keras 3 model, on any backend."""

import importlib.metadata
import importlib.util

import keras
import numpy as np

from benchmarks.comparison.loops import calling, fitting


def forward(model, inputs, jit=None, output=lambda outputs: outputs, **facts):
    """A subject that computes `output(model(inputs))` as a compiled function, as NumPy."""
    backends = {"tensorflow": _on_tensorflow, "jax": _on_jax, "torch": _on_torch}
    run = backends[keras.backend.backend()]
    inputs = {key: keras.ops.convert_to_tensor(value) for key, value in inputs.items()}
    call = run(model, jit)
    return calling(lambda: to_numpy(output(call(inputs))), **model_facts(model), **facts)


def fit(model, x, y, sample_weight=None, **facts):
    """A subject whose repetitions are the steps of `model.fit`, always with the same batch."""
    batch = (x, y) if sample_weight is None else (x, y, sample_weight)

    def endless_fit(callbacks):
        model.fit(_repeated(batch), steps_per_epoch=10**6, verbose=0, callbacks=callbacks)

    return fitting(endless_fit, keras.callbacks.Callback, **model_facts(model), **facts)


def _repeated(batch):
    """The batch again and again. The machines with a GPU have no TensorFlow."""
    if importlib.util.find_spec("tensorflow"):
        import tensorflow as tf

        return tf.data.Dataset.from_tensors(batch).repeat()

    class Repeated(keras.utils.PyDataset):
        def __len__(self):
            return 10**6

        def __getitem__(self, index):
            return batch

    return Repeated()


def jit_argument(jit):
    """Returns the arguments of `compile`: none without XLA."""
    return {} if jit is None else {"jit_compile": jit}


def to_numpy(tensor):
    return np.asarray(keras.ops.convert_to_numpy(tensor))


def model_facts(model):
    names = ("keras", keras.backend.backend())
    parameters = sum(int(np.prod(v.shape)) for v in model.trainable_variables)
    versions = {name: importlib.metadata.version(name) for name in names}
    return {"versions": versions, "parameters": parameters}


def _on_tensorflow(model, jit):
    import tensorflow as tf

    return tf.function(lambda inputs: model(inputs, training=False), jit_compile=jit)


def _on_jax(model, jit):
    import jax

    trainable = [variable.value for variable in model.trainable_variables]
    others = [variable.value for variable in model.non_trainable_variables]
    stateless = jax.jit(
        lambda trainable, others, inputs: model.stateless_call(
            trainable, others, inputs, training=False
        )[0]
    )
    return lambda inputs: stateless(trainable, others, inputs)


def _on_torch(model, jit):
    import torch

    return torch.no_grad()(lambda inputs: model(inputs, training=False))
