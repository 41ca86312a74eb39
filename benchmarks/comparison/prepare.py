"""Trains the vocabulary that all tokenizers of the comparison share.

python -m benchmarks.comparison.prepare FOLDER
"""

import pathlib
import sys

from benchmarks.comparison.workloads import texts
from keras_xlnet.tokenizers import XLNetTokenizer

VOCABULARY_SIZE = 1500

if __name__ == "__main__":
    tokenizer = XLNetTokenizer.train(iter(dict.fromkeys(texts(5000))), VOCABULARY_SIZE)
    tokenizer.save_assets(pathlib.Path(sys.argv[1]))
