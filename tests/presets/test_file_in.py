import os

import pytest

from keras_xlnet.presets import file_in


@pytest.fixture
def outside(tmp_path):
    path = tmp_path / "secret.txt"
    path.write_text("secret")
    return path


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / "preset"
    (path / "assets").mkdir(parents=True)
    (path / "config.json").write_text("{}")
    (path / "assets" / "spiece.model").write_text("")
    return path


def test_finds_files_and_links_within(directory):
    (directory / "link.json").symlink_to("config.json")
    for name in ("config.json", "assets/spiece.model", "link.json"):
        assert file_in(directory, name) == directory / name
    assert file_in(str(directory), "config.json") == directory / "config.json"


def test_what_is_no_file_is_missing(directory):
    os.mkfifo(directory / "pipe")
    (directory / "dangling").symlink_to("nothing")
    for name in ("other.json", "assets", "pipe", "dangling"):
        with pytest.raises(FileNotFoundError, match=f"{name} is missing"):
            file_in(directory, name)


def test_links_that_leave_the_directory_are_refused(directory, outside, tmp_path):
    (directory / "absolute").symlink_to(outside)
    (directory / "relative").symlink_to("../secret.txt")
    (directory / "folder").symlink_to(tmp_path)
    for name in ("absolute", "relative", "folder/secret.txt"):
        with pytest.raises(ValueError, match=rf"{name} is a symlink that leaves.*secret\.txt"):
            file_in(directory, name)


def test_names_that_leave_the_directory_are_refused(directory, outside):
    for name in ("../secret.txt", "assets/../../secret.txt", str(outside)):
        with pytest.raises(ValueError, match="leads out of"):
            file_in(directory, name)


def test_a_link_to_the_directory_itself_is_followed(directory, tmp_path):
    (tmp_path / "link").symlink_to(directory)
    assert file_in(tmp_path / "link", "config.json").read_text() == "{}"


def test_the_cache_of_the_hub_is_taken_as_it_is(tmp_path, outside):
    repository = tmp_path / "models--owner--name"
    snapshot = repository / "snapshots" / "0123abcd"
    (snapshot / "assets").mkdir(parents=True)
    (repository / "blobs").mkdir()
    (repository / "blobs" / "abc").write_text("{}")
    (snapshot / "config.json").symlink_to("../../blobs/abc")
    (snapshot / "assets" / "spiece.model").symlink_to("../../../blobs/abc")
    for directory, name in (
        (snapshot, "config.json"),
        (snapshot, "assets/spiece.model"),
        (snapshot / "assets", "spiece.model"),
    ):
        assert file_in(directory, name).read_text() == "{}"
    (snapshot / "evil.json").symlink_to(outside)
    (repository / "other").write_text("")
    (snapshot / "evil.h5").symlink_to("../../other")
    for name in ("evil.json", "evil.h5"):
        with pytest.raises(ValueError, match="leaves its directory"):
            file_in(snapshot, name)


def test_a_folder_that_is_called_as_the_hubs_is_no_way_out(tmp_path):
    """`blobs` is allowed beside `snapshots` of a cache, not beside any directory."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "abc").write_text("{}")
    directory = tmp_path / "snapshots" / "preset"
    directory.mkdir(parents=True)
    (directory / "config.json").symlink_to("../../blobs/abc")
    with pytest.raises(ValueError, match="leaves its directory"):
        file_in(directory, "config.json")
