"""Reads the files of NLP tasks into columns: dicts of equally long lists, to pass to `fit`.

Every reader opens UTF-8 text, with or without a byte order mark. Lines end with `\\n` or `\\r\\n`,
or with `\\r` in a file without `\\n`. Texts stay as they are in the file, spaces included. A file
that is not as its format says raises a `TaskFileError`, one line that names the file, the line or
JSON path, and the column.
"""

from keras_xlnet.task_files.conll import read_conll, write_conll
from keras_xlnet.task_files.cranfield import Cranfield, read_cranfield
from keras_xlnet.task_files.jsonl import read_json_lines
from keras_xlnet.task_files.mctest import read_mctest
from keras_xlnet.task_files.race import read_race
from keras_xlnet.task_files.reporting import TaskFileError
from keras_xlnet.task_files.squad import read_squad
from keras_xlnet.task_files.table import read_table
from keras_xlnet.task_files.wikiqa import read_wikiqa

__all__ = [
    "Cranfield",
    "TaskFileError",
    "read_conll",
    "read_cranfield",
    "read_json_lines",
    "read_mctest",
    "read_race",
    "read_squad",
    "read_table",
    "read_wikiqa",
    "write_conll",
]
