"""Writes a classifier and its tokenizer with a release of transformers: `save_pretrained`.

Next to each directory are the ids and probabilities of transformers, for `read_others.py`.
"""

import json
import pathlib
import sys

import torch
from reading import DIRECTORY, LISTS
from transformers import XLNetForSequenceClassification, XLNetTokenizer, XLNetTokenizerFast

output = pathlib.Path(sys.argv[2])
model = XLNetForSequenceClassification.from_pretrained(str(DIRECTORY / "huggingface")).eval()
# In transformers 5 both are one class.
for kind, tokenizer_class in {"slow": XLNetTokenizer, "fast": XLNetTokenizerFast}.items():
    # The folder has only spiece.model.
    tokenizer = tokenizer_class.from_pretrained(str(DIRECTORY / "preset" / "assets"))
    options = {"return_tensors": "pt", "return_token_type_ids": True}
    inputs = [tokenizer(text, **options) for text in LISTS["texts"]]
    with torch.no_grad():
        logits = torch.cat([model(**x).logits for x in inputs])
    expected = {
        "token_ids": [x["input_ids"][0].tolist() for x in inputs],
        "probabilities": torch.softmax(logits, -1).tolist(),
    }
    directory = output / f"{kind}_tokenizer"
    tokenizer.save_pretrained(directory)
    model.save_pretrained(directory, safe_serialization=True)
    directory.with_suffix(".json").write_text(json.dumps(expected))
# Transformers 5 writes safetensors whatever this argument says.
tokenizer.save_pretrained(output / "pickle")
model.save_pretrained(output / "pickle", safe_serialization=False)
(output / "pickle.json").write_text(json.dumps(expected))
