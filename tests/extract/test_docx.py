import dataclasses
import functools
import io
import re
import zipfile
from pathlib import Path

import docx as library
import pytest
from docx.document import Document

from garage.config import Extraction
from garage.extract import docx
from garage.extract.model import Encrypted, Extracted, Malformed, TooLarge, Unsupported
from garage.extract.office import archive, ooxml
from garage.isolation import Failure, Isolated
from tests.builders.archives import NO_ARCHIVES, zipped

SETTINGS = Extraction()

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"
# Word itself writes these; without them python-docx does not open a file.
CONTENT_TYPES = (
    f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
    '<Default Extension="png" ContentType="image/png"/><Default Extension="bmp" ContentType="image/bmp"/>'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/docProps/core.xml" ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{WORD}.document.main+xml"/>'
    f'<Override PartName="/word/styles.xml" ContentType="{WORD}.styles+xml"/>'
    f'<Override PartName="/word/header1.xml" ContentType="{WORD}.header+xml"/>'
    f'<Override PartName="/word/header2.xml" ContentType="{WORD}.header+xml"/>'
    f'<Override PartName="/word/footer.xml" ContentType="{WORD}.footer+xml"/></Types>'
)
CORE = f'<c:coreProperties xmlns:c="{PACKAGE}/metadata/core-properties" xmlns:d="http://purl.org/dc/elements/1.1/">'


def relationships(**targets: str) -> str:
    items = ""
    for identifier, kind_and_target in targets.items():
        kind, _, target = kind_and_target.partition(" ")
        base = f"{PACKAGE}/relationships/metadata" if kind == "core-properties" else R
        items += f'<Relationship Id="{identifier}" Type="{base}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{PACKAGE}/relationships">{items}</Relationships>'


def package(body: str, *, namespace: str = W, related: dict[str, str] | None = None, **parts: str) -> bytes:
    """A Word file with this body; further parts by name, '__' for '/' and '_' for '.'."""
    files = {
        "[Content_Types].xml": CONTENT_TYPES,
        "docProps/core.xml": f"{CORE}</c:coreProperties>",
        "_rels/.rels": relationships(m="officeDocument word/document.xml", c="core-properties docProps/core.xml"),
        "word/document.xml": f'<w:document xmlns:w="{namespace}" xmlns:r="{R}" xmlns:mc="{MC}"><w:body>{body}</w:body>'
        "</w:document>",
        "word/_rels/document.xml.rels": relationships(**(related or {})),
    }
    files |= {name.replace("__", "/").replace("_", "."): text for name, text in parts.items()}
    return zipped(files)


