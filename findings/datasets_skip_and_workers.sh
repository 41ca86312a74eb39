#!/usr/bin/env bash
# One would guess: `take(20)` and `skip(20)` of a streamed dataset are disjoint and complete, however each is read.
# What happens: in a `DataLoader` with workers, each worker takes or skips its part of the 20 rows at the beginning of its
# own shards. So `skip(20)` leaves out other rows than without workers. If validation rows are `take(20)` without
# workers and training rows are `skip(20)` with two, half of the validation rows are trained on, and as many rows are in
# neither. With four workers it is three quarters. Numbers of rows are right, and nothing warns.
# Where: `SkipExamplesIterable.shard_data_sources` divides the count by the number of workers.
# Since when: not known. Seen in datasets 5.2.0 with PyTorch 2.13.0. No issue found; datasets#8568 (closed) is about
# `skip` and `split_dataset_by_node`, and datasets#5435 about rows that move when the epoch changes.
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --extra-index-url https://download.pytorch.org/whl/cpu \
    datasets==5.2.0 torch==2.13.0+cpu numpy==2.4.6

cat > "$folder/split.py" <<'PYTHON'
import importlib.metadata

import datasets
from torch.utils.data import DataLoader


def rows(dataset, workers):
    loader = DataLoader(dataset, batch_size=None, num_workers=workers)
    return [int(row["x"]) for row in loader]


if __name__ == "__main__":
    print(*(f"{name} {importlib.metadata.version(name)}" for name in ("datasets", "torch")))
    dataset = datasets.Dataset.from_dict({"x": list(range(100))}).to_iterable_dataset(num_shards=4)
    validation = rows(dataset.take(20), 0)
    for workers, expected in ((0, 0), (1, 0), (2, 10), (4, 15)):
        training = rows(dataset.skip(20), workers)
        both, neither = len({*validation} & {*training}), 100 - len({*validation} | {*training})
        print(f"    {workers} workers: {len(training)} training rows,", end=" ")
        print(f"{both} of them also in validation, {neither} rows in neither")
        assert len(validation) == 20 and len({*training}) == 80 and both == neither == expected
PYTHON
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore "$folder/split.py"
