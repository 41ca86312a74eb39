"""Counts the texts for which readers of `tokenizer.json` have other ids than `XLNetTokenizer`.

    npm install --prefix runs/js @huggingface/tokenizers@0.2.0
    python research/conversion/tokenizer_json.py --data ../shared/data --node runs/js

The readers are the Python package tokenizers, which wraps the Rust crate, and the tokenizer of
transformers.js, which needs Node. That one ignores the rules by which a vocabulary cleans texts;
"cleaned" does for it what a vocabulary of a BERT does. `--data` has `sms_spam_collection`, `squad`,
`tasks/imdb` and `tasks/sst2`.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import tokenizers

from keras_xlnet import presets
from keras_xlnet.checkpoints import save_huggingface
from keras_xlnet.models import XLNetBackbone
from keras_xlnet.task_files import read_json_lines, read_squad
from keras_xlnet.tokenizers import XLNetTokenizer

# Of IMDb's.
_REVIEWS = 500
_PROGRAM = """
import { Tokenizer } from "@huggingface/tokenizers";
import fs from "node:fs";
const read = (path) => JSON.parse(fs.readFileSync(path, "utf-8"));
const { directory, texts, cleans } = read(0);
const files = ["tokenizer.json", "tokenizer_config.json"].map((name) => `${directory}/${name}`);
const tokenizer = new Tokenizer(...files.map(read));
// What BERT does: no control characters and accents, lower case, spaces around punctuation and
// ideographs.
const clean = (text) =>
  text.replace(/``|''/g, '"').replace(/\\s/gu, " ").replace(/\\p{C}/gu, "")
    .normalize("NFD").replace(/\\p{Mn}/gu, "").toLowerCase()
    .replace(/[!-/:-@[-`{-~]|\\p{P}|\\p{Script=Han}/gu, " $& ");
const encode = (text) => tokenizer.encode(text, { add_special_tokens: false }).ids;
process.stdout.write(JSON.stringify(texts.map((text) => encode(cleans ? clean(text) : text))));
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--node", type=pathlib.Path, help="the folder with `node_modules`")
    arguments = parser.parse_args()
    texts_by_name = read_texts(arguments.data)
    for preset in presets():
        tokenizer = XLNetTokenizer.from_preset(preset)
        with tempfile.TemporaryDirectory() as directory:
            save_huggingface(XLNetBackbone.from_preset(preset), directory, tokenizer)
            for name, texts in texts_by_name.items():
                ours = [ids.tolist() for ids in tokenizer.encode(texts)]
                found = {"Python": ids_in_python(directory, texts)}
                if arguments.node:
                    for title, cleans in (("JavaScript", False), ("JavaScript, cleaned", True)):
                        found[title] = ids_in_javascript(directory, texts, arguments.node, cleans)
                for reader, ids in found.items():
                    print_differences(f"{preset} {name} {reader}", texts, ours, ids)


def read_texts(folder):
    """Returns the different texts of each data set."""
    squad = read_squad(folder / "squad" / "dev-v2.0-half.json")
    imdb = read_json_lines(folder / "tasks" / "imdb" / "test.jsonl", {"text": "text"})
    return {
        "SMS": read_column(folder / "sms_spam_collection" / "SMSSpamCollection", 1),
        "IMDb": imdb["text"][:_REVIEWS],
        "SQuAD": [*dict.fromkeys(squad["context"] + squad["question"])],
        "SST-2": read_column(folder / "tasks" / "sst2" / "train.tsv", 0),
    }


def read_column(path, column):
    # Not `splitlines`, which also splits at other characters than line ends.
    return [line.split("\t")[column] for line in path.read_text("utf-8").split("\n") if line]


def ids_in_python(directory, texts):
    reader = tokenizers.Tokenizer.from_file(f"{directory}/tokenizer.json")
    return [row.ids for row in reader.encode_batch(texts, add_special_tokens=False)]


def ids_in_javascript(directory, texts, folder, cleans):
    command = ["node", "--input-type=module", "--eval", _PROGRAM]
    content = json.dumps({"directory": directory, "texts": texts, "cleans": cleans}).encode()
    done = subprocess.run(command, input=content, cwd=folder, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def print_differences(title, texts, ours, found):
    rows = [row for row, ids in enumerate(ours) if ids != found[row]]
    # Equally probable splits have the same pieces in another order.
    same_pieces = sum(sorted(ours[row]) == sorted(found[row]) for row in rows)
    print(f"{title}: {len(rows)} of {len(texts)}, {same_pieces} with the same pieces", flush=True)
    for row in rows[:2]:
        # One row may be the beginning of the other.
        place = len(os.path.commonprefix([ours[row], found[row]]))
        print(f"    {texts[row][:60]!r}... from token {place}")


if __name__ == "__main__":
    main()
