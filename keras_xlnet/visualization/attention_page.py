import importlib.resources
import json
import pathlib
from collections.abc import Sequence

import numpy as np

from keras_xlnet.models.inspection import Inspection
from keras_xlnet.types import PathLike
from keras_xlnet.visualization.attention_maps import TITLES, context_labels

_TEMPLATE = "attention_page.html"
_PLACE = "/* data */ null"
_DIGITS = 4


def write_attention_page(
    path: PathLike,
    inspection: Inspection,
    row: int = 0,
    tokens: Sequence[str] | None = None,
    memory_tokens: Sequence[str] | None = None,
) -> None:
    """Writes an HTML page to browse the attention of one text: layers, streams, heads and terms.

    The page holds everything it needs, and loads nothing from elsewhere. Its size grows with
    layers x heads x length²: it is for short texts.

    Args:
        path: Path of the file to write.
        inspection: What `model.inspect` returned.
        row: Int, index of the text in the batch.
        tokens: Optional list of strings, the tokens of the text.
        memory_tokens: Optional list of strings, the tokens in memory.

    Raises:
        ValueError: If there is no such row, or the tokens are too few or too many.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.visualization import write_attention_page
    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 2, 2, 16, 32)
    >>> inspection = backbone.inspect({"token_ids": np.array([[5, 17, 8]])})
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "attention.html"
    >>> write_attention_page(file, inspection, tokens=["a", "b", "c"])
    """
    first = inspection.attentions[0]
    batch_size = first.mask.shape[0]
    if not 0 <= row < batch_size:
        raise ValueError(f"`row` must be below {batch_size}. Received: row={row}")
    data = {
        "context": context_labels(first, tokens, memory_tokens),
        "memory": first.memory_length,
        "attentions": [_described(attention, row) for attention in inspection.attentions],
    }
    template = importlib.resources.files(__package__).joinpath(_TEMPLATE)
    # A token can be "</script>".
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    page = template.read_text(encoding="utf-8").replace(_PLACE, text)
    pathlib.Path(path).write_text(page, encoding="utf-8")


def _described(attention, row):
    arrays = {
        "probabilities": attention.probabilities,
        **attention.terms,
        "scores": attention.scores,
    }
    return {
        "layer": attention.layer,
        "stream": attention.stream,
        # Places in the context of the tokens that attend.
        "queries": (attention.memory_length + attention.positions[row]).tolist(),
        "mask": attention.mask[row].astype(int).tolist(),
        "shows": list(arrays),
        "titles": [TITLES[name] for name in arrays],
        "values": {
            name: np.round(array[row].astype("float64"), _DIGITS).tolist()
            for name, array in arrays.items()
        },
    }
