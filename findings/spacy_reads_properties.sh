#!/usr/bin/env bash
# One would guess: `Language.add_pipe` reads the same attributes of a component in each process.
# What happens: in some processes it reads a property `model` of any component, and in others it does not. A property that
# loads a model loads it there at once, and its error (other than AttributeError) leaves `add_pipe`. The same program
# with the same input passes in most processes and fails in some. `PYTHONHASHSEED` decides.
# Where: `add_pipe` asks `isinstance(component, ListenedToComponent)`, a protocol with an attribute `model`. Before Python 3.12,
# `isinstance` with a protocol calls `hasattr` for its attributes, in the order of a set of strings, until one is missing.
# Python 3.12 looks them up with `inspect.getattr_static` (https://docs.python.org/3/whatsnew/3.12.html#typing).
# Since when: not known. Seen in spaCy 3.8.18 with Python 3.11.7, not with Python 3.12.1.
set -euo pipefail
shopt -s inherit_errexit  # A command that fails in `$(...)` ends the script.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat > "$folder/component.py" <<'PYTHON'
import spacy
from spacy.language import Language
from spacy.pipeline import Pipe


class Lazy(Pipe):
    is_read = False

    def __init__(self, nlp, name):
        self.name = name

    @property
    def model(self):
        self.is_read = True

    def __call__(self, doc):
        return doc


Language.factory("lazy", func=Lazy)
print("read" if spacy.blank("en").add_pipe("lazy").is_read else "not read")
PYTHON

# Prints how many of the processes print "read" and how many "not read".
count() {
    "$1" -m venv --clear "$folder/venv"
    "$folder/venv/bin/pip" install --quiet spacy==3.8.18
    for seed in $(seq 1 30); do
        PYTHONHASHSEED=$seed "$folder/venv/bin/python" "$folder/component.py"
    done | sort | uniq -c | tr -s ' \n' ' '
}

older=$(count "${PYTHON:-python3.11}")
newer=$(count "${PYTHON312:-python3.12}")
echo "spaCy 3.8.18, hash seeds 1 to 30, Python 3.11:$older"
echo "spaCy 3.8.18, hash seeds 1 to 30, Python 3.12:$newer"
# Which seeds read it depends on the release of Python.
[[ $older == *" not read "*" read "* ]]
[[ $newer == " 30 not read " ]]