def p(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def part(kind: str, inner: str) -> str:
    return f'<w:{kind} xmlns:w="{W}">{inner}</w:{kind}>'


def table(*rows: list[str]) -> str:
    cells = ("".join(f"<w:tc>{cell if cell.startswith('<') else p(cell)}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def read(body: str, **options: object) -> Extracted:
    """What is read of a file, in whichever way: as python-docx opens it, and mended as if it could not."""
    raw = package(body, **options)  # type: ignore[arg-type]  # the tests' own shorthand
    found = docx.extract(raw, name="a.docx", settings=SETTINGS)
    mended = docx.extract(without(raw, "[Content_Types].xml"), name="a.docx", settings=SETTINGS)
    assert mended == dataclasses.replace(found, warnings=mended.warnings)
    return found


def without(raw: bytes, *names: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return zipped({name: archive.read(name) for name in archive.namelist() if name not in names})


def saved(document: Document) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def test_a_document_written_by_a_library() -> None:
    document = library.Document()
    document.add_heading("Report", 0)
    document.add_paragraph("An opening.")
    document.add_heading("Numbers", 1)
    grid = document.add_table(2, 2)
    for row, texts in zip(grid.rows, (("Year", "Sum"), ("2024", "17 | 4")), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    document.add_paragraph("After the table", style="List Bullet")
    document.add_paragraph("second item", style="List Number")
    document.add_heading("Deep", 7)
    document.core_properties.author = "Ann"
    found = docx.extract(saved(document), name="a.docx", settings=SETTINGS)
    assert found.content == (
        "# Report\n\nAn opening.\n\n# Numbers\n\n| Year | Sum |\n| --- | --- |\n| 2024 | 17 \\| 4 |\n\n"
        "- After the table\n- second item\n\n###### Deep\n"
    )
    assert (found.kind, found.title, found.warnings) == ("markdown", "Report", ())
    assert found.meta["author"] == "Ann"
    assert found.meta["created"] == "2013-12-23T23:15:00Z"


def test_the_title_among_the_properties_goes_first() -> None:
    document = library.Document()
    document.add_heading("A heading", 1)
    document.core_properties.title = "The  title"
    assert docx.extract(saved(document), name="a.docx", settings=SETTINGS).title == "The title"


def test_headings_are_told_by_style_by_base_by_name_and_by_outline() -> None:
    styles = part(
        "styles",
        '<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="berschrift1"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="Out"><w:name w:val="Out"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr>'
        "</w:style>"
        '<w:style w:type="paragraph" w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style>',
    )
    body = (
        p("one", '<w:pStyle w:val="berschrift1"/>')
        + p("own", '<w:pStyle w:val="Own"/>')
        + p("three", '<w:pStyle w:val="Out"/>')
        + p("two", '<w:outlineLvl w:val="1"/>')
        + p("body", '<w:pStyle w:val="Own"/><w:outlineLvl w:val="9"/>')
        + p("loop", '<w:pStyle w:val="Loop"/>')
        + p("missing", '<w:pStyle w:val="Nowhere"/>')
    )
    found = read(body, related={"s": "styles styles.xml"}, word__styles_xml=styles)
    assert found.content == "# one\n\n# own\n\n### three\n\n## two\n\nbody\n\nloop\n\nmissing\n"
    assert found.title == "one"


def test_without_a_styles_part_the_usual_names_count() -> None:
    assert read(p("One", '<w:pStyle w:val="Heading2"/>') + p("Text")).content == "## One\n\nText\n"


def test_lists_keep_their_levels_and_stand_together() -> None:
    def item(text: str, level: int, number: int = 3) -> str:
        return p(text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')

    body = p("Intro") + item("a", 0) + item("b", 1) + item("c", 0) + item("no item", 0, 0) + p("End")
    assert read(body).content == "Intro\n\n- a\n  - b\n- c\n\nno item\n\nEnd\n"


def test_tables_stand_where_they_are_and_nested_ones_lose_nothing() -> None:
    inner = table(["x", "y"], ["z", ""])
    body = p("Before") + table(["A", p("B") + inner + p("")], ["C", "D"]) + p("After")
    assert read(body).content == "Before\n\n| A | B x y z |\n| --- | --- |\n| C | D |\n\nAfter\n"


def test_a_frame_of_one_cell_is_no_table() -> None:
    body = table([p("Head", '<w:pStyle w:val="Heading1"/>') + table(["a", "b"])])
    assert read(body).content == "# Head\n\n| a | b |\n| --- | --- |\n"


def test_cells_that_span_keep_the_columns_below_in_place() -> None:
    def spanning(columns: int, text: str) -> str:
        return f'<w:tc><w:tcPr><w:gridSpan w:val="{columns}"/></w:tcPr>{p(text)}</w:tc>'

    below = table(["a", "b"])[len("<w:tbl>") :]
    endless = f"<w:tbl><w:tr>{spanning(10**9, 'x')}<w:tc>{p('y')}</w:tc></w:tr></w:tbl>"
    found = read(f"<w:tbl><w:tr>{spanning(2, 'wide')}</w:tr>{below}{endless}")
    assert found.content.startswith("| wide |  |\n| --- | --- |\n| a | b |\n\n")
    assert len(found.content) < 2000


def test_a_span_without_end_does_not_cost_the_document() -> None:
    endless = f'<w:tc><w:tcPr><w:gridSpan w:val="{"9" * 5000}"/></w:tcPr>{p("x")}</w:tc>'
    content = read(f"<w:tbl><w:tr>{endless}<w:tc>{p('y')}</w:tc></w:tr></w:tbl>").content
    assert content.startswith("| x | ")
    assert " | y |" in content


def test_text_boxes_follow_the_paragraph_and_are_read_once() -> None:
    box = f"<w:txbxContent>{p('In the box')}{table(['a', 'b'])}</w:txbxContent>"
    alternatives = (
        f"<mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>"
    )
    body = f"<w:p><w:r><w:t>Anchor</w:t></w:r><w:r>{alternatives}</w:r><w:r><w:t> text</w:t></w:r></w:p>" + p("Next")
    assert read(body).content == "Anchor text\n\nIn the box\n\n| a | b |\n| --- | --- |\n\nNext\n"


def test_of_alternatives_the_one_that_has_something_is_read() -> None:
    body = "<mc:AlternateContent><mc:Fallback>" + p("old") + "</mc:Fallback><mc:Choice/></mc:AlternateContent>"
    assert read(body).content == "old\n"


def test_every_kind_of_character_between_the_words() -> None:
    runs = (
        "<w:r><w:t xml:space='preserve'>a </w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t>"
        "<w:softHyphen/><w:t>e</w:t><w:sym w:font='Symbol' w:char='F0B7'/><w:sym w:char='20AC'/>"
        "<w:sym w:char='?'/></w:r>"
        "<w:hyperlink r:id='x'><w:r><w:t> link</w:t></w:r></w:hyperlink>"
        "<w:smartTag><w:r><w:t> tag</w:t></w:r></w:smartTag>"
        "<w:sdt><w:sdtContent><w:r><w:t> field</w:t></w:r></w:sdtContent></w:sdt>"
        "<w:fldSimple w:instr='DATE'><w:r><w:t> 2024</w:t></w:r></w:fldSimple>"
        "<w:r><w:instrText>PAGE</w:instrText></w:r>"
        "<w:ins><w:r><w:t> new</w:t></w:r></w:ins><w:del><w:r><w:delText> old</w:delText></w:r></w:del>"
        "<w:moveFrom><w:r><w:t> from</w:t></w:r></w:moveFrom><w:moveTo><w:r><w:t> to</w:t></w:r></w:moveTo>"
        "<w:r><w:ruby><w:rt><w:r><w:t>kan</w:t></w:r></w:rt>"
        "<w:rubyBase><w:r><w:t> 漢</w:t></w:r></w:rubyBase></w:ruby></w:r>"
    )
    assert read(f"<w:p>{runs}</w:p>").content == "a \tb\nc-de€ link tag field 2024 new to 漢\n"


def test_rows_whose_deletion_is_tracked_are_gone() -> None:
    gone = "<w:tr><w:trPr><w:del/></w:trPr><w:tc>" + p("gone") + "</w:tc><w:tc>" + p("gone") + "</w:tc></w:tr>"
    body = table(["a", "b"]).replace("</w:tbl>", gone + "</w:tbl>")
    assert read(body).content == "| a | b |\n| --- | --- |\n"


def test_notes_are_numbered_as_the_text_refers_to_them() -> None:
    footnotes = part(
        "footnotes",
        f'<w:footnote w:id="-1" w:type="separator">{p("---")}</w:footnote>'
        f'<w:footnote w:id="1">{p("First written")}</w:footnote>'
        f'<w:footnote w:id="2">{p("Two")}{p("lines")}</w:footnote>',
    )
    endnotes = part("endnotes", f'<w:endnote w:id="1">{table(["in a", "table"])}</w:endnote>')
    body = (
        '<w:p><w:r><w:t>A</w:t><w:footnoteReference w:id="2"/><w:t> B</w:t><w:endnoteReference w:id="1"/>'
        '<w:t> C</w:t><w:footnoteReference w:id="1"/><w:footnoteReference w:id="2"/>'
        '<w:footnoteReference w:id="9"/></w:r></w:p>'
    )
    found = read(
        body,
        related={"f": "footnotes footnotes.xml", "e": "endnotes endnotes.xml"},
        word__footnotes_xml=footnotes,
        word__endnotes_xml=endnotes,
    )
    assert found.content == "A[^1] B[^2] C[^3][^1]\n\n[^1]: Two lines\n\n[^2]: in a table\n\n[^3]: First written\n"


def test_headers_and_footers_come_last_and_each_once() -> None:
    headers = '<w:headerReference r:id="h1"/><w:headerReference r:id="h2"/>'
    reference = f'<w:sectPr>{headers}<w:footerReference r:id="f"/></w:sectPr>'
    found = read(
        f"<w:p><w:pPr>{reference}</w:pPr><w:r><w:t>Body</w:t></w:r></w:p>{reference}",
        related={"h1": "header header1.xml", "h2": "header header2.xml", "f": "footer footer.xml"},
        word__header1_xml=part("hdr", p("Confidential")),
        word__header2_xml=part("hdr", p("Confidential")),
        word__footer_xml=part("ftr", p("Acme") + p("Body")),
    )
    assert found.content == "Body\n\nConfidential\n\nAcme\n"


@pytest.mark.parametrize("target", ["NULL", "../NULL", "/word/NULL", "media/gone.png"])
def test_a_relationship_that_points_nowhere_costs_nothing(target: str) -> None:
    body = p("Text") + '<w:sectPr><w:headerReference r:id="h"/></w:sectPr>'
    found = read(body, related={"h": f"header {target}", "i": "image NULL", "s": "styles NULL"})
    assert found.content == "Text\n"
    assert any("is missing" in warning for warning in found.warnings)


def test_a_damaged_side_part_costs_that_part_only() -> None:
    found = read(
        p("Text", '<w:pStyle w:val="Heading1"/>'),
        related={"s": "styles styles.xml"},
        word__styles_xml="<w:styles",
        docProps__core_xml="no XML",
    )
    assert found.content == "# Text\n"
    assert len(found.warnings) == 2


def test_the_strict_dialect_reads_alike() -> None:
    assert read(p("Head", '<w:pStyle w:val="Heading1"/>') + p("Text"), namespace=STRICT).content == "# Head\n\nText\n"


def test_offsets_hold_for_decomposed_text_and_surrogates() -> None:
    found = read(p("e\u0301tude \U0001f600"))
    assert found.content == "étude \U0001f600\n"


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        *NO_ARCHIVES,
        (zipped({"mimetype": "application/vnd.oasis.opendocument.text"}), Unsupported),
        (zipped({"word/document.xml": "<other/>"}), Unsupported),
        (zipped({"word/document.xml": "<w:document"}), Malformed),
        (zipped({"word/document.xml": ""}), Malformed),
    ],
)
def test_files_that_are_not_what_their_name_says(raw: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        docx.extract(raw, name="a.docx", settings=SETTINGS)


def test_an_archive_whose_entries_are_locked_is_encrypted() -> None:
    raw = bytearray(package(p("Text")))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for found in re.finditer(re.escape(signature), bytes(raw)):
            raw[found.start() + offset] |= 1
    with pytest.raises(Encrypted):
        docx.extract(bytes(raw), name="a.docx", settings=SETTINGS)


def test_an_archive_that_unpacks_without_end_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "UNPACKED_BYTES", 1_000_000)
    with pytest.raises(TooLarge, match="1000000"):
        docx.extract(package(p("x" * 2_000_000)), name="a.docx", settings=SETTINGS)


def test_an_archive_damaged_in_the_middle_is_malformed() -> None:
    raw = bytearray(package(p("Text " * 1000)))
    start = raw.index(b"word/document.xml") + 40
    raw[start : start + 20] = bytes(20)
    with pytest.raises(Malformed):
        docx.extract(bytes(raw), name="a.docx", settings=SETTINGS)


def test_entities_do_not_grow_and_fetch_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden words")
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    doctype = f'<!DOCTYPE d [<!ENTITY e0 "boom">{levels}<!ENTITY file SYSTEM "{secret.as_uri()}">]>'
    for entity in ("&e11;", "&file;"):
        document = f'{doctype}<w:document xmlns:w="{W}"><w:body>{p(entity)}</w:body></w:document>'
        with pytest.raises(Malformed):
            docx.extract(zipped({"word/document.xml": document}), name="a.docx", settings=SETTINGS)


def test_only_what_the_library_does_not_open_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    def mended(archive: zipfile.ZipFile) -> None:
        raise AssertionError("mended")

    monkeypatch.setattr(ooxml, "mended", mended)
    assert docx.extract(package(p("Text")), name="a.docx", settings=SETTINGS).content == "Text\n"
    with pytest.raises(AssertionError, match="mended"):
        docx.extract(package(p("Text"), related={"i": "image NULL"}), name="a.docx", settings=SETTINGS)


@pytest.mark.parametrize("type", ["document.macroEnabled", "template", "template.macroEnabledTemplate"])
def test_templates_and_files_with_macros_read_alike(type: str) -> None:
    types = CONTENT_TYPES.replace(f"{WORD}.document.main", f"application/vnd.ms-word.{type}.main")
    files = {"related": {"i": "image media/a.png"}, "word__media__a_png": "no picture"}
    raw = package(p("Text", '<w:pStyle w:val="Heading1"/>'), **files)  # type: ignore[arg-type]  # parts by name
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        raw = zipped({n: archive.read(n) for n in archive.namelist()} | {"[Content_Types].xml": types})
    with pytest.raises(ValueError, match="not a Word file"):
        library.Document(io.BytesIO(raw))
    found = docx.extract(raw, name="a.docm", settings=SETTINGS)
    assert (found.content, found.warnings) == ("# Text\n", ())


def test_names_of_parts_may_differ_in_case() -> None:
    raw = package(p("Text"), related={"s": "styles Styles.XML"}, word__styles_xml=part("styles", ""))
    assert docx.extract(raw, name="a.docx", settings=SETTINGS).content == "Text\n"


def test_two_styles_parts_are_one_too_many() -> None:
    style = '<w:style w:type="paragraph" w:styleId="A"><w:name w:val="heading 2"/></w:style>'
    found = read(
        p("Text", '<w:pStyle w:val="A"/>'),
        related={"s": "styles styles.xml", "t": "styles styles.xml"},
        word__styles_xml=part("styles", style),
    )
    assert found.content == "## Text\n"


def test_a_date_that_is_none_costs_that_date_only() -> None:
    terms = 'xmlns:t="http://purl.org/dc/terms/"'
    dates = f"<t:created {terms}>yesterday</t:created><t:modified {terms}/>"
    core = f"{CORE}<d:creator>Ann</d:creator><d:title>A title</d:title><d:description/>{dates}</c:coreProperties>"
    found = read(p("Text"), docProps__core_xml=core)
    assert (found.title, found.meta) == ("A title", {"author": "Ann"})


def test_without_core_properties_nothing_is_made_up() -> None:
    raw = without(package(p("Text")), "docProps/core.xml", "_rels/.rels")
    found = docx.extract(raw, name="a.docx", settings=SETTINGS)
    assert (found.content, found.title, found.meta) == ("Text\n", None, {})


def test_parts_that_nothing_refers_to_are_found_by_their_usual_names() -> None:
    core = f"{CORE}<d:creator>Ann</d:creator></c:coreProperties>"
    raw = without(package(p("Text"), docProps__core_xml=core), "_rels/.rels")
    found = docx.extract(raw, name="a.docx", settings=SETTINGS)
    assert (found.content, found.meta) == ("Text\n", {"author": "Ann"})


def test_pictures_beyond_the_limit_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "UNPACKED_BYTES", 1_000_000)
    raw = package(p("Text"), related={"i": "image media/a.bmp"}, word__media__a_bmp="x" * 2_000_000)
    assert docx.extract(raw, name="a.docx", settings=SETTINGS).content == "Text\n"


def test_a_damaged_picture_costs_nothing() -> None:
    raw = bytearray(package(p("Text"), related={"i": "image media/a.bmp"}, word__media__a_bmp="x" * 2_000_000))
    start = raw.index(b"word/media/a.bmp") + 40
    raw[start : start + 20] = bytes(20)
    assert docx.extract(bytes(raw), name="a.docx", settings=SETTINGS).content == "Text\n"


def test_text_in_every_kind_of_container_is_found() -> None:
    def control(inner: str) -> str:
        return f"<w:sdt><w:sdtPr/><w:sdtContent>{inner}</w:sdtContent></w:sdt>"

    def box(inner: str) -> str:
        return f"<w:r><w:pict><w:txbxContent>{inner}</w:txbxContent></w:pict></w:r>"

    cells = control(f"<w:tc>{p('a')}</w:tc>") + f"<w:tc>{control(control(p('b')))}</w:tc>"
    row = f"<w:tr>{cells}</w:tr>"
    math = f'<m:oMath xmlns:m="{MATH}"><m:r><m:t>x+y</m:t></m:r></m:oMath>'
    link = "<w:hyperlink><w:fldSimple><w:r><w:t>link </w:t></w:r></w:fldSimple></w:hyperlink>"
    body = control(control(p("Control"))) + f"<w:tbl>{control(row)}</w:tbl><w:p>{link}{math}</w:p>"
    body += f"<w:customXml><w:ins>{p('Inserted')}</w:ins></w:customXml>"
    boxes = box(p("outer") + f"<w:p>{box(p('inner'))}</w:p>") + box(p("second"))
    body += f"<w:p>{boxes}</w:p>"
    assert read(body).content == (
        "Control\n\n| a | b |\n| --- | --- |\n\nlink x+y\n\nInserted\n\nouter\n\ninner\n\nsecond\n"
    )


# Headers of each kind, footnotes, links, tables between paragraphs, content controls in cells.
REAL = {
    "doc-add-section.docx": "First page\n\nSecond page\n\nThird page\n\nEven Page Header content\n\n"
    "Primary (Odd-Page) Header content\n\nEven Page Footer content\n\nPrimary (Odd-Page) Footer content\n\n"
    "First-page header content\n\nFirst Page Footer content\n",
    "footnotes.docx": "Eto ochen prostoy[^1] text so snoskoy\n\n[^1]: snoska\n",
    "hdr-header-footer.docx": "section with header\n\nsection without header of its own.\n\n"
    "Header for section-1\n\nFooter for section 1\n",
    "par-hyperlinks.docx": "No hyperlinks\n\nOne awesome hyperlink.\n\n"
    "Three hyperlinks: the first one here, the second one, and the third.\n",
    "sct-inner-content.docx": "P1\n\n| T2 |  |\n| --- | --- |\n\nP3\n\nT4\n\nP5\n\nP6\n\nP7\n\nP8\n\nP9\n",
    "testWORD_missing_text.docx": "| Statement |  | Seasoned professional |\n| --- | --- | --- |\n"
    "| Experience |  | BigCompany other |\n\n| Cell0 | Rich_text_in_cell | Cell2 |\n| --- | --- | --- |\n\n2\n",
}


@pytest.mark.parametrize("name", REAL)
def test_real_files_are_read_word_for_word(shared: Path, name: str) -> None:
    found = docx.extract((shared / "corpus" / "docx" / name).read_bytes(), name=name, settings=SETTINGS)
    assert (found.content, found.warnings) == (REAL[name], ())


def test_comments_name_who_wrote_them() -> None:
    remarks = (
        f'<w:comment w:id="1" w:author="Ann">{p("Too")}{p("long")}</w:comment>'
        f'<w:comment w:id="2">{p("Why?")}</w:comment>'
        f'<w:comment w:id="3" w:author="Bo">{p(" ")}</w:comment>'
    )
    found = read(p("Text"), related={"c": "comments comments.xml"}, word__comments_xml=part("comments", remarks))
    assert found.content == "Text\n\n### Comments\n\n- Ann: Too long\n- Why?\n"


def test_charts_and_diagrams_are_read_and_damaged_ones_cost_nothing_else() -> None:
    def words(text: str) -> str:
        return f'<a:p xmlns:a="drawing"><a:r><a:t>{text}</a:t></a:r></a:p>'

    def point(name: str, text: str) -> str:
        return f'<{name}><pt idx="0"><v>{text}</v></pt></{name}>'

    points = f"<ser>{point('tx', 'Sales')}{point('cat', 'East')}{point('val', '7')}</ser>"
    found = read(
        p("Text"),
        related={"c": "chart c1.xml", "d": "diagramData d1.xml", "e": "chart c2.xml"},
        word__c1_xml=f"<c><title>{words('Growth')}</title>{points}</c>",
        word__d1_xml=f"<d><pt><t>{words('Step one')}</t></pt><pt><t>{words('Step two')}</t></pt></d>",
        word__c2_xml="<c/>",
    )
    assert found.content == "Text\n\nGrowth\n\n|  | Sales |\n| --- | --- |\n| East | 7 |\n\n- Step one\n- Step two\n"


def test_a_document_that_needs_too_much_memory_is_told_as_one() -> None:
    raw = package(p("Text") * 200_000)
    reader = functools.partial(docx.extract, name="a.docx", settings=SETTINGS)
    outcomes = []
    for megabytes in (40, 80):
        with Isolated(workers=1, seconds=60, memory_bytes=megabytes * 2**20) as workers:
            outcomes += [result for _, result in workers.map(reader, [raw], ahead=1)]
    assert [outcome.kind for outcome in outcomes if isinstance(outcome, Failure)] == ["memory", "memory"]
