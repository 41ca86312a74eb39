"""The pretraining example as its users run it: in a process of its own."""

import functools
import json
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
    "--dropout=0.1", "--nofine_tune",
]  # fmt: skip


run = functools.partial(fork_research, "pretraining/pretrain")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder in which the example has run, and what it printed."""
    folder = tmp_path_factory.mktemp("pretrain")
    result = run(f"--output_dir={folder}", "--epochs=3", *TINY)
    assert result.returncode == 0, result.stderr[-3000:]
    return folder, result.stdout


def test_writes_a_preset_and_what_it_learnt(finished):
    folder, printed = finished
    names = {path.name for path in folder.iterdir()}
    assert names >= {
        "blanks.txt", "corpus", "curves.png", "history.csv", "metrics.json", "permutation_lm",
        "preset", "tensorboard",
    }  # fmt: skip
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
    assert printed.count("of the blanks right") == 3
    assert "held-out loss" in printed


@pytest.mark.slow
def test_a_run_that_is_done_starts_anew(finished):
    # Other flags, the same corpus: BERT's objective, no memory, one direction.
    folder, _ = finished
    before = (folder / "corpus" / "train.txt").stat().st_mtime_ns
    result = run(
        f"--output_dir={folder}", *TINY, "--epochs=1", "--objective=denoising", "--memory_length=0",
        "--nobidirectional_data", "--nosegment_pairs", "--unit=token", "--embeddings=cooccurrence",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    assert (folder / "corpus" / "train.txt").stat().st_mtime_ns == before
    history = json.loads((folder / "metrics.json").read_text())["history"]
    assert history["epoch"] == [0.0]


@pytest.mark.slow
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


@pytest.mark.slow
def test_continues_from_a_preset_for_a_processor_time(finished, tmp_path):
    folder, _ = finished
    preset = folder / "permutation_lm"
    before = XLNetPermutationLM.from_preset(preset)
    for name in ("news", "letters"):
        (tmp_path / f"{name}.txt").write_text((folder / "corpus" / "held_out.txt").read_text())
    result = run(
        f"--output_dir={tmp_path / 'out'}", *TINY, f"--preset={preset}", "--cpu_minutes=0.1",
        f"--corpus={folder / 'corpus' / 'train.txt'}", f"--held_out={tmp_path / '*.txt'}",
        "--optimizer=muon", "--dtype=mixed_bfloat16", "--predicted_share=0.3",
        "--steps_per_epoch=100",
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


@pytest.mark.slow
def test_killed_and_started_again_it_ends_as_one_never_killed(tmp_path):
    folders = [tmp_path / name for name in ("whole", "killed")]
    arguments = [*TINY, "--epochs=5", "--steps_per_epoch=200"]
    whole = run(f"--output_dir={folders[0]}", *arguments)
    assert whole.returncode == 0, whole.stderr[-3000:]
    process = subprocess.Popen(
        [
            sys.executable,
            RESEARCH / "pretraining" / "pretrain.py",
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
