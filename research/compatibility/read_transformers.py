"""Reads the directory of `save_huggingface` with the defaults of transformers' Auto classes."""

from reading import DIRECTORY, LISTS, check_equal, difference, report

_FOLDER = str(DIRECTORY / "huggingface")


def read_ids():
    from transformers import AutoTokenizer

    ids = AutoTokenizer.from_pretrained(_FOLDER)(LISTS["texts"])["input_ids"]
    check_equal(ids, "token_ids")
    return 0


def read_model():
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(_FOLDER)
    model = AutoModelForSequenceClassification.from_pretrained(_FOLDER)
    with torch.no_grad():
        # One by one: the mean of the model of transformers includes padding.
        logits = [model(**tokenizer(text, return_tensors="pt")).logits for text in LISTS["texts"]]
        probabilities = torch.softmax(torch.cat(logits), -1).numpy()
    check_equal([model.config.id2label[i] for i in probabilities.argmax(-1)], "labels")
    return difference(probabilities, "probabilities")


packages = ["transformers", "tokenizers", "torch", "safetensors", "numpy"]
report(packages, ids=read_ids, probabilities=read_model)
