"""`torch.compile` and `torch.export` trace a model into one graph."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).parents[2]

PROGRAM = """
    import keras
    import numpy as np
    import torch
    from keras_xlnet import models

    backbone = models.XLNetBackbone(100, 1, 2, 16, 32)
    model = models.XLNetTextClassifier(backbone=backbone, num_classes=2)
    ids = torch.arange(10, 22, dtype=torch.int32).reshape((2, 6))
    inputs = {
        "token_ids": ids,
        "segment_ids": torch.zeros_like(ids),
        "padding_mask": torch.ones_like(ids, dtype=torch.bool),
    }
    with torch.no_grad():
        expected = model(inputs)
        # `fullgraph=True` raises an error where a graph would end.
        found = torch.compile(model, backend="eager", fullgraph=True)(inputs)
        sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
        shapes = dict.fromkeys(inputs, sizes)
        options = {"dynamic_shapes": ((shapes,),), "strict": True}
        program = torch.export.export(model, (inputs,), **options).module()
        larger = {key: torch.cat([value, value.flip(1)[:, :3]], 1) for key, value in inputs.items()}
        larger = {key: torch.cat([value, value.flip(0)]) for key, value in larger.items()}
        exported, expected_of_larger = program(larger), model(larger)
        # Without `strict=True` it would compute with copies of the weights.
        zeros = {name: torch.zeros_like(value) for name, value in program.state_dict().items()}
        program.load_state_dict(zeros)
        assert (program(larger) == 0.5).all()
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(exported, expected_of_larger, atol=1e-6)
"""


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs torch")
def test_one_graph():
    environment = {
        **os.environ,
        "KERAS_BACKEND": "torch",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
