"""Trains a vocabulary with a release of sentencepiece, for `read_others.py`."""

import json
import pathlib
import sys

import sentencepiece
from reading import DIRECTORY, LISTS

output = pathlib.Path(sys.argv[2])
sentencepiece.SentencePieceTrainer.train(
    input=str(DIRECTORY / "corpus.txt"),
    model_prefix=str(output / "vocabulary"),
    vocab_size=500,
    character_coverage=0.99995,
    control_symbols="<cls>,<sep>,<pad>,<mask>,<eod>",
    user_defined_symbols="<eop>,.,(,),-",
)
processor = sentencepiece.SentencePieceProcessor(model_file=str(output / "vocabulary.model"))
(output / "vocabulary.json").write_text(json.dumps({"token_ids": processor.encode(LISTS["texts"])}))
