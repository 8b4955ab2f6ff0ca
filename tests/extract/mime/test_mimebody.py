import base64
import email

import pytest

from garage.extract.mime.mimebody import (
    Contents,
    contents,
    unflowed,
    without_armour,
    without_base64,
    without_encoded_files,
)


def read(raw: str | bytes) -> Contents:
    return contents(email.message_from_bytes(raw.encode() if isinstance(raw, str) else raw))


def text(raw: str | bytes) -> str:
    return "\n\n".join(part.strip() for part in read(raw).texts)


def multipart(kind: str, *parts: str) -> str:
    return f'Content-Type: multipart/{kind}; boundary="b"\n\n' + "".join(f"--b\n{part}\n" for part in parts) + "--b--\n"


PLAIN = "Content-Type: text/plain\n\nplain words\n"
HTML = "Content-Type: text/html\n\n<p>rich <b>words</b></p>\n"
PDF = 'Content-Type: application/pdf; name="a.pdf"\nContent-Transfer-Encoding: base64\n\nJVBERi0xLjQK\n'


def test_the_plain_version_is_preferred() -> None:
    assert text(multipart("alternative", HTML, PLAIN)) == "plain words"


def test_html_is_converted_where_there_is_no_plain_version() -> None:
    assert text(HTML) == "rich words"
    assert text(multipart("alternative", "Content-Type: text/plain\n\n \n", HTML)) == "rich words"


def test_a_plain_version_that_only_refers_to_the_other_is_passed_over() -> None:
    long = "Content-Type: text/html\n\n<p>" + "all that there is to say about tea " * 20 + "</p>\n"
    assert text(multipart("alternative", "\nYour program cannot show this mail.\n", long)).startswith("all that")


def test_attachments_are_listed_by_name_and_never_read() -> None:
    attached = "Content-Type: text/plain; name=notes.txt\nContent-Disposition: attachment\n\nsecret\n"
    tnef = "Content-Type: application/ms-tnef; name=winmail.dat\n\nx\n"
    found = read(multipart("mixed", PLAIN, PDF, attached, tnef))
    assert found.attachments == ["a.pdf", "notes.txt", "winmail.dat"]
    assert [part.strip() for part in found.texts] == ["plain words"]


def test_attachments_within_versions_and_related_parts_are_listed() -> None:
    found = read(
        multipart("alternative", PLAIN, multipart("related", HTML, PDF).replace('"b"', '"c"').replace("--b", "--c"))
    )
    assert found.attachments == ["a.pdf"]


def test_pictures_without_a_name_are_listed_unless_they_stand_in_the_text() -> None:
    picture = "Content-Type: image/png\nContent-Transfer-Encoding: base64\n\niVBO\n"
    assert read(multipart("mixed", PLAIN, picture)).attachments == ["unnamed image/png"]
    assert read(multipart("mixed", PLAIN, "Content-ID: <x>\n" + picture)).attachments == []


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("7bit;", "tea"),
        ("7-bit", "tea"),
        ("plain", "tea"),
        ("", "tea"),
        ("BASE64;", "dGVh"),
        ("base64", "dGVh="),
        ("base64", "dG!\nVh"),
        ("quoted-printable;", "t=65a"),
        ("Quoted-Printable", "te=\na"),
        ("x-uuencode", "begin 644 x\n#=&5A\n`\nend"),
    ],
)
def test_a_transfer_encoding_is_undone_however_it_is_spelt(encoding: str, body: str) -> None:
    assert text(f"Content-Transfer-Encoding: {encoding}\nContent-Type: text/plain\n\n{body}\n") == "tea"


@pytest.mark.parametrize("charset", ["unknown", "x-nonsense", "us-ascii", '"', "utf-8"])
def test_an_unknown_character_set_loses_nothing(charset: str) -> None:
    raw = f"Content-Type: text/plain; charset={charset}\n\n".encode() + "Grüße aus Köln, wo es regnet".encode("cp1252")
    assert text(raw) == "Grüße aus Köln, wo es regnet"
    assert text(f"Content-Type: text/plain; charset={charset}\n\nEnvoyé par") == "Envoyé par"


def test_a_type_that_is_none_is_read_as_text() -> None:
    assert text("Content-Type: nonsense\n\ntea") == "tea"
    assert text("Content-Type: text/plain;;; charset\n\ntea") == "tea"
    assert text("Content-Type: text/plain\n\n<html><p>tea</html>") == "tea"


def test_lines_that_flow_are_joined() -> None:
    assert text("Content-Type: text/plain; format=flowed\n\nOne \nline.\n> quoted \n> words\nend") == (
        "One line.\n> quoted words\nend"
    )
    assert unflowed("日本 \n語", delete_space=True) == "日本語"
    assert unflowed("a\n-- \nAnn \nArbor", delete_space=False) == "a\n-- \nAnn Arbor"
    assert unflowed(" >stuffed \n From", delete_space=False) == ">stuffed From"


def test_enclosed_messages_are_messages_and_not_text() -> None:
    inner = "Content-Type: message/rfc822\n\nSubject: Inner\n\ninner words\n"
    found = read(multipart("mixed", PLAIN, inner))
    assert [message["Subject"] for message in found.messages] == ["Inner"]
    assert len(found.texts) == 1


