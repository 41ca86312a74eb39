"""Writes a classifier in every format of this package, for the readers in this folder.

    python research/compatibility/write_artifacts.py runs/compatibility/artifacts

`expected.npz` and `expected.json` next to the files have inputs and outputs of the Python model, so
that a reader does not need this package. It needs the extras `tensorflow` and `onnx`, and
ai-edge-litert.
"""

import argparse
import json
import pathlib
import sys

import keras
import numpy as np

from keras_xlnet.checkpoints import save_huggingface
from keras_xlnet.models import XLNetTextClassifier
from keras_xlnet.pretraining import write_token_records
from keras_xlnet.serving import export

_MESSAGES = pathlib.Path(__file__).parents[2] / "examples" / "data" / "SMSSpamCollection"
_TEXTS = [
    "",
    "lunch at noon?",
    "You have WON a prize: call 09061701461 now!",
    "Déjà vu — the café's 20% off, naïve £100.50",
    "今天天气很好 🙂 tomorrow",
]
_INPUTS = ("token_ids", "segment_ids", "padding_mask")
# The files with a network, by folder: the arguments of `export`.
NETWORKS = {
    f"{format}_{quantization or 'float32'}": {"format": format, "quantization": quantization}
    for format in ("onnx", "litert")
    for quantization in (None, "int8")
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path)
    directory = parser.parse_args().directory
    directory.mkdir(parents=True)
    texts = [*_TEXTS, *read_messages(19)]
    model = XLNetTextClassifier.from_preset(adapter="spam")
    model.save(directory / "model.keras")
    model.save_to_preset(directory / "preset")
    save_huggingface(model, directory / "huggingface")
    export(model, directory / "saved_model")
    expected = {name: np.asarray(x) for name, x in model.preprocessor(texts).items()}
    expected["probabilities"] = model.predict(texts, verbose=0)
    for name, options in NETWORKS.items():
        export(model, directory / name, **options)
        # Int8 has other outputs than the model. Other releases are compared with this one's.
        expected[name] = outputs_of(directory / name, expected)
    corpus = directory / "corpus.txt"
    corpus.write_text("\n".join(read_messages(200)), encoding="utf-8")
    records = write_token_records(
        corpus, model.preprocessor.tokenizer, directory / "records", verbose=0
    )
    expected["record_tokens"] = np.concatenate([tokens for tokens, _ in records.documents()])
    np.savez(directory / "expected.npz", **expected)
    rows = zip(expected["token_ids"], expected["padding_mask"], strict=True)
    lists = {
        "texts": texts,
        "labels": [found.label for found in model.classify(texts)],
        "token_ids": [ids[mask].tolist() for ids, mask in rows],
    }
    (directory / "expected.json").write_text(json.dumps(lists), encoding="utf-8")


def read_messages(number):
    """Returns the first different messages of the SMS Spam Collection."""
    lines = _MESSAGES.read_text(encoding="utf-8").splitlines()
    return list(dict.fromkeys(line.partition("\t")[2] for line in lines))[:number]


def outputs_of(directory, features):
    """Returns what the program that `export` writes next to a network computes."""
    sys.path.insert(0, str(directory))
    from predict import TextModel

    del sys.path[0], sys.modules["predict"]
    return TextModel(directory).run({name: features[name] for name in _INPUTS})


if __name__ == "__main__":
    keras.utils.set_random_seed(1)
    main()
