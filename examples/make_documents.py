"""Writes the PDF and the Word document of the example library; run it after changing a text below.

.venv/bin/python examples/make_documents.py
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import docx
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

LIBRARY = Path(__file__).resolve().parent / "library"

# Paragraphs are separated by empty lines, pages by a form feed.
GRANT_REPORT = """\
Report on the use of the grant, 2024

Hollin Lane Orchard and Workshop, to the Northmere Community Fund

1. What the money was for

In December 2023 the fund granted the association 4,500 pounds under the number NCF-23-118, in three parts of 1,500
pounds. The purpose was to open the workshop to people who are not members: a ramp, an accessible bench, and courses.

2. What was done

The ramp was poured on 11 May 2024 by eleven volunteers and a borrowed mixer. It is 6.2 metres long, rises one in
fifteen, and has a handrail on both sides. The bench can be raised from 68 to 105 centimetres by a crank, and two people
in wheelchairs have used it every week since June.

Nine courses were held between March and November: three on sharpening, two on repairing chairs, two on grafting and
pruning, and two on small electrical repairs. Of the 96 people who came, 58 were not members before, and 14 are members
now.
\f
3. What it cost

Concrete, timber and handrail: 1,385 pounds. The bench: 890 pounds. Teachers and material of the courses: 540 pounds.
Leaflets: 95 pounds. Together 2,910 pounds, of which the fund has paid 3,000 in two parts. The remaining 90 pounds are
carried over.

4. What did not work

The evening courses in November were nearly empty, because the last bus leaves Hollin Lane at 19:40. From 2025 on all
courses are on Saturday mornings. The door opener with a push button was not bought: the old frame would not have
carried it.

5. What comes next

We ask the fund to release the third part for a composting toilet that a wheelchair can turn in. The offer of the
builder is 1,720 pounds, and the parish has agreed to the place behind the pear trees.

Ines Carvalho, treasurer. 16 December 2024.
"""


def page_content(text: str) -> bytes:
    """The drawing operators of one page: 11 point Helvetica in lines of 84 characters, the first paragraph larger."""
    operators = ["BT", "/F1 15 Tf", "1 0 0 1 72 770 Tm", "16 TL"]
    for paragraph in text.strip().split("\n\n"):
        for line in textwrap.wrap(paragraph, 84):
            escaped = line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
            operators.append(f"({escaped}) Tj T*")
        operators.append("/F1 11 Tf T*")
    return "\n".join([*operators, "ET"]).encode("ascii")


def write_grant_report(path: Path) -> None:
    """Writes the two-page report as a PDF with a title and an author."""
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
            NameObject("/Encoding"): NameObject("/WinAnsiEncoding"),
        }
    )
    for text in GRANT_REPORT.split("\f"):
        page = writer.add_blank_page(width=595, height=842)
        content = DecodedStreamObject()
        content.set_data(page_content(text))
        page[NameObject("/Contents")] = writer._add_object(content)  # noqa: SLF001 - the writer's only way to add a stream
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    writer.add_metadata({"/Title": "Report on the use of the grant, 2024", "/Author": "Ines Carvalho"})
    writer.write(path)


def write_press_manual(path: Path) -> None:
    """Writes the manual of the cider press as a Word document with headings, lists and a table."""
    manual = docx.Document()
    manual.core_properties.title = "Manual of the cider press"
    manual.core_properties.author = "Tobias Lindqvist"
    manual.add_heading("Manual of the cider press", level=1)
    manual.add_paragraph(
        "The press is a rack-and-cloth press that Tobias built in 2016 from oak and a hydraulic bottle jack of eight "
        "tonnes. It gives twenty litres of juice from one filling when the apples are fresh, and less when they are "
        "not."
    )
    manual.add_heading("Before pressing", level=2)
    for step in (
        "Wash the cloths in hot water without soap.",
        "Oil the thread of the jack with food-safe oil, never with the can from the lathe.",
        "Level the base: juice must run to the spout and not into your shoes.",
    ):
        manual.add_paragraph(step, style="List Number")
    manual.add_heading("Pressing", level=2)
    manual.add_paragraph(
        "Build a cheese of at most six cloths, each filled four centimetres deep. Pump slowly until the first juice "
        "runs, wait one minute, and pump again. Stop at 180 bar on the gauge. Above 200 bar the oak beam bends, and "
        "it has been replaced once already, in 2021."
    )
    manual.add_heading("Cleaning and storing", level=2)
    manual.add_paragraph(
        "Rinse everything within an hour. Dry the racks upright and out of the sun, or they warp. The press spends the "
        "winter under a sheet in the north bay, with the jack let down."
    )
    manual.add_heading("Spare parts", level=2)
    table = manual.add_table(rows=1, cols=3)
    rows = (
        ("Part", "Where to get it", "Price"),
        ("Press cloth, 60 by 60 cm", "Vale Cloth Mill", "11 pounds"),
        ("Seal kit for the jack", "the tractor dealer in Northmere", "26 pounds"),
        ("Oak rack", "made by Tobias", "a jar of honey"),
    )
    for number, row in enumerate(rows):
        cells = table.rows[0].cells if number == 0 else table.add_row().cells
        for cell, text in zip(cells, row, strict=True):
            cell.text = text
    manual.save(str(path))


if __name__ == "__main__":
    write_grant_report(LIBRARY / "money" / "grant-report-2024.pdf")
    write_press_manual(LIBRARY / "workshop" / "cider-press-manual.docx")
