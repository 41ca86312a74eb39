"""The file of finished runs, which a restarted command does not repeat."""

import json


class FinishedRuns:
    """A file with a line of JSON for each finished run.

    Args:
        path: `pathlib.Path` of the file.

    Attributes:
        rows: Dict of the lines, by the values of their `run`.
    """

    def __init__(self, path):
        self.path, self.rows = path, {}
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        complete = text[: text.rfind("\n") + 1]
        if complete != text:  # The command was killed while writing a line.
            path.write_text(complete, encoding="utf-8")
        for line in complete.splitlines():
            self._keep(json.loads(line))

    def __contains__(self, run):
        return tuple(run.values()) in self.rows

    def add(self, run, metrics, seconds):
        """Adds a run, a dict of everything that the metrics depend on."""
        row = {"run": run, "metrics": metrics, "seconds": round(seconds, 1)}
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        self._keep(row)

    def _keep(self, row):
        self.rows[tuple(row["run"].values())] = row
