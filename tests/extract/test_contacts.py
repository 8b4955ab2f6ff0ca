import pytest
from hypothesis import given
from hypothesis import strategies as st

from garage.config import Extraction
from garage.extract import contacts
from garage.extract.mirror import canonical
from garage.extract.model import Extracted, NoText, Unsupported


def card(*lines: str) -> bytes:
    return "\r\n".join(("BEGIN:VCARD", "VERSION:3.0", *lines, "END:VCARD", "")).encode()


def read(raw: bytes) -> Extracted:
    return contacts.extract(raw, name="people.vcf", settings=Extraction())


def test_a_person_is_a_section() -> None:
    found = read(
        card(
            "FN:Anna Arndt",
            "N:Arndt;Anna;;;",
            "ORG:Example\\, Inc.;Research",
            "TITLE:Chemist",
            "item1.TEL;TYPE=CELL,VOICE;type=pref:+49 151 12345678",
            'EMAIL;TYPE="INTERNET,WORK":anna@exam',
            " ple.org",
            "ADR;TYPE=HOME:;;Brückenstr. 5;Köln;;50667;Germany",
            "BDAY:1980-05-01",
            "PHOTO;ENCODING=b;TYPE=JPEG:" + "QUJD" * 100,
            "NOTE:Met in Rome\\nLikes tea",
            "X-UNKNOWN:x",
        )
    )
    assert found.content == (
        "## Anna Arndt\n\n"
        "Organisation: Example, Inc., Research\nTitle: Chemist\nPhone (cell): +49 151 12345678\n"
        "Mail (work): anna@example.org\nAddress (home): Brückenstr. 5, Köln, 50667, Germany\nBirthday: 1980-05-01\n\n"
        "Met in Rome\nLikes tea\n"
    )
    assert (found.kind, found.title, found.meta) == ("markdown", "Anna Arndt", {"entries": 1})


def test_cards_of_old_telephones_are_read() -> None:
    raw = (
        b"BEGIN:VCARD\r\nVERSION:2.1\r\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg;;Dr.;\r\n"
        b"TEL;HOME;CELL:123\r\n"
        b"ADR;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:;;Stra=C3=9Fe=\r\n 5=0D=0AHinterhaus;=\r\nBonn\r\n"
        b"END:VCARD\r\n"
    )
    assert read(raw).content == "## Dr. Jörg Müller\n\nPhone (home, cell): 123\nAddress: Straße 5 Hinterhaus, Bonn\n"


def test_many_people_are_many_sections_and_a_broken_one_is_no_end() -> None:
    raw = (
        card("FN:A", "no property", ":", "TEL:1").replace(b"END:VCARD\r\n", b"") + card() + card("ORG:B") + card("FN:C")
    )
    found = read(raw)
    assert found.content == "## A\n\nPhone: 1\n\n## B\n\nOrganisation: B\n\n## C\n"
    assert (found.title, found.meta["entries"]) == (None, 3)


def test_what_is_no_address_book_is_refused() -> None:
    with pytest.raises(Unsupported, match="no address book"):
        read(b"Dear diary")
    with pytest.raises(Unsupported, match="binary"):
        read(bytes(range(1, 256)) * 40)
    with pytest.raises(NoText):
        read(card("REV:1"))


@given(st.data())
def test_damage_is_an_outcome(data: st.DataObject) -> None:
    raw = bytearray(card("FN:Anna", "TEL;TYPE=CELL:1", "NOTE;ENCODING=QUOTED-PRINTABLE:a=C3=BC=", "b", "ORG:x\\;y;z"))
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(9, 126))
    try:
        found = read(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    except (NoText, Unsupported):
        return
    assert found.content == canonical(found.content)
