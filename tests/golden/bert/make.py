"""Writes a small random BERT, and what transformers computes with it.

    python tests/golden/bert/make.py

`model/` is a directory as transformers saves it, with a head, so that names begin with `bert.`.
`outputs.npz` has the outputs of the encoder for one text: `with_positions`, and `without` for
position embeddings of 0.
"""

import pathlib
import shutil

import numpy as np

FOLDER = pathlib.Path(__file__).parent
TOKENS = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TOKENS += [*"abcdefghijklmnopqrstuvwxyz,.", "the", "turtle", "swims", "sea", "in"]
TOKENS += [f"##{part}" for part in [*"abcdefghijklmnopqrstuvwxyz,.", "ing"]]


def make_model():
    """Returns a BertForMaskedLM whose weights are large enough to see what attention does."""
    import torch  # Not at the top: pytest looks for examples in this file too.
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(TOKENS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=40,
        layer_norm_eps=1e-12,
    )
    model = transformers.BertForMaskedLM(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            scale = 0.1 if name.endswith("bias") else 0.4
            weight.normal_(std=scale)
            if name.endswith("LayerNorm.weight"):
                weight.add_(1.0)
    return model


def outputs_of(model, token_ids):
    import torch

    with torch.no_grad():
        return model.bert(torch.tensor([token_ids])).last_hidden_state[0].numpy()


def main():
    model = make_model()
    rng = np.random.default_rng(0)
    text = rng.integers(6, len(TOKENS), 20)
    token_ids = [TOKENS.index("[CLS]"), *map(int, text), TOKENS.index("[SEP]")]
    shutil.rmtree(FOLDER / "model", ignore_errors=True)
    model.save_pretrained(FOLDER / "model")
    (FOLDER / "model" / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    (FOLDER / "model" / "generation_config.json").unlink(missing_ok=True)
    outputs = {"token_ids": token_ids, "with_positions": outputs_of(model, token_ids)}
    model.bert.embeddings.position_embeddings.weight.data.zero_()
    outputs["without"] = outputs_of(model, token_ids)
    np.savez_compressed(FOLDER / "outputs.npz", **outputs)


if __name__ == "__main__":
    main()
