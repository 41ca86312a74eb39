"""RoBERTa encoders as XLNets: against transformers and against BERT, and damaged files."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import xlnet_command
from keras_xlnet.checkpoints import (
    detect_format,
    detect_task,
    load_bert,
    load_checkpoint,
    load_tokenizer,
)
from keras_xlnet.checkpoints.roberta import ROBERTA
from keras_xlnet.conversion.bert_encoder import BertEncoder
from tests.checkpoints.transformers_encoders import save_encoder

# The special tokens of `golden/bert`, as entries of a RoBERTa's `config.json`.
CLS, SEP, PAD = 3, 4, 1
POSITIONS = "roberta.embeddings.position_embeddings.weight"


def edit_config(directory, **entries):
    file = directory / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | entries))


def edit_weights(directory, edit):
    file = directory / "model.safetensors"
    weights = load_file(file)
    edit(weights)
    save_file(weights, file, metadata={"format": "pt"})


@pytest.fixture
def directory(golden_dir, tmp_path):
    """The BERT of `golden/bert` as a RoBERTa: other names, and two rows before the positions."""
    directory = tmp_path / "roberta"
    shutil.copytree(golden_dir / "bert" / "model", directory)
    (directory / "vocab.txt").unlink()
    special = {"bos_token_id": CLS, "eos_token_id": SEP, "pad_token_id": PAD}
    sizes = {"max_position_embeddings": 40 + PAD + 1, "type_vocab_size": 1}
    edit_config(directory, model_type="roberta", **special, **sizes)

    def edit(weights):
        for name in [*weights]:
            weights[name.replace("bert.", "roberta.")] = weights.pop(name)
        types = "roberta.embeddings.token_type_embeddings.weight"
        weights[types] = weights[types][:1].copy()
        # No text reaches these rows.
        unused = np.full((PAD + 1, 16), 9, "float32")
        weights[POSITIONS] = np.concatenate([unused, weights[POSITIONS]])

    edit_weights(directory, edit)
    return directory


def without_positions(weights):
    weights[POSITIONS][:] = 0


def outputs_of(model, texts, cls, sep, pad):
    """The outputs in the order of RoBERTa, for texts without special tokens, padded on the left."""
    length = max(map(len, texts)) + 2
    rows = [[pad] * (length - 2 - len(text)) + [*text, sep, cls] for text in texts]
    token_ids = np.array(rows)
    segments = np.zeros_like(token_ids)
    segments[:, -1] = 2
    mask = np.arange(length) >= length - 2 - np.array([[len(text)] for text in texts])
    inputs = {"token_ids": token_ids, "segment_ids": segments, "padding_mask": mask}
    outputs = np.asarray(model(inputs, training=False)["sequence_output"])
    return [np.roll(row[is_real], 1, axis=0) for row, is_real in zip(outputs, mask, strict=True)]


def test_without_positions_the_outputs_are_those_of_bert(directory, golden):
    expected = golden("bert/outputs.npz")
    edit_weights(directory, without_positions)
    model = load_checkpoint(directory, ridge=0)
    text = expected["token_ids"][1:-1]
    (outputs,) = outputs_of(model, [text], CLS, SEP, PAD)
    np.testing.assert_allclose(outputs, expected["without"], rtol=0, atol=1e-5)


def test_positions_begin_after_the_padding_id(directory, golden):
    expected = golden("bert/outputs.npz")
    encoder = BertEncoder(ROBERTA.open(directory)._files.read(), 2, 1e-12, "gelu")
    token_ids = expected["token_ids"]
    states = encoder.embed(token_ids, np.arange(len(token_ids)))
    for layer in range(encoder.num_layers):
        states = encoder.apply(states, layer, encoder.scores(states, layer))
    np.testing.assert_allclose(states, expected["with_positions"], rtol=0, atol=5e-6)


def test_positions_are_fitted_as_those_of_a_bert(directory, golden_dir):
    """With the same sample texts, all weights of the layers are those of the BERT."""
    source = golden_dir / "bert" / "model"
    bert = load_bert(source, sample_texts=["the turtle swims", "in the sea, the turtle"])
    rows = [[34, 35, 36], [38, 34, 37, 32, 34, 35]]
    roberta = load_checkpoint(directory, sample_ids=rows)
    for ours, theirs in zip(roberta.weights, bert.weights, strict=True):
        if "token_embedding" not in ours.path:
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5, err_msg=ours.path)


@pytest.mark.parametrize("head", ["RobertaModel", "RobertaForMaskedLM"])
def test_transformers_itself(head, tmp_path, rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: transformers)")
    sizes = {"vocab_size": 60, "max_position_embeddings": 52, "type_vocab_size": 1}
    encoder = save_encoder("Roberta", head, tmp_path, layer_norm_eps=1e-5, **sizes)
    texts = [rng.integers(4, 60, length).tolist() for length in (20, 13)]
    token_ids = torch.tensor([[0, *texts[0], 2], [0, *texts[1], 2, *[1] * 7]])
    with torch.no_grad():
        outputs = encoder(token_ids, attention_mask=token_ids != 1).last_hidden_state.numpy()
    expected = [outputs[0], outputs[1, :15]]
    found = outputs_of(load_checkpoint(tmp_path, ridge=0), texts, cls=0, sep=2, pad=1)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def test_it_is_a_format_that_can_be_read(directory):
    assert (detect_format(directory), detect_task(directory)) == ("roberta", None)
    model = load_checkpoint(directory, memory_length=3, dropout=0.2)
    assert (model.memory_length, model.dropout, model.vocabulary_size) == (3, 0.2, 68)
    with pytest.raises(ValueError, match="RoBERTa has no model for the task 'text_classifier'"):
        load_checkpoint(directory, task="text_classifier")
    with pytest.raises(ValueError, match="byte-level BPE.*AutoTokenizer of transformers"):
        load_tokenizer(directory)


def xlnet(*arguments):
    return xlnet_command.run(xlnet_command.parse(["xlnet", *map(str, arguments)]))


def test_the_command(directory, tmp_path, capsys):
    edit_weights(directory, without_positions)
    assert xlnet("inspect", directory) == 0
    report = capsys.readouterr().out
    assert "missing               nothing" in report and "tokenizer             none" in report
    assert xlnet("convert", "--to", "preset", directory, tmp_path / "out") == 0
    report = capsys.readouterr().out
    assert "cosine to BERT, mean of 100 texts of random words: " in report
    assert "without a tokenizer\nThe byte-level BPE of a RoBERTa cannot become" in report
    assert xlnet("verify", directory, tmp_path / "out") == 0
    capsys.readouterr()
    flags = "--to", "preset", "--sample_texts", "texts.txt"
    assert xlnet("convert", *flags, directory, tmp_path / "none") == 1
    assert "['sample_texts'] are for a BERT, not for roberta" in capsys.readouterr().err


def test_arguments(directory):
    for rows in (["a text"], [[3.5]], [[68]], [[-1]], [[[5]]]):
        with pytest.raises(ValueError, match="`sample_ids` must be .* from 0 to 67. Received: "):
            load_checkpoint(directory, sample_ids=rows)
    with pytest.raises(ValueError, match="`sample_ids` must have at least one text"):
        load_checkpoint(directory, sample_ids=[[]])


BAD = {
    "pad": ({"pad_token_id": None}, "config.json has `pad_token_id` None, expected an id from 0"),
    "large": ({"bos_token_id": 68}, "config.json has `bos_token_id` 68, expected an id from 0"),
    "text": ({"eos_token_id": "</s>"}, "config.json has `eos_token_id` '</s>', expected an id"),
    "sizes": ({"max_position_embeddings": 40}, r"position_embeddings.weight.*\(42, 16\)"),
    "decoder": ({"is_decoder": True}, "config.json has `is_decoder` True: only an encoder"),
}


@pytest.mark.parametrize("entries, message", BAD.values(), ids=BAD)
def test_other_files_are_refused_by_name(entries, message, directory):
    edit_config(directory, **entries)
    with pytest.raises(ValueError, match=message):
        load_checkpoint(directory)


def test_a_pickle_is_refused(directory):
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
    with pytest.raises(ValueError, match="is a PyTorch pickle.*import RobertaModel"):
        load_checkpoint(directory)
