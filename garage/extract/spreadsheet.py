"""Workbooks of Excel before 2007 and binary ones, through calamine, which reads the whole of a sheet at once."""

import datetime as dt
import io
import re

from garage.config import Extraction
from garage.extract.mirror import canonical
from garage.extract.model import Encrypted, Extracted, Malformed, NoText
from garage.extract.office.numberformat import general
from garage.extract.office.tables import Limits, Sheet, text

NAME = "spreadsheet"
LIBRARIES = ("python-calamine",)
SETTINGS = ("max_sheet_rows", "max_cell_chars")
TOOLS = ()
SUFFIXES = dict.fromkeys((".xls", ".xlt", ".xlsb"), "tabular")

_WARNINGS = 20
# The record at the start of a workbook that says how it is locked; calamine tells a locked one only by a file's name.
_LOCKED = re.compile(rb"\x09\x08[\x08\x10]\x00\x00[\x05\x06]\x05\x00.{4,12}?(?:\x86\x00\x00\x00)?\x2f\x00", re.DOTALL)


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return `## sheet` for every sheet of rows, hidden ones too, then a line for every row that has text.

    Raises:
        NoText: no cell has a value.
        Encrypted: it opens with a password only.
        Malformed: it is damaged, or no workbook.
    """
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetTypeEnum, SheetVisibleEnum

    from garage.extract.office.archive import is_old

    del name
    is_old(raw)  # whether it is locked
    limits = Limits.of(settings)
    sheets = []
    warnings = []
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(raw))
    except PasswordError as error:
        raise Encrypted("it opens with a password only", hint="Save a copy of it without the password.") from error
    except CalamineError as error:
        if _LOCKED.search(raw):
            raise Encrypted("it opens with a password only", hint="Save a copy of it without the password.") from error
        raise Malformed(f"it cannot be read as a workbook: {error}") from error
    for about in workbook.sheets_metadata:
        if about.typ != SheetTypeEnum.WorkSheet:
            continue
        sheet = Sheet(" ".join(about.name.split()), limits, hidden=about.visible != SheetVisibleEnum.Visible)
        sheets.append(sheet)
        try:
            rows = workbook.get_sheet_by_name(about.name)
        except CalamineError as error:
            warnings.append(f"the sheet {sheet.name[:100]} cannot be read: {error}")
            continue
        for number, row in enumerate(rows.iter_rows(), start=1):
            cells = {column: shown for column, value in enumerate(row, start=1) if (shown := sheet.cell(_shown(value)))}
            sheet.row((number, cells))
    content = text(sheets)
    if not content:
        raise NoText("no cell has a value")
    warnings += [warning for sheet in sheets for warning in sheet.warnings()]
    return Extracted(canonical(content), "tabular", meta={"sheets": len(sheets)}, warnings=tuple(warnings)[:_WARNINGS])


def _shown(value: object) -> str:
    """A cell's value as a person sees it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return general(value)
    if isinstance(value, dt.datetime):
        bare = value.replace(tzinfo=None, microsecond=0)
        return bare.date().isoformat() if bare.time() == dt.time() else bare.isoformat(" ").removesuffix(":00")
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return str(value)
