import sys

from tests.examples import RESEARCH

sys.path.insert(0, str(RESEARCH / "conversion"))
from tokenizer_json import print_differences, read_column


def test_columns_end_only_at_line_ends(tmp_path):
    (tmp_path / "table.tsv").write_text("ham\ta\u2028b\nspam\tc\n", encoding="utf-8")
    assert read_column(tmp_path / "table.tsv", 1) == ["a\u2028b", "c"]


def test_differences_with_the_same_pieces_are_counted_by_themselves(capsys):
    ours, found = [[5, 6], [7, 8], [9, 9], [9]], [[5, 6], [8, 7], [9, 10], [9, 1]]
    print_differences("x", ["a", "b", "c", "d"], ours, found)
    first, *others = capsys.readouterr().out.splitlines()
    assert first == "x: 3 of 4, 1 with the same pieces"
    assert others == ["    'b'... from token 0", "    'c'... from token 1"]
