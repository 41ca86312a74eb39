import numpy as np
import pytest
import tensorflow as tf

from benchmarks.comparison.generation import greedy_generator
from keras_xlnet.checkpoints import load_huggingface

PROMPT, NEW = 12, 8


@pytest.fixture(scope="module")
def transformers_model():
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    # Large weights: those of a new model always say the same token.
    config = transformers.XLNetConfig(
        vocab_size=200, d_model=64, n_layer=2, n_head=2, d_inner=128, initializer_range=0.3
    )
    return transformers.XLNetLMHeadModel(config).eval()


@pytest.fixture(scope="module")
def model(transformers_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("huggingface")
    transformers_model.save_pretrained(folder)
    return load_huggingface(folder, task="permutation_lm", memory_length=PROMPT + NEW)


def test_greedy_tokens_are_those_of_transformers(transformers_model, model):
    import torch

    prompts = np.random.default_rng(0).integers(10, 200, (2, PROMPT))
    generate = greedy_generator(model, NEW)
    for prompt in prompts[:, None]:
        output = transformers_model.generate(
            torch.tensor(prompt), do_sample=False, min_new_tokens=NEW, max_new_tokens=NEW
        )
        expected = output[:, PROMPT:].numpy()
        assert len(np.unique(expected)) > 2
        np.testing.assert_array_equal(generate(tf.constant(prompt, "int32")), expected)
