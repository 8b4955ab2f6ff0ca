"""A table in a document is one of Markdown, whatever the document is."""


def markdown(rows: list[list[str]]) -> str:
    """Rows of cells, each one line of text, as a Markdown table; empty rows are left out, '' when nothing remains."""
    kept = [[cell.replace("|", "\\|") for cell in row] for row in rows if any(row)]
    width = max(map(len, kept), default=0)
    lines = ["| " + " | ".join(row + [""] * (width - len(row))) + " |" for row in kept]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]]) if lines else ""
