#!/usr/bin/env bash
# One would guess: the same table read with `load_dataset("csv")` and with `load_dataset("json")` of
# Hugging Face datasets has the same features, so the two can be concatenated.
# What happens: with pandas 3, texts from a CSV file or from `Dataset.from_pandas` are `large_string`, and
# texts from JSON lines, text files and `from_list` are `string`. `concatenate_datasets` and
# `interleave_datasets` refuse them: "The features can't be aligned". Even
# `Dataset.from_pandas(dataset.to_pandas())` cannot be concatenated with `dataset`. With pandas 2 all are
# `string`. `dataset.cast(other.features)` helps.
# Since when: pandas 3, whose strings are Arrow's `large_string`. Seen in datasets 5.2.0 with pandas 3.1.1
# (differs) and 2.3.3 (does not). datasets supports pandas 3 since datasets#7981.
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet datasets==5.2.0 pandas==3.1.1 pyarrow==26.0.1 numpy==2.4.6

cat > "$folder/concatenate.py" <<'PYTHON'
import pathlib
import sys

import datasets
import pandas
import pyarrow

folder = pathlib.Path(sys.argv[1]) / pandas.__version__
folder.mkdir()
datasets.disable_progress_bars()
(folder / "a.csv").write_text("text,label\ncall now,1\n")
(folder / "b.jsonl").write_text('{"text": "see you later", "label": 0}\n')


def load(kind, name):
    return datasets.load_dataset(kind, data_files=str(folder / name), split="train", cache_dir=str(folder))


csv, json = load("csv", "a.csv"), load("json", "b.jsonl")
parts = {"CSV": csv, "from_pandas": datasets.Dataset.from_pandas(json.to_pandas())}
print(f"datasets {datasets.__version__}, pandas {pandas.__version__}, pyarrow {pyarrow.__version__}")
print("    JSON:", json.features["text"])
for name, part in parts.items():
    try:
        result = f"{len(datasets.concatenate_datasets([json, part]))} rows"
    except ValueError as error:
        result = f"{type(error).__name__}: {str(error)[:33]}"
    print(f"    {name}: {part.features['text']}; concatenated with JSON: {result}")
    refused = result.startswith("ValueError: The features can't be aligned")
    assert refused if pandas.__version__.startswith("3.") else result == "2 rows"
    assert len(datasets.concatenate_datasets([json, part.cast(json.features)])) == 2
PYTHON

export HF_HUB_OFFLINE=1 HF_HOME="$folder/home"
"$folder/venv/bin/python" "$folder/concatenate.py" "$folder"
"$folder/venv/bin/pip" install --quiet pandas==2.3.3
"$folder/venv/bin/python" "$folder/concatenate.py" "$folder"
