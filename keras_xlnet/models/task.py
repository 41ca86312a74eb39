import contextlib
import dataclasses
import gc
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import keras
import numpy as np
from keras import ops

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.models.base_model import BaseModel, models_of
from keras_xlnet.models.head_fitting import L2, fit_last_layer, head_values
from keras_xlnet.models.long_documents import preprocessor_for_documents
from keras_xlnet.models.named_adapters import NamedAdapters
from keras_xlnet.models.preset import class_of_preset, load_sharing_weights, load_with_adapter
from keras_xlnet.models.vocabulary import check_vocabulary
from keras_xlnet.models.xlnet_backbone import packed_rows
from keras_xlnet.preprocessing.examples import BATCH_SIZE, ExampleReader, is_batches
from keras_xlnet.preprocessing.index_labels import index_labels_named
from keras_xlnet.preprocessing.labels import Classes
from keras_xlnet.preprocessing.preprocessor import Preprocessor
from keras_xlnet.preprocessing.texts import one_row
from keras_xlnet.preset_files.adapter import Adapter
from keras_xlnet.preset_files.adapter_writing import save_adapter
from keras_xlnet.registration import refuse_unknown_arguments
from keras_xlnet.tokenizers.sentencepiece_model import XLNET_IDS
from keras_xlnet.training.fine_tuning_adamw import FineTuningAdamW
from keras_xlnet.types import PathLike

if TYPE_CHECKING:
    from typing_extensions import Self

_PARTS = ("backbone", "preprocessor")  # With a config of their own.
_FEW_TEXTS = 500  # With fewer, `fit` begins with `fit_head`.


