import keras

from keras_xlnet.layers import SequencePooling
from keras_xlnet.layers.arguments import check_choice, check_positive_int, check_rate
from keras_xlnet.layers.initialization import clone_initializer, spawn_seeds
from keras_xlnet.layers.quantization import RestoresQuantization
from keras_xlnet.models.optional_inputs import OptionalInputs
from keras_xlnet.models.preset import Preset
from keras_xlnet.models.text_pipeline import TextPipeline

_LOSSES = {
    "softmax": keras.losses.SparseCategoricalCrossentropy,
    "sigmoid": keras.losses.BinaryCrossentropy,
    "linear": keras.losses.MeanSquaredError,
}
_METRICS = {
    "softmax": lambda: keras.metrics.SparseCategoricalAccuracy(name="accuracy"),
    "sigmoid": lambda: keras.metrics.BinaryAccuracy(name="accuracy"),
    "linear": lambda: keras.metrics.MeanAbsoluteError(name="mean_absolute_error"),
}


@keras.saving.register_keras_serializable(package="keras_xlnet")
class XLNetTextClassifier(RestoresQuantization, Preset, TextPipeline, OptionalInputs, keras.Model):
    """Classifies texts, or pairs of texts, with an XLNet backbone.

    The pooled sequence goes through a dense layer with tanh (the original's summary), dropout,
    and a dense layer with one output a class.

    It comes compiled: AdamW at 5e-5 (right for a pretrained backbone), the loss and the accuracy
    that fit the activation. Call `compile` to change that; what it is not given stays so.

    Args:
        backbone: An `XLNetBackbone`.
        num_classes: Int, number of outputs.
        preprocessor: An `XLNetPreprocessor`. With one, `fit`, `evaluate` and `predict` take raw
            strings.
        activation: `"softmax"` for classes that exclude each other (labels are class indices),
            `"sigmoid"` for several labels a text (labels are vectors of 0 and 1), `"linear"` for
            regression.
        pooling: Mode of `SequencePooling`. The default `"last"` is `<cls>`, whichever side the
            padding is on.
        dropout: Float, dropout rate before the last layer.
        class_names: Optional list of `num_classes` strings, for exported models and reports.
        name: Name of the model.

    Inputs, a dict: `token_ids`, `segment_ids`, `padding_mask`, as of `XLNetBackbone`.

    Outputs: Tensor `(batch, num_classes)`, float32: probabilities, or values for `"linear"`.

    Raises:
        ValueError: If an argument is not as above, or raw text comes without a preprocessor.

    Example:

    >>> from keras_xlnet.text import XLNetPreprocessor, XLNetTokenizer
    >>> texts = ["win a free prize now", "see you at lunch", "free cash, call now", "ok, at six"]
    >>> tokenizer = XLNetTokenizer.train(iter(texts * 20), vocabulary_size=40)
    >>> classifier = keras_xlnet.models.XLNetTextClassifier(
    ...     keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32),
    ...     num_classes=2,
    ...     preprocessor=XLNetPreprocessor(tokenizer, sequence_length=16),
    ... )
    >>> history = classifier.fit(texts, [1, 0, 1, 0], epochs=1, verbose=0)
    >>> classifier.predict(["a free lunch"], verbose=0).shape
    (1, 2)

    Source: the original's `classification_loss` and `summarize_sequence`.
    """

    def __init__(
        self,
        backbone,
        num_classes,
        preprocessor=None,
        activation="softmax",
        pooling="last",
        dropout=0.1,
        class_names=None,
        name="xlnet_text_classifier",
        **kwargs,
    ):
        check_positive_int("num_classes", num_classes)
        check_choice("activation", activation, tuple(_LOSSES))
        check_rate("dropout", dropout)
        if activation == "softmax" and num_classes == 1:
            raise ValueError(
                "`num_classes=1` with `activation='softmax'` is always 1.0: use 2 classes, or "
                "`activation='sigmoid'`"
            )
        if backbone.bidirectional_data:
            raise ValueError(
                "`backbone` reads the second half of a batch backwards, as in pretraining. Load it "
                "with `from_preset(directory, bidirectional_data=False)`. Received: "
                "backbone.bidirectional_data=True"
            )
        _check_class_names(class_names, num_classes)
        _check_vocabulary(preprocessor, backbone)
        dtype = backbone.dtype_policy

        # === Layers ===
        dropout_seed, pooling_seed = spawn_seeds(backbone.seed, 2)
        pool = SequencePooling(
            pooling,
            num_heads=backbone.num_heads,
            head_dim=backbone.head_dim,
            dropout=dropout,
            layer_norm_epsilon=backbone.layer_norm_epsilon,
            kernel_initializer=clone_initializer(backbone.kernel_initializer),
            seed=pooling_seed,
            dtype=dtype,
            name="pooling",
        )
        summarize = keras.layers.Dense(
            backbone.hidden_dim,
            activation="tanh",
            kernel_initializer=clone_initializer(backbone.kernel_initializer),
            dtype=dtype,
            name="summary",
        )
        drop = keras.layers.Dropout(dropout, seed=dropout_seed, dtype=dtype, name="dropout")
        logits_dense = keras.layers.Dense(
            num_classes,
            kernel_initializer=clone_initializer(backbone.kernel_initializer),
            dtype=dtype,
            name="logits",
        )
        # Half precision is too coarse for probabilities near 0 and 1.
        activate = keras.layers.Activation(activation, dtype="float32", name="probabilities")

        # === Functional graph ===
        inputs = {
            key: keras.Input((None,), dtype=backbone.input[key].dtype, name=key)
            for key in ("token_ids", "segment_ids", "padding_mask")
        }
        sequence = backbone(inputs)["sequence_output"]
        pooled = pool(sequence, padding_mask=inputs["padding_mask"], token_ids=inputs["token_ids"])
        logits = logits_dense(drop(summarize(pooled)))
        super().__init__(inputs=inputs, outputs=activate(logits), name=name, **kwargs)

        # Only now: PyTorch modules take no submodules before they are initialized.
        self.backbone = backbone
        self.pooling_layer = pool
        self.summary_dense = summarize
        self.dropout_layer = drop
        self.logits_dense = logits_dense
        self.activation_layer = activate

        # === Config ===
        self.num_classes = num_classes
        self.activation = activation
        self.pooling = pooling
        self.dropout = dropout
        self.class_names = None if class_names is None else list(class_names)
        self._hold_preprocessor(preprocessor)
        self.compile()

    def compile(self, optimizer="auto", loss="auto", metrics="auto", **kwargs):
        """As `keras.Model.compile`; `"auto"` is what the class description says."""
        if optimizer == "auto":
            optimizer = keras.optimizers.AdamW(5e-5)
        if isinstance(loss, str) and loss == "auto":
            loss = _LOSSES[self.activation]()
        if isinstance(metrics, str) and metrics == "auto":
            metrics = [_METRICS[self.activation]()]
        super().compile(optimizer=optimizer, loss=loss, metrics=metrics, **kwargs)

    def compile_from_config(self, config):
        """Compiles as the saved model was. Keras calls this when it loads a model."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def get_config(self):
        return {
            "name": self.name,
            "trainable": self.trainable,
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "preprocessor": keras.saving.serialize_keras_object(self.preprocessor),
            "num_classes": self.num_classes,
            "activation": self.activation,
            "pooling": self.pooling,
            "dropout": self.dropout,
            "class_names": self.class_names,
            **self.quantization_config(),
        }

    @classmethod
    def from_config(cls, config):
        parts = {
            key: keras.saving.deserialize_keras_object(config[key])
            for key in ("backbone", "preprocessor")
        }
        return super().from_config({**config, **parts})


def _check_class_names(class_names, num_classes):
    if class_names is not None and len(class_names) != num_classes:
        raise ValueError(
            f"`class_names` must have `num_classes` names. Received: {len(class_names)} names, "
            f"num_classes={num_classes}"
        )


def _check_vocabulary(preprocessor, backbone):
    # A preprocessor made from a config has no vocabulary until its assets are loaded.
    if preprocessor is None or not preprocessor.tokenizer.has_vocabulary:
        return
    size = preprocessor.tokenizer.vocabulary_size()
    if size > backbone.vocabulary_size:
        raise ValueError(
            f"The tokenizer has {size} ids, but the backbone knows only "
            f"vocabulary_size={backbone.vocabulary_size}"
        )
