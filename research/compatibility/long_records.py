"""Writes the token records of a large corpus in several ways, and compares the files.

    python research/compatibility/long_records.py corpus.txt spiece.model runs/long_records
    python research/compatibility/long_records.py corpus.txt spiece.model runs/long_records --beam

The first command writes with one process and with two; the second one with Apache Beam's runner of
local processes, in an environment with the extra `beam`. Each way is a folder with the same shards.
"""

import argparse
import hashlib
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from keras_xlnet.tokenizers import XLNetTokenizer

# The runner that Beam installs. Prism is a program that it downloads.
_BEAM = [
    "--runner=FnApiRunner",
    "--direct_num_workers=2",
    "--direct_running_mode=multi_processing",
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=pathlib.Path, help="text with a paragraph in each line")
    parser.add_argument("vocabulary", type=pathlib.Path)
    parser.add_argument("output_dir", type=pathlib.Path)
    parser.add_argument("--beam", action="store_true")
    arguments = parser.parse_args()
    files = arguments.corpus, XLNetTokenizer(arguments.vocabulary)
    if arguments.beam:
        from keras_xlnet.pretraining import write_token_records_with_beam

        ways = {
            "beam": lambda folder: write_token_records_with_beam(
                *files, folder, lines="paragraphs", pipeline_options=_BEAM
            )
        }
    else:
        from keras_xlnet.pretraining import write_token_records

        ways = {
            f"processes_{number}": lambda folder, number=number: write_token_records(
                *files, folder, lines="paragraphs", num_processes=number
            )
            for number in (1, 2)
        }
    for name, write in ways.items():
        folder = arguments.output_dir / name
        start = time.perf_counter()
        write(folder)
        seconds = time.perf_counter() - start
        shards = sorted(folder.iterdir())
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in shards)).hexdigest()
        size = sum(path.stat().st_size for path in shards)
        print(f"{name}: {seconds:.0f} s, {len(shards)} files, {size} bytes, SHA-256 {digest[:16]}")


if __name__ == "__main__":
    main()