@refuse_unknown_arguments
class Task(BaseModel):
    """Base class of models with a head on a backbone. With a preprocessor they take raw text.

    A model lists in `_arguments` its constructor arguments, which are also attributes, and names in
    `preprocessor_cls` the class of its preprocessor, which knows the forms of texts and labels.
    Inputs that are not text, such as features of a preprocessor, are passed to Keras.

    Raw text is tokenized once, on the host, before the first step. Texts that do not fit in memory
    are batches of a `keras.utils.PyDataset` or a generator, or, where the preprocessor takes them,
    of a `tf.data.Dataset`, by themselves or with labels and sample weights: they are tokenized
    batch by batch, to the length of the preprocessor. As in Keras, the first part of a batch that
    is a tuple is the inputs, and the second one is the labels: pairs in a dataset are a dict, or a
    tuple in this tuple, `((text, pair), label)` or `((text, pair),)`.

    `Task.from_preset` makes a model of the class that a preset or an adapter is of.

    A task declares what the rooms above need of it. `task` is its name in checkpoints, and
    `checkpoint` a dict of its counterparts in other implementations, the arguments of
    `CheckpointTask` (`checkpoints/tasks.py`). `signatures` says which signatures an export has:
    a key of `SIGNATURES` (`serving/saved_model.py`). `xlnet predict` reads texts, or pairs called
    `csv_inputs`, and writes the columns `csv_columns` with the values of `csv_rows(texts)`: one row
    per text, of strings, numbers, tuples of these, and lists, which are written as JSON.

    Args:
        backbone: An `XLNetBackbone`.
        inputs, outputs: As in `keras.Model`.
        **kwargs: As in `keras.Model`.

    Example:

    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
    >>> isinstance(keras_xlnet.models.XLNetTextRegressor(backbone), keras_xlnet.models.Task)
    True
    """

    preprocessor_cls: Any = None
    _text_argument = "preprocessor"
    _arguments: tuple[str, ...] = ()
    # For a pretrained backbone of width 768. Wider models need lower rates.
    _learning_rate, _highest_rate = 5e-5, 1e-3
    checkpoint: ClassVar[dict[str, Any]] = {}
    signatures: str | None = None
    # A pair is optional; two columns of other names are both needed.
    csv_inputs: tuple[str, ...] = ("text", "pair")
    # Overridden per instance by models with an argument of this name.
    long_document = "truncate"

    def __init__(self, backbone: keras.Model, *, inputs: Any, outputs: Any, **kwargs: Any) -> None:
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        self.backbone = backbone
        # Keras scales the loss of a model whose own policy is `mixed_float16`.
        self.dtype_policy = backbone.dtype_policy
        self._initial_head, self._is_head_checked = head_values(self), False
        self._named_adapters = NamedAdapters()

    def _has_initial_head(self):
        """Returns whether the head has the random weights that it was created with."""
        # Training and every way to load weights change them.
        initial = self._initial_head
        return initial is not None and np.array_equal(initial, np.asarray(head_values(self)))

    def _warn_if_untrained(self):
        """Warns, once, if the head has the random weights that it was created with."""
        is_checked, self._is_head_checked = self._is_head_checked, True
        if not is_checked and self._has_initial_head():
            warnings.warn(
                f"The head of this {type(self).__name__} has the random weights that it was "
                "created with, so its predictions mean nothing. Call `fit`, or load a trained "
                "model",
                stacklevel=4,
            )

    def _begins_with_head(self, examples):
        """Returns whether `fit` begins with `fit_head` if it is not told."""
        return (
            self._kind_of_head is not None
            and self.trained_from is not None
            and isinstance(examples.x, dict)
            and examples.y is not None
            and len(examples.y) < _FEW_TEXTS
            and self._has_initial_head()
        )

    def _default_optimizer(self):
        rate = self._learning_rate * (768 / self.backbone.hidden_dim) ** 2
        return FineTuningAdamW(min(rate, self._highest_rate))

    def get_config(self) -> dict[str, Any]:
        values = {key: getattr(self, key) for key in ("backbone", *self._arguments)}
        parts = {key: values[key] for key in _PARTS if key in values}
        return {
            "name": self.name,
            "trainable": self.trainable,
            **values,
            **{key: keras.saving.serialize_keras_object(part) for key, part in parts.items()},
            **self.sublayer_config(),
        }

    # === Presets and adapters ===

    @classmethod
    def from_preset(
        cls,
        location: PathLike | None = None,
        load_weights: bool = True,
        adapter: PathLike | None = None,
        share_with: keras.Model | None = None,
        **overrides: Any,
    ) -> "Self":
        """Loads a model as `BaseModel.from_preset` does, also with an adapter.

        `Task.from_preset` makes a model of the class that the preset or the adapter is of.

        Args:
            location: As in `BaseModel.from_preset`. With an adapter `None` for the preset that it
                was trained on, if that one comes with the package.
            load_weights: As in `BaseModel.from_preset`.
            adapter: Optional adapter, as in `load_adapter`. The preset gives the backbone. The
                adapter gives the head, its arguments and the preprocessor.
            share_with: Optional model, instead of `location`. The new model has its weights and its
                tokenizer, not copies of them, and LoRA of its own, which is not merged. The weights
                are frozen in both.
            **overrides: As in `BaseModel.from_preset`.

        Returns:
            A model of this class, or of one below it.

        Raises:
            FileNotFoundError: If `location` is not a preset, or `adapter` not an adapter.
            ConnectionError, TypeError: As in `BaseModel.from_preset`.
            ValueError: As in `BaseModel.from_preset` and `load_adapter`, or if the class is not
                the class of the adapter.

        Example:

        >>> import tempfile
        >>> directory = tempfile.mkdtemp()
        >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
        >>> keras_xlnet.models.XLNetTextClassifier(backbone, 3).save_to_preset(directory)
        >>> model = keras_xlnet.models.Task.from_preset(directory)
        >>> type(model).__name__, model.num_classes
        ('XLNetTextClassifier', 3)
        """
        if adapter is not None:
            if not load_weights:
                raise ValueError("`adapter` needs the weights of the preset: `load_weights=True`")
            if share_with is not None:
                if location is not None:
                    raise ValueError("`location` and `share_with` exclude each other")
                return load_sharing_weights(cls, share_with, adapter, overrides, BaseModel)
            return load_with_adapter(cls, BaseModel, location, adapter, overrides)
        if share_with is not None:
            raise ValueError("`share_with` needs an `adapter`")
        if location is None:
            raise ValueError("`from_preset` needs a `location` or an `adapter`")
        if cls is Task:
            found, directory = class_of_preset(location, Task)
            return found.from_preset(directory, load_weights, **overrides)
        return super().from_preset(location, load_weights, **overrides)

    def save_adapter(
        self,
        directory: PathLike,
        dtype: str | None = "float16",
        card: dict[str, Any] | None = None,
    ) -> None:
        """Writes what was trained after `enable_lora` to a directory: an adapter.

        An adapter has the matrices of LoRA, the weights and arguments of the head, the settings of
        the preprocessor, and a card. The backbone is not in it: `adapter.json` has a checksum of
        its weights, and its name if it is a preset that comes with the package.

        Args:
            directory: Path of the adapter. It is created if it does not exist, and other files in
                it stay.
            dtype: What the weights are stored in: `"float16"`, `"bfloat16"`, `"float32"`, or
                `None` for the dtypes that they have.
            card: As in `save_to_preset`.

        Raises:
            ValueError: If the model has no LoRA or is quantized, other weights of the backbone are
                trainable, the head has LoRA, a weight is infinite in `dtype`, or `card` has other
                keys.

        Example:

        >>> import pathlib, tempfile
        >>> directory = pathlib.Path(tempfile.mkdtemp())
        >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
        >>> model = keras_xlnet.models.XLNetTextRegressor(backbone)
        >>> model.enable_lora(rank=2)
        >>> model.save_adapter(directory)
        >>> sorted(path.name for path in directory.iterdir())
        ['README.md', 'adapter.json', 'adapter.safetensors']
        """
        save_adapter(self, directory, dtype, card)

    def load_adapter(self, location: PathLike, name: str | None = None) -> None:
        """Loads an adapter that `save_adapter` wrote, with its head.

        In a model without LoRA, the product of the matrices is added to the kernels: it computes
        and is saved as any other model. A model with LoRA of the same rank in the same layers gets
        the matrices, so that training can go on.

        With a `name`, the adapter is kept apart from the weights, which are frozen, and next to
        other adapters of the model; it becomes the active one. `set_adapter` makes another one
        active, and `set_adapter(None)` the model as it was before it had any. `fit` trains the
        active adapter, and `save_adapter`, `save`, `export` and copies have only the active one.
        Call `compile` before you train after a change.

        The model has to have the arguments of the adapter and its backbone the same weights as when
        the adapter was trained; `from_preset(location, adapter=...)` makes such a model. It takes
        the names of the classes and the `null_threshold` of the adapter.

        Args:
            location: Name of an adapter that comes with the package (see `keras_xlnet.adapters`),
                path of an adapter, or `"hf://owner/name"` or a URL as in `from_preset`.
            name: Optional string, the name by which `set_adapter` knows the adapter.

        Raises:
            FileNotFoundError: If `location` is not an adapter.
            ConnectionError: If `location` does not answer and nothing was downloaded before.
            ValueError: If the adapter is of another class, other arguments (such as
                `num_classes`) or a backbone of other sizes or weights, the model has other LoRA or
                is quantized, another model has the same backbone (without a `name`: or shares its
                weights), the name is taken, there are adapters with names and this one has none, or
                a file is damaged. The model is not changed.

        Example:

        >>> import tempfile
        >>> directory = tempfile.mkdtemp()
        >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
        >>> backbone.save_to_preset(directory + "/base")
        >>> model = keras_xlnet.models.XLNetTextRegressor(backbone)
        >>> model.enable_lora(rank=2)
        >>> model.save_adapter(directory + "/adapter")
        >>> base = keras_xlnet.models.XLNetBackbone.from_preset(directory + "/base")
        >>> other = keras_xlnet.models.XLNetTextRegressor(base)
        >>> other.load_adapter(directory + "/adapter")
        >>> other.predict({"token_ids": np.array([[5, 17, 8]])}, verbose=0).shape
        (1, 1)
        """
        adapter = Adapter.open(location, Task)
        self._check_has_own_backbone(merges=name is None)
        if name is not None:
            self._named_adapters.load(self, adapter, name)
            return
        if self.adapters:
            raise ValueError(
                f"`load_adapter` needs a `name`, because this model has adapters: {self.adapters}"
            )
        adapter.load_into(self)

    @property
    def adapters(self) -> list[str]:
        """The names of the adapters that `load_adapter` loaded with a name."""
        return self._named_adapters.names

    @property
    def active_adapter(self) -> str | None:
        """The name of the adapter that the model computes with, or `None`."""
        return self._named_adapters.active

    def set_adapter(self, name: str | None) -> None:
        """Makes an adapter the active one.

        The active one so far is kept with what it was trained to. If both have LoRA of the same
        ranks in the same layers, nothing is compiled again.

        Args:
            name: A `name` of `load_adapter`, or `None` for the model before it had adapters.

        Raises:
            ValueError: If there is no such adapter, the model is quantized, or weights of the
                backbone besides LoRA are trainable.

        Example:

        >>> model = keras_xlnet.models.XLNetTextClassifier.from_preset(
        ...     "xlnet_mini_en", num_classes=2, pooling="mean", sequence_length=64
        ... )
        >>> for name in ("sentiment", "spam"):
        ...     model.load_adapter(name, name=name)
        >>> model.set_adapter("sentiment")
        >>> model.adapters, model.active_adapter, model.label_names
        (['sentiment', 'spam'], 'sentiment', ['negative', 'positive'])

        Source: Hu et al. 2021, "LoRA: low-rank adaptation of large language models", section 4.
        """
        self._check_has_own_backbone(merges=False)
        self._named_adapters.set(self, name)

    def delete_adapter(self, name: str) -> None:
        """Forgets an adapter. If it is the active one, `set_adapter(None)` is called first.

        Args:
            name: A `name` of `load_adapter`.

        Raises:
            ValueError: If there is no such adapter, or as in `set_adapter`.
        """
        self._check_has_own_backbone(merges=False)
        self._named_adapters.delete(self, name)

    def _check_has_own_backbone(self, merges):
        """Raises `ValueError` if another model has this backbone, or the weights to merge into."""

        def others():
            found = models_of(self.backbone) - {self}
            return found if merges else {m for m in found if m.backbone is self.backbone}

        if others():
            gc.collect()  # Models that were deleted wait for it, `from_preset`'s among them.
        if found := others():
            names = sorted(f"{type(model).__name__} {model.name!r}" for model in found)
            raise ValueError(
                f"An adapter changes the backbone, which {', '.join(names)} has too. Load it "
                "into `model.with_arguments()`, a copy with a backbone of its own, or call "
                "`from_preset(adapter=..., share_with=model)`, for a model that shares the weights"
            )

    # === The text ===

    @property
    def preprocessor(self) -> Any:
        """The preprocessor, or `None`. It can be replaced by another one for the backbone."""
        return self._untracked.text_layer

    @preprocessor.setter
    def preprocessor(self, preprocessor: Any) -> None:
        check_preprocessor(preprocessor, self.backbone, self.preprocessor_cls)
        self._hold(preprocessor)

    @property
    def classes(self) -> Classes | None:
        """The classes of a model that has classes, otherwise `None`."""
        return None

    def _labels_for(self, loss: Any) -> Any:
        """What a preprocessor has to know of the labels for a loss, its argument `classes`."""
        return self.classes

    @property
    def output_name(self) -> str:
        """The name of the output in exported models."""
        return "values" if getattr(self, "activation", "linear") == "linear" else "probabilities"

    @property
    def _kind_of_head(self) -> str | None:
        """The kind of head that `fit_head` fits, or `None`."""
        return None

    def _hold(self, text_layer):
        ids = getattr(getattr(text_layer, "tokenizer", None), "special_token_ids", XLNET_IDS)
        pooling = getattr(self, "pooling", None)
        if ids != XLNET_IDS and pooling in ("cls", "pair"):
            raise ValueError(
                f"`pooling={pooling!r}` needs a vocabulary with XLNet's special pieces at ids 0 to "
                f"8; use pooling='last'. Received: a tokenizer with special_token_ids={ids}"
            )
        super()._hold(
            preprocessor_for_documents(text_layer, self.preprocessor_cls, self.long_document)
        )

    # === The methods of Keras, also on raw text ===

    def fit(  # type: ignore[override]  # It names only some arguments of Keras.
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
        *,
        pack: bool = True,
        head_first: bool | None = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains as `keras.Model.fit` does, also on raw text.

        A model with classes that have no names learns them from labels that are strings: in the
        order of the categories of a pandas column, otherwise sorted. They are saved with the model.

        Args:
            x: Raw text in one of the forms of the preprocessor, what its `encode` returns, or
                anything that `keras.Model.fit` takes.
            y: The labels of raw text, or of arrays.
            batch_size, epochs, verbose, callbacks, shuffle: As in `keras.Model.fit`.
            validation_split, validation_data: As in `keras.Model.fit`, also of raw text.
            class_weight: As in `BaseModel.fit`.
            sample_weight: Optional weights of the texts.
            pack: Bool, whether batches of raw text have several texts in a row, without padding:
                see `TextBatches`. The results are the same. Models with memory or
                `pooling="pair"` have batches of texts of similar length instead, unless
                `shuffle=False`. With several replicas, each packs its own part of a batch; texts of
                other models, with several devices of JAX and on TPUs are padded to one length, as
                with `pack=False`.
            head_first: Bool, whether `fit_head` is called on the same texts first. By default,
                classifiers and regressors do so with fewer than 500 texts, if a preset of the
                package gave the backbone and the head is new. `research/tasks/fit_settings.py`
                compares both.
            **kwargs: As in `keras.Model.fit`.

        It warns, once, of texts that the vocabulary does not know and of texts that are cut, as the
        other methods that take texts do: see `Preprocessor.losses`. Batches of a `tf.data.Dataset`
        are not looked at.

        Raises:
            ValueError: If a label is missing, is not a class or has another shape than outputs,
                or a key of `class_weight` is not a class. The message names the row. Datasets are
                not checked.
        """
        held_out = None
        with self._learning_from_labels(y):
            if validation_data is not None:
                x_held_out, labels, weights = keras.utils.unpack_x_y_sample_weight(validation_data)
                held_out = self._read(x_held_out, labels, weights, batch_size, pack=pack)
                validation_split = 0.0
            examples = self._read(
                x, y, sample_weight, batch_size, pack=pack, keeps_order=not shuffle
            )
            if validation_split and not is_batches(examples.x):
                (examples, held_out), validation_split = examples.split(validation_split), 0.0
            if self._begins_with_head(examples) if head_first is None else head_first:
                fit_last_layer(self, examples, class_weight, batch_size=batch_size)
        if held_out is not None:
            size = kwargs.get("validation_batch_size") or batch_size
            steps = kwargs.get("validation_steps")
            *validation_data, _, steps = held_out.for_evaluate(size, steps)
            validation_data, kwargs["validation_steps"] = tuple(validation_data), steps
        steps, is_one_device = kwargs.pop("steps_per_epoch", None), not self._has_replicas()
        arguments = examples.for_fit(batch_size, shuffle, steps, is_one_device)
        if arguments["x"] is not examples.x:  # Batches do not say how long they are.
            self._warn_of_memory(examples.x, batch_size)
        return super().fit(
            **arguments,
            epochs=epochs,
            verbose=verbose,
            callbacks=callbacks,
            validation_split=validation_split,
            validation_data=validation_data,
            class_weight=class_weight,
            **kwargs,
        )

    def fit_head(
        self,
        x: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        class_weight: dict[Any, float] | None = None,
        l2: float = L2,
        batch_size: int | None = None,
        verbose: str | int = "auto",
    ) -> None:
        """Sets the last layer to the best one for the rest of the model, which stays as it is.

        The texts are read once, without gradients. For few texts this takes seconds, and may be all
        that is needed. A `fit` after it starts from a head that does not spoil the pretrained
        weights.

        The best layer has the least cross-entropy (with the `label_smoothing` and `ignore_class` of
        the loss), or of numbers the least squared error, whatever other loss the model has. If the
        last layer has LoRA, its kernel is set and the product of its matrices becomes 0.

        Args:
            x, y, sample_weight, class_weight: Arrays or raw text with labels, as in `fit`. Weights
                are at least 0.
            l2: Float, at least 1e-9, the penalty of large weights. Features have the standard
                deviation 1.
            batch_size, verbose: As in `predict`.

        Raises:
            ValueError: If the model is not a classifier or a regressor of texts, its last layer is
                quantized, an argument is not as above, or as in `fit`. The model is not changed.

        Example:

        >>> classifier = keras_xlnet.models.XLNetTextClassifier.from_preset(
        ...     "xlnet_mini_en", num_classes=2
        ... )
        >>> texts = ["What a joy!", "So good", "How boring", "A waste of time"]
        >>> classifier.fit_head(texts, ["good", "good", "bad", "bad"], verbose=0)
        >>> classifier.classify(["I love it", "I hate it"], verbose=0)[0].label
        'good'

        Source: Kumar et al. 2022, "Fine-tuning can distort pretrained features and underperform
        out-of-distribution".
        """
        with self._learning_from_labels(y):
            examples = self._read(x, y, sample_weight, batch_size)
            fit_last_layer(self, examples, class_weight, l2, batch_size, verbose)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        sample_weight: Any = None,
        *,
        pack: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Evaluates as `keras.Model.evaluate` does, also on raw text, packed as in `fit`."""
        examples = self._read(x, y, sample_weight, batch_size, pack=pack)
        x, y, sample_weight, batch_size, steps = examples.for_evaluate(
            batch_size, kwargs.pop("steps", None)
        )
        return super().evaluate(x, y, batch_size, verbose, sample_weight, steps, **kwargs)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        steps: int | None = None,
        callbacks: Any = None,
        *,
        pack: bool = True,
    ) -> Any:
        """Predicts as `keras.Model.predict` does, also for raw text, packed as in `fit`.

        It returns the outputs of the model as arrays, in the order of the texts, whatever the
        inputs are. A single batch of raw text is predicted at once, without a dataset and a
        progress bar, which take much longer than the model.
        """
        examples = self._read(x, batch_size=batch_size, has_labels=False, pack=pack)
        return self._predict(examples, batch_size, verbose, steps, callbacks)

    def _predict(self, examples, batch_size=None, verbose="auto", steps=None, callbacks=None):
        """The outputs for examples that have been read, in their order."""
        self._warn_if_untrained()
        x, num_rows = examples.x, len(examples.encoded or ())
        if not num_rows or steps:
            return super().predict(x, batch_size, verbose, steps, callbacks)
        if num_rows <= (batch_size or BATCH_SIZE) and not (callbacks or self._has_replicas()):
            return self.predict_on_batch(x)
        is_cut = examples.has_token_labels and examples.layout == "by_length"
        if examples.layout == "padded" or (is_cut and callbacks):
            return super().predict(x, batch_size, verbose, callbacks=callbacks)
        batches = examples.batches(batch_size)
        if is_cut:
            return self._predict_tokens(batches, verbose)
        x, steps = batches.as_keras_input(), batches.steps
        outputs = super().predict(x, None, verbose, steps, callbacks)
        return batches.in_order(outputs)

    def _predict_tokens(self, batches, verbose):
        """The outputs for tokens. Batches have different lengths, which Keras does not join."""
        progress = keras.utils.Progbar(len(batches), verbose=1 if verbose == "auto" else verbose)
        outputs = []
        for (features,) in batches:
            outputs.append(self.predict_on_batch(features))
            progress.add(1)
        return batches.join_tokens(outputs)

    # === Packed rows ===

    @property
    def can_pack_texts(self) -> bool:
        """Whether the model takes `packing` of whole texts, with which they share a row."""
        return "packing" in self._inputs_without_default and self.long_document != "windows"

    @property
    def _compares_pairs(self):
        return getattr(self, "pooling", None) == "pair"

    @property
    def _inputs_without_default(self):
        # The graph of pairs reads tokens beside the backbone.
        return () if self._compares_pairs else self.backbone._inputs_without_default

    def _reading(self, inputs):
        if isinstance(inputs.get("packing"), keras.KerasTensor):
            raise ValueError(
                f"`packing` of a {type(self).__name__} cannot be a symbolic input: pass arrays, or "
                "call the backbone in a functional model"
            )
        return packed_rows(inputs)

    # === Labels and batches ===

    def _read(
        self,
        x,
        y=None,
        sample_weight=None,
        batch_size=None,
        *,
        has_labels=True,
        pack=True,
        keeps_order=False,
    ):
        """The `Examples` of what a user passed, checked, in the layout that the model can read."""
        if batch_size is not None:
            is_numpy = isinstance(batch_size, np.integer)
            check_positive_int("batch_size", int(batch_size) if is_numpy else batch_size)
        reader = ExampleReader(
            self.preprocessor_cls,
            self.preprocessor,
            self._labels_for(self.loss),
            type(self).__name__,
            compares_pairs=self._compares_pairs,
            warned=self._untracked.warned,
        )
        examples = reader.read(x, y, sample_weight, has_labels)
        self._check_ranges(examples.x)
        layout = "padded"
        if pack and examples.encoded is not None:
            layout = self._layout(examples.x, keeps_order)
        is_divided = layout == "packed" and self._has_replicas()
        strategy = self.distribute_strategy if is_divided else None
        window_length = self.segment_length if self.long_document == "windows" else None
        return dataclasses.replace(
            examples, layout=layout, strategy=strategy, window_length=window_length
        )

    def _check_ranges(self, x, y=None):
        if self.long_document == "windows" and isinstance(x, dict):
            # Its places are counted over windows.
            x = {key: value for key, value in x.items() if key != "packing"}
        super()._check_ranges(x, y)

    @contextlib.contextmanager
    def _learning_from_labels(self, y):
        """Sets what the labels of a training say, unless the context raises an error."""
        before = {name: getattr(self, name) for name in self._arguments if name not in _PARTS}
        try:
            with index_labels_named(None, y):
                self._learn_from_labels(y)
            yield
        except Exception:
            for name, value in before.items():
                if getattr(self, name) is not value:
                    setattr(self, name, value)
            raise

    def _learn_from_labels(self, y):
        """Sets the names of classes, if the labels are strings."""
        if self.classes is not None and self.classes.class_names is None:
            names = self.preprocessor_cls.learn_class_names(y, self.classes.num_classes)
            self.class_names = names

    def _weights_of_classes(self, class_weight):
        if self.classes is None:
            return super()._weights_of_classes(class_weight)
        return self.classes.weights(class_weight)

    def _layout(self, features, keeps_order):
        """The layout of batches of arrays: see `TextBatches`."""
        # TPUs compile a step for one shape.
        strategy = type(getattr(self, "distribute_strategy", None)).__name__
        if keras.distribution.distribution() is not None or strategy.startswith("TPU"):
            return "padded"
        if "packing" in self._inputs_without_default:
            return "packed"
        if self._has_replicas():
            return "padded"
        needs_one_length = self.long_document == "memory" and self.gradient_segments is None
        # Positions count from the left.
        counts_from_left = "cls_index" in features and self.preprocessor.padding_side == "left"
        if keeps_order or needs_one_length or counts_from_left:
            return "padded"
        return "by_length"

    # === From outputs to results ===

    def _results(self, x, batch_size, verbose, *others, inputs=None, **options):
        """The results of the preprocessor for raw text, or its only result: see `one_row`.

        `inputs` is a function of the features to more inputs of the model.
        """
        x, is_one = one_row(x, *others)
        examples = self._read(x, batch_size=batch_size, has_labels=False)
        if (encoded := examples.encoded) is None:
            raise ValueError(
                f"`x` must be raw text, in a form that {self.preprocessor_cls.__name__} takes, for "
                f"results of {type(self).__name__}. For other inputs use `predict`. Received: "
                f"{type(x).__name__}"
            )
        if inputs is not None:
            examples = dataclasses.replace(examples, x={**examples.x, **inputs(examples.x)})
        outputs = self._predict(examples, batch_size, verbose)
        if getattr(self, "activation", None) == "linear":
            outputs = ops.convert_to_numpy(ops.softmax(outputs))
        found = self.preprocessor.decode(outputs, encoded, **options)
        return found[0] if is_one else found

    def _attended(self, batch_size, length):
        if self.long_document not in ("windows", "memory"):
            return batch_size, length
        segments = -(-length // self.segment_length)
        if self.long_document == "memory":
            segments = min(segments, self.gradient_segments or segments)
        return batch_size * segments, min(length, self.segment_length)


def check_preprocessor(
    preprocessor: Any, backbone: keras.Model, preprocessor_cls: type[Preprocessor]
) -> None:
    """Raises `ValueError` if a preprocessor is for another task, or has too many ids.

    Args:
        preprocessor: The preprocessor, or `None`.
        backbone: An `XLNetBackbone`.
        preprocessor_cls: The class that the task needs.
    """
    if preprocessor is None:
        return
    if not preprocessor_cls.accepts(type(preprocessor)):
        raise ValueError(
            f"`preprocessor` must be an instance of keras_xlnet.preprocessing."
            f"{preprocessor_cls.__name__}. Received: preprocessor={preprocessor!r}"
        )
    # A preprocessor made from a config has no vocabulary until its assets are loaded.
    if preprocessor.tokenizer.has_vocabulary:
        check_vocabulary(preprocessor.tokenizer, backbone, owner="backbone")
