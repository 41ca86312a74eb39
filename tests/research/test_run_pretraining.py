"""Pretraining with all options, in a process of its own."""

import functools
import json
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM
from tests.examples import RESEARCH
from tests.research import fork_research

TINY = [
    "--num_layers=1", "--hidden_dim=8", "--sequence_length=24",
    "--memory_length=12", "--batch_size=4", "--steps_per_epoch=6", "--validation_steps=2",
    "--dropout=0.1", "--vocabulary_size=36",
]  # fmt: skip


run = functools.partial(fork_research, "pretraining/run_pretraining")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A folder with a text to train on and one to validate on, and their flags."""
    folder = tmp_path_factory.mktemp("texts")
    rng, words = random.Random(0), "the a cat dog house river sees finds leaves old small".split()
    for name, count in (("train", 200), ("held_out", 40)):
        documents = [
            [" ".join(rng.choices(words, k=8)) + "." for _ in range(9)] for _ in range(count)
        ]
        text = "\n\n".join("\n".join(lines) for lines in documents)
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder, [f"--corpus={folder / 'train.txt'}", f"--held_out={folder / 'held_out.txt'}"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory, texts):
    """A folder in which the program has run, and what it printed."""
    folder = tmp_path_factory.mktemp("pretrain")
    result = run(f"--output_dir={folder}", "--epochs=3", *TINY, *texts[1])
    assert result.returncode == 0, result.stderr[-3000:]
    return folder, result.stdout


def test_writes_a_preset_and_what_it_learnt(finished):
    folder, printed = finished
    names = {path.name for path in folder.iterdir()}
    assert names >= {"curves.png", "history.csv", "metrics.json", "permutation_lm", "preset"}
    backbone = XLNetBackbone.from_preset(folder / "preset")
    model = XLNetPermutationLM.from_preset(folder / "permutation_lm")
    assert backbone.num_layers == 1 and model.stateful
    for ours, theirs in zip(backbone.weights, model.backbone.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert (folder / "preset" / "assets" / "spiece.model").is_file()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["flags"]["memory_length"] == 12 and metrics["unigram_loss"] > 1
    assert 0 < metrics["bits_per_character"]["held_out"] < 20
    for name in ("loss", "perplexity", "val_loss", "val_perplexity", "tokens_per_second"):
        assert len(metrics["history"][name]) == 3
    assert "held-out loss" in printed
    # The table and the plot of several runs.
    result = fork_research(
        "pretraining/compare_pretraining", folder / "compared.png", folder, folder
    )
    assert result.stdout.count("| permutation, memory 12 |") == 2
    assert (folder / "compared.png").stat().st_size > 5000


def test_a_run_that_is_done_starts_anew(finished, texts):
    # Other flags, the same corpus: BERT's objective, no memory, one direction.
    folder, _ = finished
    result = run(
        f"--output_dir={folder}", *TINY, "--epochs=1", "--objective=denoising", "--memory_length=0",
        "--nobidirectional_data", "--nosegment_pairs", "--unit=token", "--embeddings=cooccurrence",
        *texts[1],
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    history = json.loads((folder / "metrics.json").read_text())["history"]
    assert history["epoch"] == [0.0]


def test_goes_on_from_an_original_checkpoint(tmp_path, golden_dir):
    checkpoint, corpus = tmp_path / "checkpoint", tmp_path / "corpus.txt"
    checkpoint.mkdir()
    for path in (*(golden_dir / "tiny_ckpt").iterdir(), golden_dir / "spiece.model"):
        (checkpoint / path.name).write_bytes(path.read_bytes())
    raw = sorted((golden_dir / "pretrain_data" / "raw").glob("*.txt"))
    corpus.write_text("\n\n".join(path.read_text() for path in raw))
    result = run(
        f"--output_dir={tmp_path / 'out'}", *TINY, "--epochs=1", f"--checkpoint={checkpoint}",
        f"--corpus={corpus}",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    assert XLNetBackbone.from_preset(tmp_path / "out" / "preset").num_layers == 3


def test_continues_from_a_preset_for_a_processor_time(finished, texts, tmp_path):
    folder, _ = finished
    preset = folder / "permutation_lm"
    before = XLNetPermutationLM.from_preset(preset)
    for name in ("news", "letters"):
        (tmp_path / f"{name}.txt").write_text((texts[0] / "held_out.txt").read_text())
    result = run(
        f"--output_dir={tmp_path / 'out'}", *TINY, f"--preset={preset}", "--cpu_minutes=0.1",
        texts[1][0], f"--held_out={tmp_path / '*.txt'}",
        "--optimizer=muon", "--dtype=mixed_bfloat16", "--predicted_share=0.3",
        # However many steps a processor takes, they end near the weights of the preset.
        "--steps_per_epoch=100", "--learning_rate=1e-4",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    after = XLNetPermutationLM.from_preset(tmp_path / "out" / "permutation_lm")
    assert after.backbone.dtype_policy.name == "mixed_bfloat16"
    # It began with the weights of the preset, and with its vocabulary.
    old, new = (m.backbone.get_layer("token_embedding").embeddings for m in (before, after))
    assert np.corrcoef(np.ravel(old), np.ravel(new))[0, 1] > 0.5
    assert (preset / "assets" / "spiece.model").read_bytes() == (
        tmp_path / "out" / "preset" / "assets" / "spiece.model"
    ).read_bytes()
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert set(metrics["bits_per_character"]) == {"news", "letters"}
    assert 0.1 <= metrics["history"]["train_cpu_minutes"][-1] < 0.3


def test_problems_are_one_line(tmp_path):
    result = run(f"--output_dir={tmp_path}", "--corpus=/nowhere/*.txt")
    assert result.returncode != 0
    assert "/nowhere/*.txt" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_killed_and_started_again_it_ends_as_one_never_killed(tmp_path, texts):
    folders = [tmp_path / name for name in ("whole", "killed")]
    arguments = [*TINY, *texts[1], "--epochs=5", "--steps_per_epoch=200"]
    whole = run(f"--output_dir={folders[0]}", *arguments)
    assert whole.returncode == 0, whole.stderr[-3000:]
    process = subprocess.Popen(
        [
            sys.executable,
            RESEARCH / "pretraining" / "run_pretraining.py",
            f"--output_dir={folders[1]}",
            *arguments,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 300
    while not list(folders[1].glob("backup/epoch_*")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    # At a random step of a later epoch: each takes two seconds or more.
    time.sleep(np.random.default_rng().uniform(0, 6))
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    again = run(f"--output_dir={folders[1]}", *arguments)
    assert again.returncode == 0, again.stderr[-3000:]
    histories = [json.loads((f / "metrics.json").read_text())["history"] for f in folders]
    for name in ("epoch", "loss", "val_loss", "val_perplexity"):
        assert histories[0][name] == histories[1][name], name
    models = [XLNetPermutationLM.from_preset(folder / "permutation_lm") for folder in folders]
    for a, b in zip(*(model.weights for model in models), strict=True):
        np.testing.assert_array_equal(a, b)
