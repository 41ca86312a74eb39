"""Reads with this package what `write_with_*.py` wrote with releases of other packages."""

import functools
import json
import pathlib
import sys

import numpy as np
from reading import LISTS, report

from keras_xlnet.checkpoints import load_huggingface
from keras_xlnet.tokenizers import XLNetTokenizer

_TEXTS = LISTS["texts"]


def read(path):
    expected = json.loads(path.read_text())
    if path.stem == "vocabulary":
        tokenizer = XLNetTokenizer(str(path.with_suffix(".model")), remove_accents=False)
        ids = [x.tolist() for x in tokenizer.encode(_TEXTS)]
        return np.mean([a != b for a, b in zip(ids, expected["token_ids"], strict=True)])
    model = load_huggingface(path.with_suffix(""), task="text_classifier")
    if model.preprocessor is None:
        raise ValueError("The directory has no vocabulary: only ids can be read")
    return np.abs(model.predict(_TEXTS, verbose=0) - expected["probabilities"]).max()


paths = sorted(pathlib.Path(sys.argv[2]).glob("*.json"))
report(
    ["keras", "tensorflow", "sentencepiece", "numpy"],
    **{path.stem: functools.partial(read, path) for path in paths},
)
