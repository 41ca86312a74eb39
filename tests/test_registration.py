"""Unknown constructor arguments are refused by every public class, with a suggestion."""

import copy
import dataclasses
import inspect
import pathlib
import pickle
import re

import keras
import pytest

import keras_xlnet
from keras_xlnet import registration
from keras_xlnet.registration import register

PUBLIC = sorted(
    {
        value
        for room in keras_xlnet.__all__
        if inspect.ismodule(getattr(keras_xlnet, room))
        for name in getattr(keras_xlnet, room).__all__
        for value in [getattr(getattr(keras_xlnet, room), name)]
        if isinstance(value, type)
        # scikit-learn reads the arguments of the second from its constructor. Python refuses those
        # of the third, which takes no others.
        and name not in ("DistributedTraining", "SKLearnTextClassifier", "TextBatches")
        # Not results and errors, which users do not make.
        and not dataclasses.is_dataclass(value)
        and not issubclass(value, (tuple, Exception))
    },
    key=lambda cls: cls.__name__,
)


def required(cls):
    """Something for every argument without a default: the names are checked before the values."""
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    return {
        p.name: None for p in parameters if p.default is p.empty and p.kind.name != "VAR_KEYWORD"
    }


@pytest.mark.parametrize("cls", PUBLIC, ids=lambda cls: cls.__name__)
def test_every_public_class_refuses_an_unknown_argument(cls):
    with pytest.raises(TypeError, match=f"`{cls.__name__}` has no argument `unknown_argument`"):
        cls(**required(cls), unknown_argument=1)
    own = [name for name in inspect.signature(cls).parameters if name != "kwargs"]
    if own:
        with pytest.raises(TypeError, match=f"Did you mean `{own[0]}`"):
            cls(**{f"{own[0]}_": 1})


@pytest.mark.parametrize(
    "cls, given, suggestion",
    [
        (keras_xlnet.models.XLNetBackbone, "mem_len", "memory_length"),
        (keras_xlnet.models.XLNetBackbone, "n_token", "vocabulary_size"),
        (keras_xlnet.models.XLNetBackbone, "num_layer", "num_layers"),
        (keras_xlnet.models.XLNetTextClassifier, "num_labels", "num_classes"),
        (keras_xlnet.layers.TwoStreamBlock, "d_inner", "intermediate_dim"),
        (keras_xlnet.layers.FeedForward, "dropuot", "dropout"),
        (keras_xlnet.layers.PermutationMaskGenerator, "perm_size", "permutation_length"),
    ],
)
def test_names_of_other_implementations_and_misspelled_names(cls, given, suggestion):
    with pytest.raises(TypeError, match=f"no argument `{given}`. Did you mean `{suggestion}`"):
        cls(**required(cls), **{given: 1})


def test_named_configurations_refuse_them_too():
    with pytest.raises(TypeError, match="`vocab_size`. Did you mean `vocabulary_size`"):
        keras_xlnet.models.XLNetBackbone.from_config_name("xlnet_tiny", vocab_size=100)


def test_synonyms_are_those_of_the_docs():
    docs = pathlib.Path(__file__).parents[1] / "docs" / "names.md"
    documented = set(re.findall(r"`(\w+)", docs.read_text(encoding="utf-8")))
    assert not set(registration._SYNONYMS) - documented


def test_subclasses_of_users_may_have_arguments_of_their_own():
    class Mine(keras_xlnet.layers.FeedForward):
        def __init__(self, *args, **kwargs):
            self.extra = kwargs.pop("extra")
            super().__init__(*args, **kwargs)

    assert Mine(8, extra=3, name="mine").extra == 3
    with pytest.raises((TypeError, ValueError), match="other"):
        Mine(8, extra=3, other=4)


def test_signatures_and_arguments_of_keras_stay():
    signature = inspect.signature(keras_xlnet.layers.FeedForward)
    assert list(signature.parameters)[:2] == ["intermediate_dim", "dropout"]
    layer = keras_xlnet.layers.FeedForward(8, name="a", dtype="float16", trainable=False)
    assert (layer.name, layer.compute_dtype, layer.trainable) == ("a", "float16", False)

    @register
    class Doubled(keras.layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)

    assert keras.saving.get_registered_name(Doubled) == "keras_xlnet>Doubled"


def test_signatures_of_subclasses_are_their_own():
    class Mine(keras_xlnet.layers.FeedForward):
        def __init__(self, extra, **kwargs):
            super().__init__(8, **kwargs)

    class Same(keras_xlnet.layers.FeedForward):
        pass

    assert list(inspect.signature(Mine).parameters) == ["extra", "kwargs"]
    assert inspect.signature(Same) == inspect.signature(keras_xlnet.layers.FeedForward)
    assert list(inspect.signature(Same(8)).parameters) == ["args", "kwargs"]  # Of `__call__`.
    with pytest.raises(TypeError, match="`Same` has no argument `dropuot`"):
        Same(8, dropuot=0.1)


def test_copies_and_pickles_take_no_arguments():
    losses = keras_xlnet.models.ListSoftmaxLoss(name="mine")
    assert copy.copy(losses).name == pickle.loads(pickle.dumps(losses)).name == "mine"
