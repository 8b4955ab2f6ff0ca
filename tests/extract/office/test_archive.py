import io
from pathlib import Path

import pytest
from lxml import etree

from garage.extract.model import TooLarge
from garage.extract.office import archive
from garage.extract.office.archive import Archive, elements, forget, memory_or, natural, parsed
from tests.builders.archives import NO_ARCHIVES, zipped

RELATIONSHIPS = "http://schemas.openxmlformats.org/package/2006/relationships"


def rels(*items: str) -> str:
    return f'<Relationships xmlns="{RELATIONSHIPS}">{"".join(items)}</Relationships>'


def rel(identifier: str, kind: str, target: str, mode: str = "Internal") -> str:
    return f'<Relationship Id="{identifier}" Type="http://x/{kind}" Target="{target}" TargetMode="{mode}"/>'


def test_parts_are_found_whatever_their_case_and_slashes() -> None:
    found = Archive(zipped({"Word\\Document.XML": "<a>text</a>"}))
    assert "word/document.xml" in found
    root = found.xml("/WORD/document.xml")
    assert root is not None
    assert root.text == "text"


def test_a_part_that_is_missing_or_damaged_costs_that_part_only() -> None:
    found = Archive(zipped({"good.xml": "<a/>", "bad.xml": "<a", "empty.xml": ""}))
    assert found.xml("good.xml") is not None
    assert [found.xml(name) for name in ("bad.xml", "empty.xml", "gone.xml")] == [None, None, None]
    assert [warning.split()[2] for warning in found.warnings] == ["bad.xml", "empty.xml", "gone.xml"]


def test_a_part_whose_bytes_are_damaged_is_told() -> None:
    raw = bytearray(zipped({"a.xml": "<a>" + "text " * 1000 + "</a>"}))
    start = raw.index(b"a.xml") + 20
    raw[start : start + 10] = bytes(10)
    found = Archive(bytes(raw))
    assert found.xml("a.xml") is None
    assert "cannot be read" in found.warnings[0]


def test_relations_lead_to_parts_and_never_out_of_the_file() -> None:
    items = rels(
        rel("a", "slide", "../slides/one.xml"), rel("b", "slide", "/top.xml"), rel("c", "link", "http://x", "External")
    )
    found = Archive(
        zipped({"ppt/main/_rels/p.xml.rels": items, "_rels/.rels": rels(rel("m", "officeDocument", "../../x"))})
    )
    assert [(r.identifier, r.kind, r.target) for r in found.relations("ppt/main/p.xml")] == [
        ("a", "slide", "ppt/slides/one.xml"),
        ("b", "slide", "top.xml"),
    ]
    assert found.related("ppt/main/p.xml", "link") == []
    assert found.relations("nowhere.xml") == []
    assert found.main("ppt/presentation.xml") == "ppt/presentation.xml"


def test_core_properties_have_the_names_that_all_kinds_of_file_share() -> None:
    core = (
        '<c xmlns:d="dc" xmlns:t="terms"><d:title>A  title</d:title><d:creator>Ann</d:creator>'
        "<t:created>2024-01-02T03:04:05Z</t:created><t:modified>yesterday</t:modified><d:description/></c>"
    )
    found = Archive(zipped({"docProps/core.xml": core})).core()
    assert found == {"title": "A  title", "author": "Ann", "created": "2024-01-02T03:04:05Z"}


def test_numbered_parts_come_in_the_order_of_their_numbers() -> None:
    found = Archive(zipped({f"ppt/slides/slide{n}.xml": "" for n in (10, 2, 1)} | {"ppt/slides/slide1.xml.rels": ""}))
    assert found.numbered("ppt/slides/slide") == [f"ppt/slides/slide{n}.xml" for n in (1, 2, 10)]


@pytest.mark.parametrize(("raw", "error"), NO_ARCHIVES)
def test_what_is_no_archive_is_told(raw: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        Archive(raw)


def test_what_unpacks_without_end_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "UNPACKED_BYTES", 1_000_000)
    with pytest.raises(TooLarge, match="1000000"):
        Archive(zipped({"a.xml": " " * 2_000_000}))
    found = Archive(zipped({"a.bin": " " * 600_000}))
    assert found.read("a.bin") is not None
    with pytest.raises(TooLarge, match="1000000"):
        found.read("a.bin")


def test_entities_do_not_grow_and_fetch_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden words")
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    doctype = f'<!DOCTYPE a [<!ENTITY e0 "boom">{levels}<!ENTITY file SYSTEM "{secret.as_uri()}">]>'
    for entity in ("&e11;", "&file;"):
        with pytest.raises((ValueError, etree.XMLSyntaxError), match="entit"):
            parsed(f"{doctype}<a>{entity}</a>".encode())
        with pytest.raises(etree.XMLSyntaxError):
            parsed(f'{doctype}<a b="{entity}"/>'.encode())
    streamed = io.BytesIO(f"{doctype}<a><row>&file;</row><row>&e1;</row><row>kept</row></a>".encode())
    rows = elements(streamed, ("{*}row",), events=("end",))
    assert [element.text or "" for _, element in rows] == ["", "", "kept"]
    bomb = io.BytesIO(f"{doctype}<a><row>&e11;</row></a>".encode())
    with pytest.raises(etree.XMLSyntaxError):
        list(elements(bomb, ("{*}row",), events=("end",)))


def test_nesting_without_end_is_an_error() -> None:
    with pytest.raises(etree.XMLSyntaxError):
        parsed(b"<a>" * 100_000 + b"</a>" * 100_000)


def test_memory_that_ran_out_is_no_fault_of_the_text() -> None:
    with pytest.raises(etree.XMLSyntaxError) as caught:
        parsed(b"<a")
    assert memory_or(caught.value) is caught.value
    no_memory = etree.XMLSyntaxError("unknown error", etree.ErrorTypes.ERR_NO_MEMORY, 0, 0)
    assert isinstance(memory_or(no_memory), MemoryError)


def test_elements_that_have_been_read_are_freed() -> None:
    xml = b"<a>" + b"<row><c/></row>" * 100_000 + b"</a>"
    kept = 0
    for _, element in elements(io.BytesIO(xml), ("{*}row",), events=("end",)):
        parent = element.getparent()
        forget(element)
        kept = max(kept, len(parent))
    assert kept < 10_000


def test_a_number_with_more_digits_than_python_reads_is_a_large_one() -> None:
    assert natural("12", 1) == 12
    assert natural("9" * 5000, 1) > 10**9
    assert [natural(text, 1) for text in ("-3", "1.5", "x", "")] == [1] * 4
