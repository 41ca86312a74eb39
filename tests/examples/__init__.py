import pathlib

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
