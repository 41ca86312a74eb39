"""Writes the preset and the outputs in this folder, with the real KerasHub.

    python -m venv hub && hub/bin/pip install keras-hub==0.32.0 "tensorflow>=2.21,<2.22"
    hub/bin/python tests/golden/keras_hub/make.py

The rows of `outputs.npz` were computed one at a time: KerasHub 0.32 mixes the rows of a batch.
"""

import pathlib

import numpy as np

FOLDER = pathlib.Path(__file__).parent


def main():
    import keras_hub  # Not at the top: pytest looks for examples in this file too.

    rng = np.random.default_rng(0)
    backbone = keras_hub.models.XLNetBackbone(
        vocabulary_size=30, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=24
    )
    backbone.set_weights([rng.normal(scale=0.3, size=w.shape) for w in backbone.get_weights()])
    backbone.save_to_preset(FOLDER / "preset")
    inputs = {
        "token_ids": rng.integers(0, 30, (3, 7)).astype("int32"),
        "segment_ids": rng.integers(0, 2, (3, 7)).astype("int32"),
        "padding_mask": np.ones((3, 7), "int32"),
    }
    inputs["padding_mask"][2, 5:] = 0
    rows = [
        backbone.predict({key: value[i : i + 1] for key, value in inputs.items()}, verbose=0)
        for i in range(3)
    ]
    np.savez(FOLDER / "outputs.npz", **inputs, sequence_output=np.concatenate(rows))


if __name__ == "__main__":
    main()
