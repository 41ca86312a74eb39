import pytest

from keras_xlnet.models import XLNetBackbone
from keras_xlnet.models.xlnet_backbone import CONFIGS


def number_of_weights(layers, hidden, heads, head_dim, intermediate, vocabulary):
    attention = 5 * hidden * heads * head_dim + 3 * heads * head_dim + 2 * heads * head_dim
    feed_forward = 2 * hidden * intermediate + intermediate + hidden
    return vocabulary * hidden + layers * (attention + feed_forward + 4 * hidden)


@pytest.mark.parametrize(
    "name, sizes",
    [("xlnet_tiny", (2, 128, 2, 64, 512)), ("xlnet_small", (4, 256, 4, 64, 1024))],
)
def test_small_ones_have_as_many_weights_as_they_should(name, sizes):
    backbone = XLNetBackbone.from_config_name(name, vocabulary_size=500)
    assert backbone.count_params() == number_of_weights(*sizes, 500)


def test_released_ones_have_the_released_hyper_parameters():
    """They are too large to build here."""
    keys = "num_layers", "hidden_dim", "num_heads", "head_dim", "intermediate_dim"
    keys += "vocabulary_size", "dropout", "attention_dropout", "activation"
    shared = (32000, 0.1, 0.1, "gelu_tanh")
    for name, sizes, millions in (
        ("xlnet_base", (12, 768, 12, 64, 3072), 117),
        ("xlnet_large", (24, 1024, 16, 64, 4096), 360),
    ):
        assert CONFIGS[name] == dict(zip(keys, (*sizes, *shared), strict=True))
        assert round(number_of_weights(*sizes, 32000) / 1e6) == millions


def test_arguments_can_be_others():
    backbone = XLNetBackbone.from_config_name(
        "xlnet_tiny", vocabulary_size=50, dropout=0.0, memory_length=4
    )
    assert (backbone.vocabulary_size, backbone.dropout, backbone.memory_length) == (50, 0.0, 4)
    assert backbone.num_layers == 2


def test_unknown_names_are_answered_with_the_list():
    with pytest.raises(ValueError, match="xlnet_tiny.*xlnet_large.*Received: name='xlnet_huge'"):
        XLNetBackbone.from_config_name("xlnet_huge")
