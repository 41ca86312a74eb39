import contextlib
import types
import warnings
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_xlnet.compat.changed_layers import layers_changed
from keras_xlnet.compat.dense_gradients import dense_gradients
from keras_xlnet.compat.eager_variables import eager_variables
from keras_xlnet.compat.loss_of_all_rows import LossTracker, with_mask
from keras_xlnet.compat.quick_deletion import quick_deletion
from keras_xlnet.compat.sublayers import RestoresSublayers, variables_by_path
from keras_xlnet.models.inputs import check_ranges, complete_inputs, default_input
from keras_xlnet.models.inspection import Inspection, inspect_model
from keras_xlnet.models.preset import load_preset, save_preset
from keras_xlnet.models.vocabulary import with_vocabulary
from keras_xlnet.preprocessing.texts import is_dataset, split_spec
from keras_xlnet.preprocessing.weights import weights_by_class, weights_of_labels
from keras_xlnet.preset_files import presets
from keras_xlnet.preset_files.origin import read_origin, write_origin
from keras_xlnet.replicas import num_replicas
from keras_xlnet.training.attention_memory import warn_of_attention_memory
from keras_xlnet.training.distributed_training import DistributedTraining
from keras_xlnet.training.fine_tuning_adamw import schedule_of_fit
from keras_xlnet.types import PathLike

if TYPE_CHECKING:
    from typing_extensions import Self


# Arguments of models that are layers with a config of their own.
_PARTS = ("backbone", "preprocessor", "tokenizer")


class _ClassProperty:
    """A property of a class, as `XLNetBackbone.presets`."""

    def __init__(self, function):
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance, cls):
        return self.function(cls)


