"""What the tests of the research programs have in common. All of them are slow tests."""

from tests.examples import RESEARCH
from tests.forks import fork_program


def fork_research(name, *arguments):
    """Runs a research program in a new process, and returns what it did."""
    return fork_program(RESEARCH / f"{name}.py", *arguments)
