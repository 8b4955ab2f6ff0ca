import time

import pytest

from garage.config import Extraction
from garage.extract import rtf
from garage.extract.model import Extracted, Malformed, NoText, Unsupported


def read(body: str | bytes, *, head: str = r"\ansi\ansicpg1252") -> Extracted:
    inner = body if isinstance(body, bytes) else body.encode("latin-1")
    return rtf.extract(b"{\\rtf1" + head.encode() + b" " + inner + b"}", name="a.rtf", settings=Extraction())


def text(body: str | bytes, *, head: str = r"\ansi\ansicpg1252") -> str:
    return read(body, head=head).content


FONTS = (
    r"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset238{\*\panose 02}Arial CE{\*\falt x};}{\f2\fcharset204 Cyr;}"
    r"{\f3\fcharset128 Gothic;}{\f4\fcharset2 Wingdings;}{\f5\fcharset161 Greek;}{\f6\fcharset1 Own;}}"
)


def test_paragraphs_and_special_characters() -> None:
    body = (
        r"A \ldblquote quote\rdblquote\~here\line next\tab tabbed\emdash end co\_op opt\-ional \{\\\}\par"
        "\r\nSecond\\\nThird"
    )
    assert text(body) == (
        "A \u201cquote\u201d\u00a0here\nnext\ttabbed\u2014end co-op optional {\\}\n\nSecond\n\nThird\n"
    )


def test_bytes_are_read_in_the_code_page_of_the_document() -> None:
    assert text(r"ESP\'cdRITO") == "ESPÍRITO\n"
    assert text(r"za\'bf\'f3\'b3\'e6", head=r"\ansi\ansicpg1250") == "zażółć\n"
    assert text(r"caf\'8e", head=r"\mac") == "café\n"
    assert text(r"\'c3\'a9", head=r"\ansi\ansicpg65001") == "é\n"
    assert text(r"\'e9", head=r"\ansi\ansicpg99999") == "é\n"


def test_bytes_are_read_in_the_character_set_of_their_font() -> None:
    body = FONTS + r"\f1 \'e8{\f2 \'ef\'f0{\f0 \'e9}}\f3 \'83]\'83\'8b\f5 \'e1\f6 \'e9\plain \'e9\f4 \'fc\'b7\'01"
    assert text(body, head=r"\ansi\ansicpg1252\deff0") == "čпрéゾルαéé✓•\n"


def test_the_default_font_decides_where_none_is_named() -> None:
    assert text(FONTS + r"\'ef\'f0", head=r"\ansi\deff2") == "пр\n"


def test_unicode_goes_before_the_bytes_that_stand_for_it() -> None:
    assert text(r"a\u8217\'92b\u233?c\uc2\u12478\'83\'5d.\uc0\u12523.\uc1{\u233}x\u-3913?") == "a’bécゾ.ル.éx\uf0b7\n"
    assert text(r"\u-10179?\u-8704?!") == "\U0001f600!\n"
    assert text(r"\u8364\'80{\uc0\u8364}\u8364 ?\u8364\tab!") == "€€€€!\n"


def test_headings_are_told_by_style_and_by_outline() -> None:
    styles = r"{\stylesheet{\s0 Normal;}{\s1\b heading 1;}{\s2\snext0 Title;}{\*\cs10 Strong;}}"
    body = styles + r"\pard\s2 Top\par\pard\s1 One\par\pard\outlinelevel2 Three\par\pard\s0 Text\par"
    found = read(body)
    assert (found.content, found.title) == ("# Top\n\n# One\n\n### Three\n\nText\n", "Top")


def test_lists_have_levels_and_stand_together() -> None:
    body = (
        r"Intro\par\pard\ls1{\listtext\f4 \'b7\tab}one\par\ilvl1{\listtext -\tab}inner\par"
        r"\pard{\pntext\'b7\tab}{\*\pn\pnlvlblt}two\par"
        r"\pard End\par"
    )
    assert text(body) == "Intro\n\n- one\n  - inner\n- two\n\nEnd\n"


def test_tables_are_rows() -> None:
    body = (
        r"Before\par\trowd\cellx1\cellx2\pard\intbl A\cell B | C\cell\row"
        r"\trowd\pard\intbl one\par two\cell \cell\row\pard After\par"
    )
    assert text(body) == "Before\n\n| A | B \\| C |\n| --- | --- |\n| one two |  |\n\nAfter\n"
    assert text(r"\trowd\intbl Framed\cell\row\pard Next") == "Framed\n\nNext\n"


def test_tables_within_tables_lose_nothing() -> None:
    body = (
        r"\trowd\intbl\itap2 x\nestcell y\nestcell{\*\nesttableprops\trowd\nestrow}{\nonesttables\par}"
        r"\pard\intbl outer\cell other\cell\row\pard End"
    )
    written = text(body)
    assert all(word in written for word in ("x", "y", "outer", "other", "End"))


