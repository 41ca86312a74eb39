"""`fit` of stateful models on arrays, and on batches that are for another backbone."""

import keras
import numpy as np
import pytest

from keras_xlnet.models import TransformerXLLanguageModel, XLNetBackbone, XLNetPermutationLM
from keras_xlnet.pretraining import PermutationBatches, write_token_records
from keras_xlnet.text import XLNetTokenizer

IDS = np.random.default_rng(0).integers(9, 30, (8, 6))


def stateful():
    keras.utils.set_random_seed(3)
    model = TransformerXLLanguageModel(
        30, 1, 2, 16, 32, memory_length=6, dropout=0.0, stateful=True, batch_size=2
    )
    model.compile(keras.optimizers.SGD(0.5))
    return model


def test_batches_are_those_of_the_model_and_in_order():
    expected = stateful().fit(
        {"token_ids": IDS}, IDS, batch_size=2, shuffle=False, epochs=2, verbose=0
    )
    found = stateful().fit({"token_ids": IDS}, IDS, epochs=2, verbose=0)
    assert found.history["loss"] == pytest.approx(expected.history["loss"], rel=1e-6)
    validated = stateful().fit(
        {"token_ids": IDS}, IDS, validation_data=({"token_ids": IDS[:3]}, IDS[:3]), verbose=0
    )
    assert np.isfinite(validated.history["val_loss"][0])


@pytest.mark.parametrize(
    "rows, arguments, message",
    [
        (8, {"batch_size": 4}, "`batch_size` must be .*2. Received: batch_size=4"),
        (7, {}, "`x` must have full batches.*7 rows, batch_size=2"),
        (8, {"shuffle": True}, "`shuffle` must be False.*Received: shuffle=True"),
    ],
)
def test_bad_arguments_are_named(rows, arguments, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        stateful().fit({"token_ids": IDS[:rows]}, IDS[:rows], verbose=0, **arguments)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    (folder / "a.txt").write_text("a cat sat\non a mat\n\na dog ran\n" * 50)
    tokenizer = XLNetTokenizer.train(str(folder / "a.txt"), vocabulary_size=30)
    write_token_records(folder / "a.txt", tokenizer, folder / "records", verbose=0)
    return folder / "records"


@pytest.mark.parametrize("form", [str, lambda path: path])
def test_records_may_be_a_path(form, records):
    batches = PermutationBatches(form(records), 2, 32, 6)
    inputs, *_ = next(iter(batches.dataset()))
    assert inputs["token_ids"].shape == (2, 32)


@pytest.mark.parametrize(
    "of_backbone, message",
    [
        ({"bidirectional_data": True}, "bidirectional_data=True.*with bidirectional_data=False"),
        ({"memory_length": 8, "reuse_length": 4}, "reuse_length=4.*with reuse_length=16"),
        ({"memory_length": 8}, "reuse_length=None.*with reuse_length=16"),
    ],
)
def test_batches_for_another_backbone_are_refused(of_backbone, message, records):
    batches = PermutationBatches(records, 2, 32, 6)
    model = XLNetPermutationLM(XLNetBackbone(30, 1, 2, 16, 32, **of_backbone))
    for data in (batches.dataset(), batches.evaluation_dataset()):
        with pytest.raises(ValueError, match=f"(?s)`x` must be batches.*{message}"):
            model.fit(data, steps_per_epoch=1, verbose=0)
    with pytest.raises(ValueError, match="`validation_data` must be batches"):
        model.fit({}, validation_data=batches.evaluation_dataset(), verbose=0)


def test_batches_for_this_backbone_are_taken(records):
    batches = PermutationBatches(records, 2, 32, 6, reuse_length=16)
    backbone = XLNetBackbone(30, 1, 2, 16, 32, memory_length=16, reuse_length=16)
    model = XLNetPermutationLM(backbone, stateful=True, batch_size=2)
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    assert np.isfinite(model.fit(batches.dataset(), steps_per_epoch=1, verbose=0).history["loss"])
