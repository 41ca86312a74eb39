"""`XLNetTokenizer` moves the spaces around pieces that SentencePiece calls user-defined symbols.

The vocabulary of the released XLNet models has such symbols: . ( ) " - and others.
"""

import io
import json
import pathlib
import tempfile

import sentencepiece
import transformers

TEXT = "the cat (a mat) sat - on the mat ."
model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(["the cat sat on the mat", "a cat ran", "the mat"] * 20),
    model_writer=model,
    vocab_size=40,
    hard_vocab_limit=False,
    control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"],
    user_defined_symbols=["<eop>", ".", "(", ")", "-"],
    minloglevel=2,
)
expected = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).encode(
    TEXT, out_type=str
)
with tempfile.TemporaryDirectory() as folder:
    (pathlib.Path(folder) / "spiece.model").write_bytes(model.getvalue())
    config = json.dumps({"tokenizer_class": "XLNetTokenizer"})
    (pathlib.Path(folder) / "tokenizer_config.json").write_text(config)
    pieces = transformers.XLNetTokenizer.from_pretrained(folder).tokenize(TEXT)
print("transformers", transformers.__version__, "sentencepiece", sentencepiece.__version__)
print("expected:", *expected)
print("happens: ", *pieces)
raise SystemExit(pieces != expected)
