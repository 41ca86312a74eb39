"""The folder `upstream`: issues for other libraries, and programs that reproduce them."""

import importlib.metadata
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
UPSTREAM = ROOT / "upstream"
README = (UPSTREAM / "README.md").read_text(encoding="utf-8")
FAULTS = sorted(path.name for path in UPSTREAM.iterdir() if path.is_dir())
PROGRAMS = [name for name in FAULTS if (UPSTREAM / name / "reproduce.py").exists()]
HEADINGS = (
    "What happens",
    "What is expected",
    "How to reproduce",
    "Cause",
    "Suggestion",
    "Known reports",
)


def text_of(name, file):
    return (UPSTREAM / name / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FAULTS)
def test_every_issue_can_be_sent(name):
    issue = text_of(name, "issue.md")
    assert re.match(r"# .+\n\nRepository: [\w-]+/[\w-]+\n\nVersions: .+\d", issue)
    assert re.findall("^## (.+)$", issue, re.MULTILINE) == list(HEADINGS)
    if name in PROGRAMS:
        assert f"```python\n{text_of(name, 'reproduce.py')}```" in issue
    else:
        assert "not run" in issue  # With the reason.


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_do_not_need_this_package(name):
    assert "keras_xlnet" not in text_of(name, "reproduce.py")


@pytest.mark.parametrize("name", FAULTS)
def test_the_table_says_what_there_is(name):
    (row,) = re.findall(rf"^\| \[{name}\]\({name}/issue\.md\) (.+)$", README, re.MULTILINE)
    *_, reproduced, patch_tried = (cell.strip() for cell in row.strip("|").split("|"))
    assert (reproduced == "yes") == (name in PROGRAMS)
    assert (patch_tried == "yes") == (UPSTREAM / name / "patch.diff").exists()


def test_every_file_of_compat_is_in_the_table():
    files = {path.name for path in (ROOT / "keras_xlnet" / "compat").glob("*.py")}
    assert set(re.findall(r"`(\w+\.py)` \|", README)) == files - {"__init__.py"}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_fault_is_still_there(name):
    program = text_of(name, "reproduce.py")
    for library in re.findall(r"^import (\w+)", program, re.MULTILINE):
        pytest.importorskip(library)
    if importlib.metadata.version("keras").startswith("3.12."):
        pytest.skip("the programs are for Keras 3.15 and newer")
    command = [sys.executable, str(UPSTREAM / name / "reproduce.py")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if run.returncode == 2:
        pytest.skip(run.stdout)
    assert run.returncode != 0, f"upstream has mended this: remove upstream/{name}"
    # Not by another error, such as a name that a new release has removed.
    assert run.returncode == 1 and "happens" in run.stdout, run.stdout + run.stderr
