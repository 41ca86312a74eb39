"""sentencepiece has code that was generated for protobuf 7, and does not require protobuf 7."""

import importlib.metadata
import pathlib
import re

distribution = importlib.metadata.distribution("sentencepiece")
(file,) = [f for f in distribution.files if f.name == "sentencepiece_model_pb2.py"]
source = pathlib.Path(distribution.locate_file(file)).read_text(encoding="utf-8")
check = re.search(r"ValidateProtobufRuntimeVersion\(\s*[\w.]+,\s*(\d+),\s*(\d+)", source)
needed = ".".join(check.groups()) if check else "any"
requirements = [r for r in distribution.requires or [] if r.startswith("protobuf")]
print("sentencepiece", distribution.version)
print(f"expected: the metadata requires protobuf>={needed}, which sentencepiece_model_pb2 checks")
print("happens: ", requirements)
raise SystemExit(needed != "any" and not any(">" in r for r in requirements))
