"""What models that fine-tune a backbone have in common."""

import keras

from keras_xlnet.layers import SequenceSummary
from keras_xlnet.layers.arguments import check_positive_int
from keras_xlnet.layers.initialization import clone_initializer
from keras_xlnet.layers.quantization import RestoresQuantization
from keras_xlnet.models.compiled_update import compiled_update
from keras_xlnet.models.distributed_training import DistributedTraining
from keras_xlnet.models.optional_inputs import OptionalInputs
from keras_xlnet.models.preset import Preset

_PARTS = ("backbone", "preprocessor")
_FINE_TUNING = 5e-5  # Learning rate of AdamW, right for a pretrained backbone.


class TaskModel(RestoresQuantization, Preset, DistributedTraining, OptionalInputs):
    """Mixin of functional models with a `backbone`: how they are compiled, saved and rebuilt.

    A model lists in `_arguments` the constructor arguments that are attributes of it, and says in
    `_objective` what it is compiled with.
    """

    _arguments = ()

    def _objective(self):
        """The `loss`, what else of `compile`'s arguments goes with it, and a `learning_rate`."""
        raise NotImplementedError

    def compile(
        self,
        optimizer="auto",
        loss="auto",
        metrics="auto",
        weighted_metrics="auto",
        loss_weights="auto",
        **kwargs,
    ):
        """As `keras.Model.compile`; `"auto"` is what the class description says."""
        objective = self._objective()
        if _is_auto(optimizer):
            optimizer = keras.optimizers.AdamW(objective.get("learning_rate", _FINE_TUNING))
        if _is_auto(loss_weights):
            loss_weights = objective.get("loss_weights") if _is_auto(loss) else None
        given = {"loss": loss, "metrics": metrics, "weighted_metrics": weighted_metrics}
        given = {key: objective.get(key) if _is_auto(v) else v for key, v in given.items()}
        super().compile(optimizer=optimizer, loss_weights=loss_weights, **given, **kwargs)

    def train_step(self, *args, **kwargs):
        """As in `keras.Model`, with a faster update of the weights."""
        with compiled_update(self.optimizer):
            return super().train_step(*args, **kwargs)

    def compile_from_config(self, config):
        """Compiles as the saved model was. Keras calls this when it loads a model."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def get_config(self):
        values = {key: getattr(self, key) for key in ("backbone", *self._arguments)}
        parts = {key: values[key] for key in _PARTS if key in values}
        return {
            "name": self.name,
            "trainable": self.trainable,
            **values,
            **{key: keras.saving.serialize_keras_object(part) for key, part in parts.items()},
            **self.quantization_config(),
        }

    @classmethod
    def from_config(cls, config):
        parts = {
            key: keras.saving.deserialize_keras_object(config[key])
            for key in _PARTS
            if key in config
        }
        return super().from_config({**config, **parts})


def check_backbone(backbone):
    """Raises `ValueError` if half of what `backbone` reads would have to be backwards."""
    if backbone.bidirectional_data:
        raise ValueError(
            "`backbone` reads the second half of a batch backwards, as in pretraining. Load it "
            "with `from_preset(directory, bidirectional_data=False)`. Received: "
            "backbone.bidirectional_data=True"
        )


def check_classes(num_classes, activation, class_names):
    """Raises `ValueError` if classes are no positive number, always certain, or not all named."""
    check_positive_int("num_classes", num_classes)
    if activation == "softmax" and num_classes == 1:
        raise ValueError(
            "`num_classes=1` with `activation='softmax'` is always 1.0: use 2 classes, or another "
            "activation"
        )
    if class_names is not None and len(class_names) != num_classes:
        raise ValueError(
            f"`class_names` must have `num_classes` names. Received: {len(class_names)} names, "
            f"num_classes={num_classes}"
        )


def token_inputs(backbone, shape=(None,)):
    """Symbolic `token_ids`, `segment_ids` and `padding_mask`, of `shape` without the batch."""
    return {
        key: keras.Input(shape, dtype=backbone.input[key].dtype, name=key)
        for key in ("token_ids", "segment_ids", "padding_mask")
    }


def pooled_logits(backbone, inputs, units, pooling, dropout):
    """Symbolic logits `(batch, units)` of `inputs`, and the two layers that they go through."""
    summarize = SequenceSummary(
        pooling,
        num_heads=backbone.num_heads,
        head_dim=backbone.head_dim,
        dropout=dropout,
        layer_norm_epsilon=backbone.layer_norm_epsilon,
        kernel_initializer=clone_initializer(backbone.kernel_initializer),
        seed=backbone.seed,
        dtype=backbone.dtype_policy,
        name="sequence_summary",
    )
    logits_dense = new_logits(backbone, units)
    summary = summarize(
        backbone(inputs)["sequence_output"],
        padding_mask=inputs["padding_mask"],
        token_ids=inputs["token_ids"],
    )
    return logits_dense(summary), summarize, logits_dense


def new_logits(backbone, units):
    """A dense layer that starts as those of `backbone` do."""
    return keras.layers.Dense(
        units,
        kernel_initializer=clone_initializer(backbone.kernel_initializer),
        dtype=backbone.dtype_policy,
        name="logits",
    )


def _is_auto(value):
    return isinstance(value, str) and value == "auto"
