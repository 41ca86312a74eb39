"""Hyper-parameters of backbones that have a name."""


def _size(num_layers, hidden_dim, num_heads):
    return {
        "vocabulary_size": 32000,
        "num_layers": num_layers,
        "num_heads": num_heads,
        "hidden_dim": hidden_dim,
        "intermediate_dim": 4 * hidden_dim,
        "head_dim": 64,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "activation": "gelu_tanh",
    }


NAMED_SIZES = {
    "xlnet_tiny": _size(2, 128, 2),
    "xlnet_small": _size(4, 256, 4),
    # As released.
    "xlnet_base": _size(12, 768, 12),
    "xlnet_large": _size(24, 1024, 16),
}
