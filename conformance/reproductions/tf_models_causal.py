"""tf-models-official 2.20: `attention_type="uni"` is causal only if there is an input mask.

`.bench/tf_models/bin/python conformance/reproductions/tf_models_causal.py` prints 0.57 and 0.0.
`_compute_attention_mask` makes the causal mask, and uses it only where `data_mask` is not `None`.
"""

import numpy as np
import tensorflow as tf
from official.nlp.modeling.networks import XLNetBase

tf.random.set_seed(0)
network = XLNetBase(
    vocab_size=100, num_layers=2, hidden_size=16, num_attention_heads=2, head_size=8, inner_size=32,
    dropout_rate=0.0, attention_dropout_rate=0.0, attention_type="uni", bi_data=False,
    initializer="glorot_normal",
)  # fmt: skip
ids = np.random.default_rng(0).integers(0, 100, (1, 8)).astype("int32")
changed = ids.copy()
changed[0, -1] = (ids[0, -1] + 1) % 100
for mask in (None, tf.ones((1, 8))):
    before, after = (network(x, tf.zeros_like(x), mask)[0] for x in (ids, changed))
    # How much the last token changes the outputs of the tokens before it. Expected: 0.
    print(float(tf.reduce_max(abs(before - after)[:, :-1])))
