"""Tables in Markdown."""


def markdown(head, rows, text_columns=1):
    """Returns a table that ends with a line break; columns after `text_columns` are numbers.

    Args:
        head: Sequence of strings.
        rows: Iterable of sequences of strings.
        text_columns: Int, the number of columns that are text.
    """
    rules = ["---" if column < text_columns else "---:" for column in range(len(head))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rules, *rows))
