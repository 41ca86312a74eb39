#!/usr/bin/env bash
# One would guess: two messages of protobuf for Python are equal if their fields are equal. So messages with
# 0.0 and -0.0 are equal, messages with NaN are not even equal to copies of themselves, and neither depends
# on the release or on the implementation (C or Python).
# What happens: all of it depends on both. In newer releases the C implementation (upb) compares bits: NaN
# equals NaN, and 0.0 differs from -0.0. The Python implementation of the same release says the opposite
# of each, and so did upb in protobuf 4. The containers of repeated fields compare as Python's floats
# everywhere, so `a == b` and `a.values == b.values` disagree with upb. A test that compares protos of
# weights or thresholds changes its result with the wheel.
# Since when: seen in protobuf 5.29.5 to 7.36.2 (bits), and in 4.21.12 and 4.25.8 (values).
set -euo pipefail
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"

cat > "$folder/equality.py" <<'PYTHON'
import sys

import google.protobuf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import api_implementation

# message Numbers { optional double value = 1; repeated double values = 2; }
file = descriptor_pb2.FileDescriptorProto(name="numbers.proto", syntax="proto2")
fields = file.message_type.add(name="Numbers").field
fields.add(name="value", number=1, type="TYPE_DOUBLE", label="LABEL_OPTIONAL")
fields.add(name="values", number=2, type="TYPE_DOUBLE", label="LABEL_REPEATED")
pool = descriptor_pool.DescriptorPool()
pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
Numbers = message_factory.GetMessageClass(pool.FindMessageTypeByName("Numbers"))

found = {
    "NaN": Numbers(value=float("nan")) == Numbers(value=float("nan")),
    "0.0 and -0.0": Numbers(value=0.0) == Numbers(value=-0.0),
    "[0.0] and [-0.0]": Numbers(values=[0.0]) == Numbers(values=[-0.0]),
}
containers = Numbers(values=[0.0]).values == Numbers(values=[-0.0]).values
implementation = api_implementation.Type()
print(f"protobuf {google.protobuf.__version__}, {implementation}: equal messages: {found}; equal containers: {containers}")
assert implementation == sys.argv[1] and containers
assert list(found.values()) == ([True, False, False] if sys.argv[2] == "bits" else [False, True, True])
PYTHON

check() { PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=$1 "$folder/venv/bin/python" "$folder/equality.py" "$1" "$2"; }
"$folder/venv/bin/pip" install --quiet protobuf==7.36.2
check upb bits
check python values
"$folder/venv/bin/pip" install --quiet protobuf==4.25.8
check upb values
