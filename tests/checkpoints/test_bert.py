"""BERT encoders as XLNets: against transformers, and damaged files."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import xlnet_command
from keras_xlnet.checkpoints import (
    convert_bert,
    detect_format,
    detect_task,
    load_bert,
    load_checkpoint,
    load_tokenizer,
)
from keras_xlnet.checkpoints.bert_files import BertFiles, read_config, read_vocabulary
from keras_xlnet.conversion.bert_encoder import BertEncoder
from keras_xlnet.conversion.bert_positions import sinusoids
from keras_xlnet.conversion.bert_vocabulary import bert_ids, random_texts
from keras_xlnet.layers import RelativePositionEncoding
from keras_xlnet.tokenizers import WordPieceVocabulary
from tests.checkpoints.transformers_encoders import save_encoder
from tests.examples import spam_messages

TEXTS = ["the turtle swims in the sea.", "in the sea, the turtle swims", "swimming, the turtles"]
POSITIONS = "bert.embeddings.position_embeddings.weight"


@pytest.fixture(scope="module")
def source(golden_dir):
    return golden_dir / "bert" / "model"


@pytest.fixture
def copy(source, tmp_path):
    return shutil.copytree(source, tmp_path / "bert")


@pytest.fixture
def without_positions(copy):
    edit_weights(copy, lambda weights: weights[POSITIONS].fill(0))
    return copy


def edit_weights(directory, edit):
    file = directory / "model.safetensors"
    weights = load_file(file)
    edit(weights)
    save_file(weights, file, metadata={"format": "pt"})


def edit_config(directory, **entries):
    file = directory / "config.json"
    config = json.loads(file.read_text()) | entries
    file.write_text(json.dumps({k: v for k, v in config.items() if v is not None}))


def vocabulary_of(directory):
    return WordPieceVocabulary((directory / "vocab.txt").read_text().split("\n")[:-1])


def outputs_of(model, directory, token_ids):
    """The outputs in the order of BERT, for BERT's ids in the order of BERT."""
    theirs = list(bert_ids(vocabulary_of(directory)))
    ours = [theirs.index(index) for index in token_ids[1:-1]]
    segments = [0] * len(ours) + [0, 2]
    inputs = {"token_ids": np.array([[*ours, 4, 3]]), "segment_ids": np.array([segments])}
    outputs = np.asarray(model(inputs, training=False)["sequence_output"][0])
    return np.roll(outputs, 1, axis=0)


# === Numbers ===


def test_without_positions_the_outputs_are_those_of_bert(without_positions, golden):
    expected = golden("bert/outputs.npz")
    model = load_bert(without_positions, ridge=0)
    outputs = outputs_of(model, without_positions, expected["token_ids"])
    np.testing.assert_allclose(outputs, expected["without"], rtol=0, atol=1e-5)
    # The comparison can see a difference.
    assert np.abs(expected["without"] - expected["with_positions"]).max() > 0.1


def test_in_float64(without_positions, golden):
    expected = golden("bert/outputs.npz")
    model = load_bert(without_positions, ridge=0, dtype="float64")
    outputs = outputs_of(model, without_positions, expected["token_ids"])
    np.testing.assert_allclose(outputs, expected["without"], rtol=0, atol=2e-6)


def test_the_forward_pass_in_float64_is_that_of_bert(source, golden):
    expected = golden("bert/outputs.npz")
    encoder = encoder_of(source)
    token_ids = expected["token_ids"]
    states = encoder.embed(token_ids, np.arange(len(token_ids)))
    for layer in range(encoder.num_layers):
        states = encoder.apply(states, layer, encoder.scores(states, layer))
    np.testing.assert_allclose(states, expected["with_positions"], rtol=0, atol=5e-6)


def encoder_of(directory):
    files = BertFiles(directory, read_config(directory / "config.json"))
    return BertEncoder(files.read(), 2, 1e-12, "gelu")


def test_a_larger_ridge_gives_shorter_shifts_and_a_larger_difference(without_positions, golden):
    expected = golden("bert/outputs.npz")
    lengths, differences = [], []
    for ridge in (0, 0.01, 1.0):
        conversion = convert_bert(without_positions, ridge=ridge)
        lengths.append(conversion.shift_lengths)
        outputs = outputs_of(conversion.backbone, without_positions, expected["token_ids"])
        differences.append(np.abs(outputs - expected["without"]).max())
    assert (np.diff(lengths, axis=0) < 0).all() and (np.diff(differences) > 0).all()


