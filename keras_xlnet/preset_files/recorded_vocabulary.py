"""The vocabulary that a preset's weights were trained with, recorded in its `config.json`."""

import pathlib

from keras_xlnet.preset_files.files import CONFIG, VOCABULARY, file_in, read_json, sha256_of

KEY = "vocabulary_sha256"


def read_vocabulary_sha256(directory: pathlib.Path) -> str | None:
    """Returns the SHA-256 of the vocabulary of a preset's weights, `None` if it is not recorded.

    Args:
        directory: `pathlib.Path` of the preset.

    Raises:
        ValueError: If the folder of the weights has another vocabulary.
    """
    expected = read_json(file_in(directory, CONFIG)).get(KEY)
    if expected is None or not (directory / VOCABULARY).exists():
        return expected
    file = file_in(directory, VOCABULARY)
    found = sha256_of(file)
    if found != expected:
        raise ValueError(
            f"{file} is not the vocabulary of this model, but of another one, or damaged: its "
            f"sha256 is {found}, and {directory / CONFIG} records {expected}"
        )
    return expected
