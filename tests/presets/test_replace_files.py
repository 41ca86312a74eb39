import pytest

from keras_xlnet.presets.replace_files import replace_files

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


@pytest.mark.parametrize("calls", [0, 1, 2])
def test_interrupted_between_files_nothing_says_that_it_is_complete(tmp_path, monkeypatch, calls):
    write(tmp_path, "old")
    done = []

    def replace(source, target):
        if len(done) == calls:
            raise KeyboardInterrupt
        done.append(target)
        source.rename(target)

    monkeypatch.setattr("keras_xlnet.presets.replace_files.os.replace", replace)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, "new")
    assert not (tmp_path / "config.json").exists()
