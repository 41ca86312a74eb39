#!/usr/bin/env bash
# One would guess: rows with a sample weight of 0 have no effect on a score, as if they were deleted. So padding and
# unlabeled rows can have any label.
# What happens: that holds for accuracy, balanced accuracy, Cohen's kappa and Matthews' coefficient, and for micro and
# weighted averages. But the macro averages of F1, precision, recall and Jaccard take their classes from all rows: a class
# that only rows of weight 0 have counts with a score of 0. With three classes, a macro F1 of 1 becomes 0.75. `average=None`
# and `confusion_matrix` get one more class.
# Where: `unique_labels` of `precision_recall_fscore_support`. Passing `labels` helps.
# Since when: not known. Seen in scikit-learn 1.2.2 and 1.9.1. No issue found; scikit-learn#18328 fixed the same for
# `precision_recall_curve`.
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"

cat > "$folder/weights.py" <<'PYTHON'
import warnings

import numpy as np
import sklearn
from sklearn import metrics

warnings.simplefilter("ignore")  # That a class has no weight is what some of them say.
print("scikit-learn", sklearn.__version__)
truth = np.array([0, 1, 2, 0, 1, 2, -1, -1])
guess = np.array([0, 1, 2, 0, 1, 2, 0, 2])
weights = np.array([1, 1, 1, 1, 1, 1, 0, 0])
scores = {
    "accuracy": metrics.accuracy_score,
    "balanced accuracy": metrics.balanced_accuracy_score,
    "Cohen's kappa": metrics.cohen_kappa_score,
    "Matthews": metrics.matthews_corrcoef,
    "micro F1": lambda *args, **kwargs: metrics.f1_score(*args, average="micro", **kwargs),
    "weighted F1": lambda *args, **kwargs: metrics.f1_score(*args, average="weighted", **kwargs),
    "macro F1": lambda *args, **kwargs: metrics.f1_score(*args, average="macro", **kwargs),
    "macro precision": lambda *args, **kwargs: metrics.precision_score(*args, average="macro", **kwargs),
    "macro recall": lambda *args, **kwargs: metrics.recall_score(*args, average="macro", **kwargs),
    "macro Jaccard": lambda *args, **kwargs: metrics.jaccard_score(*args, average="macro", **kwargs),
}
for name, score in scores.items():
    weighted, deleted = score(truth, guess, sample_weight=weights), score(truth[weights > 0], guess[weights > 0])
    print(f"    {name}: {weighted:.3f} with weights of 0, {deleted:.3f} without these rows")
    assert np.isclose(weighted, 0.75 if name.startswith("macro") else 1) and np.isclose(deleted, 1)
PYTHON

for releases in "scikit-learn==1.2.2 numpy==1.26.4" "scikit-learn==1.9.1 numpy==2.4.6"; do
    # shellcheck disable=SC2086
    "$folder/venv/bin/pip" install --quiet $releases
    "$folder/venv/bin/python" "$folder/weights.py"
done
