"""XLNet of transformers with `attn_type="uni"` and a padding mask fails for two rows."""

import torch
import transformers

config = transformers.XLNetConfig(
    vocab_size=40, d_model=16, n_layer=1, n_head=2, d_inner=32, attn_type="uni"
)
model = transformers.XLNetModel(config).eval()
ids = torch.arange(6).reshape(2, 3)
mask = torch.ones(2, 3)
mask[1, 0] = 0.0
print("transformers", transformers.__version__, "torch", torch.__version__)
print("one row:", tuple(model(ids[:1], attention_mask=mask[:1]).last_hidden_state.shape))
print("expected: (2, 3, 16)")
try:
    print("happens: ", tuple(model(ids, attention_mask=mask).last_hidden_state.shape))
except RuntimeError as error:
    print("happens: ", type(error).__name__, error)
    raise SystemExit(1) from None
