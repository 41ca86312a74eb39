#!/usr/bin/env bash
# One would guess: with `mode="strict"`, the functions of seqeval either all count strictly, with the scheme
# that they detect if none is given, or all ask for one.
# What happens: `classification_report(mode="strict")` detects the scheme and counts strictly. `f1_score`,
# `precision_score` and `recall_score` with the same arguments count leniently, without a warning: they
# are strict only if `scheme` is given too. `scheme` alone is ignored by all of them. So a report and the
# F1 beside it can be computed from the same tags with the same arguments and differ: here 0.8 and 1.0.
# The docstrings promise that the score is calculated strictly; the README says to give both arguments.
# Since when: seen in seqeval 1.2.2, the newest release.
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet setuptools==80.9.0 wheel==0.45.1
"$folder/venv/bin/pip" install --quiet numpy==2.3.5 scipy==1.16.3 scikit-learn==1.7.2
"$folder/venv/bin/pip" install --quiet --no-deps --no-build-isolation seqeval==1.2.2

cat > "$folder/strict.py" <<'PYTHON'
import importlib.metadata

from seqeval.metrics import classification_report, f1_score, precision_score, recall_score
from seqeval.scheme import IOB2

# The last prediction has the right span and type, but begins with I-, which IOB2 does not allow.
TRUE = [["B-PER", "O"], ["O", "B-ORG", "I-ORG"], ["B-LOC", "I-LOC"]]
PREDICTED = [["B-PER", "O"], ["O", "B-ORG", "I-ORG"], ["I-LOC", "I-LOC"]]


def scores(**arguments):
    report = classification_report(TRUE, PREDICTED, output_dict=True, zero_division=0, **arguments)
    functions = (f1_score, precision_score, recall_score)
    scores = (float(function(TRUE, PREDICTED, zero_division=0, **arguments)) for function in functions)
    return [round(float(report["micro avg"]["f1-score"]), 2), *(round(score, 2) for score in scores)]


print("seqeval", importlib.metadata.version("seqeval"))
print("F1 of classification_report, f1_score, precision_score, recall_score:")
for arguments in ({}, {"scheme": IOB2}, {"mode": "strict"}, {"mode": "strict", "scheme": IOB2}):
    print(f"    {', '.join(arguments) or 'default'}: {scores(**arguments)}")
assert scores() == scores(scheme=IOB2) == [1.0] * 4
report, *functions = scores(mode="strict")
assert report < 0.9 and functions == [1.0] * 3
assert scores(mode="strict", scheme=IOB2)[:2] == [report, report]
PYTHON
"$folder/venv/bin/python" "$folder/strict.py"
