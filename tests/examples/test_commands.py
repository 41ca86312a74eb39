"""Commands on the pages, in docstrings of programs and in `xlnet --help`: all of them are there.

Programs exist and know the flags, with their values; so do targets of make, subcommands of `xlnet`,
extras of the package and targets of Bazel. Nothing is run.
"""

import ast
import collections
import json
import pathlib
import re
import shlex
import sys

import pytest

import xlnet_command
from tests.examples import pages
from tests.forks import fork_program

ROOT = pages.ROOT
PARSER = pathlib.Path(__file__).with_name("parse_commands.py")
MAKEFILE = pages.read(ROOT / "Makefile")
# What `ARGS` of a target is passed to.
PROGRAM_OF_TARGET = {
    target: program.replace(".", "/") + ".py" if module else program
    for target, module, program in re.findall(
        r"^([\w-]+):.*\n\t\$\(BIN\)/python (-m )?(\S+).*\$\(ARGS\)", MAKEFILE, re.MULTILINE
    )
}
# Whose flags stand on a page without their command.
PROGRAMS_OF_PAGE = {
    "docs/pretraining.md": ["research/pretraining/run_pretraining"],
    "docs/results.md": ["research/tasks/results"],
    "docs/spam_classifier.md": ["examples/spam_classifier"],
}
# Programs that a page shows the code of, that belong to something else, or that an export writes.
ELSEWHERE = {"write_records.py", "run_classifier.py", "predict.py"}
PLACEHOLDER = re.compile(r"[A-Z]+|\.\.\.")


def all_commands():
    """Yields the page and the words of each command."""
    for path in [*pages.PAGES, *pages.PROGRAMS]:
        for command in pages.commands(path):
            yield pages.name_of(path), command
    for node in ast.walk(ast.parse(pages.read(ROOT / "xlnet_command.py"))):
        if isinstance(node, ast.Constant) and str(node.value).startswith("xlnet "):
            yield "xlnet_command.py", node.value.split()


COMMANDS = list(all_commands())


def of(name):
    return [(page, words[1:]) for page, words in COMMANDS if words[0] == name and words[1:]]


def calls_of_programs():
    """Returns a dict from programs to the arguments that commands pass to them."""
    found = collections.defaultdict(list)
    for page, words in COMMANDS:
        if words[0] == "python" and words[1:2] == ["-m"] and "." in words[2]:
            words = ["python", words[2].replace(".", "/") + ".py", *words[3:]]
        if words[0] == "python" and len(words) > 1 and words[1].endswith(".py"):
            found[words[1]].append((page, words[2:]))
        elif re.fullmatch(r"\w+\.py .*--.*", " ".join(words)):
            # In tables, without its folder.
            found[f"examples/{words[0]}"].append((page, words[1:]))
        elif words[0] == "make":
            for word in words[2:]:
                if word.startswith("ARGS="):
                    arguments = shlex.split(word.removeprefix("ARGS="))
                    found[PROGRAM_OF_TARGET[words[1]]].append((page, arguments))
        elif words[0].startswith("--") and words[1:]:
            for program in PROGRAMS_OF_PAGE.get(page, ()):
                found[f"{program}.py"].append((page, words))
    return {name: calls for name, calls in found.items() if name not in ELSEWHERE}


PROGRAMS = calls_of_programs()


def test_commands_are_found():
    assert len(COMMANDS) > 200 and len(PROGRAMS) > 30
    assert PROGRAM_OF_TARGET["bench"] == "benchmarks/compare.py"


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_programs_know_their_flags(program):
    calls = [
        [word for word in words if not PLACEHOLDER.fullmatch(word) and word != "--help"]
        for _, words in PROGRAMS[program]
    ]
    files = list(ROOT.glob(PLACEHOLDER.sub("*", program)))
    assert files, f"{program} of {[page for page, _ in PROGRAMS[program]]}"
    if re.search(r"app\.run\(|ArgumentParser\(", pages.read(files[0])):
        result = fork_program(PARSER, files[0], json.dumps(calls))
        assert result.returncode == 0, result.stderr[-2000:]
    else:
        assert not [word for call in calls for word in call if word.startswith("-")]


@pytest.mark.parametrize("words", [["--num_layer", "2"], ["--unit", "letter"], ["--epochs", "x"]])
def test_mistakes_are_found(words):
    result = fork_program(
        PARSER, ROOT / "research" / "pretraining" / "run_pretraining.py", json.dumps([words])
    )
    assert result.returncode != 0 and words[0].strip("-") in result.stderr


def test_targets_and_variables_of_make():
    targets = set(re.findall(r"^([\w-]+):.*## ", MAKEFILE, re.MULTILINE))
    variables = set(re.findall(r"^([A-Z_]+) [?:]= ?", MAKEFILE, re.MULTILINE))
    variables |= set(re.findall(r"\$\((\w+_ARGS)\)", MAKEFILE))
    for page, words in of("make"):
        for word in words:
            name, is_variable, _ = word.partition("=")
            known = variables if is_variable else targets
            assert name in known or PLACEHOLDER.fullmatch(word), (page, words)


def test_subcommands_of_xlnet(capsys):
    found = [(page, words) for page, words in of("xlnet") if not PLACEHOLDER.fullmatch(words[0])]
    assert {words[0] for _, words in found} == {
        "convert",
        "inspect",
        "predict",
        "presets",
        "serve",
        "verify",
    }
    for page, words in found:
        # A name in the text has no arguments: with `--help` none are missing.
        with pytest.raises(SystemExit) as ended:
            if words[1:]:
                xlnet_command.parse(["xlnet", *words])
                sys.exit(0)
            xlnet_command.parse(["xlnet", *words, "--help"])
        assert ended.value.code == 0, (page, words, capsys.readouterr().err)


def test_extras_that_are_installed():
    named = r'(?:xlnet-keras|"?\.)\[([\w,]+)\]'
    text = "".join(map(pages.read, [*pages.PAGES, *(ROOT / "keras_xlnet").rglob("*.py")]))
    extras = {name for names in re.findall(named, text) for name in names.split(",")}
    assert {"text", "serving", "hub"} <= extras <= set(pages.extras_of_the_package())


def test_targets_of_bazel():
    build = pages.read(ROOT / "BUILD")
    for page, words in of("bazel"):
        for target in (word[3:] for word in words if word.startswith("//:")):
            known = f'name = "{target}"' in build or (ROOT / "examples" / f"{target}.py").is_file()
            assert known, (page, target)


def test_tests_that_are_run():
    for page, words in of("pytest"):
        assert (ROOT / words[0]).is_file(), (page, words)


def test_flags_without_a_command_are_those_of_a_program():
    text = "".join(map(pages.read, [*pages.PROGRAMS, ROOT / "xlnet_command.py"]))
    known = set(re.findall(r'(?:DEFINE_\w+\(|add_argument\()\s*"(?:--)?(\w+)"', text))
    known |= {f"no{name}" for name in known} | set(re.findall(r"--(\w+)", MAKEFILE)) | {"help"}
    for page in pages.PAGES:
        if page.name == "beam.md":  # Flags of Beam.
            continue
        for code in pages.inline_code(page):
            for flag in re.findall(r"(?:^| )--(\w+)(?![\w-])", code):
                assert flag in known, (page, code)
