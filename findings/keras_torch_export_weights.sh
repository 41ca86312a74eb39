#!/usr/bin/env bash
# One would guess: `torch.export` of a Keras model on the PyTorch backend gives a program that computes with its parameters,
# as that of a plain `torch.nn.Module` does.
# What happens: the program has each weight twice, as a parameter that nothing reads and as a constant. The file of
# `torch.export.save` is twice as large, `load_state_dict` of the loaded program reports that all keys matched and changes no
# output, and outputs have no gradients. With `strict=True`, which Keras 3.12.4 does not support, there is one copy.
# Where: layers of Keras read weights through `keras.Variable`, beside the parameters that they register. Without
# `strict=True`, what is reached in another way is taken for a constant
# (https://github.com/pytorch/pytorch/issues/163303, about a list of parameters).
# Since when: not known. Seen in Keras 3.12.4 and 3.15.1 with PyTorch 2.13.0.
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"

cat > "$folder/weights.py" <<'PYTHON'
import os
import sys
import warnings

warnings.filterwarnings("ignore")

import keras
import torch

print("Keras", keras.__version__, "PyTorch", torch.__version__)
x = torch.ones(2, 300)
path = f"{sys.argv[1]}/program.pt2"
models = {
    "torch.nn.Linear": torch.nn.Linear(300, 300),
    "keras.layers.Dense": keras.Sequential([keras.Input((300,)), keras.layers.Dense(300)]),
}


def look_at(model, strict):
    """Returns the constants, the copies of the weights, and whether a new state has an effect."""
    torch.export.save(torch.export.export(model, (x,), strict=strict), path)
    copies = os.path.getsize(path) / (300 * 301 * 4)
    program = torch.export.load(path)
    module = program.module()
    before = module(x).detach().clone()
    zeros = {name: torch.zeros_like(value) for name, value in module.state_dict().items()}
    print("       ", module.load_state_dict(zeros))
    after = module(x)
    assert after.requires_grad == (not program.constants)
    return len(program.constants), round(copies), bool((after != before).any())


for name, model in models.items():
    # Strict tracing stops in the trees of Keras 3.12.
    for strict in (False, True)[: 1 if keras.__version__ < "3.15" else 2]:
        found = look_at(model, strict)
        print(f"    {name}, strict={strict}: constants, copies, changed by a new state: {found}")
        is_read = strict or name == "torch.nn.Linear"
        assert found == ((0, 1, True) if is_read else (2, 2, False)), found
PYTHON

for keras in 3.12.4 3.15.1; do
    "$folder/venv/bin/pip" install --quiet --extra-index-url https://download.pytorch.org/whl/cpu \
        "keras==$keras" torch==2.13.0 numpy==2.4.6
    KERAS_BACKEND=torch "$folder/venv/bin/python" "$folder/weights.py" "$folder"
done
