"""Reference implementation of the original's text rules, in plain Python with sentencepiece."""

import unicodedata

WORD_START = "\u2581"
SEP, CLS = 4, 3


def preprocess_text(text, lowercase=False, remove_space=True, remove_accents=True):
    if remove_space:
        text = " ".join(text.split())
    text = text.replace("``", '"').replace("''", '"')
    if remove_accents:
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in decomposed if unicodedata.combining(c) == 0)
    return text.lower() if lowercase else text


def encode_pieces(encode_as_pieces, text):
    result = []
    for piece in encode_as_pieces(text):
        if len(piece) < 2 or not (piece.endswith(",") and piece[-2].isdigit()):
            result.append(piece)
            continue
        parts = encode_as_pieces(piece[:-1].replace(WORD_START, ""))
        if not piece.startswith(WORD_START) and parts[0].startswith(WORD_START):
            parts[0] = parts[0].removeprefix(WORD_START)
            if not parts[0]:
                del parts[0]
        result += parts + [","]
    return result


def encode_ids(processor, text):
    return [processor.piece_to_id(p) for p in encode_pieces(processor.encode_as_pieces, text)]


def truncate_pair(a, b, room):
    a, b = list(a), list(b)
    while len(a) + len(b) > room:
        (a if len(a) > len(b) else b).pop()
    return a, b


def pack(a, b, sequence_length, padding_side="left", padding_token_id=0):
    """Returns (token_ids, segment_ids, padding_mask) of one example."""
    if b:
        a, b = truncate_pair(a, b, sequence_length - 3)
    else:
        a = a[: sequence_length - 2]
    tokens = [(token, 0, True) for token in [*a, SEP]]
    if b:
        tokens += [(token, 1, True) for token in [*b, SEP]]
    tokens.append((CLS, 2, True))
    padding = [(padding_token_id, 4, False)] * (sequence_length - len(tokens))
    rows = padding + tokens if padding_side == "left" else tokens + padding
    return tuple(map(list, zip(*rows, strict=True)))
