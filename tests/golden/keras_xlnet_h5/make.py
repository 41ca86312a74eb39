"""Writes the files in this folder, with the real keras-xlnet 0.20.0 of PyPI.

    python3.9 -m venv old
    old/bin/pip install "tensorflow==2.8.*" "protobuf<3.21" "numpy<1.24" keras-xlnet==0.20.0
    old/bin/python tests/golden/keras_xlnet_h5/make.py

| file | `build_xlnet(...)` | written by |
| --- | --- | --- |
| `encoder.h5` | `training=False, shared_biases=True, memory_len=4, attention_type="uni"` | `save` |
| `trainer.h5` | `training=True, shared_biases=False`, no memory | `save_weights` |

`outputs.npz` has, for the encoder, the outputs of two segments, the second with the memory of the
first; for the trainer, the probabilities where all tokens but the predicted one are seen.
"""

import pathlib

import numpy as np

FOLDER = pathlib.Path(__file__).parent
SIZES = dict(num_token=30, num_block=2, num_head=2, units=16, hidden_dim=24)
PADDING = 5


def new_model(rng, **arguments):
    from keras_xlnet import build_xlnet  # The old package, not the one that is tested here.

    model = build_xlnet(**SIZES, target_len=6, batch_size=2, **arguments)
    for weight in model.weights:
        if not weight.name.startswith("Memory-"):
            weight.assign(rng.normal(scale=0.3, size=weight.shape))
    return model


def main():
    rng = np.random.default_rng(0)
    arrays = {}
    ids = rng.integers(6, 30, (2, 2, 6))
    segments = rng.integers(0, 2, (2, 2, 6))
    encoder = new_model(rng, training=False, memory_len=4, attention_type="uni", dropout=0.1)
    # Before the first call, which fills the memory.
    encoder.save(FOLDER / "encoder.h5")
    for i, memory_length in enumerate((0, 4)):
        lengths = np.full((2, 1), memory_length)
        arrays[f"encoder_output_{i}"] = encoder.predict([ids[i], segments[i], lengths])
    trainer = new_model(rng, training=True, shared_biases=False, memory_len=0)
    trainer.save_weights(FOLDER / "trainer.h5")
    padded = ids[0].copy()
    padded[1, 4:] = PADDING
    targets = rng.integers(0, 2, (2, 6))
    inputs = [padded, segments[0], np.zeros((2, 1)), targets]
    arrays["trainer_output"] = trainer.predict(inputs)
    np.savez(
        FOLDER / "outputs.npz",
        token_ids=ids.astype("int32"),
        segment_ids=segments.astype("int32"),
        padded_ids=padded.astype("int32"),
        targets=targets.astype("int32"),
        **arrays,
    )


if __name__ == "__main__":
    main()
