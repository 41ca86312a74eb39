"""The Python tokenizer of transformers before version 5."""

import transformers

from benchmarks.comparison import workloads
from benchmarks.comparison.loops import calling


def tokenize(workload):
    tokenizer = transformers.XLNetTokenizer(workloads.vocabulary_file())
    texts = workloads.texts(workload.units)

    def call():
        ids = tokenizer(texts, add_special_tokens=False)["input_ids"]
        return sum(map(len, ids))

    return calling(call, versions={"transformers": transformers.__version__})
