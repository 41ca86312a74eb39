"""A `SentencepieceTokenizer` loses its model when a seed is set."""

import io
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import sentencepiece
import tensorflow as tf
import tensorflow_text

model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(["the cat sat on the mat", "a cat ran", "the mat"] * 20),
    model_writer=model,
    vocab_size=24,
    model_type="unigram",
    hard_vocab_limit=False,
    minloglevel=2,
)
tokenizer = tensorflow_text.SentencepieceTokenizer(model.getvalue())
expected = tokenizer.tokenize(["the cat"]).to_list()
tf.random.set_seed(1)
print("TensorFlow", tf.__version__, "tensorflow-text", tensorflow_text.__version__)
print("expected:", expected, "after tf.random.set_seed as before it")
try:
    print("happens: ", tokenizer.tokenize(["the cat"]).to_list())
except tf.errors.NotFoundError as error:
    print("happens: ", type(error).__name__, str(error)[:300])
    raise SystemExit(1) from None
