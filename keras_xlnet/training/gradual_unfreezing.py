from typing import Any

import keras

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.registration import refuse_unknown_arguments


@refuse_unknown_arguments
class GradualUnfreezing(keras.callbacks.Callback):
    """Trains the head of a task model first, then also its blocks, one after another from the top.

    Frozen blocks are not computed in the backward pass, so the first epochs take less time. What
    was frozen before `fit` stays frozen. After `fit`, everything that was trainable before is
    trainable again. A model that is saved during `fit` keeps the layers that are frozen at that
    time.

    Args:
        epochs_per_block: Int, the number of epochs until the next block is trained. The embeddings
            follow after the last block: with 6 blocks and 1 epoch, everything is trained from the
            eighth epoch on.

    Raises:
        ValueError: If `epochs_per_block` is not a positive integer, the model has no backbone, or
            the backend is JAX, whose optimizers in Keras 3.15 take the gradients of all weights.

    Example:

    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 2, 2, 16, 32)
    >>> classifier = keras_xlnet.models.XLNetTextClassifier(backbone, num_classes=2)
    >>> x, y = {"token_ids": np.arange(12).reshape(4, 3)}, np.array([0, 1, 0, 1])
    >>> unfreezing = keras_xlnet.training.GradualUnfreezing()
    >>> history = classifier.fit(x, y, epochs=2, callbacks=[unfreezing], verbose=0)

    Source: Howard and Ruder 2018, "Universal language model fine-tuning for text classification",
    section 3.3.
    """

    def __init__(self, epochs_per_block: int = 1) -> None:
        super().__init__()
        self.epochs_per_block = check_positive_int("epochs_per_block", epochs_per_block)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        if keras.backend.backend() == "jax":
            raise ValueError(
                "`GradualUnfreezing` needs TensorFlow or PyTorch: with JAX, optimizers of Keras "
                "take the gradients of all weights"
            )
        backbone: Any = getattr(self.model, "backbone", None)
        if not getattr(backbone, "blocks", None):
            raise ValueError(
                "`GradualUnfreezing` needs a task model, with a `backbone` that has `blocks`. "
                f"Received: a {type(self.model).__name__}"
            )
        in_blocks = [list(block.trainable_variables) for block in reversed(backbone.blocks)]
        seen = {id(weight) for weights in in_blocks for weight in weights}
        others = [w for w in backbone.trainable_variables if id(w) not in seen]
        # In the order in which they are trained.
        self._groups = [*in_blocks, others]
        # Otherwise the optimizer would be built for the weights of the head only.
        self.model.optimizer.build(self.model.trainable_variables)
        self._num_trained: int | None = None

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._unfreeze(min(epoch // self.epochs_per_block, len(self._groups)))

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._unfreeze(len(self._groups))

    def _unfreeze(self, count):
        if count == self._num_trained:
            return
        self._num_trained = count
        for i, weights in enumerate(self._groups):
            for weight in weights:
                weight.trainable = i < count
        # The train step is compiled for the layers that are trainable when it is traced.
        self.model.make_train_function(force=True)
