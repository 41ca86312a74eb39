"""Refuses `keras.models.clone_model` where it would lose the class of a model.

Upstream: `clone_model` copies the graph of every functional model, and makes a plain `Functional`
of it unless the constructor is `(inputs, outputs, name)`, although `from_config` would make the
right class. Methods and attributes are lost without a warning.
Reproduction: docs/upstream.md, "`clone_model` loses the class".
Delete this file when: it is the subclass.
"""

import keras


class RefusesCloning:
    """Mixin of functional models with a constructor of their own."""

    def _run_through_graph(self, inputs, operation_fn=lambda operation: operation, call_fn=None):
        if _clones(self, inputs, operation_fn):
            name = type(self).__name__
            raise ValueError(
                f"`keras.models.clone_model` would turn this {name} into a plain functional model "
                f"without the methods and attributes of {name}. Use `model.clone()`"
            )
        return super()._run_through_graph(inputs, operation_fn=operation_fn, call_fn=call_fn)


def _clones(model, inputs, operation_fn):
    """Whether `operation_fn` makes new layers, as that of `clone_model` does."""
    if not all(isinstance(x, keras.KerasTensor) for x in keras.tree.flatten(inputs)):
        return False
    layer = model.layers[-1]
    clone = operation_fn(layer)
    return isinstance(clone, keras.layers.Layer) and clone is not layer
