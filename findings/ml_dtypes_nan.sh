#!/usr/bin/env bash
# One would guess: NumPy treats NaN in arrays of bfloat16 and float8 as in float16 and float32: `sort` moves it to the end,
# `nansum` and `nanmean` skip it, `nan_to_num` replaces it.
# What happens, for the types of ml_dtypes, without an error: an array with a NaN comes back from `sort` unsorted, also the
# numbers in it; `unique` returns values twice and counts of 1; `nansum` and `nanmean` give NaN; `nan_to_num` changes
# nothing. `nanmax`, `isnan` and `argmax` are right. Arrays of TensorFlow and JAX in bfloat16 become this type with
# `np.asarray`.
# Where: the comparison that ml_dtypes registers for sorting has no rule for NaN, and NumPy's NaN functions do nothing
# if the type is not a subtype of `np.inexact`, which is so for types from outside.
# Since when: not known. Seen in ml_dtypes 0.2.0 and 0.6.0 with NumPy 1.26.4 and 2.4.6. No issue found;
# ml_dtypes#206 is the same cause in `assert_array_equal`.
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"

cat > "$folder/nan.py" <<'PYTHON'
import importlib.metadata
import warnings

import ml_dtypes
import numpy as np

print(*(f"{name} {importlib.metadata.version(name)}" for name in ("ml_dtypes", "numpy")))
warnings.simplefilter("ignore", RuntimeWarning)
for dtype in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2):
    x = np.array([3, np.nan, 1, 2, np.nan, 1], dtype)
    values, counts = np.unique(x, return_counts=True)
    results = {
        "sort": np.sort(x), "unique": values, "counts": counts, "nansum": np.nansum(x), "nanmean": np.nanmean(x),
        "nan_to_num": np.nan_to_num(x), "nanmax": np.nanmax(x), "argmax": np.argmax(x),
    }  # fmt: skip
    print(np.dtype(dtype).name, *(f"{name} {value}".replace("\n", "") for name, value in results.items()), sep="\n    ")
    found = [bool(np.isnan(results[name]).any()) for name in ("nansum", "nanmean", "nan_to_num")]
    ones = np.flatnonzero(values == dtype(1)).size
    is_sorted = np.array_equal(np.sort(x).astype("float32"), np.sort(x.astype("float32")), equal_nan=True)
    assert (found, ones, is_sorted) == (([False] * 3, 1, True) if dtype is np.float16 else ([True] * 3, 2, False))
    assert results["nanmax"] == 3 and results["argmax"] == 1
PYTHON

for releases in "ml_dtypes==0.2.0 numpy==1.26.4" "ml_dtypes==0.6.0 numpy==2.4.6"; do
    # shellcheck disable=SC2086
    "$folder/venv/bin/pip" install --quiet $releases
    "$folder/venv/bin/python" "$folder/nan.py"
done
