#!/usr/bin/env bash
# One would guess: with `enable_truncation(max_length=1)` and a template that adds `[CLS]` and `[SEP]`,
# tokenizers gives one token, or the two special tokens, or raises an error.
# What happens: it gives the whole text. As soon as `max_length` is smaller than the number of special
# tokens (2 for a text and 3 for a pair in BERT's template), nothing is truncated, without a warning. With
# exactly that number, only the special tokens are left. So code that computes `max_length` from what is
# left of a budget gets texts of any length when the budget is used up.
# Since when: seen in each of tokenizers 0.13.3, 0.15.2, 0.19.1, 0.20.3, 0.22.1 and 0.23.3.
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"

cat > "$folder/truncate.py" <<'PYTHON'
import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

words = "a b c d e f g h [CLS] [SEP]".split()
tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="a"))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
    special_tokens=[(word, words.index(word)) for word in ("[CLS]", "[SEP]")],
)


def lengths(*texts, **arguments):
    found = []
    for max_length in range(6):
        tokenizer.enable_truncation(max_length)
        found.append(len(tokenizer.encode(*texts, **arguments).ids))
    return found


text, pair, plain = lengths("a b c d e f g h"), lengths("a b c d", "e f g h"), lengths("a b c d", add_special_tokens=False)
print(f"tokenizers {tokenizers.__version__}, lengths for max_length = 0, 1, 2, 3, 4, 5")
print(f"    a text of 8 tokens: {text}; two texts of 4: {pair}; a text of 4 without special tokens: {plain}")
assert text == [10, 10, 2, 3, 4, 5] and pair == [11, 11, 11, 3, 4, 5] and plain == [0, 1, 2, 3, 4, 4]
PYTHON

for release in tokenizers==0.13.3 tokenizers==0.23.3; do
    "$folder/venv/bin/pip" install --quiet "$release"
    "$folder/venv/bin/python" "$folder/truncate.py"
done
