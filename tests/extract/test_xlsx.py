import datetime as dt
import io
from pathlib import Path

import openpyxl
import pytest
from openpyxl.comments import Comment

from garage.chunk.tabular import sheet_headings
from garage.config import Extraction
from garage.extract import xlsx
from garage.extract.model import Encrypted, Extracted, Malformed, NoText, Unsupported
from tests.builders.archives import OLE, zipped

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/spreadsheetml/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
PHANTOMS = '<c s="1"/>' * 10


def rels(**targets: str) -> str:
    items = (f'<Relationship Id="{i}" Type="{R}/{t.split()[0]}" Target="{t.split()[1]}"/>' for i, t in targets.items())
    return f'<Relationships xmlns="{PACKAGE}">{"".join(items)}</Relationships>'


def workbook(sheets: str, *, namespace: str = MAIN, properties: str = "") -> str:
    return f'<workbook xmlns="{namespace}" xmlns:r="{R}">{properties}<sheets>{sheets}</sheets></workbook>'


def package(rows: str, *, namespace: str = MAIN, dimension: str = "A1", after: str = "", **parts: str) -> bytes:
    """A workbook of one sheet with these rows; further parts by name, '__' for '/' and '_' for '.'."""
    sheet = f'<worksheet xmlns="{namespace}" xmlns:r="{R}"><dimension ref="{dimension}"/><sheetData>{rows}</sheetData>'
    files = {
        "xl/workbook.xml": workbook('<sheet name="One" r:id="a"/>', namespace=namespace),
        "xl/_rels/workbook.xml.rels": rels(
            a="worksheet worksheets/sheet1.xml", s="styles styles.xml", t="sharedStrings t.xml"
        ),
        "xl/worksheets/sheet1.xml": f"{sheet}{after}</worksheet>",
    }
    for name, text in parts.items():
        files[name.replace("__", "/").replace("_", ".").replace("/.rels", "/_rels")] = text
    return zipped(files)


def saved(book: openpyxl.Workbook) -> bytes:
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def read(raw: bytes, **settings: int) -> Extracted:
    return xlsx.extract(raw, name="a.xlsx", settings=Extraction(**settings))  # type: ignore[arg-type]  # limits only


def number(value: str) -> str:
    return f"<c><v>{value}</v></c>"


def text(value: str) -> str:
    return f'<c t="inlineStr"><is><t>{value}</t></is></c>'


def test_a_workbook_written_by_a_library() -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Costs 2024"
    for row in (
        ["Item", "Price", "Share", "Paid"],
        ["Tea | green", 1.5, 0.256, dt.date(2024, 2, 29)],
        [True, 2.0, None, "x\ny"],
    ):
        sheet.append(row)
    sheet["B2"].number_format = "#,##0.00"
    sheet["C2"].number_format = "0.0%"
    sheet["A3"].comment = Comment("Why is this\nhere?", "Ann")
    hidden = book.create_sheet("Secret")
    hidden["B2"] = dt.datetime(2024, 1, 2, 3, 4, 5)  # noqa: DTZ001 - cells have no zone
    hidden.sheet_state = "hidden"
    book.create_chartsheet("Chart")
    book.create_sheet("Empty")
    book.properties.creator = "Ann"
    book.properties.title = "Money"
    found = read(saved(book))
    assert found.content == (
        "## Costs 2024\nItem | Price | Share | Paid\nTea | green | 1.50 | 25.6% | 2024-02-29\n"
        "TRUE [note: Why is this here?] | 2 |  | x y\n\n## Secret (hidden)\n2024-01-02 03:04:05\n"
    )
    assert (found.kind, found.title, found.meta["author"], found.meta["sheets"]) == ("tabular", "Money", "Ann", 3)
    assert found.warnings == ("the sheet Secret is hidden",)


def test_the_chunker_finds_every_sheet_and_takes_no_row_for_one() -> None:
    book = openpyxl.Workbook()
    for name in ("A", "B"):
        book.create_sheet(name).append(["# not a heading"])
    found = read(saved(book))
    assert [heading.title for heading in sheet_headings(found.content)] == ["A", "B"]


def test_results_of_formulas_are_shown_and_formulas_that_have_none() -> None:
    row = (
        "<row><c><f>1+1</f><v>2</v></c><c><f>SUM(A1:A9)</f></c><c><f/><v/></c><c t='str'><f>X</f><v>both</v></c></row>"
    )
    assert read(package(row)).content == "## One\n2 | =SUM(A1:A9) |  | both\n"


