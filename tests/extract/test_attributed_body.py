import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garage.extract.attributed_body import AttributedText, Run, decode, text_of
from tests.builders.chat_db import attributed_body

PART: dict[str, str | int | bytes] = {"__kIMMessagePartAttributeName": 0}

# What NSArchiver makes of a message that says "Stop", byte for byte.
STOP = bytes.fromhex(
    "040b 73747265616d7479706564 81e803 840140 848484 12 4e5341747472696275746564537472696e67 00"
    "8484 08 4e534f626a656374 00 85 92 848484 08 4e53537472696e67 01 94 84012b 04 53746f70 86"
    "84026949 0104 92 848484 0c 4e5344696374696f6e617279 00 94 840169 01 92 84 96 96"
    "1d 5f5f6b494d4d657373616765506172744174747269627574654e616d65 86 92 848484 08 4e534e756d626572 00"
    "8484 07 4e5356616c7565 00 94 84012a 84 99 99 00 86 86 86"
)


def test_what_macos_writes_is_read() -> None:
    assert decode(STOP) == AttributedText("Stop", (Run(0, 4, {**PART}),))
    assert text_of(STOP) == "Stop"


def test_the_builder_writes_what_macos_writes() -> None:
    assert attributed_body("Stop") == STOP


@pytest.mark.parametrize("length", [0, 1, 127, 128, 129, 255, 256, 32_767, 32_768, 70_000, 200_000])
def test_every_form_of_a_length_is_read(length: int) -> None:
    found = decode(attributed_body("x" * length))
    assert found is not None
    assert found.text == "x" * length
    assert [(run.start, run.end) for run in found.runs] == [(0, length)]


@pytest.mark.parametrize("mutable", [False, True])
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_comes_back(text: str, mutable: bool) -> None:
    body = attributed_body(text, mutable=mutable)
    found = decode(body)
    assert found is not None
    assert (found.text, found.runs[0].attributes) == (text, PART)
    assert text_of(body) == text


def test_runs_are_code_points_although_they_are_written_in_utf16_units() -> None:
    mention = {**PART, "__kIMMentionConfirmedMention": "anna@example.org"}
    found = decode(attributed_body("👋🏽 Anna, hi", [(5, PART), (4, mention), (4, PART)]))
    assert found is not None
    assert [(found.text[run.start : run.end], dict(run.attributes)) for run in found.runs] == [
        ("👋🏽 ", PART),
        ("Anna", mention),
        (", hi", PART),
    ]


def test_an_attribute_that_is_no_text_or_number_is_skipped_over() -> None:
    found = decode(attributed_body("a b", [(1, {"data": bytes(range(256)) * 3, "after": "seen"}), (2, {"n": 300})]))
    assert found is not None
    assert [run.attributes for run in found.runs] == [{"data": None, "after": "seen"}, {"n": 300}]


def test_many_objects_are_numbered_beyond_one_byte() -> None:
    runs = [(1, {f"key {number}": f"value {number}"}) for number in range(400)]
    found = decode(attributed_body("x" * 400, runs))
    assert found is not None
    assert found.runs[399].attributes == {"key 399": "value 399"}


def test_the_text_survives_attributes_that_nobody_understands() -> None:
    broken = STOP[: STOP.index(b"\x84\x02iI")] + b"\x84\x02??\x01\x02\x03"
    assert decode(broken) == AttributedText("Stop")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"bplist00",
        b"\x04\x0bstreamtyped",
        b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01+",
        b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01+\x82\xff\xff\xff\x7fabc",
        b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01+\x85abc",
        b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x0c[999999999c]\x00",
        b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x03[c]\x00",
        b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01{\x00",
        b"\x04\x0bstreamtyped\x81\xe8\x03" + b"\x84\x01@" + b"\x84\x84\x84\x01A\x00\x85\x92" * 5_000,
    ],
)
def test_garbage_stands_for_no_text(raw: bytes) -> None:
    assert decode(raw) is None
    assert text_of(raw) is None


@settings(max_examples=300)
@given(st.data())
def test_damage_never_raises(data: st.DataObject) -> None:
    body = bytearray(attributed_body("Zoë 👋🏽 \ufffc", [(3, PART), (4, {"guid": "at_0", "raw": b"1234"}), (3, PART)]))
    for _ in range(data.draw(st.integers(1, 6))):
        body[data.draw(st.integers(13, len(body) - 1))] = data.draw(st.integers(0, 255))
    found = decode(bytes(body[: data.draw(st.integers(0, len(body)))]))
    if found is not None:
        assert all(0 <= run.start <= run.end <= len(found.text) for run in found.runs)


@given(st.binary(max_size=300))
def test_no_bytes_behind_the_signature_raise(raw: bytes) -> None:
    decode(b"\x04\x0bstreamtyped" + raw)
