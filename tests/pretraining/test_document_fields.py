"""JSON lines and Parquet files: each document is read exactly once, wherever shards are cut."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.pretraining.document_fields import parquet_bytes, read_fields
from keras_xlnet.pretraining.file_systems import BEAM_FILES, TENSORFLOW_FILES
from keras_xlnet.pretraining.text_files import plan_shards

texts = st.lists(
    st.lists(st.sampled_from(["one", "two, three", "é" * 9]), min_size=1, max_size=3), max_size=12
)


def read(path, size, shard_bytes, file_format, files):
    shards = plan_shards({str(path): size}, shard_bytes)
    return [list(read_fields(parts, file_format, "text", "sentences", files)) for parts in shards]


@settings(max_examples=50)
@given(documents=texts, shard_bytes=st.integers(1, 200), newline=st.sampled_from(["\n", "\r\n\n"]))
def test_json_lines_are_read_exactly_once(documents, shard_bytes, newline, tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "a.jsonl"
    lines = [json.dumps({"text": "\n".join(d)}, ensure_ascii=False) for d in documents]
    path.write_bytes(newline.join(lines).encode())
    shards = read(path, path.stat().st_size, shard_bytes, "jsonl", TENSORFLOW_FILES)
    assert sum(shards, []) == documents


@settings(max_examples=20)
@given(documents=texts, shard_bytes=st.integers(1, 200), rows_per_group=st.integers(1, 12))
def test_parquet_rows_are_read_exactly_once(
    documents, shard_bytes, rows_per_group, tmp_path_factory
):
    pytest.importorskip("apache_beam")
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path_factory.mktemp("text") / "a.parquet"
    column = pyarrow.array(["\n".join(document) for document in documents], pyarrow.string())
    table = pyarrow.table({"other": column, "text": column})
    parquet.write_table(table, path, row_group_size=rows_per_group)
    shards = read(
        path, parquet_bytes(str(path), "text", BEAM_FILES), shard_bytes, "parquet", BEAM_FILES
    )
    assert sum(shards, []) == documents


def test_rows_of_a_group_are_divided_equally(tmp_path):
    pytest.importorskip("apache_beam")
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    column = pyarrow.array([f"document {number}" for number in range(5000)])
    parquet.write_table(pyarrow.table({"text": column}), path, row_group_size=3000)
    size = parquet_bytes(str(path), "text", BEAM_FILES)
    shards = read(path, size, size // 7, "parquet", BEAM_FILES)
    assert len(shards) == 8
    assert max(map(len, shards)) - min(map(len, shards)) < 20
