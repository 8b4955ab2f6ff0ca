"""Excel: every sheet as its rows; a workbook that cannot be read so is left to calamine."""

from garage.config import Extraction
from garage.extract.mirror import canonical, clean_line
from garage.extract.model import Extracted, Malformed, NoText, Unsupported

NAME = "xlsx"
LIBRARIES = ("lxml", "openpyxl", "python-calamine")
SETTINGS = ("max_sheet_rows", "max_cell_chars")
TOOLS = ()
SUFFIXES = dict.fromkeys((".xlsx", ".xlsm", ".xltx", ".xltm"), "tabular")

_WARNINGS = 20


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return `## sheet` for every sheet, hidden ones too, then a line for every row that has text.

    Cells show what a person sees: dates in ISO 8601, numbers by their format, results of formulas, and the formula
    where its result is not kept. Notes follow the text of their cell; headers, footers, text boxes, diagrams and titles
    of charts follow the rows.

    Raises:
        NoText: no cell has a value.
        Encrypted: it opens with a password only.
        Unsupported: it is a file of another program.
        TooLarge: it unpacks to more than a workbook ever would.
        Malformed: the archive, its main part, or all that could have held text is damaged.
    """
    from garage.extract import spreadsheet
    from garage.extract.office import worksheets
    from garage.extract.office.archive import Archive, is_old
    from garage.extract.office.tables import Limits, text

    if is_old(raw):
        return spreadsheet.extract(raw, name=name, settings=settings)
    archive = Archive(raw)
    main = archive.main("xl/workbook.xml")
    if main.endswith(".bin"):
        return spreadsheet.extract(raw, name=name, settings=settings)
    root = archive.xml(main)
    if main not in archive or (root is not None and not str(root.tag).endswith("}workbook")):
        raise Unsupported("it holds no workbook")
    book = worksheets.book(archive, main, root, Limits.of(settings))
    read = [worksheets.write(book, sheet) for sheet in worksheets.sheets(archive, main, root)]
    content = text(read)
    meta = archive.core()
    warnings = [*archive.warnings, *(warning for sheet in read for warning in sheet.warnings())]
    if not content and archive.warnings:
        raise Malformed(archive.warnings[0], meta=meta)
    if not content:
        raise NoText("no cell has a value", meta=meta)
    return Extracted(
        content=canonical(content),
        kind="tabular",
        title=clean_line(meta.pop("title", None)),
        meta={**meta, "sheets": len(read)},
        warnings=tuple(warnings)[:_WARNINGS],
    )
