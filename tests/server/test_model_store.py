"""Versions that come and go in a directory of models."""

import shutil
import threading

import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.server import ModelStore
from keras_xlnet.server.request_error import RequestError
from keras_xlnet.serving.warmup import make_warmup_requests, write_warmup_requests
from tests.server.running_server import serve
from tests.server.small_models import save_half_plus, write_details


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """SavedModels that add 1, 2 and 3."""
    folder = tmp_path_factory.mktemp("saved")
    for addend in (1, 2, 3):
        save_half_plus(folder / str(addend), float(addend))
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    shutil.copytree(saved / "1", tmp_path / "half" / "1")
    return tmp_path


def opened(folder):
    store = ModelStore(folder)
    store.refresh()
    return store


def answer(store):
    return store.get("half").run("serving_default", {"x": np.float32([2])})["y"][0]


def states(store):
    return [
        (s.version, type(s).State.Name(s.state)) for s in store.status("half").model_version_status
    ]


def test_a_new_version_takes_the_place_of_the_old_one(saved, folder):
    store = opened(folder)
    assert answer(store) == 2
    old = store.get("half")
    # By number, not by name: "10" is before "9" in the order of names.
    shutil.copytree(saved / "2", folder / "half" / "9")
    shutil.copytree(saved / "3", folder / "half" / "10")
    store.refresh()
    assert (store.get("half").number, answer(store)) == (10, 4)
    assert states(store) == [(10, "AVAILABLE")]
    # A request that holds the old version finishes.
    assert old.run("serving_default", {"x": np.float32([2])})["y"] == [2]
    with pytest.raises(RequestError, match=r"Specific\(half, 1\)"):
        store.get("half", 1)
    shutil.rmtree(folder / "half" / "10")
    store.refresh()
    assert (store.get("half").number, answer(store)) == (9, 3)
    shutil.rmtree(folder / "half")
    store.refresh()
    assert store.names == []
    with pytest.raises(RequestError, match="Could not find any versions of model half"):
        store.status("half")


def cut_graph(directory):
    path = directory / "saved_model.pb"
    path.write_bytes(path.read_bytes()[:-50])


def without_variables(directory):
    shutil.rmtree(directory / "variables")


def garbage(directory):
    (directory / "saved_model.pb").write_bytes(b"\x00garbage\xff" * 9)


def refused_warmup(directory):
    spec = tf.TensorSpec((None,), tf.string, "x")
    write_warmup_requests(make_warmup_requests(["text"], [spec]), directory)


@pytest.mark.parametrize("damage", [cut_graph, without_variables, garbage, refused_warmup])
def test_a_broken_version_leaves_the_old_one(saved, folder, damage, caplog):
    shutil.copytree(saved / "2", folder / "new")
    damage(folder / "new")
    store = opened(folder)
    (folder / "new").rename(folder / "half" / "2")
    store.refresh()
    assert (store.get("half").number, answer(store)) == (1, 2)
    assert states(store) == [(2, "END"), (1, "AVAILABLE")]
    (status,) = store.status("half", 2).model_version_status
    assert status.status.error_code == 2 and "\n" not in status.status.error_message
    assert status.status.error_message == store.failures["half", 2] != ""
    assert len([r for r in caplog.records if "version 2 cannot be loaded" in r.message]) == 1
    # It is not tried again, until its files change.
    store.refresh()
    assert len([r for r in caplog.records if "version 2 cannot be loaded" in r.message]) == 1
    shutil.rmtree(folder / "half" / "2")
    shutil.copytree(saved / "2", folder / "half" / "2")
    store.refresh()
    assert states(store) == [(2, "AVAILABLE")] and answer(store) == 3
    assert store.failures == {}


def test_warmup_requests_run(saved, folder, monkeypatch):
    shutil.copytree(saved / "2", folder / "half" / "2")
    spec = tf.TensorSpec((None,), tf.string, "x")
    (request,) = make_warmup_requests(["1"], [spec])
    request.predict_log.request.inputs["x"].CopyFrom(tf.make_tensor_proto([4.0]))
    write_warmup_requests([request], folder / "half" / "2")
    ran = []
    from keras_xlnet.server.served_version import ServedVersion

    run = ServedVersion.run
    monkeypatch.setattr(ServedVersion, "run", lambda *args: ran.append(args[2]) or run(*args))
    opened(folder)
    assert [x["x"].tolist() for x in ran] == [[4.0]]


def test_what_is_no_version_is_not_read(folder):
    numbers = (str(2**63), "1" * 20, "-1", "1.5", "\u0663", "1e3")
    for name in ("latest", ".2", *numbers):
        (folder / "half" / name).mkdir()
    for name in numbers:
        shutil.copy(folder / "half" / "1" / "saved_model.pb", folder / "half" / name)
    (folder / "half" / "3").mkdir()  # Without a SavedModel: it is being copied.
    (folder / "half" / "4").write_text("a file")
    (folder / "readme.txt").write_text("a file")
    (folder / "empty").mkdir()
    store = opened(folder)
    assert store.names == ["half"] and states(store) == [(1, "AVAILABLE")]
    with pytest.raises(ValueError, match="is not a directory"):
        ModelStore(folder / "readme.txt")


def test_the_status_while_a_version_is_loading(saved, folder, monkeypatch):
    store = opened(folder)
    shutil.copytree(saved / "2", folder / "half" / "2")
    begun, go_on = threading.Event(), threading.Event()
    load = tf.saved_model.load

    def load_slowly(path):
        begun.set()
        assert go_on.wait(60)
        return load(path)

    monkeypatch.setattr(tf.saved_model, "load", load_slowly)
    thread = threading.Thread(target=store.refresh)
    thread.start()
    assert begun.wait(60)
    assert states(store) == [(2, "LOADING"), (1, "AVAILABLE")] and answer(store) == 2
    go_on.set()
    thread.join(60)
    assert states(store) == [(2, "AVAILABLE")] and answer(store) == 3


@pytest.mark.parametrize(
    "details, names",
    [
        (None, []),
        ('{"class_names": ["ham", "spam"]}', ["ham", "spam"]),
        ('{"class_names": null}', []),
        ("{}", []),
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"class_names": [1, 2]}', "is damaged"),
        ('{"class_names": "ham"}', "is damaged"),
    ],
)
def test_names_of_classes(details, names, folder, caplog):
    if details is not None:
        write_details(folder / "half" / "1", details)
    # Without names that can be read, the model answers all the same.
    with serve(folder) as (client, store):
        found = client.get("/v1/models/half/versions/1/classes")
        assert answer(store) == 2
    is_damaged = names == "is damaged"
    assert found == (200, {"class_names": [] if is_damaged else names})
    assert ("model_details.json is damaged" in caplog.text) == is_damaged
