"""`start_top_log_probs` of XLNet for question answering are probabilities, not logarithms."""

import torch
import transformers

torch.manual_seed(0)
config = transformers.XLNetConfig(
    vocab_size=40, d_model=16, n_layer=1, n_head=2, d_inner=32, start_n_top=3, end_n_top=3
)
model = transformers.XLNetForQuestionAnswering(config).eval()
with torch.no_grad():
    outputs = model(torch.arange(3).reshape(1, 3))
values = outputs.start_top_log_probs[0]
are_probabilities = bool((values > 0).all())
logarithms = values.log() if are_probabilities else values
print("transformers", transformers.__version__)
print("expected:", [round(x, 3) for x in logarithms.tolist()], "(or a name without log)")
print(
    "happens: ",
    [round(x, 3) for x in values.tolist()],
    "with the sum",
    round(float(values.sum()), 3),
)
raise SystemExit(are_probabilities)
