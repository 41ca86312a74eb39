"""`end_top_log_probs` of XLNet: entry `i * end_n_top + j` is not end `j` of start `i`."""

import torch
import transformers

STARTS, ENDS = 3, 2

torch.manual_seed(0)
config = transformers.XLNetConfig(
    vocab_size=40,
    d_model=16,
    n_layer=1,
    n_head=2,
    d_inner=32,
    start_n_top=STARTS,
    end_n_top=ENDS,
    initializer_range=1.0,
)
model = transformers.XLNetForQuestionAnswering(config).eval()
ids = torch.arange(8).reshape(1, 8)
with torch.no_grad():
    outputs = model(ids)
    hidden = model.transformer(ids)[0]
    expected = []
    for start in outputs.start_top_index[0]:
        logits = model.end_logits(hidden, start_positions=start[None])
        expected += logits[0].topk(ENDS).indices.tolist()
received = outputs.end_top_index[0].tolist()
print("transformers", transformers.__version__)
print("expected:", expected, f"({ENDS} ends of each of {STARTS} starts)")
print("happens: ", received)
raise SystemExit(received != expected)
