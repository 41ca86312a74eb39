"""Small encoders of transformers with random weights, and with positions that are all 0."""

import pytest


def save_encoder(name, head, directory, **config):
    """Saves a model of transformers to a directory, and returns its encoder.

    Args:
        name: The name of its classes, such as `"Bert"`.
        head: The name of its class, such as `"BertForMaskedLM"`.
        directory: Path of the directory.
        **config: Arguments of its config besides the sizes of the layers.
    """
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: transformers)")
    transformers = pytest.importorskip(
        "transformers", reason="transformers is not installed (extra: transformers)"
    )
    config = getattr(transformers, f"{name}Config")(
        **{"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4},
        **{"intermediate_size": 40, "initializer_range": 0.3},
        **config,
    )
    model = getattr(transformers, head)(config).eval()
    encoder = getattr(model, name.lower(), model)
    with torch.no_grad():
        for path, weight in encoder.named_parameters():
            if path.endswith("bias"):
                weight.normal_(std=0.2)
        encoder.embeddings.position_embeddings.weight.zero_()
    model.save_pretrained(directory)
    return encoder