class BaseModel(RestoresSublayers, DistributedTraining, keras.Model):
    """Base class of all models: what Keras has to be told about them, in one place.

    Its bases close gaps of Keras; each says which. This class adds inputs that may be omitted,
    presets, copies, LoRA, and checks of arrays before the first step.
    """

    # The argument that holds a layer of strings: "preprocessor" or "tokenizer".
    _text_argument: str | None = None
    _untracked = types.SimpleNamespace(text_layer=None, warned=frozenset())
    # Whether a backbone from another model's preset is read forwards and without memory.
    _is_fine_tuned = True
    # The preset or adapter of the package that a backbone was trained from.
    _trained_from: str | None = None
    # The rank of labels that are class indices: 1 for a label for each row of a batch.
    _label_rank = 1
    # The weight of each class in the loss, by the `class_weight` of the last `fit`.
    _class_weights: tuple[float, ...] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not kwargs.get("trainable", True):
            self.trainable = False  # Also of the layers, which Keras did not know before.

    # === Inputs ===

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the outputs as `keras.Model` does, with defaults for omitted inputs.

        Raises:
            ValueError: If an id or a position is out of range. Traced inputs are not checked.
        """
        self._check_ranges(inputs)
        with self._reading(self._complete(inputs)) as inputs:
            return super().__call__(inputs, *args, **kwargs)

    def stateless_call(
        self,
        trainable_variables: Any,
        non_trainable_variables: Any,
        inputs: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Computes the outputs as `keras.Model` does. JAX trains with it, without `__call__`."""
        with self._reading(self._complete(inputs)) as inputs:
            return super().stateless_call(
                trainable_variables, non_trainable_variables, inputs, *args, **kwargs
            )

    def _complete(self, inputs):
        return complete_inputs(inputs, self.input, self._default, self._inputs_without_default)

    @property
    def _inputs_without_default(self) -> tuple[str, ...]:
        """Inputs of a call that the graph does not take."""
        return ()

    def _reading(self, inputs):
        """The context of a call, with the inputs that its graph takes."""
        return contextlib.nullcontext(inputs)

    def _default(self, key, inputs):
        return default_input(key, inputs, self.input)

    # === Training ===

    def _compile_defaults(self):
        """The meaning of `"auto"` in `compile`: the `loss`, and other arguments."""
        return {}

    def _default_optimizer(self):
        """The meaning of `optimizer="auto"` in `compile`: Keras' default."""
        return "rmsprop"

    def compile(
        self,
        optimizer: Any = "auto",
        loss: Any = "auto",
        metrics: Any = "auto",
        weighted_metrics: Any = "auto",
        loss_weights: Any = "auto",
        **kwargs: Any,
    ) -> None:
        """Compiles as `keras.Model.compile` does.

        What is left out stays what the class says: the optimizer, the loss and the metrics that fit
        its outputs. Models with a loss of their own are compiled when they are created.
        """
        defaults = self._compile_defaults()
        if _is_auto(optimizer):
            optimizer = self._default_optimizer()
        if _is_auto(loss_weights):
            loss_weights = defaults.get("loss_weights") if _is_auto(loss) else None
        given = {"loss": loss, "metrics": metrics, "weighted_metrics": weighted_metrics}
        given = {key: defaults.get(key) if _is_auto(v) else v for key, v in given.items()}
        super().compile(optimizer=optimizer, loss_weights=loss_weights, **given, **kwargs)
        # Not tracked as another metric: it replaces the tracker of Keras.
        object.__setattr__(self, "_loss_tracker", LossTracker(self._compile_loss))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Self":
        parts = {
            key: keras.saving.deserialize_keras_object(config[key])
            for key in _PARTS
            if isinstance(config.get(key), dict)
        }
        return super().from_config({**config, **parts})

    def get_compile_config(self) -> dict[str, Any] | None:
        config = super().get_compile_config()
        if config is not None and self.compiled:
            entry = keras.optimizers.serialize(keras.optimizers.get(config["optimizer"]))
            # Models of Keras, which `clone_model` compiles with this, ignore keys of an entry.
            state = {"is_built": self.optimizer.built, **self._optimized_weights()}
            config["optimizer"] = {**entry, "state": state}
        return config

    def _optimized_weights(self):
        """The paths of the weights that the optimizer has states of, if others are trainable now.

        Some may have been frozen since. Weights that quantizing has replaced have none.
        """
        optimized = list(map(id, getattr(self.optimizer, "_trainable_variables", [])))
        paths = {id(v): path for path, v in variables_by_path(self).items()}
        is_same = optimized == list(map(id, self.trainable_variables))
        if not self.optimizer.built or is_same or not paths.keys() >= set(optimized):
            return {}
        return {"optimizer_weights": [paths[variable] for variable in optimized]}

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as a saved model was. Keras calls this when it loads a model."""
        state = config["optimizer"].get("state", {})
        paths = state.get("optimizer_weights")
        self.compile(**keras.saving.deserialize_keras_object(config))
        # A model that was not trained has no state. Keras would warn that it cannot load one.
        if state.get("is_built", True):
            # Of the same weights as then: the state is loaded in their order.
            variables = variables_by_path(self)
            optimized = self.trainable_variables if paths is None else map(variables.get, paths)
            self.optimizer.build(list(optimized))

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: str | int = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: dict[Any, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains as `keras.Model.fit` does.

        Args:
            class_weight: Optional dict of the weights of classes in the loss, by name or index,
                for models with exclusive classes. A class that is left out has the weight 1.
                Sample weights are multiplied by it. It works with every form of data.

        Raises:
            ValueError: If an id or a position in the arrays `x` or `validation_data`, or a label of
                a language model, is out of range, the model has `dtype="float16"`, or
                `class_weight` is not as above. Datasets are not checked.
        """
        self._set_class_weight(class_weight)
        self._check_ranges(x, y)
        if isinstance(validation_data, (list, tuple)):
            self._check_ranges(*validation_data[:2])
        self._warn_of_memory(x, batch_size)
        try:
            with schedule_of_fit(self.optimizer, callbacks, initial_epoch) as callbacks:
                return super().fit(
                    x,
                    y,
                    batch_size,
                    epochs,
                    verbose,
                    callbacks,
                    validation_split,
                    validation_data,
                    shuffle,
                    sample_weight=sample_weight,
                    initial_epoch=initial_epoch,
                    **kwargs,
                )
        finally:
            self._part_from_averages()

    def _part_from_averages(self):
        """Gives weights that are averages of the optimizer an array of their own.

        Otherwise a compiled function of JAX deletes both (findings/keras_averages_on_jax.sh).
        """
        if keras.backend.backend() == "jax" and getattr(self.optimizer, "use_ema", False):
            for weight in self.trainable_variables:
                weight.assign(ops.copy(weight.value))

    def evaluate(self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Evaluates as `keras.Model.evaluate` does, with the checks of `fit`.

        `loss`, of `fit` too, is the loss of all rows as one batch, whatever the batch size is: the
        sum over all labels of weight * loss, divided by what the loss divides a batch by. By
        default this is the number of rows. Rows with the `ignore_class` of the loss do not count.
        Losses of tokens (token classifiers and language models) are divided by the sum of the
        weights of tokens that have a label. A loss with `reduction="sum"` is a sum over all rows.
        Each of several outputs has such a mean, and `loss` is their sum with `loss_weights`.

        In-batch negatives of `XLNetTextEmbedder` come from the batch: that loss is the mean over
        rows, and depends on the batch size. So does the loss of a stateful model, whose rows
        continue rows of the batch before.
        """
        self._check_ranges(x, y)
        return super().evaluate(x, y, *args, **kwargs)

    def predict(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Predicts as `keras.Model.predict` does, with the checks of `fit`."""
        self._check_ranges(x)
        return super().predict(x, *args, **kwargs)

    def make_train_function(self, force: bool = False) -> None:
        """Creates the function that `fit` calls, as `keras.Model` does."""
        dtype = backbone_of(self).dtype_policy.variable_dtype
        if dtype == "float16":
            raise ValueError(
                "A model with `dtype='float16'` cannot be trained: the updates of the weights are "
                "too small for float16. Use `dtype='mixed_float16'`"
            )
        if dtype == "bfloat16":
            warnings.warn(
                "Adam does not change weights in bfloat16, where its `beta_2=0.999` is 1. Other "
                "optimizers lose small updates. Use `dtype='mixed_bfloat16'`",
                stacklevel=4,
            )
        self._check_optimizer()
        self._notice_changes()
        return super().make_train_function(force)

    def make_test_function(self, force: bool = False) -> None:
        """Creates the function that `evaluate` calls, as `keras.Model` does."""
        self._notice_changes()
        return super().make_test_function(force)

    def make_predict_function(self, force: bool = False) -> None:
        """Creates the function that `predict` calls, as `keras.Model` does."""
        self._notice_changes()
        return super().make_predict_function(force)

    @property
    def derived(self) -> dict[str, Any]:
        """Functional models and functions that are made of this one when they are needed, by name.

        They share its weights, and are neither saved nor tracked: they contain the model itself.
        """
        self._notice_changes()
        return self.__dict__["_derived"]

    def _notice_changes(self):
        """Compiles again what was compiled, if a layer was changed since."""
        if not layers_changed(self):
            return
        self.__dict__["_derived"] = {}  # Keras would track an attribute.
        for step in ("train", "test", "predict"):
            # Not `None`: `fit` may be running, and has made its function. OpenVINO does not train.
            if getattr(self, f"{step}_function", None) is not None:
                getattr(super(), f"make_{step}_function")(force=True)

    def _check_optimizer(self):
        """Raises `ValueError` if the optimizer has no states of what is trained now."""
        trained = list(map(id, self.trainable_variables))
        optimized = list(map(id, getattr(self.optimizer, "_trainable_variables", [])))
        # On JAX, Keras takes the weights and the states in their order.
        is_in_order = keras.backend.backend() != "jax" or trained == optimized
        if getattr(self.optimizer, "built", False) and not (
            is_in_order and set(trained) <= set(optimized)
        ):
            raise ValueError(
                "The weights that are trained have changed since the first training step. Call "
                "`compile` again, for an optimizer of these weights"
            )

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: dict[Any, float] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Trains as `keras.Model.train_on_batch` does, with `class_weight` and checks of `fit`."""
        self._set_class_weight(class_weight)
        self._check_ranges(x, y)
        return super().train_on_batch(x, y, sample_weight, **kwargs)

    def test_on_batch(self, x: Any, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Evaluates as `keras.Model.test_on_batch` does, with the checks of `fit`."""
        self._check_ranges(x, y)
        return super().test_on_batch(x, y, *args, **kwargs)

    def predict_on_batch(self, x: Any) -> Any:
        """Predicts as `keras.Model.predict_on_batch` does, with the checks of `fit`."""
        self._check_ranges(x)
        return super().predict_on_batch(x)

    def train_step(self, *args: Any) -> Any:
        """Computes a train step as `keras.Model` does, with dense gradients."""
        *state, data = args
        if self._class_weights is not None:
            data = self._weigh_classes(data, self._class_weights)
        with eager_variables(), dense_gradients(self.optimizer):
            return super().train_step(*state, data)

    def test_step(self, *args: Any, **kwargs: Any) -> Any:
        """Computes a test step as `keras.Model` does."""
        with eager_variables():
            return super().test_step(*args, **kwargs)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Computes the loss as `keras.Model` does; losses of layers count once, not per replica."""
        loss = super().compute_loss(x, y, y_pred, sample_weight, training=training)
        if (replicas := num_replicas()) > 1:
            loss -= (1 - 1 / replicas) * sum(ops.sum(each) for each in self.losses)
        return loss

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        """Computes the metrics as `keras.Model` does, without labels that the loss ignores."""
        ignored = getattr(self.loss, "ignore_class", None)
        if ignored is not None and not keras.tree.is_nested(y):
            y = ops.convert_to_tensor(y)
            counts = ops.not_equal(y, ops.cast(ignored, y.dtype))
            y_pred = with_mask(y_pred, ops.reshape(counts, ops.shape(y_pred)[:-1]))
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def _mean_loss(self, losses, weights=None):
        """The loss of a batch for losses that the model computes itself, and those of layers."""
        loss = self._loss_tracker.weighted_mean(losses, weights)
        return loss + sum(ops.sum(each) for each in self.losses) / num_replicas()

    def inspect(self, inputs: Any) -> Inspection:
        """Runs the model, and returns what its attention layers computed.

        The model runs eagerly, once, and everything is kept as NumPy arrays: for a few short
        texts. Nothing of this is computed in `fit` and `predict`.

        Args:
            inputs: The inputs of the model, as in a call.

        Returns:
            `Inspection`: `outputs`; `attentions`, with the probabilities of each layer and stream,
            and the terms (a) to (e) of the scores; and `hidden_states`.

        Example:

        >>> backbone = keras_xlnet.models.XLNetBackbone(40, 2, 2, 16, 32)
        >>> inspection = backbone.inspect({"token_ids": np.array([[5, 17, 8]])})
        >>> inspection.attention(layer=1).probabilities.shape, len(inspection.hidden_states)
        ((1, 2, 3, 3), 3)
        >>> list(inspection.attention(layer=1).terms)
        ['content', 'position', 'content_bias', 'position_bias', 'segment']
        """
        return inspect_model(self, backbone_of(self).blocks, inputs)

    def enable_lora(
        self,
        rank: int,
        lora_alpha: float | None = None,
        projections: Sequence[str] = ("query", "value"),
    ) -> None:
        """Freezes the backbone and adds trainable low-rank matrices to kernels of its blocks.

        The weights of a task head stay trainable. Call `compile` afterwards. Files and copies of
        the model have LoRA too; in a preset its matrices are merged into weights that are not
        quantized, and start again. `save_adapter` of a task model writes only the matrices and the
        head.

        Args:
            rank: Int, the rank of the added matrices.
            lora_alpha: Optional scale of the added matrices; `rank` by default.
            projections: Which kernels get them: some of `"query"`, `"key"`, `"value"`,
                `"position"` and `"output"` of attention, and `"feed_forward"` for the two kernels
                of the feed-forward networks.

        Raises:
            ValueError: If an argument is not as above, or a layer has LoRA already or is quantized
                in a mode without LoRA. Nothing is frozen then.

        Example:

        >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
        >>> backbone.enable_lora(rank=2)
        >>> sorted(v.name for v in backbone.trainable_variables)
        ['lora_kernel_a', 'lora_kernel_a', 'lora_kernel_b', 'lora_kernel_b']

        Source: Hu et al. 2021, "LoRA: low-rank adaptation of large language models".
        """
        known = ("query", "key", "value", "position", "output", "feed_forward")
        is_list = isinstance(projections, Sequence) and not isinstance(projections, str)
        if not is_list or not projections or any(name not in known for name in projections):
            raise ValueError(
                f"`projections` must be a list of some of {known}. Received: {projections!r}"
            )
        backbone = backbone_of(self)
        layers = []
        for block in backbone.blocks:
            of_block = {name: [getattr(block.attention, f"{name}_dense")] for name in known[:-1]}
            feed_forward = block.feed_forward
            of_block["feed_forward"] = [feed_forward.intermediate_dense, feed_forward.output_dense]
            layers += [layer for name in dict.fromkeys(projections) for layer in of_block[name]]
        for layer in layers:
            layer.check_lora(rank, lora_alpha)
        for weight in backbone.weights:
            weight.trainable = False
        for layer in layers:
            layer.enable_lora(rank, lora_alpha=lora_alpha)

    def quantize(self, *args: Any, **kwargs: Any) -> None:
        """Quantizes the weights of dense layers and embeddings, as `keras.Model.quantize` does.

        An int8 model takes a quarter of the memory and disk of a float32 one, and its outputs
        change a little. On CPUs it is slower: Keras converts the numbers in every call.

        Example:

        >>> backbone = keras_xlnet.models.XLNetBackbone(100, 2, 2, 16, 32)
        >>> backbone.quantize("int8")
        >>> {block.attention.query_dense.kernel.dtype for block in backbone.blocks}
        {'int8'}
        """
        with quick_deletion(), warnings.catch_warnings():
            # Keras warns of every layer without such weights, inputs and dropout among them.
            warnings.filterwarnings("ignore", "Layer .* does not have a `quantize` method")
            super().quantize(*args, **kwargs)

    @property
    def trained_from(self) -> str | None:
        """The name of a preset of the package, `"adapters/NAME"` for an adapter, or `None`.

        `from_preset` and `load_adapter` record it on the backbone. The record goes with the
        weights: presets, adapters, `.keras` files and copies with the same weights keep it, and
        training does not change it. A model that is made from a config has new weights, and none.
        """
        return backbone_of(self)._trained_from

    @trained_from.setter
    def trained_from(self, name: str | None) -> None:
        backbone_of(self)._trained_from = name

    def save_assets(self, dir_path: PathLike) -> None:
        """Writes the record of a backbone. Keras calls this when it saves a model."""
        write_origin(self._trained_from, dir_path)

    def load_assets(self, dir_path: PathLike | None) -> None:
        """Reads the record of a backbone. Keras calls this when it loads a model."""
        self._trained_from = read_origin(dir_path) or self._trained_from

    def save(self, filepath: PathLike, *args: Any, **kwargs: Any) -> None:
        """Saves the model as `keras.Model.save` does, in the `.keras` format.

        Raises:
            ValueError: If `filepath` ends with `.h5` or `.hdf5`: the legacy format of Keras cannot
                hold vocabularies, and does not load these models.
        """
        if str(filepath).endswith((".h5", ".hdf5")):
            raise ValueError(
                "`filepath` must end with '.keras': HDF5 cannot hold the vocabulary and the config "
                "of this model. `save_weights` writes '.weights.h5', `save_to_preset` a directory. "
                f"Received: filepath={str(filepath)!r}"
            )
        super().save(filepath, *args, **kwargs)

    def save_to_preset(
        self,
        directory: PathLike,
        tokenizer: keras.layers.Layer | None = None,
        dtype: str | None = None,
        card: dict[str, Any] | None = None,
    ) -> None:
        """Writes the model to a directory, with a model card.

        The state of the optimizer and the memory of a stateful model are not saved. If the
        directory holds a preset, its files are replaced when all of the new ones are written;
        other files stay. A save that fails leaves the old preset, or a directory without
        `config.json`.

        Args:
            directory: Path of the preset. It is created if it does not exist.
            tokenizer: An `XLNetTokenizer` to save with a model that has no preprocessor:
                `XLNetTokenizer.from_preset` loads it.
            dtype: `"float16"` or `"bfloat16"`, to store floating-point weights in half of the
                space; `from_preset` converts them back to the dtype of the model. `None`: as they
                are.
            card: What the model card, `README.md`, says besides how to use the model and its
                sizes: a dict with some of `description`, `data`, `license` (strings) and `metrics`
                (a dict from names to numbers). `None`: an existing card stays as it is.

        Only this model is saved: `model.backbone.save_to_preset(directory)` leaves out the head of
        `model`, also of a language model.

        Raises:
            ValueError: If the tokenizer has more ids than the model or is not the one that it was
                loaded with, the model has a tokenizer already or parts (an activation, an
                initializer) that are not registered, a weight is infinite in `dtype`, or `card` has
                other keys.

        Example:

        >>> import pathlib, tempfile
        >>> directory = pathlib.Path(tempfile.mkdtemp()) / "tiny"
        >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
        >>> backbone.save_to_preset(directory, card={"metrics": {"accuracy": 0.5}})
        >>> sorted(path.name for path in directory.iterdir())
        ['README.md', 'config.json', 'model.safetensors']
        """
        save_preset(self, directory, tokenizer, dtype, card)

    @_ClassProperty
    def presets(cls) -> Any:  # noqa: N805
        """The presets that come with the package, as `keras_xlnet.presets()` returns them."""
        return presets()

    @classmethod
    def from_preset(cls, location: PathLike, load_weights: bool = True, **overrides: Any) -> "Self":
        """Loads a model that `save_to_preset` wrote.

        If the preset holds a model of another class, its backbone is used: a task model gets it
        with a new head, and with the preprocessor of the preset, or a new one for the preset's
        tokenizer. Such a backbone is made for fine-tuning, without memory and with text that is
        read forwards (`memory_length=None`, `reuse_length=None`, `remember_segment_ids=False`,
        `bidirectional_data=False`), unless overridden; `XLNetPermutationLM` takes it as it is.

        Nothing that a preset names is imported or executed: presets of others are safe to load.

        Args:
            location: Name of a preset that comes with the package (see `keras_xlnet.presets`);
                path of the preset; `"hf://owner/name"` or `"hf://owner/name@revision"` on
                the Hugging Face Hub (needs `pip install ".[hub]"`); or the URL of a
                folder.
            load_weights: Bool. `False` for new weights: the preset is then its architecture and
                its tokenizer.
            **overrides: Arguments that replace those in the preset: of the class (`num_classes`),
                of its backbone (`attention_dropout`) and of its preprocessor (`sequence_length`).
                An argument that both the class and its backbone have, such as `dropout`, is that
                of the class, and `backbone_dropout` the dropout of the backbone. With `dtype`,
                weights are converted. `trainable` and `backbone_trainable` hold for all layers
                inside; without them, what was frozen stays frozen.

        Returns:
            A model of this class.

        Raises:
            FileNotFoundError: If `location` is not a preset.
            ConnectionError: If `location` does not answer and nothing was downloaded before.
            TypeError: If an argument that a new head needs is missing.
            ValueError: If an override is not an argument, a backbone is asked for and `location`
                holds one of another class, or a file is damaged or does not fit the others. The
                message names the file and the weight.

        Example:

        >>> import tempfile
        >>> directory = tempfile.mkdtemp()
        >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32, memory_length=4)
        >>> keras_xlnet.models.XLNetPermutationLM(backbone).save_to_preset(directory)
        >>> classifier = keras_xlnet.models.XLNetTextClassifier.from_preset(
        ...     directory, num_classes=3, dropout=0.2, backbone_dropout=0.0)
        >>> classifier.dropout, classifier.backbone.dropout, classifier.backbone.memory_length
        (0.2, 0.0, None)
        """
        return load_preset(cls, BaseModel, location, overrides, load_weights)

    def clone(self) -> "Self":
        """Returns a model of the same class with the same arguments and new weights.

        The copy keeps frozen, quantized and LoRA state.
        """
        clone = self._copy({})
        if self.compiled:
            clone.compile_from_config(self.get_compile_config() or {})
        return clone

    def with_arguments(self, **overrides: Any) -> "Self":
        """Returns a copy with the same weights and other arguments.

        The copy is not trained with the model: it has the weights as they are now. Frozen
        weights stay frozen.

        Args:
            **overrides: Arguments of the class that do not change the weights, such as `stateful`,
                `memory_length` or `dropout`; or `trainable`, for all layers.

        Raises:
            TypeError: If there is no argument of that name.
            ValueError: If an argument changes the weights.

        Example:

        >>> model = keras_xlnet.models.TransformerXLLanguageModel(
        ...     50, 2, 2, 16, 32, memory_length=8, stateful=True, batch_size=4)
        >>> found = model.with_arguments(stateful=False, batch_size=None).generate([[5, 17]])
        """
        copy = self._copy(overrides)
        copy.assign_weights(self)
        if "trainable" in overrides:
            copy.trainable = overrides["trainable"]
        return copy

    def _copy(self, overrides):
        """A model with other arguments and new weights, and with the same layer of strings."""
        name = self._text_argument
        if name is None:
            return type(self).from_config({**self.get_config(), **overrides})
        # A layer of strings that is made from a config has no vocabulary.
        text_layer = overrides.get(name, getattr(self, name))
        copy = type(self).from_config({**self.get_config(), **overrides, name: None})
        setattr(copy, name, text_layer)
        return copy

    def __setattr__(self, name: str, value: Any) -> None:
        # Keras tracks a layer before a property takes it, see `_hold`.
        if name == self._text_argument:
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)
        if name == "backbone":
            models = vars(value).setdefault("_models", weakref.WeakValueDictionary())
            models[id(self)] = self

    def _hold(self, text_layer):
        """Keeps a layer of strings.

        It is not a sublayer: XLA does not support strings, and Keras would not compile the model.
        Saving finds it through the property of its name.
        """
        self._untracked = types.SimpleNamespace(
            **vars(self._untracked) | {"text_layer": text_layer, "warned": set()}
        )

    def with_vocabulary(self, vocabulary: int | keras.layers.Layer) -> "Self":
        """Returns a copy for a vocabulary with more or fewer tokens at its end.

        Tokens of both vocabularies keep their embeddings. Those of new tokens are near the mean of
        all others, until they are trained.

        Args:
            vocabulary: A tokenizer that begins with the ids of the model, such as
                `tokenizer.with_tokens(["<url>"])`, or the number of tokens. The preprocessor of a
                model gets the tokenizer.

        Raises:
            ValueError: If `vocabulary` is neither, or the model is quantized.

        Example:

        >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
        >>> larger = backbone.with_vocabulary(42)
        >>> tuple(larger.token_embedding.embeddings.shape)
        (42, 16)
        """
        return with_vocabulary(self, vocabulary)

    def weight_path(self, weight: keras.Variable) -> str:
        """Returns the path of a weight, by which files and copies of the model know it."""
        return weight.path

    def assign_weights(self, model: keras.Model) -> None:
        """Assigns the weights of another model of this class, but not what it remembers.

        Args:
            model: A model whose weights have the same names and shapes.

        Raises:
            ValueError: If they have not.
        """
        given, own = (
            {m.weight_path(weight): weight for weight in m.weights if not _is_memory(weight, m)}
            for m in (model, self)
        )
        shapes, expected = ({p: w.shape for p, w in ws.items()} for ws in (given, own))
        if shapes != expected:
            path = min(p for p, _ in shapes.items() ^ expected.items())
            raise ValueError(
                f"`model` must have the same weights. Received for {path!r}: "
                f"{shapes.get(path)}, expected: {expected.get(path)}"
            )
        for path, weight in own.items():
            weight.assign(given[path])
        self.trained_from = getattr(model, "trained_from", None)

    def _set_class_weight(self, class_weight):
        """Keeps the weights of classes for the train step, into which they are compiled."""
        weights = None if class_weight is None else self._weights_of_classes(class_weight)
        if weights != self._class_weights:
            self._class_weights = weights
            self.train_function = None

    def _weights_of_classes(self, class_weight):
        """The weights of all classes. `ValueError` if the labels are not classes."""
        raise ValueError(
            f"`class_weight` needs labels that are classes, which {type(self).__name__} does not "
            "have. Use `sample_weight`, which gives each row a weight. Received: "
            f"class_weight={class_weight!r}"
        )

    def _weigh_classes(self, data, class_weights):
        """A batch whose sample weights are multiplied by the weights of its classes."""
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        weights = weights_by_class(class_weights, y, self._label_rank)
        if sample_weight is not None:
            weights = weights * weights_of_labels(sample_weight, weights)
        return keras.utils.pack_x_y_sample_weight(x, y, weights)

    def _check_ranges(self, x, y=None):
        """Raises `ValueError` if an id, a position or a label that is an id is out of range."""
        check_ranges(x, backbone_of(self).vocabulary_size)

    def _warn_of_memory(self, x, batch_size):
        spec = split_spec(x.element_spec)[0] if is_dataset(x) else x
        ids = spec.get("token_ids") if isinstance(spec, dict) else None
        shape = tuple(getattr(ids, "shape", ()))
        if len(shape) < 2 or shape[-1] is None:
            return
        if is_dataset(x):
            batch_size = shape[0] or 1
        else:
            batch_size = min(batch_size or 32, shape[0])
        for size in shape[1:-1]:  # Choices.
            batch_size *= size or 1
        warn_of_attention_memory(backbone_of(self), *self._attended(batch_size, shape[-1]))

    def _attended(self, batch_size, length):
        """The rows and the length of what attention compares, for a batch of this shape."""
        return batch_size, length


def backbone_of(model: keras.Model) -> Any:
    """Returns the backbone of a task model. A backbone is its own."""
    return getattr(model, "backbone", model)


def models_of(backbone: keras.Model) -> set[keras.Model]:
    """Returns the models of this package that have a backbone."""
    return set(vars(backbone)["_models"].values())


def _is_memory(weight, model):
    memories = getattr(model, "memories", ())
    return any(weight is state for memory in memories for state in memory.weights)


def _is_auto(value):
    return isinstance(value, str) and value == "auto"
