"""`FastSentencepieceTokenizer` takes a BPE model, and splits texts as for a unigram model."""

import io
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import sentencepiece
import tensorflow_text

model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(["the cat sat on the mat", "a cat ran", "the mat"] * 20),
    model_writer=model,
    vocab_size=24,
    model_type="bpe",
    hard_vocab_limit=False,
    minloglevel=2,
)
text = "the cat sat on a mat that ran"
processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
print("tensorflow-text", tensorflow_text.__version__)
print("expected:", processor.encode(text), "or an error that names the model type")
try:
    tokenizer = tensorflow_text.FastSentencepieceTokenizer(model.getvalue())
    ids = tokenizer.tokenize([text]).to_list()[0]
except Exception as error:
    print("happens: ", type(error).__name__, error)
    raise SystemExit(0) from None
print("happens: ", ids)
raise SystemExit(ids != processor.encode(text))
