"""The faults in docs/upstream.md are still there. A test that fails says what can be deleted."""

import importlib.metadata
import inspect
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
from typing import NamedTuple

import pytest

from keras_xlnet import compat

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "upstream.md"
MODULES = [module.name for module in pkgutil.iter_modules(compat.__path__)]
FAST, SLOW = "`make test`.", "`make test-all`."


class Entry(NamedTuple):
    """A fault: its heading, the code that precedes its own, its code, and its last lines."""

    heading: str
    setup: str
    code: str
    fields: dict

    @property
    def error(self):
        """The name of the error that the last line raises, empty if it is an assertion."""
        return (re.findall(r"  # (\w+Error)$", self.code) or [""])[0]

    @property
    def files(self):
        """The paths in the line "Here"."""
        return re.findall(r"`([\w/]+\.py)`", self.fields["Here"])


def read_entries():
    """Yields an `Entry` for each `###` of the page."""
    head, *sections = re.split("^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for section in sections:
        start, *texts = re.split("^### ", section, flags=re.MULTILINE)
        for text in texts:
            fields = re.findall(r"^- (\w[\w ]*): (.+(?:\n  .+)*)", text, re.MULTILINE)
            setup = code_of(head) + code_of(start)
            yield Entry(text.partition("\n")[0], setup, code_of(text).rstrip(), dict(fields))


def code_of(text):
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))


ENTRIES = list(read_entries())


def entries_with(mark):
    return [
        pytest.param(entry, id=entry.heading.replace("`", "").replace(" ", "_"))
        for entry in ENTRIES
        if entry.fields["Tested by"] == mark
    ]


# === The code ===


@pytest.mark.parametrize("entry", entries_with(FAST))
def test_the_fault_is_there(entry, request):
    skip_older_releases(entry)
    if "strategy" in entry.code:
        request.getfixturevalue("two_replicas")
    check(entry, error_in_this_process(entry))


@pytest.mark.slow
@pytest.mark.parametrize("entry", entries_with(SLOW))
def test_the_fault_is_there_in_a_process_of_its_own(entry):
    skip_older_releases(entry)
    check(entry, error_in_another_process(entry))


def skip_older_releases(entry):
    name, *first = re.match(r"([\w-]+) (\d+)\.(\d+)", entry.fields["Seen in"]).groups()
    try:
        version = importlib.metadata.version(name.lower())
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    if [int(part) for part in version.split(".")[:2]] < [int(part) for part in first]:
        pytest.skip(f"{name} {version} is older than what the entry is about")


def error_in_this_process(entry):
    """Runs the code. Returns the name of the error that its last line raises, or nothing."""
    *lines, last = entry.code.splitlines()
    names = {}
    exec("\n".join([entry.setup, *lines]), names)
    try:
        exec(last, names)
    except Exception as error:
        return type(error).__name__
    return ""


def error_in_another_process(entry):
    """Returns the name of the error that the code raises, or nothing."""
    # Without waiting for what the code leaves behind.
    program = "\n".join([entry.setup, entry.code, "import os", "os._exit(0)"])
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow"}
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    if run.returncode == 0:
        return ""
    return re.findall(r"^[\w.]*?(\w+Error)\b", run.stderr, re.MULTILINE)[-1]


def check(entry, error):
    if error == entry.error:
        return
    if error in ("", "AssertionError"):
        pytest.fail(
            f"upstream works: delete the entry {entry.heading!r} of {PAGE.name}, and what works "
            f"around it: {', '.join(entry.files) or 'nothing'}"
        )
    pytest.fail(
        f"{entry.heading!r} raises {error} now: {PAGE.name} says {entry.error or 'nothing'}"
    )


@pytest.mark.parametrize("run", [error_in_this_process, error_in_another_process])
@pytest.mark.parametrize(
    "code, message",
    [
        ("x = 1\nassert x == 2", r"upstream works: delete the entry 'Sums'.*: compat/sums\.py"),
        ("int('1')  # ValueError", "upstream works: delete the entry"),
        ("int(None)  # ValueError", "raises TypeError now: upstream.md says ValueError"),
        ("x = 1\nassert y == 1", "raises NameError now: upstream.md says nothing"),
    ],
)
def test_a_mended_fault_fails(run, code, message):
    entry = Entry("Sums", "", code, {"Here": "`compat/sums.py` adds."})
    with pytest.raises(pytest.fail.Exception, match=message):
        check(entry, run(entry))


# === The page ===


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.heading)
def test_every_entry_is_complete(entry):
    assert list(entry.fields) == ["Seen in", "Here", "State", "Tested by"]
    assert re.match(r"not reported|reported as \[|requested in \[", entry.fields["State"])
    # Nothing but a mark, or why there is none.
    mark = entry.fields["Tested by"]
    assert mark in (FAST, SLOW) or re.match(r"nothing\. \w.+\.$", mark, re.DOTALL)
    assert "keras_xlnet" not in entry.setup + entry.code
    assert entry.code or mark.startswith("nothing")
    last = entry.code.splitlines()[-1:]
    assert not last or last[0].startswith("assert ") != bool(entry.error)
    for file in entry.files:
        assert (ROOT / "keras_xlnet" / file).exists() or (ROOT / file).exists()


@pytest.mark.parametrize("module", MODULES)
def test_every_file_of_compat_names_its_entries(module):
    text = " ".join(inspect.getdoc(pkgutil.resolve_name(f"{compat.__name__}.{module}")).split())
    for label in ("Upstream", "Reproduction", "docs/upstream.md, ", "Delete this file when:"):
        assert label in text
    named = {entry.heading for entry in ENTRIES if f'"{entry.heading}"' in text}
    assert named == {entry.heading for entry in ENTRIES if f"compat/{module}.py" in entry.files}
    assert named
