"""The sheets of a workbook (SpreadsheetML), row by row and never a whole sheet at a time.

openpyxl opens the strict dialect as a workbook without sheets, has no interface for comments while it streams, and
gives either the formulas or their results; the rows are read as they are. It tells what its number formats mean.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from garage.extract.office.archive import BROKEN, attribute, elements, forget, local, natural
from garage.extract.office.drawing import graphics, paragraph_text
from garage.extract.office.numberformat import general, shown
from garage.extract.office.tables import COLUMNS, Limits, Sheet

if TYPE_CHECKING:
    from garage.extract.office.archive import Archive, Element

_CELL = re.compile(r"([A-Za-z]{1,3})([0-9]{1,7})")
_ROWS = re.compile(rb"<(?:\w+:)?row[\s/>]")
_FILLED = re.compile(rb"<(?:\w+:)?(?:v|t|f)[ >]")
_BLOCK = 1024 * 1024
_MARGINS = tuple(f"{{*}}{which}{what}" for what in ("Header", "Footer") for which in ("odd", "even", "first"))
_MARGIN_CODES = re.compile(r'&(?:"[^"]*"|K[0-9A-Fa-f]{6}|K\d\d[+-]\d{3}|\d+|[A-MOQ-Za-z])')
_PAGES = re.compile(r"\w*\s*&P(?:\s*\S+\s*&N)?|&N")
_FORMAT = 255  # characters of a number format in the programs that people use
_THREAD = 10  # times the limit of a cell
_STRINGS = 5_000_000  # shared strings of one workbook


@dataclass(slots=True)
class Book:
    """What all sheets of a workbook share."""

    archive: "Archive"
    limits: Limits
    strings: list[str]
    formats: list[str]
    epoch_1904: bool = False
    authors: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Named:
    """A sheet of a workbook: its name, the part that holds it, and whether it is hidden."""

    name: str
    part: str
    hidden: bool


def sheets(archive: "Archive", main: str, root: "Element | None") -> list[Named]:
    """The sheets of rows in their order, none twice; those that are one chart, or that the file has lost, are none.

    Where all that tells of them is damaged, they are found by their usual names.
    """
    relations = archive.relations(main)
    targets = {relation.identifier: relation for relation in relations}
    spare = iter([relation for relation in relations if relation.kind == "worksheet"])
    found: list[Named] = []
    read: set[str] = set()
    for sheet in root.iterfind("{*}sheets/{*}sheet") if root is not None else ():
        identifier = attribute(sheet, "id")
        relation = targets.get(identifier) if identifier else next(spare, None)
        name = " ".join((sheet.get("name") or "").split()) or f"Sheet {len(found) + 1}"
        if relation is not None and relation.target in read:
            continue
        if relation is None:
            archive.warn(f"of the sheet {name}", "is missing")
        elif relation.kind == "worksheet":
            read.add(relation.target)
            found.append(Named(name, relation.target, sheet.get("state", "visible") != "visible"))
    lost = archive.numbered("xl/worksheets/sheet") if archive.warnings and not found else []
    return found or [Named(f"Sheet {number}", part, hidden=False) for number, part in enumerate(lost, start=1)]


def book(archive: "Archive", main: str, root: "Element | None", limits: Limits) -> Book:
    """Read what the sheets of a workbook refer to: strings, number formats, the epoch of its dates, names of people."""
    properties = root.find("{*}workbookPr") if root is not None else None
    epoch_1904 = properties is not None and properties.get("date1904", "0") in ("1", "true")
    shared = [*archive.related(main, "sharedStrings"), "xl/sharedstrings.xml"][0]
    styles = [*archive.related(main, "styles"), "xl/styles.xml"][0]
    strings = list(_strings(archive, shared, limits))
    formats = list(_formats(archive.xml(styles) if styles in archive else None))
    authors: dict[str, str] = {}
    for part in archive.related(main, "person"):
        people = archive.xml(part)
        for person in people.iter("{*}person") if people is not None else ():
            authors[person.get("id", "")] = person.get("displayName", "")
    return Book(archive, limits, strings, formats, epoch_1904=epoch_1904, authors=authors)


def write(book: Book, named: Named) -> Sheet:
    """Read one sheet: its rows with the notes on their cells, then running headers, and what is drawn on it."""
    sheet = Sheet(named.name, book.limits, hidden=named.hidden)
    notes = _notes(book, named.part)
    stream = book.archive.open(named.part)
    if stream is None:
        return sheet
    margins: list[str] = []
    try:
        for _, element in elements(stream, ("{*}row", *_MARGINS), events=("end",)):
            if local(element) == "row":
                number = _row_number(element, sheet.position + 1)
                sheet.row((number, _cells(book, element, notes.pop(number, {}), sheet)))
            else:
                margins += [text for part in re.split("&[LCR]", element.text or "") if (text := _margin(part))]
            forget(element)
            if sheet.full:
                break
    except BROKEN as error:
        book.archive.warn(named.part, f"cannot be read to its end: {error}")
    if sheet.full and (again := book.archive.open(named.part)) is not None:
        with suppress(*BROKEN):
            sheet.dropped = max(0, _count(again) - len(sheet.rows))
    for row, kept in sorted(notes.items()):
        if not sheet.full or row <= sheet.position:
            sheet.below += [f"{_letters(column)}{row} {note}" for column, note in sorted(kept.items())]
    sheet.below += dict.fromkeys(margins)
    sheet.below += _drawn(book.archive, named.part)
    return sheet


def _row_number(row: "Element", usual: int) -> int:
    said = row.get("r", "")
    return int(said) if said.isdecimal() and len(said) < 8 else usual


def _cells(book: Book, row: "Element", notes: dict[int, str], sheet: Sheet) -> dict[int, str]:
    """The cells of a row by column, from 1; those without a value or note are not among them."""
    cells: dict[int, str] = {}
    column = 0
    for cell in row.iterchildren():
        if not len(cell) and not notes:
            column += 1
            continue
        match = _CELL.fullmatch(cell.get("r", ""))
        column = _column(match[1]) if match else column + 1
        if column > COLUMNS:
            break
        text = sheet.cell(_value(book, cell)) if len(cell) else ""
        if note := notes.pop(column, None):
            text = f"{text} {note}" if text else note
        if text:
            cells[column] = text
    return {**cells, **notes}  # notes on cells that are not kept


def _value(book: Book, cell: "Element") -> str:
    """What a cell shows; the formula when its result is not kept."""
    kind = cell.get("t", "n")
    value = formula = ""
    for child in cell.iterchildren():
        name = local(child)
        if name == "v":
            value = child.text or ""
        elif name == "f":
            formula = child.text or ""
        elif name == "is" and kind == "inlineStr":
            return _string(child)
    if not value:
        return f"={formula}" if formula else ""
    if kind == "s":
        index = natural(value.strip(), -1)
        return book.strings[index] if 0 <= index < len(book.strings) else ""
    if kind == "b":
        return "TRUE" if value.strip() in ("1", "true") else "FALSE"
    if kind != "n":
        return value
    try:
        number: float = int(value) if value.strip().lstrip("-").isdecimal() and len(value) < 16 else float(value)
    except ValueError:
        return value
    style = natural(cell.get("s", "0"), -1)
    code = book.formats[style] if 0 <= style < len(book.formats) else ""
    return shown(number, code, epoch_1904=book.epoch_1904) if code else general(number)


def _strings(archive: "Archive", part: str, limits: Limits) -> Iterator[str]:
    """The strings that cells share, none longer than is needed to see that it is too long."""
    stream = archive.open(part) if part in archive else None
    if stream is None:
        return
    try:
        for number, (_, element) in enumerate(elements(stream, ("{*}si",), events=("end",))):
            if number >= _STRINGS:
                archive.warn(part, f"has more than {_STRINGS} strings")
                return
            yield _string(element)[: limits.characters + 1]
            forget(element)
    except BROKEN as error:
        archive.warn(part, f"cannot be read to its end: {error}")


def _string(element: "Element") -> str:
    """The text of a string in one or several styles, without how it is pronounced."""
    texts = element.iter("{*}t")
    return "".join(text.text or "" for text in texts if local(text.getparent()) != "rPh")


def _formats(root: "Element | None") -> Iterator[str]:
    """The number format of every style that a cell may have; '' for none."""
    from openpyxl.styles.numbers import BUILTIN_FORMATS

    if root is None:
        return
    own = {item.get("numFmtId", ""): item.get("formatCode", "") for item in root.iterfind("{*}numFmts/{*}numFmt")}
    for style in root.iterfind("{*}cellXfs/{*}xf"):
        identifier = style.get("numFmtId", "0")
        usual = BUILTIN_FORMATS.get(natural(identifier, -1), "")
        code = own.get(identifier, usual)
        yield "" if code.lower() == "general" or len(code) > _FORMAT else code


def _notes(book: Book, part: str) -> dict[int, dict[int, str]]:
    """Notes and threads of comments by row and column of their cell; of a long thread the beginning."""
    relations = book.archive.relations(part)
    threads = [relation.target for relation in relations if relation.kind == "threadedComment"]
    legacy = [relation.target for relation in relations if relation.kind == "comments"]
    found: dict[int, dict[int, str]] = {}
    for name in threads or legacy:  # threads are kept in the old form too, behind a remark that says so
        root = book.archive.xml(name)
        for comment in root.iter("{*}comment", "{*}threadedComment") if root is not None else ():
            match = _CELL.fullmatch(comment.get("ref", ""))
            bodies = [_string(body) or body.text or "" for body in comment.iterchildren("{*}text")]
            text = " ".join(" ".join(bodies).split())[: book.limits.characters]
            if not match or not text:
                continue
            row, column = found.setdefault(int(match[2]), {}), _column(match[1])
            author = book.authors.get(comment.get("personId", ""), "")
            note = f"[note: {author}: {text}]" if author else f"[note: {text}]"
            if len(row.get(column, "")) < _THREAD * book.limits.characters:
                row[column] = f"{row[column]} {note}" if column in row else note
    return found


def _drawn(archive: "Archive", part: str) -> Iterator[str]:
    """The texts of boxes, diagrams and titles of charts that lie on a sheet; a chart's numbers are in the cells."""
    for drawing in archive.related(part, "drawing"):
        root = archive.xml(drawing)
        if root is None:
            continue
        for body in root.iter("{*}txBody"):
            yield " ".join(" ".join(map(paragraph_text, body.iter("{*}p"))).split())
        for block in graphics(archive, drawing, root, data=False):
            yield from block.split("\n")


def _count(stream: object) -> int:
    """How many rows of a sheet have a cell with a value, from its bytes; several times as fast as reading them."""
    count, rest = 0, b""
    while data := stream.read(_BLOCK):  # type: ignore[attr-defined]  # a binary stream
        rest += data
        *rows, rest = _ROWS.split(rest)
        count += sum(1 for row in rows if _FILLED.search(row))
        rest = rest[-_BLOCK:]
    return count + bool(_FILLED.search(rest))


def _margin(text: str) -> str:
    """What a third of a running header says, without its codes and the number of the page."""
    return " ".join(_PAGES.sub("", _MARGIN_CODES.sub("", text)).split())


@cache
def _column(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


def _letters(column: int) -> str:
    letters = ""
    while column > 0:
        column, digit = divmod(column - 1, 26)
        letters = chr(65 + digit) + letters
    return letters
