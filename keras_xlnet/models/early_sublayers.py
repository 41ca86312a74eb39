import keras


class EarlySublayers:
    """Mixin of functional models that name their layers before they make their graph.

    Keras allows that everywhere but on PyTorch, where it is an error to give a module a submodule
    before `torch.nn.Module.__init__`. There the names are plain attributes: the graph tracks the
    layers anyhow, and Keras saves what it finds under any attribute.
    """

    def __setattr__(self, name, value):
        # `torch.nn.Module.__init__` makes `_modules`.
        if keras.backend.backend() == "torch" and "_modules" not in self.__dict__:
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)
