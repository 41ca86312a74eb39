"""Writes the table of docs/conformance.md from the results of `run.py --json`.

python conformance/table.py RESULTS.json... [--page docs/conformance.md]
"""

import argparse
import json
import pathlib
import re

SHOWN = {"passed": "", "FAILED": "**fails**", "not supported": "–"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path, help="page whose table is replaced")
    arguments = parser.parse_args()
    reports = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in arguments.results
    }
    text = "\n".join(table(reports))
    print(text)
    if arguments.page:
        page = arguments.page.read_text(encoding="utf-8")
        marked = r"(<!-- table -->\n).*(\n\n<!-- end of table -->)"
        page, count = re.subn(marked, lambda m: m[1] + text + m[2], page, flags=re.DOTALL)
        if not count:
            raise SystemExit(f"{arguments.page} has no <!-- table --> and <!-- end of table -->")
        arguments.page.write_text(page, encoding="utf-8")


def table(reports):
    """Yields the lines: a row for each case, a column for each implementation."""
    yield f"| case | {' | '.join(reports)} |"
    yield f"| --- |{' ---: |' * len(reports)}"
    columns = [report["results"] for report in reports.values()]
    for cells in zip(*columns, strict=True):
        yield f"| `{cells[0]['case']}` | {' | '.join(map(cell, cells))} |"
    counts = (count(column) for column in columns)
    yield f"| passed, of {len(columns[0])} | {' | '.join(counts)} |"
    yield ""
    for name, report in reports.items():
        yield f"- {name}: {report['versions']}"


def cell(result):
    worst = "" if result["worst"] is None else f"{result['worst']:.0e}"
    return f"{SHOWN[result['state']]} {worst}".strip()


def count(column):
    return str(sum(result["state"] == "passed" for result in column))


if __name__ == "__main__":
    main()
