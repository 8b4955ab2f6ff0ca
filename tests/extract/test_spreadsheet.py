import datetime as dt
import io
import struct

import openpyxl
import pytest

from garage.config import Extraction
from garage.extract import spreadsheet
from garage.extract.model import Encrypted, Extracted, Malformed, NoText

SECTOR = 512
FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def record(kind: int, data: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def biff(cells: dict[tuple[int, int], str | float], *, name: str = "Sheet", hidden: bool = False) -> bytes:
    """The stream of a workbook of Excel 97 with one sheet."""
    start = record(0x0809, struct.pack("<HHHHII", 0x0600, 0x0005, 0, 0, 0, 0)) + record(0x0042, struct.pack("<H", 1200))
    label = name.encode("utf-16-le")
    bound = struct.pack("<BBBB", int(hidden), 0, len(name), 1) + label
    offset = len(start) + 4 + 4 + len(bound) + 4
    sheet = record(0x0809, struct.pack("<HHHHII", 0x0600, 0x0010, 0, 0, 0, 0))
    for (row, column), value in cells.items():
        place = struct.pack("<HHH", row, column, 0)
        if isinstance(value, str):
            sheet += record(0x0204, place + struct.pack("<HB", len(value), 1) + value.encode("utf-16-le"))
        else:
            sheet += record(0x0203, place + struct.pack("<d", value))
    return start + record(0x0085, struct.pack("<I", offset) + bound) + record(0x000A) + sheet + record(0x000A)


def ole(stream: bytes) -> bytes:
    """A container of the old kind that holds one stream called Workbook."""
    stream = stream.ljust(max(4096, -(-len(stream) // SECTOR) * SECTOR), b"\0")
    count = len(stream) // SECTOR

    def entry(name: str, kind: int, first: int, size: int, child: int) -> bytes:
        label = (name + "\0").encode("utf-16-le")
        head = label.ljust(64, b"\0") + struct.pack("<HBBIII", len(label), kind, 1, FREE, FREE, child)
        return head + bytes(36) + struct.pack("<IQ", first, size)

    directory = entry("Root Entry", 5, END, 0, 1) + entry("Workbook", 2, 2, len(stream), FREE)
    chain = [FAT, END, *range(3, count + 2), END]
    table = struct.pack(f"<{len(chain)}I", *chain).ljust(SECTOR, b"\xff")
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6)
    header += bytes(6) + struct.pack("<IIIIIIIII", 0, 1, 1, 0, 4096, END, 0, END, 0)
    header += struct.pack("<I", 0).ljust(436, b"\xff")
    return header + table + directory.ljust(SECTOR, b"\0") + stream


def read(raw: bytes, **limits: int) -> Extracted:
    return spreadsheet.extract(raw, name="a.xls", settings=Extraction(**limits))  # type: ignore[arg-type]  # limits only


def test_a_workbook_of_excel_97() -> None:
    found = read(
        ole(biff({(0, 0): "Item", (0, 1): "Sum", (4, 0): "Čaj\nzelený", (4, 1): 17.0, (5, 3): 0.25}, name="Účty"))
    )
    assert found.content == "## Účty\nItem | Sum\nČaj zelený | 17\n |  |  | 0.25\n"
    assert (found.kind, found.meta, found.warnings) == ("tabular", {"sheets": 1}, ())


def test_hidden_sheets_are_read_and_said_to_be_hidden() -> None:
    found = read(ole(biff({(0, 0): "x"}, hidden=True)))
    assert (found.content, found.warnings) == ("## Sheet (hidden)\nx\n", ("the sheet Sheet is hidden",))


def test_rows_and_cells_beyond_the_limits_are_counted() -> None:
    found = read(ole(biff({(row, 0): "x" * 30 for row in range(8)})), max_sheet_rows=5, max_cell_chars=10)
    assert found.content == "## Sheet\n" + ("x" * 10 + "\n") * 5
    assert found.warnings[0] == "the sheet Sheet has 3 rows beyond the limit of 5"


def test_every_kind_of_value() -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    moment = dt.datetime(2024, 1, 2, 3, 4, 5)  # noqa: DTZ001 - cells have no zone
    sheet.append([True, 2.0, 0.5, moment, dt.date(2024, 1, 2), dt.time(12, 30), "text", None, dt.timedelta(hours=30)])
    out = io.BytesIO()
    book.save(out)
    row = read(out.getvalue()).content.splitlines()[1].split(" | ")
    assert row[:5] == ["TRUE", "2", "0.5", "2024-01-02 03:04:05", "2024-01-02"]
    assert row[5].startswith("12:30")
    assert row[6:8] == ["text", ""]


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le"), Encrypted),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), Malformed),
        (b"<html><table><tr><td>1</td></tr></table></html>", Malformed),
        (ole(biff({})), NoText),
    ],
)
def test_files_that_hold_no_rows(raw: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        read(raw)


def test_a_workbook_locked_by_a_password_is_encrypted() -> None:
    stream = biff({(0, 0): "x"})
    first = 4 + struct.unpack_from("<H", stream, 2)[0]
    locked = stream[:first] + record(0x002F, struct.pack("<HHH", 1, 1, 1) + bytes(48)) + stream[first:]
    with pytest.raises(Encrypted):
        read(ole(locked))
