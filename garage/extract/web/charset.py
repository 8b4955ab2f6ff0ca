"""Which encoding a label means, and decoding bytes by a label that may be wrong."""

import codecs
import re

from garage.extract.mirror import decode

# What browsers and mail programs read these labels as: the larger set that the writing programs really used.
_MEANT = {
    **dict.fromkeys(("ascii", "us-ascii", "iso-8859-1", "iso8859-1", "latin1", "latin-1", "iso_8859-1"), "cp1252"),
    **dict.fromkeys(("iso-8859-9", "latin5"), "cp1254"),
    **dict.fromkeys(("gb2312", "gbk", "gb_2312-80", "x-gbk", "csgb2312", "hz"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "ms_kanji", "windows-31j"), "cp932"),
    **dict.fromkeys(("ks_c_5601-1987", "ks_c_5601", "ksc5601", "euc-kr", "euckr", "korean", "ks_c_5601-1989"), "cp949"),
    **dict.fromkeys(("iso-2022-jp", "csiso2022jp"), "iso2022_jp_ext"),
    **dict.fromkeys(("big5", "x-x-big5", "cn-big5"), "big5hkscs"),
    **dict.fromkeys(("iso-8859-8-i", "iso-8859-8-e", "logical"), "iso8859-8"),
    **dict.fromkeys(("macintosh", "x-mac-roman"), "mac_roman"),
    **dict.fromkeys(("windows-874", "iso-8859-11", "tis-620"), "cp874"),
}
_SAID = re.compile(rb"""<(?:\?xml|meta)\b[^>]*?(?:encoding|charset)\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.IGNORECASE)
_HEAD = 16 * 1024
_LABEL = 64
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ESCAPED = ("iso2022", "utf_7", "hz")  # seven bits, so they also pass for UTF-8


def codec(label: str | None) -> str | None:
    """Python's name of the text encoding that a label stands for; None where it stands for none."""
    if not label:
        return None
    name = label.strip().strip("\"'").lower()[:_LABEL]
    if not name.isascii() or "\0" in name:
        return None
    try:
        info = codecs.lookup(_MEANT.get(name, name))
        # A few names, such as "rot13" and "base64", are of codecs that do not make text.
        b"a".decode(info.name, "replace")
    except (LookupError, ValueError, UnicodeError):
        return None
    return None if info.name in {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"} else info.name


def declared(html: bytes) -> str | None:
    """The encoding that a page declares within its first 16 KiB; None where it declares none."""
    found = _SAID.search(html[:_HEAD])
    label = codec(found[1].decode("ascii")) if found else None
    # A declaration that can be read as ASCII is not written in UTF-16, whatever it says.
    return "utf-8" if label and label.startswith(("utf-16", "utf-32")) else label


def decode_as(raw: bytes, label: str | None) -> tuple[str, str, bool]:
    """Return the text of bytes said to be in an encoding, the encoding it was read as, and whether bytes did not fit.

    A byte order mark goes before the label, and so does valid UTF-8 with a character beyond ASCII, which other
    encodings form by chance only in a few letters. Where the label is unknown or does not fit, the likeliest is taken.
    """
    said = codec(label)
    if said is None or raw.startswith(_MARKS):
        return _likeliest(raw)
    escaped = said.startswith(_ESCAPED)
    if not escaped:
        if raw.isascii() and not said.startswith(("utf-16", "utf-32")):
            return raw.decode("ascii"), "utf-8", False
        try:
            return raw.decode("utf-8"), "utf-8", False
        except UnicodeDecodeError:
            pass
    try:
        return raw.decode(said), said, False
    except UnicodeError:
        text = raw.decode(said, "replace")
    # A stray byte, or a text cut in the middle of a character, does not make the label wrong.
    if text.count("\ufffd") * 100 <= len(text):
        return text, said, True
    return _likeliest(raw)


def _likeliest(raw: bytes) -> tuple[str, str, bool]:
    text, encoding = decode(raw)
    return text, encoding, "\ufffd" in text
