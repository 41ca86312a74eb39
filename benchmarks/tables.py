"""Tables in Markdown."""


def markdown(head, rows, text_columns=1):
    """Returns a table with a line break at its end; the columns after the first ones are numbers.

    Args:
        head: Sequence of strings.
        rows: Iterable of sequences of strings.
        text_columns: Int, the number of columns that are text.
    """
    rules = ["---" if column < text_columns else "---:" for column in range(len(head))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rules, *rows))