def add_relative_positions(weights):
    """Positions whose products depend on the distance, for queries and keys that are alike."""
    weights[POSITIONS][:] = 2 * sinusoids(np.arange(len(weights[POSITIONS])), 16)
    for layer in range(2):
        prefix = f"bert.encoder.layer.{layer}.attention.self"
        weights[f"{prefix}.key.weight"][:] = weights[f"{prefix}.query.weight"]


def test_fitted_positions_reduce_the_difference(copy, rng):
    edit_weights(copy, add_relative_positions)
    encoder, vocabulary = encoder_of(copy), vocabulary_of(copy)
    fitted, without = load_bert(copy, ridge=0), load_bert(copy, ridge=0)
    for block in without.blocks:
        kernel = block.attention.position_dense.kernel
        kernel.assign(np.zeros(kernel.shape))
    differences = []
    for _ in range(5):
        text = rng.integers(6, len(vocabulary.tokens), 30)
        token_ids = [vocabulary.id_of("[CLS]"), *text, vocabulary.id_of("[SEP]")]
        states = encoder.embed(np.array(token_ids), np.arange(32))
        for layer in range(2):
            states = encoder.apply(states, layer, encoder.scores(states, layer))
        found = [outputs_of(model, copy, token_ids) for model in (fitted, without)]
        differences.append([np.square(outputs - states).mean() for outputs in found])
    fitted_difference, difference = np.mean(differences, axis=0)
    assert fitted_difference < 0.9 * difference


def test_sinusoids_are_those_of_the_position_table():
    table = RelativePositionEncoding(hidden_dim=16)(np.zeros((1, 5, 16), "float32"))[0]
    np.testing.assert_allclose(table, sinusoids(np.arange(5, -5, -1), 16), atol=1e-6)


def test_special_tokens_and_pieces_have_the_rows_of_bert(without_positions):
    model = load_bert(without_positions, ridge=0)
    tokenizer = load_tokenizer(without_positions)
    encoder, vocabulary = encoder_of(without_positions), vocabulary_of(without_positions)
    embeddings = np.asarray(model.token_embedding.embeddings)
    names = {"<mask>": "[MASK]", "<unk>": "[UNK]", "<pad>": "[PAD]", "<sep>": "[SEP]"}
    names |= {"<cls>": "[CLS]", "\u2581turtle": "turtle", "ing": "##ing"}
    rows = encoder.embed(np.array([vocabulary.id_of(name) for name in names.values()]))
    shift = embeddings[4] - rows[3]
    for row, ours in zip(rows, names, strict=True):
        np.testing.assert_allclose(embeddings[tokenizer.token_to_id(ours)], row + shift, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("head", ["BertModel", "BertForMaskedLM", "BertForTokenClassification"])
@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
def test_transformers_itself(head, activation, tmp_path, source, rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: transformers)")
    sizes = {"vocab_size": 72, "max_position_embeddings": 50, "hidden_act": activation}
    encoder = save_encoder("Bert", head, tmp_path, **sizes)
    shutil.copy(source / "vocab.txt", tmp_path)
    token_ids = [3, *map(int, rng.integers(6, 68, 20)), 4]
    with torch.no_grad():
        expected = encoder(torch.tensor([token_ids])).last_hidden_state[0].numpy()
    outputs = outputs_of(load_bert(tmp_path, ridge=0), tmp_path, token_ids)
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-5)


# === The report, the formats, the command ===


def test_the_report(source):
    conversion = convert_bert(source, TEXTS * 3)
    assert conversion.num_texts == 9 and 0 <= conversion.tokens_that_differ < 0.1
    assert len(conversion.shift_lengths) == len(conversion.position_residuals) == 2
    assert 0 < conversion.cosine < 1
    report = str(conversion).splitlines()
    assert report[0].startswith("layer ") and len(report) == 5
    assert report[3].startswith("cosine to BERT, mean of 9 sample texts: 0.")
    assert report[4].startswith("tokens that differ: ")
    ids = conversion.tokenizer.encode(["The turtle swims, singing"])[0]
    pieces = [conversion.tokenizer.id_to_token(index) for index in ids]
    assert pieces[:4] == ["\u2581the", "\u2581turtle", "\u2581swims", "\u2581,"]
    assert pieces[-1] == "ing"


def test_the_cosine_is_that_of_the_model(without_positions):
    assert convert_bert(without_positions, ridge=0).cosine > 0.999999


