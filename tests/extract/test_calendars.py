import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garage.config import Extraction
from garage.extract import calendars
from garage.extract.mirror import canonical
from garage.extract.model import Extracted, NoText, Unsupported


def calendar(*lines: str) -> bytes:
    return "\r\n".join(("BEGIN:VCALENDAR", "VERSION:2.0", *lines, "END:VCALENDAR", "")).encode()


def event(*lines: str) -> bytes:
    return calendar("BEGIN:VEVENT", *lines, "END:VEVENT")


def read(raw: bytes) -> Extracted:
    return calendars.extract(raw, name="calendar.ics", settings=Extraction())


def field(label: str, *lines: str) -> str | None:
    """What a field of an event's section says."""
    for line in read(event("SUMMARY:x", *lines)).content.splitlines():
        if line.startswith(f"{label}: "):
            return line.removeprefix(f"{label}: ")
    return None


def test_an_event_is_a_section_that_says_what_when_where_and_with_whom() -> None:
    found = read(
        event(
            "UID:4711@example.org",
            "SUMMARY:Budget\\, second round",
            "DTSTART;TZID=Europe/Berlin:20240501T100000",
            "DTEND;TZID=Europe/Berlin:20240501T113000",
            "LOCATION:Room 5",
            'ORGANIZER;CN="Anna Arndt":MAILTO:anna@example.org',
            "ATTENDEE;CN=Ben;PARTSTAT=DECLINED:mailto:ben@example.org",
            "ATTENDEE:mailto:cora@example.org",
            "CATEGORIES:Work,Money",
            "CATEGORIES:2024",
            "STATUS:TENTATIVE",
            "URL:https://example.org/budget",
            "DESCRIPTION:First line\\nsecond li",
            " ne\\n\\nEnd",
        )
    )
    assert found.content == (
        "## Budget, second round\n\n"
        "When: 2024-05-01 10:00 to 11:30 (Europe/Berlin)\n"
        "Where: Room 5\n"
        "Organiser: Anna Arndt <anna@example.org>\n"
        "Attendees: Ben <ben@example.org> (declined), cora@example.org\n"
        "Categories: Work, Money, 2024\n"
        "Status: tentative\n"
        "Link: https://example.org/budget\n\n"
        "First line\nsecond line\n\nEnd\n"
    )
    assert (found.kind, found.title, found.meta, found.warnings) == (
        "markdown",
        "Budget, second round",
        {"entries": 1},
        (),
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["DTSTART;VALUE=DATE:20240501"], "2024-05-01"),
        (["DTSTART;VALUE=DATE:20240501", "DTEND;VALUE=DATE:20240502"], "2024-05-01"),
        (["DTSTART;VALUE=DATE:20240501", "DTEND;VALUE=DATE:20240504"], "2024-05-01 to 2024-05-03"),
        (["DTSTART:20240501T100000Z", "DTEND:20240501T110000Z"], "2024-05-01 10:00 to 11:00 UTC"),
        (["DTSTART:20240501T100000", "DURATION:PT1H30M"], "2024-05-01 10:00 to 11:30"),
        (["DTSTART:20240501T230000Z", "DTEND:20240502T010000Z"], "2024-05-01 23:00 to 2024-05-02 01:00 UTC"),
        (["DTSTART;TZID=Asia/Aden:20240501T100000", "DTEND:20240501T080000Z"], "2024-05-01 10:00 to 11:00 (Asia/Aden)"),
        (["DTSTART:20240501T100000Z", "DTEND:20240501T100000Z"], "2024-05-01 10:00 UTC"),
        (["DTSTART:20240501T100000Z", "DTEND:20240401T100000Z"], "2024-05-01 10:00 UTC"),
        (["DTSTART:20240501T100000Z", "DTEND:nonsense"], "2024-05-01 10:00 UTC"),
        (["DTSTART;VALUE=DATE:20240501", "DTEND:20240502T100000Z"], "2024-05-01"),
        (["DTSTART:nonsense"], None),
        (["DTSTART;TZID=Nowhere/At all:20240501T100000"], "2024-05-01 10:00 (Nowhere/At all)"),
        (["DTSTART;VALUE=DATE:00010101"], "0001-01-01"),
    ],
)  # fmt: skip
def test_times_are_said_once_and_with_their_zone(lines: list[str], said: str | None) -> None:
    assert field("When", *lines) == said


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("FREQ=DAILY", "every day"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE,FR;COUNT=10", "every 2 weeks on Monday, Wednesday and Friday 10 times"),
        ("FREQ=MONTHLY;BYDAY=-1FR", "every month on the last Friday"),
        ("FREQ=MONTHLY;BYDAY=TU;BYSETPOS=2", "every month on the second Tuesday"),
        ("FREQ=MONTHLY;BYMONTHDAY=15,-1,-3", "every month on day 15, the last day and day 3 from the end"),
        ("FREQ=YEARLY;BYMONTH=5,12;UNTIL=20300101T000000Z", "every year in May and December until 2030-01-01"),
        ("FREQ=WEEKLY;UNTIL=20240601;COUNT=1", "every week once until 2024-06-01"),
        ("FREQ=SOMETIMES", None),
        ("nonsense", None),
    ],
)
def test_repetition_is_said_in_words(rule: str, said: str | None) -> None:
    assert field("Repeats", "DTSTART:20240501T100000Z", f"RRULE:{rule}") == said


def test_a_calendars_name_stands_above_its_entries() -> None:
    found = read(
        calendar("X-WR-CALNAME:Family\\, all", "X-WR-CALDESC:Ours", "BEGIN:VEVENT", "SUMMARY:A", "END:VEVENT")
        + event("SUMMARY:B", "RECURRENCE-ID:20240501T100000Z")
    )
    assert found.content == "# Family, all\n\nOurs\n\n## A\n\n## B\n\nInstead of: 2024-05-01 10:00 UTC\n"
    assert (found.title, found.meta["entries"]) == ("Family, all", 2)


