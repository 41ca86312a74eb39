"""`XLNetTokenizer(keep_accents=True)` removes accents all the same."""

import transformers

VOCABULARY = [("<unk>", 0.0)] + [(piece, -1.0) for piece in ("▁café", "▁cafe", "<sep>", "<cls>")]
tokenizer = transformers.XLNetTokenizer(VOCABULARY, keep_accents=True)
pieces = tokenizer.tokenize("café")
print("transformers", transformers.__version__)
print("expected:", ["▁café"])
print("happens: ", pieces)
raise SystemExit(pieces != ["▁café"])
