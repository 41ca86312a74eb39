#!/usr/bin/env bash
# One would guess: a random operator of ONNX without `seed` draws other numbers in each session. The
# specification says that a seed is generated if there is none.
# What happens: ONNX Runtime generates one seed for a process. All sessions of the process draw the same
# sequence from it, also sessions of other models whose random node has the same index in the graph. A
# program with a session for each worker, or one that makes a session for each request, adds equal
# noise everywhere; its average over sessions is no better than one draw. It shows in no test that starts
# a process for each try, since each process has another seed.
# Since when: reported as onnxruntime#27771 for RandomUniform. Seen in ONNX Runtime 1.32.0 on a CPU, for
# RandomNormalLike, RandomUniformLike and Bernoulli.
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6

cat > "$folder/draw.py" <<'PYTHON'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

X = np.full(64, 0.5, "float32")


def session(*operators):
    names = [f"y{i}" for i in range(len(operators))]
    graph = helper.make_graph(
        [helper.make_node(operator, ["x"], [name]) for operator, name in zip(operators, names)],
        "random",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64]) for name in names],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def draw(model):
    return model.run(None, {"x": X})


for operator in ("RandomNormalLike", "RandomUniformLike", "Bernoulli"):
    one, two = session(operator), session(operator)
    first, second = (draw(one)[0], draw(one)[0]), (draw(two)[0], draw(two)[0])
    assert not np.array_equal(first[0], first[1])  # The runs of a session differ,
    assert np.array_equal(first, second)  # but two sessions draw the same.
    print(f"{operator}: two sessions draw the same, beginning with {first[0][:3].round(4)}", file=sys.stderr)
# The first node of another model draws the same as the first node of this one.
other = draw(session("RandomNormalLike", "RandomNormalLike"))
assert np.array_equal(other[0], draw(session("RandomNormalLike"))[0]) and not np.array_equal(*other)
print(other[0].tolist())
if "--versions" in sys.argv:
    print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}", file=sys.stderr)
PYTHON

one=$("$folder/venv/bin/python" "$folder/draw.py" --versions)
two=$("$folder/venv/bin/python" "$folder/draw.py")
[[ "$one" != "$two" ]] && echo "two processes draw different numbers"
