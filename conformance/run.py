"""Runs the conformance cases on an implementation of XLNet. See `conformance/README.md`.

python conformance/run.py conformance/adapters/transformers.py [--json FILE] [--case PART]

Needs NumPy and what the adapter imports. Exits with 1 if a case fails.
"""

import argparse
import importlib.util
import json
import pathlib
import sys

import numpy as np

CASES = pathlib.Path(__file__).parent / "cases"
# Largest absolute difference. Two float32 implementations of the same formula differ by some 1e-5.
TOLERANCE = 1e-4
PASSED, FAILED, UNSUPPORTED = "passed", "FAILED", "not supported"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("adapter", help="Python file with the functions of the cases")
    parser.add_argument("--json", help="file that the results are written to")
    parser.add_argument("--case", default="", help="run only cases whose names contain this")
    arguments = parser.parse_args()
    adapter = load_adapter(arguments.adapter)
    results = [
        {"case": case["name"], **run_case(case, adapter)}
        for case in read_cases()
        if arguments.case in case["name"]
    ]
    print(f"{pathlib.Path(arguments.adapter).stem}: {adapter.VERSIONS}")
    for result in results:
        worst = result["worst"]
        shown = "" if worst is None else f"worst difference {worst:.1e}"
        print(f"{result['case']:32}{result['state']:15}{shown}{result['reason']}")
    if arguments.json:
        report = {"versions": adapter.VERSIONS, "results": results}
        pathlib.Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n")
    return any(result["state"] == FAILED for result in results)


def load_adapter(path):
    """Imports a file as a module. Its name does not hide a package that it imports."""
    spec = importlib.util.spec_from_file_location("conformance_adapter", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_cases():
    """Yields the cases, with arrays in the place of their names."""
    described = json.loads((CASES / "cases.json").read_text(encoding="utf-8"))
    with np.load(CASES / "arrays.npz") as arrays:
        for case in described["cases"]:
            if case["method"] == "tokenize":
                yield case
                continue
            inputs, expected, where = (
                {
                    key: [arrays[n] for n in names] if isinstance(names, list) else arrays[names]
                    for key, names in case[part].items()
                }
                for part in ("inputs", "expected", "where")
            )
            settings = dict(case["settings"])
            config = settings.pop("config", described["config"])
            weights = read_weights(settings.pop("weights", "xlnet_weights.npz"))
            model = {"config": config, "weights": weights}
            stored = {"inputs": inputs, "expected": expected, "where": where}
            yield {**case, **model, **stored, "settings": settings}


def read_weights(name):
    with np.load(CASES / name) as weights:
        return dict(weights)


def run_case(case, adapter):
    """Returns the state of a case, the worst difference, and why it failed."""
    function = getattr(adapter, case["method"], None)
    if function is None:
        return {"state": UNSUPPORTED, "worst": None, "reason": ""}
    try:
        worst = CHECKS[case["check"]](case, function)
    except NotImplementedError as error:
        return {"state": UNSUPPORTED, "worst": None, "reason": str(error)}
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        return {"state": FAILED, "worst": None, "reason": reason}
    state = PASSED if worst <= TOLERANCE else FAILED
    return {"state": state, "worst": float(worst), "reason": ""}


def call(case, function, **changed):
    inputs = {**case["inputs"], **changed}
    outputs = function(case["config"], case["weights"], **inputs, **case["settings"])
    return outputs if isinstance(outputs, dict) else {[*case["expected"]][0]: outputs}


def equal(case, function):
    outputs = call(case, function)
    missing = set(case["expected"]) - set(outputs)
    assert not missing, f"no {sorted(missing)[:3]}"
    where = case["where"].get("where")
    return max(difference(outputs[key], value, where) for key, value in case["expected"].items())


def difference(actual, expected, where=None):
    """The largest difference, in the rows `where` it is true."""
    if isinstance(expected, list):
        return max(difference(a, e) for a, e in zip(actual, expected, strict=True))
    actual = np.asarray(actual, "float64")
    assert actual.shape == expected.shape, f"shape {actual.shape}, not {expected.shape}"
    distance = np.abs(actual - expected)
    distance = distance if where is None else distance[where]
    return np.inf if np.isnan(distance).any() else distance.max()


def no_leak(case, function):
    """Another token at a target changes other predictions, but not the target's own."""
    inputs = case["inputs"]
    logits = logits_of(case, function, inputs["token_ids"])
    rows, worst, others = np.arange(len(logits)), 0.0, 0.0
    for target in range(logits.shape[1]):
        token_ids = inputs["token_ids"].copy()
        places = inputs["target_positions"][:, target]
        token_ids[rows, places] = (token_ids[rows, places] + 7) % 190 + 9
        change = np.abs(logits_of(case, function, token_ids) - logits).max(axis=-1)
        worst = max(worst, change[inputs["target_positions"] == places[:, None]].max())
        others = max(others, change.max())
    assert others > 1e-3, "no prediction depends on the other tokens"
    return worst


def logits_of(case, function, token_ids):
    inputs = {**case["inputs"], "token_ids": token_ids}
    outputs = function(case["config"], case["weights"], **inputs, **case["settings"])
    return np.asarray(outputs, "float64")


def same_ids(case, function):
    """The share of texts with other ids."""
    found = function(str(CASES / "spiece.model"), case["texts"], **case["settings"])
    pairs = zip(found, case["ids"], strict=True)
    return np.mean([list(map(int, ids)) != expected for ids, expected in pairs])


CHECKS = {"equal": equal, "no_leak": no_leak, "same_ids": same_ids}

if __name__ == "__main__":
    sys.exit(main())