def test_footnotes_are_numbered_and_follow_the_text() -> None:
    body = r"A{\super\chftn}{\footnote\pard {\super\chftn} First \b note} B{\footnote Second\par more}.\par End"
    assert text(body) == "A[^1] B[^2].\n\nEnd\n\n[^1]: First note\n\n[^2]: Second more\n"


def test_headers_and_footers_come_last_and_each_once() -> None:
    body = r"{\header Confidential\par}{\footer Acme\par}{\footerf Acme\par}{\headerr Text\par}Text\par"
    assert text(body) == "Text\n\nConfidential\n\nAcme\n"


def test_text_boxes_follow_the_paragraph_that_they_hang_on() -> None:
    shape = r"{\shp{\*\shpinst{\sp{\sn name}{\sv value}}{\shptxt In the box\par}}{\shprslt old}}"
    assert text(f"Anchor{shape} text\\par Next") == "Anchor text\n\nIn the box\n\nNext\n"


def test_what_a_reader_does_not_see_is_left_out() -> None:
    body = (
        r"{\*\unknown gone}{\v hidden}{\deleted gone}{\field{\*\fldinst HYPERLINK x}{\fldrslt shown}}"
        r"{\*\bkmkstart b}{\pict\pngblip 8950{\*\blipuid 1}}{\*\shppict{\pict 89}}{\nonshppict{\pict 89}}"
        r"{\object{\*\objdata 0105}{\result {\pict 89}}}{\*\atnauthor Ann}{\annotation remark}"
        r"{\xe index}{\colortbl;\red0;}"
    )
    assert text(body) == "shown\n"


def test_what_stands_twice_is_read_in_unicode() -> None:
    assert text(r"{\upr{ansi ?}{\*\ud{unicode \u12478?}}} end") == "unicode ゾ end\n"


def test_pictures_in_bytes_are_passed_over() -> None:
    assert text(b"a{\\pict\\bin9 {\\'}\\par{}b") == "ab\n"
    assert text(b"a\\bin3 }}}b") == "ab\n"
    with pytest.raises(Malformed):
        text(b"{\\pict\\bin9999999999 }b")


def test_properties_of_the_document() -> None:
    info = (
        r"{\info{\title The \'e9tude}{\author Ann}{\operator Bo}{\creatim\yr2006\mo5\dy18\hr12\min19}"
        r"{\revtim\yr2006\mo99\dy18}{\doccomm A note}{\nofpages1}}"
    )
    found = read(info + "Text")
    assert (found.content, found.title) == ("Text\n", "The étude")
    assert found.meta == {
        "author": "Ann",
        "last_modified_by": "Bo",
        "created": "2006-05-18T12:19:00",
        "description": "A note",
    }


def test_what_follows_the_document_is_no_part_of_it_and_an_end_in_the_middle_is_told() -> None:
    found = rtf.extract(b"{\\rtf1 Text\\par}\0\0 rubbish {\\b more}", name="a.rtf", settings=Extraction())
    assert (found.content, found.warnings) == ("Text\n", ())
    found = rtf.extract(b"{\\rtf1 Text {\\b bo", name="a.rtf", settings=Extraction())
    assert (found.content, found.warnings) == ("Text bo\n", ("it ends in the middle",))


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"plain text", Unsupported),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Unsupported),
        (b"{\\rtf1}", NoText),
        (b"{\\rtf1 {\\fonttbl{\\f0 Arial;}}", Malformed),
        (b"{\\rtf1 " + b"{" * 100_000, Malformed),
    ],
)
def test_files_that_hold_no_text(raw: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        rtf.extract(raw, name="a.rtf", settings=Extraction())


@pytest.mark.parametrize(
    "piece",
    [
        r"{\field{\*\fldinst{ HYPERLINK x}}{\fldrslt{ x}}}",
        r"\'e9",
        r"\u233?",
        "{}",
        r"\trowd\intbl a\cell\row ",
        r"a\cell ",
        r"{\footnote n}",
        r"{\header n\par}",
        r"\ls1 a\par ",
        r"\*",
        r"\pict ",
    ],
)
def test_the_time_grows_with_the_length(piece: str) -> None:
    def seconds(count: int) -> float:
        raw = b"{\\rtf1 x " + piece.encode() * count + b"}"
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            rtf.extract(raw, name="a.rtf", settings=Extraction())
            best = min(best, time.process_time() - start)
        return best

    assert seconds(8000) < 0.05 + 16 * seconds(1000)  # eight times as much; quadratic would be sixty-four times