def test_random_texts(source):
    vocabulary = vocabulary_of(source)
    texts = random_texts(vocabulary)
    assert texts == random_texts(vocabulary) and len(texts) == 100
    assert {token for text in texts for token in vocabulary.split(text)} <= {
        *("the", "turtle", "swims", "sea", "in", ".")
    }


def test_it_is_a_format_that_can_be_read(source):
    assert (detect_format(source), detect_task(source)) == ("bert", None)
    model = load_checkpoint(source, memory_length=3, dropout=0.2)
    assert (model.memory_length, model.dropout, model.attention_dropout) == (3, 0.2, 0.1)
    assert load_tokenizer(source).vocabulary_size() == model.vocabulary_size
    with pytest.raises(ValueError, match="BERT has no model for the task 'text_classifier'"):
        load_checkpoint(source, task="text_classifier")


def xlnet(*arguments):
    return xlnet_command.run(xlnet_command.parse(["xlnet", *map(str, arguments)]))


def test_the_command(source, tmp_path, capsys):
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS))
    flags = "--from", "bert", "--to", "preset", "--sample_texts", texts
    assert xlnet("convert", *flags, source, tmp_path / "out") == 0
    report = capsys.readouterr().out
    assert "cosine to BERT, mean of 3 sample texts" in report
    assert report.endswith("with a tokenizer\n")
    assert xlnet("inspect", tmp_path / "out") == 0
    capsys.readouterr()
    assert xlnet("inspect", source) == 0
    report = capsys.readouterr().out
    assert "missing               nothing" in report and "cls.predictions.bias" in report
    assert xlnet("convert", "--to", "preset", "--task", "ranker", source, tmp_path / "out") == 1
    assert "BERT has no model for the task 'ranker'" in capsys.readouterr().err


def test_fewer_tokens(source):
    kept = load_bert(source, keep=["the", "turtle"])
    assert kept.vocabulary_size < load_bert(source).vocabulary_size


def test_arguments(source):
    with pytest.raises(ValueError, match=r"\['num_heads'\] are fixed by the checkpoint"):
        load_bert(source, num_heads=4)
    with pytest.raises(ValueError, match="`sample_texts` must be a list of strings"):
        load_bert(source, sample_texts="one text")
    with pytest.raises(ValueError, match="`sample_texts` must have at least one text"):
        load_bert(source, sample_texts=[" "])
    with pytest.raises(ValueError, match="`ridge` must be a number of at least 0"):
        load_bert(source, ridge=-1)


# === Other files ===


def without_prefix(directory):
    def edit(weights):
        for name in [*weights]:
            weights[name.removeprefix("bert.")] = weights.pop(name)

    edit_weights(directory, edit)


def with_old_names(directory):
    def edit(weights):
        for name in [*weights]:
            old = name.replace("LayerNorm.weight", "LayerNorm.gamma")
            weights[old.replace("LayerNorm.bias", "LayerNorm.beta")] = weights.pop(name)

    edit_weights(directory, edit)


def as_tokenizer_json(directory):
    tokens = vocabulary_of(directory).tokens
    model = {"type": "WordPiece", "vocab": {token: i for i, token in enumerate(tokens)}}
    normalizer = {"type": "BertNormalizer", "lowercase": True, "strip_accents": None}
    content = json.dumps({"model": model, "normalizer": normalizer})
    (directory / "tokenizer.json").write_text(content)
    (directory / "vocab.txt").unlink()


def test_other_forms_of_the_same_model(copy, source, golden):
    token_ids = golden("bert/outputs.npz")["token_ids"]
    expected = outputs_of(load_bert(source), source, token_ids)
    # A file of weights has one of the two forms; the vocabulary is another file.
    with_old_names(copy)
    as_tokenizer_json(copy)
    np.testing.assert_array_equal(outputs_of(load_bert(copy), source, token_ids), expected)
    assert load_tokenizer(copy).encode(["The"])[0].tolist() == [
        load_tokenizer(source).token_to_id("\u2581the")
    ]
    without_prefix(copy)
    np.testing.assert_array_equal(outputs_of(load_bert(copy), source, token_ids), expected)


