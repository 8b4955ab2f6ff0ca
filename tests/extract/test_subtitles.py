import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garage.config import Extraction
from garage.extract import subtitles
from garage.extract.mirror import canonical
from garage.extract.model import Extracted, Malformed, Unsupported


def read(text: str, name: str = "film.srt") -> Extracted:
    return subtitles.extract(text.encode(), name=name, settings=Extraction())


def srt(*cues: tuple[float, float, str]) -> str:
    def stamp(seconds: float) -> str:
        whole = int(seconds)
        return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02},{round(seconds % 1 * 1000):03}"

    return "\n".join(
        f"{number}\n{stamp(start)} --> {stamp(end)}\n{text}\n" for number, (start, end, text) in enumerate(cues, 1)
    )


def test_a_sentence_is_whole_although_it_was_shown_in_pieces() -> None:
    found = read(srt((1, 2, "I never said"), (2.2, 4, "that she stole\nmy money.")))
    assert found.content == "[0:00:01] I never said that she stole my money.\n"
    assert (found.kind, found.title, found.meta, found.warnings) == ("prose", None, {}, ())


def test_a_pause_ends_a_paragraph() -> None:
    found = read(srt((1, 2, "Before."), (5.5, 7, "After."), (3_725, 3_726, "Later")))
    assert found.content == "[0:00:01] Before.\n\n[0:00:05] After.\n\n[1:02:05] Later\n"


def test_a_long_paragraph_ends_with_a_sentence_and_a_longer_one_anywhere() -> None:
    talk = [(n, n + 1, f"word {n} of a talk without a pause{'.' if n in (14, 20) else ''}") for n in range(60)]
    paragraphs = read(srt(*talk)).content.strip().split("\n\n")
    assert [paragraph.endswith(".") for paragraph in paragraphs] == [True, False, False]
    assert paragraphs[1].startswith("[0:00:15] ")
    assert all(400 < len(paragraph) < 1_000 for paragraph in paragraphs)


def test_turns_of_speech_keep_their_lines() -> None:
    assert read(srt((1, 2, "- What?\n- Where are we?"))).content == "[0:00:01] - What?\n- Where are we?\n"


def test_captions_that_roll_up_are_said_once() -> None:
    rolling = srt((1, 2, "so today"), (2, 3, "so today\nwe will see"), (3, 4, "we will see\nhow it works"))
    assert read(rolling).content == "[0:00:01] so today we will see how it works\n"
    assert read(srt((1, 2, "No!"), (2.5, 3, "No!"))).content == "[0:00:01] No! No!\n"


def test_styles_are_left_out() -> None:
    found = read(srt((1, 2, '{\\an8}<i>Tom</i> &amp; <font color="#fff">Jerry</font>'), (2, 3, "a < b, 3 > 2 <3")))
    assert found.content == "[0:00:01] Tom & Jerry a < b, 3 > 2 <3\n"


def test_webvtt_gives_what_is_said_and_who_says_it() -> None:
    found = read(
        "\ufeffWEBVTT - a talk\nKind: captions\n\nSTYLE\n::cue { color: red }\n\nNOTE to self\n\n"
        "intro\n00:01.000 --> 00:02.000 align:start position:0%\n<v Anna>Hello <00:00:01.500><c.high>you</c></v>\n\n"
        "01:00:00.000 --> 01:00:01.000\nBye &gt;&gt;\n",
        "talk.vtt",
    )
    assert found.content == "[0:00:01] Anna: Hello you\n\n[1:00:00] Bye >>\n"


def test_sbv_is_read() -> None:
    assert read("0:00:00.599,0:00:04.160\nHi, my name\n\n0:00:04.160,0:00:06.770\nis Ben\n", "a.sbv").content == (
        "[0:00:00] Hi, my name is Ben\n"
    )


@pytest.mark.parametrize(
    ("name", "other"), [("a.srt", "WEBVTT\n\n00:01.000 --> 00:02.000\nx\n"), ("a.vtt", srt((1, 2, "x")))]
)
def test_a_file_with_the_name_of_the_other_format_is_read(name: str, other: str) -> None:
    assert read(other, name).content == "[0:00:01] x\n"


def test_line_ends_and_encodings_of_old_programs_are_read() -> None:
    text = srt((1, 2, "Où êtes-vous allés cet été ?"), (2, 3, "À la plage, près de la forêt."))
    found = subtitles.extract(text.replace("\n", "\r\n").encode("cp1252"), name="film.srt", settings=Extraction())
    assert found.content == "[0:00:01] Où êtes-vous allés cet été ? À la plage, près de la forêt.\n"
    assert found.meta == {"encoding": "cp1252"}


def test_a_broken_cue_costs_itself_only(capfd: pytest.CaptureFixture[str]) -> None:
    found = read(srt((1, 2, "A"), (2, 3, "B")) + "\n3\n00:00:05,000 --> never\nC\n")
    assert found.content.startswith("[0:00:01] A B")
    assert found.warnings == ("cues that cannot be read: 1",)
    assert capfd.readouterr().err == ""


def test_what_has_no_cues_is_no_subtitles() -> None:
    for text, name in (("Dear diary", "a.srt"), ("WEBVTT\n\nNOTE nothing\n", "a.vtt"), ("Dear diary", "a.sbv")):
        with pytest.raises(Malformed):
            read(text, name)
    with pytest.raises(Unsupported):
        subtitles.extract(bytes(range(1, 256)) * 40, name="a.srt", settings=Extraction())


@pytest.mark.parametrize("name", ["a.srt", "a.vtt", "a.sbv"])
@given(st.data())
def test_damage_is_an_outcome(name: str, data: st.DataObject) -> None:
    raw = bytearray(b"WEBVTT\n\n" if name == "a.vtt" else b"")
    raw += srt((1, 2, "- <i>a</i>"), (3_599, 3_601, "&amp;{\\an8}")).encode()
    for _ in range(data.draw(st.integers(1, 5))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(9, 126))
    try:
        found = subtitles.extract(bytes(raw[: data.draw(st.integers(0, len(raw)))]), name=name, settings=Extraction())
    except (Malformed, Unsupported):
        return
    assert found.content == canonical(found.content)


def test_a_damaged_file_is_read_in_linear_time() -> None:
    started = time.process_time()
    for piece in ("1\n00:00:01,000 --> ", "1\n", "\n\n00:", "<" * 50 + "{\\", "00:00:01,000 --> 00:00:02,000\n"):
        with contextlib.suppress(Malformed):
            read(piece * (200_000 // len(piece)))
    assert time.process_time() - started < 20
