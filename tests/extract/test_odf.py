import functools
from pathlib import Path

import pytest

from garage.config import Extraction
from garage.extract import odf
from garage.extract.model import Encrypted, Extracted, Malformed, NoText, TooLarge, Unsupported
from garage.isolation import Failure, Isolated
from tests.builders.archives import zipped

NAMESPACES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in (
        *(("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"), ("style", "style")),
        *(("presentation", "presentation"), ("meta", "meta"), ("svg", "svg-compatible")),
    )
)
DC = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'


def content(body: str, kind: str = "text", styles: str = "") -> str:
    inner = (
        f"<office:automatic-styles>{styles}</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}>"
    )
    return f"<office:document-content {NAMESPACES} {DC}>{inner}</office:body></office:document-content>"


def read(
    body: str, kind: str = "text", *, styles: str = "", settings: Extraction | None = None, **parts: str
) -> Extracted:
    """What is read of a document with this body; further parts by name, '_' for '.'."""
    files = {"content.xml": content(body, kind, styles)} | {
        name.replace("_", "."): text for name, text in parts.items()
    }
    return odf.extract(zipped(files), name="a.odt", settings=settings or Extraction())


def p(text: str, style: str = "Standard") -> str:
    return f'<text:p text:style-name="{style}">{text}</text:p>'


def row(*cells: str, repeated: int = 1) -> str:
    inner = "".join(f"<table:table-cell>{p(cell) if cell else ''}</table:table-cell>" for cell in cells)
    return f'<table:table-row table:number-rows-repeated="{repeated}">{inner}</table:table-row>'


def table(*rows: str, name: str = "T", style: str = "") -> str:
    return f'<table:table table:name="{name}" table:style-name="{style}">{"".join(rows)}</table:table>'


def test_headings_lists_and_paragraphs() -> None:
    items = (
        "<text:list><text:list-item>"
        + p("one")
        + "<text:list><text:list-item>"
        + p("inner")
        + p("more")
        + "</text:list-item>"
        "</text:list></text:list-item><text:list-item>" + p("two") + "</text:list-item></text:list>"
    )
    found = read(
        '<text:h text:outline-level="2">A <text:span>title</text:span></text:h>' + p("Text") + p("") + items + p("End")
    )
    assert found.content == "## A title\n\nText\n\n- one\n  - inner\n\n    more\n\n- two\n\nEnd\n"
    assert (found.kind, found.title) == ("markdown", None)


def test_a_title_is_told_by_its_style_or_by_what_that_is_based_on() -> None:
    styles = '<style:style style:name="P1" style:parent-style-name="Title"/>'
    found = read(p("The title", "P1") + p("Text"), styles=styles)
    assert (found.content, found.title) == ("# The title\n\nText\n", "The title")
    assert read(p("The title", "Title")).title == "The title"


def test_every_kind_of_character_between_the_words() -> None:
    inside = (
        'a<text:s text:c="2"/>b<text:tab/>c<text:line-break/>d<text:bookmark-start text:name="x"/>e'
        "<text:span>f<text:span>g</text:span>h</text:span><text:a>link</text:a><text:soft-page-break/>"
        "<text:ruby><text:ruby-base>漢</text:ruby-base><text:ruby-text>kan</text:ruby-text></text:ruby>"
        "<text:date> 2024</text:date><text:title> Name</text:title><text:page-number>3</text:page-number>"
        '<text:s text:c="99999999999"/>.'
    )
    assert read(p(inside)).content == f"a  b\tc\ndefghlink漢 2024 Name{' ' * 100}.\n"


def test_tables_are_rows_and_what_is_nested_loses_nothing() -> None:
    head = f"<table:table-header-rows>{row('A', 'B | C')}</table:table-header-rows>"
    cells = f"<table:table-cell>{table(row('x', 'y'))}</table:table-cell><table:table-cell/>"
    inner = f"<table:table-row>{cells}</table:table-row>"
    found = read(p("Before") + table(head, row("1", "2", repeated=2), inner) + p("After"))
    assert found.content == "Before\n\n| A | B \\| C |\n| --- | --- |\n| 1 | 2 |\n| 1 | 2 |\n| x y |  |\n\nAfter\n"


def test_a_frame_of_one_cell_is_no_table() -> None:
    assert read(table(row("Text"))).content == "Text\n"