def test_cased(copy):
    (copy / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    tokenizer = load_tokenizer(copy)
    pieces = [tokenizer.id_to_token(index) for index in tokenizer.encode(["The the"])[0]]
    assert pieces == ["\u2581", "<unk>", "h", "e", "\u2581the"]


# === The settings of a tokenizer, next to transformers ===

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = [*"abcdefghijklmnopqrstuvwxyz0123456789éïABCDEFÅ日本,.!'-"]
WORDS = ["free", "prize", "you", "call", "##ing", "##ed", "the"]
TOKENS = [*SPECIAL, *WORDS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
TEXT = "\n".join(TOKENS)
FAST = {"tokenizer_class": "PreTrainedTokenizerFast"}


@pytest.fixture
def settings(tmp_path):
    """`settings(config=..., normalizer=...)`: a directory with these settings."""

    def make(config=(), files=(), text=TEXT, **fast):
        (tmp_path / "config.json").write_text('{"model_type": "bert"}')
        (tmp_path / "vocab.txt").write_text(text, encoding="utf-8", newline="")
        contents = {"tokenizer_config.json": dict(config), **dict(files)}
        if fast:
            (tmp_path / "vocab.txt").unlink()
            model = {"type": "WordPiece", "unk_token": "[UNK]"}
            model |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
            model["vocab"] = {token: index for index, token in enumerate(TOKENS)}
            contents["tokenizer.json"] = {
                **{"version": "1.0", "added_tokens": [], "decoder": None},
                **{"normalizer": NORMALIZER, "pre_tokenizer": {"type": "BertPreTokenizer"}},
                "post_processor": {
                    "type": "BertProcessing",
                    "sep": ["[SEP]", 3],
                    "cls": ["[CLS]", 2],
                },
                **fast,
                "model": model | fast.get("model", {}),
            }
        for name, content in contents.items():
            (tmp_path / name).write_text(json.dumps(content))
        return tmp_path

    return make


NORMALIZER = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": None,
    "lowercase": True,
}
READ = {
    "defaults": {},
    "cased": {"config": {"do_lower_case": False}},
    "accents": {"config": {"strip_accents": False}},
    "cased-no-accents": {"config": {"do_lower_case": False, "strip_accents": True}},
    "ideographs": {"config": {"tokenize_chinese_chars": False}},
    "class": {"config": {"tokenizer_class": "BertTokenizer", "never_split": None}},
    "crlf": {"text": "\r\n".join(TOKENS)},
    "spaces": {"text": " \n".join(TOKENS) + "\n"},
    "twice": {"text": "\n".join([*TOKENS, "free", "##ing"])},
    "config-against-normalizer": {
        "config": {"do_lower_case": False, "tokenizer_class": "BertTokenizerFast"},
        "normalizer": NORMALIZER,
    },
    "normalizer-is-not-read": {"normalizer": {**NORMALIZER, "handle_chinese_chars": False}},
    "fast": {"config": FAST, "normalizer": {**NORMALIZER, "lowercase": False}},
    "fast-against-config": {"config": {**FAST, "do_lower_case": False}, "normalizer": NORMALIZER},
    "fast-ideographs": {
        "config": FAST,
        "normalizer": {**NORMALIZER, "handle_chinese_chars": False, "strip_accents": False},
    },
    "truncation": {
        "truncation": {
            "max_length": 3,
            "strategy": "LongestFirst",
            "stride": 0,
            "direction": "Right",
        }
    },
    "padding": {"config": {"padding_side": "left", "model_max_length": 4}},
}


@pytest.mark.parametrize("given", READ.values(), ids=READ)
def test_settings_are_read_as_transformers_reads_them(given, settings):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    directory = settings(**given)
    theirs = transformers.AutoTokenizer.from_pretrained(directory)
    ours = read_vocabulary(directory)
    texts = [
        "free日本prize",
        "FREE Prize! caféing naïve Å",
        "日本, you",
        "don't call-ed",
        "x" * 101,
    ]
    for text in [*texts, *spam_messages()]:
        assert ours.encode(text) == theirs(text, add_special_tokens=False)["input_ids"], text


def test_ideographs_that_are_no_words(settings):
    tokenizer = load_tokenizer(settings(config={"tokenize_chinese_chars": False}))
    pieces = [tokenizer.id_to_token(index) for index in tokenizer.encode(["free日本prize"])[0]]
    assert pieces[:3] == ["\u2581free", "日", "本"] and "\u2581" not in "".join(pieces[1:])


def sequence(*types):
    return {"type": "Sequence", "normalizers": [{"type": name} for name in types]}


URL = {"id": 9, "content": "<url>", "lstrip": True, "normalized": False, "special": False}
ROW = {
    "type": "TemplateProcessing",
    "single": [{"Sequence": {"id": "A", "type_id": 0}}],
}
REFUSED = {
    "bom": ({"text": "\ufeff" + TEXT}, "begins with a byte order mark"),
    "class": ({"config": {"tokenizer_class": "BertJapaneseTokenizer"}}, "BertJapaneseTokenizer"),
    "class-without-json": ({"config": FAST}, "'PreTrainedTokenizerFast' as `tokenizer_class`"),
    "basic": ({"config": {"do_basic_tokenize": False}}, "False as `do_basic_tokenize`"),
    "never-split": ({"config": {"never_split": ["a"]}}, r"\['a'\] as `never_split`"),
    "code": ({"config": {"auto_map": {"AutoTokenizer": ["x.Y", None]}}}, "as `auto_map`"),
    "number": ({"config": {"do_lower_case": 1}}, "has 1 as `do_lower_case`"),
    "text": ({"config": {"strip_accents": "no"}}, "'no' as `strip_accents`"),
    "null": ({"normalizer": None}, "None as `normalizer.type`"),
    "Lowercase": ({"normalizer": {"type": "Lowercase"}}, "'Lowercase' as `normalizer.type`"),
    "NFD": ({"normalizer": sequence("NFD", "Lowercase", "StripAccents")}, "'Sequence' as"),
    "clean": ({"normalizer": {**NORMALIZER, "clean_text": False}}, "`normalizer.clean_text`"),
    "Whitespace": ({"pre_tokenizer": {"type": "Whitespace"}}, "'Whitespace' as `pre_tokenizer"),
    "no-pre-tokenizer": ({"pre_tokenizer": None}, "None as `pre_tokenizer.type`"),
    "prefix": ({"model": {"continuing_subword_prefix": "@@"}}, "'@@' as `model.continuing"),
    "length": ({"model": {"max_input_chars_per_word": 9}}, "9 as `model.max_input_chars"),
    "model": ({"model": {"type": "WordLevel"}}, "it has no WordPiece model"),
    "unknown": ({"model": {"unk_token": "<unk>"}}, "'<unk>' as `model.unk_token`"),
    "row": ({"post_processor": ROW}, r"\['A'\] as `post_processor`"),
    "no-row": ({"config": FAST, "post_processor": None}, "None as `post_processor`"),
    "added": ({"added_tokens": [URL]}, "tokenizer.json has the token '<url>' .`added_tokens`"),
    "added-to-config": ({"config": {"added_tokens_decoder": {"9": URL}}}, "'<url>' .`added_tok"),
    "additional": ({"config": {"additional_special_tokens": ["<e>"]}}, "'<e>' .`additional"),
    "extra": ({"config": {"extra_special_tokens": {"end": "<e>"}}}, "'<e>' .`extra_special"),
    "separator": ({"config": {"sep_token": "</s>"}}, r"'</s>' .`sep_token`., expected '\[SEP\]'"),
    "swapped": ({"config": {"cls_token": "[SEP]"}}, r"'\[SEP\]' .`cls_token`"),
    "added-file": (
        {"files": {"added_tokens.json": {"<e>": 99}}},
        "added_tokens.json has the token",
    ),
    "map": (
        {"files": {"special_tokens_map.json": {"pad_token": {"content": "<pad>"}}}},
        "special_tokens_map.json has the token '<pad>'",
    ),
    "damaged": ({"config": {"added_tokens_decoder": {"9": {}}}}, "has a damaged tokenizer"),
}


@pytest.mark.parametrize("given, message", REFUSED.values(), ids=REFUSED)
def test_other_settings_are_refused_by_name(given, message, settings):
    with pytest.raises(ValueError, match=message):
        read_vocabulary(settings(**given))


def replace_weight(name, value):
    return lambda d: edit_weights(d, lambda weights: weights.update({name: value}))


QUERY = "bert.encoder.layer.1.attention.self.query.weight"
CROSS = "bert.encoder.layer.0.crossattention.self.query.weight"
BAD = {
    "no-config": (lambda d: (d / "config.json").unlink(), "config.json is missing"),
    "no-weights": (lambda d: (d / "model.safetensors").unlink(), "model.safetensors is missing"),
    "no-vocabulary": (lambda d: (d / "vocab.txt").unlink(), "vocab.txt is missing"),
    "pickle": (
        lambda d: (d / "model.safetensors").rename(d / "pytorch_model.bin"),
        "pytorch_model.bin is a PyTorch pickle.*from transformers import BertModel",
    ),
    "damaged": (
        lambda d: (d / "model.safetensors").write_bytes(b"not at all"),
        "model.safetensors cannot be read as safetensors",
    ),
    "truncated": (
        lambda d: (d / "model.safetensors").write_bytes(
            (d / "model.safetensors").read_bytes()[:-100]
        ),
        "model.safetensors cannot be read as safetensors",
    ),
    "not-json": (lambda d: (d / "config.json").write_text("{"), "config.json is not JSON"),
    "roberta": (
        lambda d: edit_config(d, model_type="roberta"),
        "config.json has the `model_type` 'roberta', not 'bert'",
    ),
    "decoder": (
        lambda d: edit_config(d, is_decoder=True),
        "config.json has `is_decoder` True: only an encoder can become an XLNet",
    ),
    "cross-attention": (
        lambda d: edit_config(d, add_cross_attention=True),
        "config.json has `add_cross_attention` True",
    ),
    "relative": (
        lambda d: edit_config(d, position_embedding_type="relative_key"),
        "config.json has `position_embedding_type` 'relative_key', but only 'absolute'",
    ),
    "activation": (
        lambda d: edit_config(d, hidden_act="mish"),
        "config.json has `hidden_act` 'mish', expected one of",
    ),
    "no-size": (lambda d: edit_config(d, hidden_size=None), r"has no \['hidden_size'\]"),
    "text-for-a-number": (
        lambda d: edit_config(d, num_hidden_layers="2"),
        "config.json has `num_hidden_layers` '2', expected a positive integer",
    ),
    "heads": (
        lambda d: edit_config(d, num_attention_heads=3),
        "config.json has `hidden_size` 16, expected an even multiple of `num_attention_heads` 3",
    ),
    "epsilon": (
        lambda d: edit_config(d, layer_norm_eps="small"),
        "config.json has `layer_norm_eps` 'small', expected a number",
    ),
    "endless": (lambda d: edit_config(d, num_hidden_layers=10**12), "config.json.*has only"),
    "few-layers": (
        lambda d: edit_config(d, num_hidden_layers=1),
        "'bert.encoder.layer.1.* is not a weight of the model that its configuration",
    ),
    "many-layers": (lambda d: edit_config(d, num_hidden_layers=3), "lacks 16 of 53 weights"),
    "missing": (
        lambda d: edit_weights(d, lambda weights: weights.pop(QUERY)),
        rf"lacks 1 of 37 weights of the model: '{QUERY}'",
    ),
    "shape": (
        replace_weight(QUERY, np.zeros((16, 8), "float32")),
        rf"'{QUERY}' in .*model.safetensors has shape \(16, 8\), expected \(16, 16\)",
    ),
    "integers": (
        replace_weight(QUERY, np.zeros((16, 16), "int8")),
        f"'{QUERY}' in .*model.safetensors is of dtype int8",
    ),
    "unknown-weight": (
        replace_weight(CROSS, np.zeros((16, 16), "float32")),
        f"'{CROSS}' in .*model.safetensors is not a weight of the model",
    ),
    "long-vocabulary": (
        lambda d: (d / "vocab.txt").write_text((d / "vocab.txt").read_text() + "more\n"),
        "vocab.txt has 69 tokens, but the embeddings have 68 rows",
    ),
    "other-vocabulary": (
        lambda d: (d / "vocab.txt").write_text("a\nb\n"),
        r"vocab.txt: `tokens` must contain \[PAD\].*Missing",
    ),
    "vocabulary-of-bytes": (
        lambda d: (d / "vocab.txt").write_bytes(b"\xff\xfe\n"),
        "vocab.txt is not UTF-8",
    ),
    "another-tokenizer": (
        lambda d: (
            (d / "vocab.txt").unlink(),
            (d / "tokenizer.json").write_text('{"model": {"type": "BPE", "vocab": {}}}'),
        ),
        "tokenizer.json is not the tokenizer of a BERT: it has no WordPiece model",
    ),
}


@pytest.mark.parametrize("damage, message", BAD.values(), ids=BAD)
def test_bad_directories(damage, message, copy):
    damage(copy)
    with pytest.raises((ValueError, FileNotFoundError), match=message) as error:
        load_bert(copy)
    assert "\n" not in str(error.value)
    assert str(copy) in str(error.value)