def test_every_kind_of_value() -> None:
    rich = "<r><t>ri</t></r><r><t>ch</t></r><rPh><t>hidden</t></rPh>"
    strings = f'<sst xmlns="{MAIN}"><si><t>plain</t></si><si>{rich}</si></sst>'
    cells = (
        '<c t="s"><v>0</v></c><c t="s"><v>1</v></c><c t="s"><v>9</v></c><c t="s"><v>x</v></c><c t="b"><v>0</v></c>'
        '<c t="e"><v>#DIV/0!</v></c><c t="d"><v>2024-01-02</v></c><c><v>1e3</v></c><c s="77"><v>?</v></c>'
    )
    found = read(package(f"<row>{cells}</row>", xl__t_xml=strings))
    assert found.content == "## One\nplain | rich |  |  | FALSE | #DIV/0! | 2024-01-02 | 1000 | ?\n"


def test_a_wrong_dimension_loses_no_row_and_a_gap_none_behind_it() -> None:
    rows = '<row r="1"><c r="A1"><v>1</v></c></row><row r="900000"><c r="B900000"><v>2</v></c></row>'
    assert read(package(rows, dimension="A1:A1")).content == "## One\n1\n | 2\n"
    assert read(package(rows, dimension="A1:XFD1048576")).content == "## One\n1\n | 2\n"


def test_columns_that_are_empty_everywhere_are_left_out_and_wide_gaps_are_bounded() -> None:
    cells = '<c r="C1"><v>1</v></c><c r="E1"><v>2</v></c>', '<c r="C2"><v>3</v></c><c r="XFD2"><v>4</v></c>'
    content = read(package("".join(f"<row>{row}</row>" for row in cells))).content
    assert content.startswith("## One\n1 |  | 2\n3 |")
    assert content.endswith("| 4\n")
    assert len(content) < 100


def test_rows_and_cells_beyond_the_limits_are_counted() -> None:
    rows = "<row/>" + "".join(f"<row>{number(str(n))}</row><row/><row><c s='1'/></row>" for n in range(50))
    found = read(package(rows + f"<row>{text('x' * 99)}</row>"), max_sheet_rows=10, max_cell_chars=20)
    assert found.content == "## One\n" + "".join(f"{n}\n" for n in range(10))
    assert found.warnings == ("the sheet One has 41 rows beyond the limit of 10",)
    found = read(package(f"<row>{text('x' * 99)}{text('y' * 20)}</row>"), max_cell_chars=20)
    assert found.content == f"## One\n{'x' * 20} | {'y' * 20}\n"
    assert found.warnings == ("the sheet One has 1 cells beyond the limit of 20 characters",)


def test_long_shared_strings_are_cut_and_counted_like_others() -> None:
    strings = f'<sst xmlns="{MAIN}"><si><t>{"x" * 999}</t></si></sst>'
    found = read(package('<row><c t="s"><v>0</v></c></row>', xl__t_xml=strings), max_cell_chars=20)
    assert found.content == f"## One\n{'x' * 20}\n"
    assert len(found.warnings) == 1


def test_phantom_cells_are_passed_over() -> None:
    rows = "".join(f'<row r="{n}">{PHANTOMS}</row>' for n in range(1, 2000))
    assert read(package(rows + f"<row>{number('7')}</row>")).content == "## One\n7\n"
    with pytest.raises(NoText):
        read(package(rows))


def test_the_strict_dialect_and_prefixes_read_alike() -> None:
    assert read(package(f"<row>{number('7')}</row>", namespace=STRICT)).content == "## One\n7\n"
    row = "<x:row><x:c><x:v>7</x:v></x:c></x:row>"
    prefixed = f'<x:worksheet xmlns:x="{MAIN}"><x:sheetData>{row}</x:sheetData></x:worksheet>'
    assert read(package("", xl__worksheets__sheet1_xml=prefixed)).content == "## One\n7\n"


def test_dates_count_from_the_epoch_of_the_workbook() -> None:
    styles = f'<styleSheet xmlns="{MAIN}"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>'
    book = workbook('<sheet name="One" r:id="a"/>', properties='<workbookPr date1904="1"/>')
    row = '<row><c s="1"><v>1</v></c></row>'
    assert read(package(row, xl__styles_xml=styles)).content == "## One\n1900-01-01\n"
    assert read(package(row, xl__styles_xml=styles, xl__workbook_xml=book)).content == "## One\n1904-01-02\n"


def test_threads_of_comments_name_who_wrote_and_replace_their_old_form() -> None:
    related = rels(l="comments ../l.xml", t="threadedComment ../t.xml")
    thread = "".join(
        f'<threadedComment ref="{cell}" personId="{who}"><text>{words}</text></threadedComment>'
        for cell, who, words in (("A1", "p", "Check"), ("A1", "", "Done"), ("C9", "", "Alone"))
    )
    old = f'<comments xmlns="{MAIN}"><comment ref="A1"><text><t>[Threaded comment]</t></text></comment></comments>'
    found = read(
        package(
            f"<row>{number('7')}</row>",
            xl__worksheets___rels__sheet1_xml_rels=related,
            xl__l_xml=old,
            xl__t_xml=f"<x>{thread}</x>",
            xl__people_xml='<p><person id="p" displayName="Bo"/></p>',
            xl___rels__workbook_xml_rels=rels(a="worksheet worksheets/sheet1.xml", p="person people.xml"),
        )
    )
    assert found.content == "## One\n7 [note: Bo: Check] [note: Done]\nC9 [note: Alone]\n"


