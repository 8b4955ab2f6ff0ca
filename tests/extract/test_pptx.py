import io
import zipfile
from pathlib import Path
from typing import Any

import pptx as library
import pytest
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.presentation import Presentation
from pptx.util import Inches

from garage.config import Extraction
from garage.extract import pptx
from garage.extract.model import Encrypted, Extracted, Malformed, NoText, Unsupported
from tests.builders.archives import OLE

P = "http://schemas.openxmlformats.org/presentationml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def saved(deck: Presentation) -> bytes:
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()


def read(raw: bytes) -> Extracted:
    return pptx.extract(raw, name="a.pptx", settings=Extraction())


def changed(raw: bytes, changes: dict[str, bytes | None]) -> bytes:
    """The archive with some parts replaced, added or (None) left out."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as archive, zipfile.ZipFile(out, "w") as written:
        files = {name: archive.read(name) for name in archive.namelist()} | changes
        for name, data in files.items():
            if data is not None:
                written.writestr(name, data)
    return out.getvalue()


def part(raw: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return archive.read(name)


def boxes(*places: tuple[str, float, float]) -> Presentation:
    """A deck of one slide with text boxes at these distances from the left and from the top in inches."""
    deck = library.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    for text, left, top in places:
        slide.shapes.add_textbox(Inches(left), Inches(top), Inches(1), Inches(0.5)).text_frame.text = text
    return deck


def test_a_deck_written_by_a_library() -> None:
    deck = library.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "The\nplan"
    body = slide.placeholders[1].text_frame
    body.text = "First"
    inner = body.add_paragraph()
    inner.text = "Detail"
    inner.level = 1
    grid = slide.shapes.add_table(2, 2, Inches(1), Inches(5), Inches(4), Inches(1)).table
    for place, text in {(0, 0): "Year", (0, 1): "Sum", (1, 0): "2024", (1, 1): "17 | 4"}.items():
        grid.cell(*place).text = text
    slide.notes_slide.notes_text_frame.text = "Say this\nslowly"
    chart_data: Any = CategoryChartData
    numbers = chart_data()
    numbers.categories = ["East", "West"]
    numbers.add_series("Sales", (19.2, 21.4))
    second = deck.slides.add_slide(deck.slide_layouts[6])
    frame = second.shapes.add_chart(XL_CHART_TYPE.PIE, Inches(1), Inches(1), Inches(4), Inches(4), numbers)
    frame.chart.has_title = True
    frame.chart.chart_title.text_frame.text = "By region"
    deck.core_properties.author = "Ann"
    deck.core_properties.title = ""
    found = read(saved(deck))
    assert found.content == (
        "## Slide 1: The plan\n\n- First\n  - Detail\n\n| Year | Sum |\n| --- | --- |\n| 2024 | 17 \\| 4 |\n\n"
        "### Notes\n\nSay this\nslowly\n\n## Slide 2\n\nBy region\n\n"
        "|  | Sales |\n| --- | --- |\n| East | 19.2 |\n| West | 21.4 |\n"
    )
    assert (found.kind, found.title, found.warnings) == ("markdown", "The plan", ())
    assert (found.meta["author"], found.meta["slides"]) == ("Ann", 2)


def test_boxes_are_read_in_rows_from_the_top_and_from_the_left() -> None:
    deck = boxes(("four", 5, 4), ("two", 4, 1.1), ("three", 0, 2), ("one", 1, 1.2))
    assert read(saved(deck)).content == "## Slide 1\n\none\n\ntwo\n\nthree\n\nfour\n"


def test_groups_are_entered_and_stand_where_they_are() -> None:
    deck = boxes(("last", 1, 6), ("first", 1, 0.5))
    group = deck.slides[0].shapes.add_group_shape()
    for text, top in (("lower", 4), ("upper", 3)):
        group.shapes.add_textbox(Inches(2), Inches(top), Inches(1), Inches(0.4)).text_frame.text = text
    assert read(saved(deck)).content == "## Slide 1\n\nfirst\n\nupper\n\nlower\n\nlast\n"


def test_placeholders_lie_where_their_layout_says() -> None:
    deck = library.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[3])
    slide.placeholders[2].text_frame.text = "right"
    slide.placeholders[1].text_frame.text = "left"
    slide.shapes.add_textbox(Inches(1), Inches(0), Inches(1), Inches(0.4)).text_frame.text = "above"
    assert read(saved(deck)).content == "## Slide 1\n\nabove\n\n- left\n\n- right\n"


def test_slides_come_in_the_order_in_which_they_are_shown_and_hidden_ones_are_said_to_be() -> None:
    deck = library.Presentation()
    for title in ("Second", "First"):
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = title
    order = deck.slides._sldIdLst
    order.append(order[0])
    deck.slides[1]._element.set("show", "0")
    assert read(saved(deck)).content == "## Slide 1: First\n\n## Slide 2 (hidden): Second\n"


def test_numbers_of_slides_are_no_text() -> None:
    deck = boxes(("Text", 1, 1))
    raw = saved(deck)
    placeholder = b'<p:nvPr><p:ph type="sldNum"/></p:nvPr>'
    number = (
        b'<p:sp><p:nvSpPr><p:cNvPr id="9" name="n"/><p:cNvSpPr/>' + placeholder + b"</p:nvSpPr><p:spPr/><p:txBody>"
        b'<a:bodyPr/><a:p><a:fld id="{1}" type="slidenum"><a:t>7</a:t></a:fld></a:p></p:txBody></p:sp></p:spTree>'
    )
    slide = part(raw, "ppt/slides/slide1.xml").replace(b"</p:spTree>", number)
    assert read(changed(raw, {"ppt/slides/slide1.xml": slide})).content == "## Slide 1\n\nText\n"


@pytest.mark.parametrize("lost", ["ppt/slideLayouts/slideLayout7.xml", "docProps/core.xml", "ppt/theme/theme1.xml"])
def test_a_part_that_is_lost_costs_that_part_only(lost: str) -> None:
    assert read(changed(saved(boxes(("Text", 1, 1))), {lost: None})).content == "## Slide 1\n\nText\n"


def test_a_slide_that_is_lost_or_damaged_keeps_its_place() -> None:
    deck = library.Presentation()
    for title in ("One", "Two", "Three"):
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = title
    found = read(changed(saved(deck), {"ppt/slides/slide1.xml": None, "ppt/slides/slide2.xml": b"<p:sld"}))
    assert found.content == "## Slide 1\n\n## Slide 2\n\n## Slide 3: Three\n"
    assert len(found.warnings) == 2


@pytest.mark.parametrize("lost", ["ppt/presentation.xml", "ppt/_rels/presentation.xml.rels"])
def test_without_a_readable_main_part_slides_are_found_by_their_usual_names(lost: str) -> None:
    raw = saved(boxes(("Text", 1, 1)))
    assert read(changed(raw, {lost: b"<damaged"})).content == "## Slide 1\n\nText\n"


def test_comments_of_both_forms_name_who_wrote_them() -> None:
    raw = saved(boxes(("Text", 1, 1)))
    base = f'Type="{R}/'.encode()
    slide_rels = part(raw, "ppt/slides/_rels/slide1.xml.rels").replace(
        b"</Relationships>",
        b'<Relationship Id="c1" ' + base + b'comments" Target="../c1.xml"/>'
        b'<Relationship Id="c2" ' + base + b'comments" Target="../c2.xml"/></Relationships>',
    )
    main_rels = part(raw, "ppt/_rels/presentation.xml.rels").replace(
        b"</Relationships>", b'<Relationship Id="c1" ' + base + b'commentAuthors" Target="au.xml"/></Relationships>'
    )
    found = read(
        changed(
            raw,
            {
                "ppt/slides/_rels/slide1.xml.rels": slide_rels,
                "ppt/_rels/presentation.xml.rels": main_rels,
                "ppt/au.xml": b'<l><cmAuthor xmlns="x" id="0" name="Ann"/></l>'.replace(b"<l>", b'<l xmlns="x">'),
                "ppt/c1.xml": b'<l xmlns="x"><cm authorId="0"><text>Too long</text></cm></l>',
                "ppt/c2.xml": b'<l xmlns="x"><cm authorId="9"><txBody><p><r><t>New form</t></r></p></txBody></cm></l>',
            },
        )
    )
    assert found.content == "## Slide 1\n\nText\n\n### Comments\n\n- Ann: Too long\n- New form\n"


def test_the_strict_dialect_and_macros_read_alike() -> None:
    raw = saved(boxes(("Text", 1, 1)))
    strict = {
        name: part(raw, name)
        .replace(b"http://schemas.openxmlformats.org/presentationml/2006", b"http://purl.oclc.org/ooxml/presentationml")
        .replace(b"http://schemas.openxmlformats.org/officeDocument/2006", b"http://purl.oclc.org/ooxml/officeDocument")
        for name in ("ppt/presentation.xml", "ppt/slides/slide1.xml", "_rels/.rels", "ppt/_rels/presentation.xml.rels")
    }
    types = part(raw, "[Content_Types].xml").replace(b"presentation.main", b"presentation.macroEnabled.main")
    assert read(changed(raw, {**strict, "[Content_Types].xml": types})).content == "## Slide 1\n\nText\n"


def test_text_hidden_in_entities_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden words")
    raw = saved(boxes(("Text", 1, 1), ("More", 1, 3)))
    slide = part(raw, "ppt/slides/slide1.xml")
    slide = slide[slide.index(b"<p:sld") :].replace(b"More", b"&f;")
    hostile = f'<!DOCTYPE s [<!ENTITY f SYSTEM "{secret.as_uri()}">]>'.encode() + slide
    with pytest.raises(Malformed, match="entities"):
        read(changed(raw, {"ppt/slides/slide1.xml": hostile}))


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (OLE + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le"), Encrypted),
        (OLE + b"\0" * 600, Unsupported),
        (b"PK\x03\x04 but no archive", Malformed),
        (changed(saved(boxes(("Text", 1, 1))), {"ppt/presentation.xml": None}), Unsupported),
        (changed(saved(boxes(("Text", 1, 1))), {"ppt/presentation.xml": b"<other/>"}), Unsupported),
        (saved(library.Presentation()), NoText),
        (saved(boxes((" ", 1, 1))), NoText),
    ],
)
def test_files_that_hold_no_slides_with_text(raw: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        read(raw)