def test_notes_are_numbered_and_comments_name_who_wrote_them() -> None:
    def note(text: str) -> str:
        body = f"<text:note-body>{p(text)}</text:note-body>"
        return f"<text:note><text:note-citation>9</text:note-citation>{body}</text:note>"

    comment = f"<office:annotation><dc:creator>Ann</dc:creator><dc:date>2024</dc:date>{p('Why?')}</office:annotation>"
    found = read(p(f"A{note('first')} B{comment}.") + table(row("x", f"y{note('second')}")))
    assert found.content == (
        "A[^1] B.\n\n| x | y[^2] |\n| --- | --- |\n\n[^1]: first\n\n[^2]: second\n\n### Comments\n\n- Ann: Why?\n"
    )


def test_text_boxes_follow_the_paragraph_that_they_hang_on() -> None:
    frame = f"<draw:frame><draw:text-box>{p('In the box')}</draw:text-box><svg:title>Picture</svg:title></draw:frame>"
    shape = f"<draw:g><draw:custom-shape>{p('In a shape')}</draw:custom-shape></draw:g>"
    assert (
        read(p(f"Anchor{frame} text{shape}") + p("Next")).content == "Anchor text\n\nIn the box\n\nIn a shape\n\nNext\n"
    )


def test_tracked_deletions_and_forms_are_gone() -> None:
    region = f"<text:changed-region><text:deletion>{p('gone')}</text:deletion></text:changed-region>"
    tracked = f"<text:tracked-changes>{region}</text:tracked-changes>"
    assert read(tracked + p("kept") + f"<office:forms>{p('field')}</office:forms>").content == "kept\n"


def test_headers_and_footers_come_last_and_each_once() -> None:
    pages = "".join(
        f"<style:master-page><style:header>{p('Confidential')}</style:header><style:footer>{p(foot)}</style:footer>"
        "</style:master-page>"
        for foot in ("Acme", "Text")
    )
    masters = f"<office:master-styles>{pages}</office:master-styles>"
    styles = f"<office:document-styles {NAMESPACES}>{masters}</office:document-styles>"
    assert read(p("Text"), styles_xml=styles).content == "Text\n\nConfidential\n\nAcme\n"


def test_metadata_has_the_names_that_all_kinds_of_file_share() -> None:
    meta = (
        f"<office:document-meta {NAMESPACES} {DC}><office:meta><dc:title>The title</dc:title><meta:initial-creator>Ann"
        "</meta:initial-creator><dc:creator>Bo</dc:creator><meta:creation-date>2024-01-02T03:04:05.678</meta:creation-date>"
        "<dc:date>soon</dc:date><meta:keyword>a</meta:keyword><meta:keyword>b</meta:keyword></office:meta></office:document-meta>"
    )
    found = read(p("Text"), meta_xml=meta)
    assert found.title == "The title"
    assert found.meta == {
        "author": "Ann",
        "last_modified_by": "Bo",
        "created": "2024-01-02T03:04:05.678",
        "keywords": "a, b",
    }


def test_slides_have_titles_and_notes() -> None:
    def frame(text: str, kind: str) -> str:
        box = f"<draw:text-box>{p(text)}</draw:text-box>"
        return f'<draw:frame presentation:class="{kind}">{box}</draw:frame>'

    notes = f"<presentation:notes><draw:page-thumbnail/>{frame('Say this', 'notes')}</presentation:notes>"
    first = f"<draw:page>{frame('Plan', 'title')}{frame('Do it', 'outline')}{notes}</draw:page>"
    found = read(first + f"<draw:page>{frame('More', 'outline')}</draw:page>", "presentation")
    assert found.content == "## Slide 1: Plan\n\nDo it\n\n### Notes\n\nSay this\n\n## Slide 2\n\nMore\n"
    assert (found.title, found.meta) == ("Plan", {"slides": 2})


def test_pages_of_a_drawing() -> None:
    assert read(f"<draw:page><draw:rect>{p('Box')}</draw:rect></draw:page>", "drawing").content == "## Page 1\n\nBox\n"


def test_a_spreadsheet_is_its_rows_as_they_show() -> None:
    note = f"<office:annotation><dc:creator>Ann</dc:creator>{p('Check')}</office:annotation>"
    cell = f'<table:table-cell office:value="0.256">{note}{p("25.6 %")}</table:table-cell>'
    gap = '<table:table-cell table:number-columns-repeated="16000"/>'
    rows = row("Item", "Share"), row("", repeated=1_000_000), f"<table:table-row>{cell}{gap}</table:table-row>"
    twice = f'<table:table-cell table:number-columns-repeated="2">{p("x")}</table:table-cell>'
    group = f"<table:table-row-group><table:table-row>{twice}</table:table-row></table:table-row-group>"
    styles = '<style:style style:name="ta2"><style:table-properties table:display="false"/></style:style>'
    found = read(
        table(*rows, group, row("", repeated=1_048_576), name="One") + table(row("h"), name="Two", style="ta2"),
        "spreadsheet",
        styles=styles,
    )
    assert found.content == "## One\nItem | Share\n25.6 % [note: Check]\nx | x\n\n## Two (hidden)\nh\n"
    assert (found.kind, found.meta) == ("tabular", {"sheets": 2})
    assert found.warnings == ("the sheet Two is hidden",)


