#!/usr/bin/env bash
# One would guess: after `sentencepiece.set_random_generator_seed`, sampled splits can be repeated, and
# each call of `encode` still draws new ones, as a seeded generator of NumPy does.
# What happens: that holds for `encode(text)`. `encode([text, ...])` runs in threads that are made for
# the call, and the generator of each thread begins at the seed: every call draws the same splits.
# So subword regularization and BPE dropout of batches give each epoch the splits of the first one.
# With several threads, texts of one batch can get equal draws too. Without a seed all is as expected.
# Since when: seen in sentencepiece 0.1.99, 0.2.0, 0.2.1 and 0.2.3. Until 0.2.1, a list of one text still
# gets new draws.
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"

cat > "$folder/draws.py" <<'PYTHON'
import importlib.metadata
import io
import pydoc_data.topics

import sentencepiece

# The pages of Python's help(): English text that is always there.
LINES = [line for page in pydoc_data.topics.topics.values() for line in page.splitlines() if line.isascii()][:2000]
TEXT = "the definition of a generator function in the body of a class"


def model(model_type):
    proto = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=proto, model_type=model_type, vocab_size=500, minloglevel=2
    )
    return sentencepiece.SentencePieceProcessor(model_proto=proto.getvalue())


def different(encode):
    return len({str(encode()) for _ in range(8)})


print("sentencepiece", importlib.metadata.version("sentencepiece"))
for model_type, alpha in (("unigram", 0.1), ("bpe", 0.5)):
    encode, settings = model(model_type).encode, {"enable_sampling": True, "alpha": alpha, "nbest_size": -1}
    sentencepiece.set_random_generator_seed(7)
    texts = different(lambda: encode(TEXT, **settings))
    batches = different(lambda: encode([TEXT, TEXT], num_threads=1, **settings))
    print(f"{model_type}: 8 calls with a text draw {texts} different splits, 8 with a list {batches}")
    assert texts > 4 and batches == 1
PYTHON

for release in sentencepiece==0.1.99 sentencepiece==0.2.3; do
    "$folder/venv/bin/pip" install --quiet --no-deps "$release"
    "$folder/venv/bin/python" "$folder/draws.py"
done
