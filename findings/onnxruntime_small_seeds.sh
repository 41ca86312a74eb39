#!/usr/bin/env bash
# One would guess: models whose random operators have the seeds 0, 1, 2, ... draw unrelated numbers, also in
# their first element, and the seeds 1.2 and 1.9 differ: `seed` of ONNX is a float.
# What happens: ONNX Runtime rounds the seed down to an integer and makes it the state of a multiplicative
# generator (`std::default_random_engine`, with libstdc++ x -> 16807 x). So the first uniform number is
# the seed times 0.0000078: below 0.002 for all seeds below 200. The first of all Bernoulli draws with
# p = 0.5 is 0, and the classes that Multinomial draws first count up: 0 0 1 1 2 2 3 3. The seeds 0 and 1
# are the same. So a model that draws one number for each run, with seeds 0 to 199, always takes the same
# branch in its first run.
# Since when: not known. Seen in ONNX Runtime 1.32.0 on a CPU, on Linux.
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6

cat > "$folder/first.py" <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper


def draw(operator, seed, x, kind=TensorProto.FLOAT, **attributes):
    graph = helper.make_graph(
        [helper.make_node(operator, ["x"], ["y"], seed=seed, **attributes)],
        "random",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", kind, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0].ravel()


print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}")
half, seeds = np.full(3, 0.5, "float32"), [float(seed) for seed in range(200)]
for seed in (0.0, 1.0, 1.2, 1.9, 2.0, 3.0, 42.0):
    print(f"    seed {seed}:", *(f"{number:.7f}" for number in draw("RandomUniformLike", seed, half)))
uniform = [draw("RandomUniformLike", seed, half)[0] for seed in seeds]
bernoulli = [int(draw("Bernoulli", seed, half)[0]) for seed in seeds]
logits = np.zeros((1, 4), "float32")
classes = [int(draw("Multinomial", seed, logits, TensorProto.INT32, sample_size=1)[0]) for seed in seeds[:16]]
print(f"first draws of seeds 0 to 199: uniform <= {max(uniform):.4f}, Bernoulli: {sum(bernoulli)} ones")
print("first draws of seeds 0 to 15 from four classes:", *classes)
assert max(uniform) < 0.002 and not any(bernoulli)
assert np.allclose(uniform[1:], np.array(seeds[1:]) * 16807 / (2**31 - 1), rtol=1e-3)
assert classes == sorted(classes[:8]) * 2 and set(classes) == {0, 1, 2, 3}
for seed in (0.0, 1.2, 1.9):
    assert np.array_equal(draw("RandomUniformLike", seed, half), draw("RandomUniformLike", 1.0, half))
PYTHON
"$folder/venv/bin/python" "$folder/first.py"
