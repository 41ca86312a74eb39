"""Files of directories that need not be trusted, and directories that are never half replaced."""

import os

import pytest

from keras_xlnet.preset_files import file_in, replace_files


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
        with pytest.raises(
            ValueError, match=rf"{name} is a symlink to .*secret\.txt, which is outside"
        ):
            file_in(directory, name)


def test_names_that_leave_the_directory_are_refused(directory, outside):
    for name in ("../secret.txt", "assets/../../secret.txt", str(outside)):
        with pytest.raises(ValueError, match="is outside the directory"):
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
    (snapshot / "evil.safetensors").symlink_to("../../other")
    for name in ("evil.json", "evil.safetensors"):
        with pytest.raises(ValueError, match="is outside its directory"):
            file_in(snapshot, name)


def test_a_folder_that_is_called_as_the_hubs_is_no_way_out(tmp_path):
    """`blobs` is allowed beside `snapshots` of a cache, not beside any directory."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "abc").write_text("{}")
    directory = tmp_path / "snapshots" / "preset"
    directory.mkdir(parents=True)
    (directory / "config.json").symlink_to("../../blobs/abc")
    with pytest.raises(ValueError, match="is outside its directory"):
        file_in(directory, "config.json")


# === Replacing ===

NAMES = ("config.json", "weights", "assets/vocabulary")


def write(directory, version, names=NAMES):
    with replace_files(directory, NAMES) as folder:
        for name in names:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(version)


def read(directory):
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): path.read_text() for path in files}


def test_replaces_its_files_and_leaves_others(tmp_path):
    directory = tmp_path / "a" / "b"
    write(directory, "old")
    assert read(directory) == dict.fromkeys(NAMES, "old")
    (directory / "README.md").write_text("mine")
    write(directory, "new", NAMES[:2])
    assert read(directory) == {"config.json": "new", "weights": "new", "README.md": "mine"}


def test_a_failed_write_leaves_the_old_version(tmp_path):
    write(tmp_path, "old")
    with pytest.raises(OSError, match="disk full"):
        with replace_files(tmp_path, NAMES) as folder:
            (folder / "config.json").write_text("new")
            raise OSError("disk full")
    assert read(tmp_path) == dict.fromkeys(NAMES, "old")


@pytest.mark.parametrize("calls", range(4))
def test_killed_between_files_nothing_marks_it_as_complete(tmp_path, monkeypatch, calls):
    write(tmp_path, "old")
    done = []

    def replace(source, target):
        if len(done) == calls:
            raise KeyboardInterrupt
        done.append(target)
        source.rename(target)

    monkeypatch.setattr("keras_xlnet.preset_files.files.os.replace", replace)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, "new")
    if calls:
        assert not (tmp_path / "config.json").exists()
    else:  # Killed before the first step.
        assert read(tmp_path) == dict.fromkeys(NAMES, "old")


def test_without_names_whatever_was_written_is_replaced(tmp_path):
    (tmp_path / "model" / "old").mkdir(parents=True)
    (tmp_path / "model" / "old" / "weights").write_text("old")
    (tmp_path / "report.txt").write_text("old")
    (tmp_path / "notes.txt").write_text("mine")
    with replace_files(tmp_path) as folder:
        (folder / "model" / "variables").mkdir(parents=True)
        (folder / "model" / "variables" / "data").write_text("new")
        (folder / "report.txt").write_text("new")
        (folder / "pictures").mkdir()
        (folder / "pictures" / "curve.png").write_text("new")
    assert read(tmp_path) == {
        "model/variables/data": "new",
        "report.txt": "new",
        "pictures/curve.png": "new",
        "notes.txt": "mine",
    }
    with pytest.raises(OSError, match="disk full"), replace_files(tmp_path) as folder:
        (folder / "report.txt").write_text("newer")
        raise OSError("disk full")
    assert (tmp_path / "report.txt").read_text() == "new"


def test_a_folder_and_a_file_take_each_others_place(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").write_text("old")
    with replace_files(tmp_path) as folder:
        (folder / "a").mkdir()
        (folder / "a" / "c").write_text("new")
        (folder / "b").write_text("new")
    assert read(tmp_path) == {"a/c": "new", "b": "new"}