def test_tasks_notes_and_busy_times_are_entries_too() -> None:
    found = read(
        calendar(
            *("BEGIN:VTODO", "SUMMARY:Pay", "DUE;VALUE=DATE:20240501", "STATUS:COMPLETED", "END:VTODO"),
            *("BEGIN:VJOURNAL", "DTSTART;VALUE=DATE:20240502", "DESCRIPTION:It rained.", "END:VJOURNAL"),
            *("BEGIN:VFREEBUSY", "ORGANIZER:mailto:anna@example.org"),
            *("FREEBUSY:20240102T100000Z/20240102T110000Z,20240103T100000Z/PT2H", "END:VFREEBUSY"),
        )
    )
    assert found.content == (
        "## Pay\n\nDue: 2024-05-01\nStatus: completed\n\n"
        "## Note\n\nWhen: 2024-05-02\n\nIt rained.\n\n"
        "## Busy times\n\nBusy: 2024-01-02 10:00 to 11:00 UTC\nBusy: 2024-01-03 10:00 to 12:00 UTC\n"
        "Organiser: anna@example.org\n"
    )


def test_alarms_and_attached_files_are_left_out() -> None:
    found = read(
        event(
            "SUMMARY:A",
            "ATTACH;ENCODING=BASE64;VALUE=BINARY:QUJD",
            *("BEGIN:VALARM", "TRIGGER:-PT5M", "DESCRIPTION:Beep", "END:VALARM"),
        )
    )
    assert found.content == "## A\n"


def test_markup_is_read_as_what_it_shows() -> None:
    description = "DESCRIPTION:<p>Dial <b>in</b>:</p><br>Tom &amp\\; Jerry<ul><li>one</li></ul>"
    assert read(event("SUMMARY:A", description)).content == "## A\n\nDial in:\n\nTom & Jerry\n\n- one\n"
    assert read(event("SUMMARY:A", "DESCRIPTION:<b>One</b>\\ntwo")).content == "## A\n\nOne\ntwo\n"
    assert "a < b > c" in read(event("SUMMARY:A", "DESCRIPTION:a < b > c")).content


def test_a_line_of_a_description_begins_no_section() -> None:
    found = read(event("SUMMARY:A", "DESCRIPTION:# Agenda\\n#1 is first"))
    assert found.content == "## A\n\n\\# Agenda\n#1 is first\n"


def test_a_broken_line_costs_itself_only() -> None:
    found = read(event("SUMMARY:A", "this is no property", "LOCATION:Here", "GEO:nowhere", "RRULE:FREQ=;X"))
    assert found.content == "## A\n\nWhere: Here\n"
    assert found.warnings == ("lines that cannot be read: 3",)


@pytest.mark.parametrize(
    "raw",
    [
        calendar("bro ken", "BEGIN:VEVENT", "SUMMARY:A", "LOCATION:Here", "END:VEVENT"),
        event("SUMMARY:A", "LOCATION:Here").replace(b"END:VCALENDAR\r\n", b""),
        event("SUMMARY:A", "LOCATION:Here").replace(b"END:VEVENT\r\n", b""),
        event("SUMMARY:A", "LOCATION:Here").replace(b"BEGIN:VCALENDAR\r\n", b""),
        event("SUMMARY:A", "LOCATION:Here", "DESCRIPTION:cut o").partition(b"ut o")[0],
        event("SUMMARY:A", "LOCATION:Here", "BEGIN:VALARM", "TRIGGER:x", "DESCRIPTION:B").replace(b"END:VEVENT", b""),
    ],
)
def test_what_is_whole_in_a_broken_calendar_is_read(raw: bytes) -> None:
    assert read(raw).content == "## A\n\nWhere: Here\n"


def test_an_entry_without_an_end_does_not_take_the_next_one_with_it() -> None:
    raw = calendar("BEGIN:VEVENT", "SUMMARY:A", "BEGIN:VEVENT", "SUMMARY:B", "END:VEVENT")
    assert read(raw).content == "## A\n\n## B\n"


def test_another_encoding_is_read() -> None:
    raw = event("SUMMARY:Frühstück", "LOCATION:Café Müller, Brückenstraße", "DESCRIPTION:Schöne Grüße aus Köln")
    found = read(raw.decode().encode("cp1252"))
    assert "## Frühstück" in found.content
    assert found.meta["encoding"] == "cp1252"


def test_what_is_no_calendar_is_refused() -> None:
    with pytest.raises(Unsupported, match="no calendar"):
        read(b"Dear diary")
    with pytest.raises(Unsupported, match="binary"):
        read(bytes(range(1, 256)) * 40)
    with pytest.raises(NoText):
        read(calendar("X-WR-CALNAME:Empty"))


@given(st.data())
def test_damage_is_an_outcome(data: st.DataObject) -> None:
    raw = bytearray(
        event("DTSTART;TZID=Europe/Berlin:20240501T100000", "SUMMARY:A", "RRULE:FREQ=DAILY", "DURATION:P1D")
    )
    for _ in range(data.draw(st.integers(1, 5))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(32, 126))
    try:
        found = read(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    except (NoText, Unsupported):
        return
    assert found.content == canonical(found.content)


def test_a_calendar_of_many_years_is_read_in_seconds() -> None:
    entry = ("BEGIN:VEVENT", "DTSTART:20240501T100000Z", "SUMMARY:Meeting", "DESCRIPTION:" + "word " * 40, "END:VEVENT")
    started = time.process_time()
    assert read(calendar("bro ken", *entry * 1_000)).meta["entries"] == 1_000
    assert time.process_time() - started < 10
