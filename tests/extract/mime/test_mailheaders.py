import email
from email.message import Message

import pytest

from garage.extract.mime.mailheaders import addresses, date, file_name, header, lenient_base64, moment, parameters


def mail(head: bytes) -> Message:
    return email.message_from_bytes(head + b"\n\nbody")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"=?UTF-8?B?44G+44G/?=", "まみ"),
        (b"=?iso-8859-1?Q?Gr=FC=DFe?= aus =?utf-8?q?K=C3=B6ln?=", "Grüße aus Köln"),
        (b"=?UTF-8?B?4w==?=\n =?UTF-8?B?gb4=?=", "ま"),  # one character in two words
        (b"=?NONE?B?VEVTVA=?=", "TEST"),
        (b"=?utf-8?Q?a b=20c?=", "a b c"),
        (b"=?UTF-8?B??=", None),
        ("Säying Hello".encode(), "Säying Hello"),
        ("Forma\u00e7\u00e3o".encode("cp1252"), "Formação"),
        (b"a\0b \x07c", "ab c"),
        (b"two\n lines", "two lines"),
        (b"", None),
    ],
)
def test_a_subject_is_decoded_however_it_is_written(raw: bytes, shown: str | None) -> None:
    assert header(mail(b"Subject: " + raw), "subject") == shown


def test_bytes_beyond_ascii_are_read_as_the_body_is() -> None:
    head = b"Content-Type: text/plain; charset=koi8-r\nSubject: " + "привет".encode("koi8-r")
    assert header(mail(head), "Subject") == "привет"


@pytest.mark.parametrize(
    ("raw", "people"),
    [
        ("Ann <ann@x.org>, bob@y.org", ["Ann <ann@x.org>", "bob@y.org"]),
        ('"Arbor, Ann" <ann@x.org>', ["Arbor, Ann <ann@x.org>"]),
        ("=?utf-8?q?Arbor=2C_=C3=84nn?= <ann@x.org>", ["Arbor, Änn <ann@x.org>"]),
        ('"Giant; \\"Big\\" Box" <s@x.org>', ['Giant; "Big" Box <s@x.org>']),
        ("A Group:Ann <ann@x.org>,bob@y.org;", ["Ann <ann@x.org>", "bob@y.org"]),
        ("Undisclosed recipients:;", []),
        ("<Undisclosed-Recipient:@mail.x.org;>", []),
        ("ann@x.org (Ann Arbor)", ["Ann Arbor <ann@x.org>"]),
        ("Pete(A \\) chap) <pete(his account)@silly.test(his host)>", ["Pete <pete@silly.test>"]),
        ("Big Bug bb@bug.com", ["Big Bug <bb@bug.com>"]),
        ("'ann@x.org' <ann@x.org>", ["ann@x.org"]),
        ("<@route.org:ann@x.org>", ["ann@x.org"]),
        ("Ann", ["Ann"]),
        (", ,", []),
        ("ann@x.org, ann@x.org", ["ann@x.org"]),
    ],
)
def test_addresses_come_out_of_every_way_to_write_them(raw: str, people: list[str]) -> None:
    assert addresses(mail(f"To: {raw}".encode()), "To") == people


def test_a_hundred_thousand_recipients_take_no_time() -> None:
    head = b"To: " + b", ".join(b"p%d@example.org" % number for number in range(100_000))
    assert len(addresses(mail(head), "To")) == 1_000
    assert addresses(mail(b"To: " + b'"' * 100_000), "To") == []
    for hostile in (b"a" * 200_000, b'"' + b'\\"' * 100_000, b"a@" * 100_000, b"=?utf-8?q?" * 20_000, b";a=" * 50_000):
        assert len(addresses(mail(b"To: " + hostile), "To")) <= 1_000
    assert len(addresses(mail(b"To: " + b"(" * 100_000 + b"<a@b>"), "To")) == 1


@pytest.mark.parametrize(
    ("raw", "at"),
    [
        ("Fri, 21 Nov 1997 09:55:06 -0600", "1997-11-21T15:55:06+00:00"),
        ("21 Nov 97 09:55:06 GMT", "1997-11-21T09:55:06+00:00"),
        ("Thu, 13 Feb 1969 23:32 -0330 (Newfoundland Time)", "1969-02-14T03:02:00+00:00"),
        ("Fri, 21 Nov 1997 09(comment):   55  :  06 -0600", "1997-11-21T15:55:06+00:00"),
        ("Mon, 30 Jun 3609 15:33:50 +0600", None),
        ("<HR>", None),
        ("", None),
        ("Mon, 99 Foo 2010 10:00", None),
    ],
)
def test_a_date_is_in_utc_or_none(raw: str, at: str | None) -> None:
    assert moment(raw) == at


def test_where_the_date_cannot_be_read_the_last_server_knows() -> None:
    head = (
        b"Date: nonsense\nReceived: from x by y;\n Wed, 15 Dec 2010 00:59:10 -0600\nReceived: by z; 1 Jan 1999 00:00:00"
    )
    assert date(mail(head)) == "2010-12-15T06:59:10+00:00"
    assert date(mail(b"Subject: x")) is None


def test_parameters_are_put_together_from_their_pieces() -> None:
    value = 'attachment; filename*0*=iso-8859-1\'en\'Gr%FC; filename*1*=%DFe; filename*2=.txt; x="a\\"b"; y = z'
    assert parameters(value) == {"filename": "Grüße.txt", "x": 'a"b', "y": "z"}


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("Content-Disposition: attachment; filename=a.pdf", "a.pdf"),
        ("Content-Disposition: attachment; filename=This is a test.txt", "This is a test.txt"),
        ('Content-Disposition: attachment; filename="=?UTF-8?B?44Gm44GZ44GoLnR4dA==?="', "てすと.txt"),
        ("Content-Disposition: attachment; filename*=UTF-8''na%C3%AFve.txt", "naïve.txt"),
        ('Content-Type: image/png; name="C:\\\\temp\\\\x.png"', "x.png"),
        ("Content-Location: http://x.org/pics/Photo25.jpg", "Photo25.jpg"),
        ("Content-Location: http://x.org/", None),
        ("Content-Type: image/png", None),
    ],
)
def test_a_file_name_is_read_in_all_its_spellings(head: str, name: str | None) -> None:
    assert file_name(mail(head.encode())) == name


def test_base64_is_decoded_with_whatever_stands_between() -> None:
    assert lenient_base64(b"aGVs\r\nbG8!=") == b"hello"
    assert lenient_base64(b"aGVsbG8x1") == b"hello1"
    assert lenient_base64(b"=====") == b""