def test_headers_and_what_is_drawn_follow_the_rows() -> None:
    codes = "&amp;L&amp;&quot;Arial,Bold&quot;&amp;12Secret&amp;CPage &amp;P of &amp;N&amp;R&amp;A"
    margins = f"<headerFooter><oddHeader>{codes}</oddHeader></headerFooter>"

    def paragraph(words: str) -> str:
        return f'<a:p xmlns:a="{DRAWING}"><a:r><a:t>{words}</a:t></a:r></a:p>'

    drawing = (
        f'<d xmlns:r="{R}"><txBody>{paragraph("In a box")}</txBody><c:chart xmlns:c="c" r:id="c"/>'
        '<dgm:relIds xmlns:dgm="d" r:dm="m"/></d>'
    )
    chart = f"<c><title>{paragraph('Growth')}</title><ser><val><v>1</v></val></ser></c>"
    diagram = f"<d><pt><t>{paragraph('Step')}</t></pt></d>"
    found = read(
        package(
            f"<row>{number('7')}</row>",
            after=margins,
            xl__worksheets___rels__sheet1_xml_rels=rels(d="drawing ../d.xml"),
            xl__d_xml=drawing,
            xl___rels__d_xml_rels=rels(c="chart c.xml", m="diagramData m.xml"),
            xl__c_xml=chart,
            xl__m_xml=diagram,
        )
    )
    assert found.content == "## One\n7\nSecret\nIn a box\nGrowth\n- Step\n"


def test_a_sheet_that_is_lost_or_damaged_costs_that_sheet_only() -> None:
    names = ("Gone", "x"), ("Lost", "b"), ("One", "a")
    book = workbook("".join(f'<sheet name="{name}" r:id="{identifier}"/>' for name, identifier in names))
    related = rels(a="worksheet worksheets/sheet1.xml", b="worksheet worksheets/sheet2.xml")
    found = read(package(f"<row>{number('7')}</row>", xl__workbook_xml=book, xl___rels__workbook_xml_rels=related))
    assert found.content == "## One\n7\n"
    assert len(found.warnings) == 2
    cut = f'<worksheet xmlns="{MAIN}"><sheetData><row>{number("1")}</row><row>{number("2")}</row><row><c><v>'
    found = read(package("", xl__worksheets__sheet1_xml=cut))
    assert found.content == "## One\n1\n2\n"
    assert "cannot be read to its end" in found.warnings[0]
    with pytest.raises(Malformed):
        read(package("", xl__worksheets__sheet1_xml="<worksheet"))


def test_without_a_readable_main_part_sheets_are_found_by_their_usual_names() -> None:
    found = read(package(f"<row>{number('7')}</row>", xl__workbook_xml="<workbook"))
    assert found.content == "## Sheet 1\n7\n"
    assert "xl/workbook.xml" in found.warnings[0]


def test_text_hidden_in_entities_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden words")
    doctype = f'<!DOCTYPE w [<!ENTITY f SYSTEM "{secret.as_uri()}">]>'
    row = f"<row>{text('&f;')}{number('7')}</row>"
    sheet = f'{doctype}<worksheet xmlns="{MAIN}"><sheetData>{row}</sheetData></worksheet>'
    assert "hidden" not in read(package("", xl__worksheets__sheet1_xml=sheet)).content


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (OLE + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le"), Encrypted),
        (OLE + b"\0" * 600, Malformed),
        (b"PK\x03\x04 but no archive", Malformed),
        (zipped({"mimetype": "application/vnd.oasis.opendocument.text"}), Unsupported),
        (zipped({"xl/workbook.xml": "<other/>"}), Unsupported),
        (package(""), NoText),
    ],
)
def test_files_that_hold_no_rows(raw: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        read(raw)


def test_a_sheet_that_is_listed_twice_is_read_once() -> None:
    book = workbook('<sheet name="One" r:id="a"/><sheet name="Two" r:id="a"/>')
    assert read(package(f"<row>{number('7')}</row>", xl__workbook_xml=book)).content == "## One\n7\n"


def test_a_number_format_of_absurd_length_counts_as_none() -> None:
    code = "0" * 200 + "[" * 200
    formats = f'<numFmts><numFmt numFmtId="200" formatCode="{code}"/></numFmts>'
    styles = f'<styleSheet xmlns="{MAIN}">{formats}<cellXfs><xf numFmtId="200"/></cellXfs></styleSheet>'
    assert read(package('<row><c s="0"><v>1.5</v></c></row>', xl__styles_xml=styles)).content == "## One\n1.5\n"