def test_an_enclosed_message_that_was_encoded_against_the_rules_is_decoded() -> None:
    inner = "Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\nU3ViamVjdDogSW5uZXIKCndvcmRzCg==\n"
    assert [message["Subject"] for message in read(multipart("mixed", PLAIN, inner)).messages] == ["Inner"]


def test_signatures_are_not_listed_and_signed_words_are_read() -> None:
    signature = "Content-Type: application/pgp-signature; name=signature.asc\n\n-----BEGIN PGP SIGNATURE-----\n"
    found = read(multipart("signed", PLAIN, signature))
    assert (text(multipart("signed", PLAIN, signature)), found.attachments, found.warnings) == ("plain words", [], [])


@pytest.mark.parametrize(
    "raw",
    [
        multipart("encrypted", "Content-Type: application/pgp-encrypted\n\nVersion: 1\n", PDF),
        "Content-Type: application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m\n\nMIAG\n",
        "Content-Type: text/plain\n\n-----BEGIN PGP MESSAGE-----\n\nhQEMA\n-----END PGP MESSAGE-----\n",
    ],
)
def test_what_is_encrypted_is_said_to_be_and_not_read(raw: str) -> None:
    assert read(raw).warnings == ["it is encrypted; only its header can be read"]
    assert text(raw) == ""


def test_a_message_signed_in_one_piece_is_read() -> None:
    inner = b"Content-Type: text/plain\r\n\r\nsigned words\r\n"

    def der(tag: int, value: bytes) -> bytes:
        return bytes([tag, 0x82]) + len(value).to_bytes(2, "big") + value

    data = der(0x30, bytes.fromhex("06092a864886f70d010701") + der(0xA0, der(0x04, inner)))
    signed = der(0x30, bytes.fromhex("020101") + der(0x31, b"") + data)
    wrapped = der(0x30, bytes.fromhex("06092a864886f70d010702") + der(0xA0, signed))
    head = b"Content-Type: application/pkcs7-mime; smime-type=signed-data\nContent-Transfer-Encoding: base64\n\n"
    assert text(head + base64.encodebytes(wrapped)) == "signed words"


def test_parts_are_found_by_the_boundary_that_stands_in_the_message() -> None:
    raw = multipart("mixed", PLAIN, PDF).replace('boundary="b"', 'boundary="other"')
    found = read(raw)
    assert (text(raw), found.attachments) == ("plain words", ["a.pdf"])
    assert found.warnings == ["its parts are not separated as its header says"]


def test_parts_behind_a_boundary_that_is_used_twice_are_found() -> None:
    found = read(multipart("mixed", multipart("alternative", PLAIN), PDF))
    assert found.attachments == ["a.pdf"]
    assert [part.strip() for part in found.texts] == ["plain words"]


def test_a_multipart_without_parts_is_empty() -> None:
    assert read('Content-Type: multipart/mixed; boundary="b"\n\n') == Contents()
    assert read("Content-Type: multipart/mixed\n\n\n") == Contents()
    assert read("Content-Type: message/rfc822\n\n").texts == []


def test_what_a_mail_server_reports_is_read_where_nothing_else_is() -> None:
    status = "Content-Type: message/delivery-status\n\nFinal-Recipient: rfc822; ann@x.org\n\nStatus: 5.1.1\n"
    assert "Final-Recipient: rfc822; ann@x.org" in text(multipart("report", status))
    assert text(multipart("report", PLAIN, status)) == "plain words"


def test_files_encoded_into_the_text_are_named_and_left_out() -> None:
    encoded = "before\nbegin 644 a file.doc\nM" + "#" * 60 + "\nend\nafter"
    assert without_encoded_files(encoded) == ("before\nafter", ["a file.doc"])
    assert without_encoded_files("We\nbegin 644 times\nto talk") == ("We\nbegin 644 times\nto talk", [])


def test_base64_never_becomes_text() -> None:
    data = "\n".join(["QUJD" * 19] * 6 + ["QUI="])
    assert without_base64(f"before\n{data}\nafter") == "before\nafter"
    found = read(f"Content-Type: text/plain\n\nbefore\n{data}\n")
    assert [part.strip() for part in found.texts] == ["before"]
    assert found.warnings == ["encoded data within the text was left out"]


def test_long_words_are_not_taken_for_base64() -> None:
    words = "Donaudampfschifffahrtsgesellschaftskapitaenswitwenrentenversicherung\n" * 3
    assert without_base64(words) == words


def test_words_signed_within_the_text_stay() -> None:
    signed = (
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nHello\n- - dashed\n-----BEGIN PGP SIGNATURE-----\n\niQEz\n"
        "-----END PGP SIGNATURE-----\nafter"
    )
    assert without_armour(signed) == ("Hello\n- dashed\nafter", False)


def test_a_thousand_parts_are_read_and_ten_thousand_are_not() -> None:
    found = read(multipart("mixed", *[f"\npart {number}" for number in range(10_000)]))
    assert 1_000 < len(found.texts) <= 2_000
    assert found.warnings == ["parts beyond the first 2,000 or deeper than 50 were left out"]
