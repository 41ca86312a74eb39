#!/usr/bin/env bash
# One would guess: a column of a CSV file has one type, found from all rows or from the first ones. If it is text, all rows
# keep their spelling.
# What happens: `load_dataset("csv")` reads 10,000 rows at a time, and pandas finds the type of each part by itself. A part
# with only numbers or booleans becomes numbers, and then text again, because the first part was text: "007" is read
# as "7", "1.10" as "1.1", "True" as "true". The last part can be a single row. So in one column, the first rows keep their
# spelling and later ones lose it. With `streaming=True`, the later ones are numbers, and a column has several types, unless
# the cache knows the types of the file from a call without streaming.
# Where: `Csv._generate_tables`, which passes types to pandas only if `features` are given.
# Since when: not known. Seen in datasets 2.14.7 with pandas 2.1.4 and in datasets 5.2.0 with pandas 3.1.1. No issue found.
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"

cat > "$folder/csv_chunks.py" <<'PYTHON'
import importlib.metadata
import pathlib
import sys
import tempfile

import datasets

print(*(f"{name} {importlib.metadata.version(name)}" for name in ("datasets", "pandas", "pyarrow")))
datasets.disable_progress_bar()
folder = pathlib.Path(tempfile.mkdtemp(dir=sys.argv[1]))
for value, mapped, streamed in (("007", "7", 7), ("1.10", "1.1", 1.1), ("True", "true", True)):
    # 10,000 rows of text, one of which is a word, and one more row.
    texts = ["word", *[value] * 9999, value]
    path = folder / "texts.csv"
    path.write_text("\n".join(["text", *texts]) + "\n")
    arguments = {"data_files": str(path), "split": "train", "cache_dir": str(folder / value)}
    rows = list(datasets.load_dataset("csv", **arguments, streaming=True))
    table = datasets.load_dataset("csv", **arguments)
    print(f"    row 10,000: {table[9999]['text']!r}, row 10,001: {table[10000]['text']!r},", end=" ")
    print(f"streaming: {rows[9999]['text']!r} and {rows[10000]['text']!r}")
    assert (table[9999]["text"], table[10000]["text"]) == (value, mapped)
    assert (rows[9999]["text"], rows[10000]["text"]) == (value, streamed)
PYTHON

export HF_HUB_OFFLINE=1 HF_HOME="$folder/home"
old="datasets==2.14.7 pandas==2.1.4 pyarrow==14.0.2 numpy==1.26.4"
for releases in "$old" "datasets==5.2.0 pandas==3.1.1 pyarrow==26.0.1 numpy==2.4.6"; do
    # shellcheck disable=SC2086
    "$folder/venv/bin/pip" install --quiet $releases
    "$folder/venv/bin/python" "$folder/csv_chunks.py" "$folder"
done