def test_rows_of_a_spreadsheet_beyond_the_limit_are_counted() -> None:
    limits = Extraction(max_sheet_rows=3, max_cell_chars=5)
    found = read(table(*(row("x" * 9) for _ in range(10)), row("")), "spreadsheet", settings=limits)
    assert found.content == "## T\n" + "xxxxx\n" * 3
    assert found.warnings[0] == "the sheet T has 7 rows beyond the limit of 3"
    assert "beyond the limit of 5 characters" in found.warnings[1]


def test_rows_before_the_damage_are_kept() -> None:
    whole = content(table(row("1"), row("2")), "spreadsheet")
    cut = whole[: whole.rindex("2")]
    found = odf.extract(zipped({"content.xml": cut}), name="a.ods", settings=Extraction())
    assert found.content == "## T\n1\n"
    assert "cannot be read to its end" in found.warnings[0]


def test_flat_files_read_alike() -> None:
    body = f"<office:body><office:text>{p('Text')}</office:text></office:body>"
    inner = f"<office:meta><dc:title>Flat</dc:title></office:meta>{body}"
    flat = f"<office:document {NAMESPACES} {DC}>{inner}</office:document>".encode()
    found = odf.extract(flat, name="a.fodt", settings=Extraction())
    assert (found.content, found.title) == ("Text\n", "Flat")


def test_side_parts_that_are_damaged_cost_nothing_else() -> None:
    found = read(p("Text"), meta_xml="<office", styles_xml="<office")
    assert found.content == "Text\n"
    assert len(found.warnings) == 2


def test_nesting_without_end_is_no_harm() -> None:
    deep = "<text:section>" * 5000 + p("Text") + "</text:section>" * 5000
    with pytest.raises(Malformed):
        read(deep)
    lists = "<text:list><text:list-item>" * 60 + p("Text") + "</text:list-item></text:list>" * 60
    assert "- Text" in read(lists).content


def test_entities_do_not_grow_and_fetch_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden words")
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    doctype = f'<!DOCTYPE d [<!ENTITY e0 "boom">{levels}<!ENTITY file SYSTEM "{secret.as_uri()}">]>'
    for entity in ("&e11;", "&file;"):
        for kind, body in (("text", p(entity)), ("spreadsheet", table(row(entity)))):
            with pytest.raises((Malformed, NoText)):
                odf.extract(zipped({"content.xml": doctype + content(body, kind)}), name="a", settings=Extraction())


def test_a_file_that_unpacks_without_end_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("garage.extract.office.archive.UNPACKED_BYTES", 1_000_000)
    with pytest.raises(TooLarge):
        read(p("x" * 2_000_000))


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({"mimetype": "application/epub+zip"}, Unsupported),
        ({"content.xml": "<other/>"}, Unsupported),
        ({"content.xml": "<office"}, Malformed),
        ({"content.xml": content(p(" "))}, NoText),
        ({"content.xml": content(table(row("")), "spreadsheet")}, NoText),
        (
            {
                "content.xml": b"\x00\x01",
                "META-INF/manifest.xml": '<m:manifest xmlns:m="x"><m:file-entry m:full-path="content.xml">'
                "<m:encryption-data/></m:file-entry></m:manifest>",
            },
            Encrypted,
        ),
    ],
)
def test_files_that_hold_no_text(files: dict[str, str | bytes], error: type[Exception]) -> None:
    with pytest.raises(error):
        odf.extract(zipped(files), name="a.odt", settings=Extraction())


def test_a_document_that_needs_too_much_memory_is_told_as_one() -> None:
    raw = zipped({"content.xml": content(p("Text") * 300_000)})
    reader = functools.partial(odf.extract, name="a.odt", settings=Extraction())
    with Isolated(workers=1, seconds=60, memory_bytes=40 * 2**20) as workers:
        (outcome,) = [result for _, result in workers.map(reader, [raw], ahead=1)]
    assert isinstance(outcome, Failure)
    assert outcome.kind == "memory"
