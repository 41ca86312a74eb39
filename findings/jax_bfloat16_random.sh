#!/usr/bin/env bash
# One would guess: `jax.random` draws in bfloat16 what it draws in float32, rounded. So `bernoulli` with p = 0.001 is true
# for one of 1,000, and the mean of `normal` is 0.
# What happens: both are made from `uniform` in the same type, which has 128 values in bfloat16, and one of
# them is 0. So `bernoulli(key, p)` with a p in bfloat16 is true for 1 of 128 for each p from tiny to 1/128.
# `normal` and `truncated_normal` have 128 values too, no value above 2.6, and a mean of -0.012 and -0.016: initializers in
# bfloat16 are biased, and more draws do not help. Keras on JAX draws with these functions in the type of the weight.
# Since when: not known. Seen in JAX 0.4.30 and 0.10.2. jax#28017 (open) is about p of less than 1e-7 in float32, jax#30879
# about `categorical`; for `normal` no issue was found. pytorch#166853 reports the like for PyTorch 2.7.1 on a CPU.
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"

cat > "$folder/draws.py" <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np

print("jax", jax.__version__)
key, shape = jax.random.key(0), (1_000_000,)
for dtype in (jnp.float32, jnp.bfloat16):
    true = {p: float(jax.random.bernoulli(key, dtype(p), shape).mean()) for p in (1e-6, 0.001, 0.004, 0.01)}
    normal, truncated = (
        np.asarray(draws, "float64")
        for draws in (
            jax.random.normal(key, shape, dtype), jax.random.truncated_normal(key, -2, 2, shape, dtype)
        )
    )  # fmt: skip
    print(f"{dtype.__name__}: bernoulli", *(f"p={p:g}: {found:.5f}" for p, found in true.items()))
    for name, draws in (("normal", normal), ("truncated_normal", truncated)):
        print(f"    {name}: {np.unique(draws).size:,} values, mean {draws.mean():.4f}, maximum {draws.max():.3f}")
    if dtype is jnp.float32:
        assert abs(true[0.001] - 0.001) < 2e-4 and abs(normal.mean()) < 0.003 and normal.max() > 4
    else:
        assert all(abs(true[p] - 1 / 128) < 5e-4 for p in (1e-6, 0.001, 0.004))
        assert np.unique(normal).size == 128 and normal.max() < 2.6
        assert normal.mean() < -0.009 and truncated.mean() < -0.012
PYTHON

for releases in "jax==0.4.30 jaxlib==0.4.30 numpy==1.26.4" "jax==0.10.2 numpy==2.4.6"; do
    # shellcheck disable=SC2086
    "$folder/venv/bin/pip" install --quiet $releases
    JAX_PLATFORMS=cpu "$folder/venv/bin/python" "$folder/draws.py"
done
