"""Turns a folder of text into a shuffled training file and held-out files, one for each source."""

import gzip
import lzma
import pathlib
import random
import re
import zlib

OPENERS = {".gz": gzip.open, ".xz": lzma.open}
BLANK_LINES = re.compile(r"\n\s*\n")
SHUFFLE_SEED = 0


def prepare_corpus(folder, output_dir, held_out_percent=1):
    """Splits the documents of a folder into `train.txt` and `held_out/SOURCE.txt`.

    Each file of the folder is a source with documents separated by blank lines, and each folder in
    it is a source with one document per file, such as books. Whole documents are held out, chosen
    by checksum: a document stays on its side when others are added. The training documents of
    all sources are shuffled. Blank lines within a document are removed. An existing corpus
    is kept.

    Args:
        folder: `pathlib.Path` of a folder of UTF-8 text files: `.txt`, `.txt.gz` or `.txt.xz`.
        output_dir: `pathlib.Path` of the folder to write.
        held_out_percent: Int, the percentage of the documents of each source that is held out.

    Returns:
        The path of the training file and the list of the held-out files.

    Raises:
        ValueError: If the folder has no text files, a file is not UTF-8 text, or no document is
            held out or left to train on.
    """
    train, held_out = output_dir / "train.txt", output_dir / "held_out"
    if not train.is_file():
        kept, left_out = [], {}
        for source, documents in read_sources(pathlib.Path(folder)):
            for document in documents:
                is_kept = zlib.crc32(document.encode()) % 100 >= held_out_percent
                (kept if is_kept else left_out.setdefault(source, [])).append(document)
        if not kept or not left_out:
            raise ValueError(
                f"{folder} has too few documents: {len(kept)} to train on, "
                f"{sum(map(len, left_out.values()))} held out. Documents are separated by blank "
                "lines, or are the files of a folder within it"
            )
        random.Random(SHUFFLE_SEED).shuffle(kept)
        held_out.mkdir(parents=True, exist_ok=True)
        for source, documents in left_out.items():
            write_documents(held_out / f"{source}.txt", documents)
        # Last: it marks that the corpus is complete.
        write_documents(train, kept)
    return train, sorted(held_out.glob("*.txt"))


def read_sources(folder):
    """Yields the name and the documents of each source of a folder."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    paths = [path for path in paths if path.is_dir() or is_text(path)]
    if not paths:
        raise ValueError(f"{folder} is not a folder with .txt, .txt.gz or .txt.xz files")
    for path in paths:
        if path.is_dir():
            files = sorted(p for p in path.rglob("*") if is_text(p))
            documents = [BLANK_LINES.sub("\n", read_text(file)).strip() for file in files]
        else:
            documents = [part.strip() for part in BLANK_LINES.split(read_text(path))]
        yield path.name.split(".txt")[0], [document for document in documents if document]


def is_text(path):
    return path.is_file() and path.name.endswith((".txt", ".txt.gz", ".txt.xz"))


def read_text(path):
    try:
        with OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8") as file:
            return file.read()
    except (UnicodeDecodeError, EOFError, OSError, lzma.LZMAError) as error:
        raise ValueError(f"{path} cannot be read as UTF-8 text: {error}") from error


def write_documents(path, documents):
    temporary = path.with_suffix(".tmp")
    temporary.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    temporary.replace(path)
