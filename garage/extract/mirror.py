"""The canonical mirror: the one form in which text is stored, hashed, cut and quoted.

Offsets everywhere are code points into it. For a text file, line N of the mirror is line N in the person's editor, so
nothing is trimmed, wrapped or joined.
"""

import codecs
import datetime as dt
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TypeAlias

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

_BOM = "\ufeff"
_NEWLINE = re.compile(r"\r\n?")
# Unicode's control characters (category Cc) are C0, DEL and C1. None of C1 is text: they come from Windows-1252 read as
# Latin-1 and from terminals. NEL is among them, which no editor counts as the end of a line.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")

_ENCODING_SAMPLE = 256 * 1024
_UNMARKED_UTF16 = 256  # bytes; shorter texts of any kind pass for Chinese in UTF-16
# EBCDIC, other encodings that no file of text has been written in for decades, and those that need their mark.
_UNLIKELY = (
    *("utf_7", "utf_16", "utf_32", "utf_32_be", "utf_32_le", "hp_roman8", "johab", "kz1048", "ptcp154", "tis_620"),
    *("cp037", "cp273", "cp424", "cp500", "cp864", "cp875", "cp1006", "cp1026", "cp1125", "cp1140"),
    *("mac_arabic", "mac_farsi", "mac_iceland"),
)
_BINARY_SAMPLE = 64 * 1024
# What no text holds in numbers: C0 without NUL (padding, UTF-16), BS, TAB, LF, VT, FF, CR and ESC (terminal colours,
# ISO-2022-JP).
_NOT_TEXT = bytes(set(range(0x01, 0x20)) - {0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1B} | {0x7F})
_INVISIBLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})

METADATA_STRING = 10_000  # code points; a title or keyword list beyond that is an attack or an accident
_METADATA_DEPTH = 16
_METADATA_ITEMS = 1_000


def canonical(text: str) -> str:
    """Return the canonical mirror of `text`; the mirror of a mirror is itself.

    Line ends become LF; control characters except LF and TAB are removed (NUL and C1 among them); surrogates, which
    UTF-8 and Postgres cannot hold, are joined to the character that a pair stands for or else become U+FFFD; byte order
    marks at the start are removed; the text is composed (NFC) and ends with exactly one LF. Everything else stays.
    """
    text = _CONTROL.sub("", _NEWLINE.sub("\n", text))
    if not text.isascii():
        if _SURROGATE.search(text):
            text = _without_surrogates(text)
        text = unicodedata.normalize("NFC", text.lstrip(_BOM))
    return text.rstrip("\n") + "\n"


def _without_surrogates(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def has_text(mirror: str) -> bool:
    """Whether `mirror` has a character that a person could see; white space, format and private-use ones are none."""
    return any(unicodedata.category(char) not in _INVISIBLE and char != "\ufffd" for char in mirror.strip())


def decode(raw: bytes) -> tuple[str, str]:
    """Return the text in `raw` and the name of the encoding it was read as; never raises.

    In this order: a byte order mark (UTF-8, UTF-16, UTF-32), UTF-16 without one told by where its NULs stand, UTF-8
    (a few damaged characters notwithstanding), then what charset-normalizer finds likeliest. Bytes that do not fit
    become U+FFFD. The text is not yet canonical.
    """
    encoding = _marked(raw) or _unmarked_utf16(raw)
    if encoding:
        return raw.decode(encoding, "replace"), encoding
    try:
        return raw.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        encoding = _likeliest(raw[:_ENCODING_SAMPLE])
    return raw.decode(encoding, "replace"), encoding


def _marked(raw: bytes) -> str | None:
    if raw.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    # The mark of UTF-32-LE begins with that of UTF-16-LE; UTF-16 text has no reason to begin with a NUL.
    if len(raw) % 4 == 0 and raw.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return None


def _unmarked_utf16(raw: bytes) -> str | None:
    """UTF-16 of mostly Latin text: every other byte is NUL. Read as UTF-8 it would lose what is not ASCII."""
    sample = raw[:_BINARY_SAMPLE]
    if len(raw) % 2 or len(raw) < 4 or b"\0" not in sample:
        return None
    pairs = len(sample) // 2
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    for encoding, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if zeros * 2 > pairs and others * 50 <= pairs:
            return encoding
    return None


def _likeliest(sample: bytes) -> str:
    from charset_normalizer import from_bytes

    # Other encodings form no valid sequences of UTF-8 by chance: where most are valid, the rest is damage.
    kept = sample.decode("utf-8", "ignore")
    beyond_ascii = len(_BEYOND_ASCII.findall(kept))
    broken = len(sample) - len(kept.encode())
    if broken * 2 <= beyond_ascii:
        return "utf-8"
    unlikely = [*_UNLIKELY, *([] if len(sample) >= _UNMARKED_UTF16 else ["utf_16_le", "utf_16_be"])]
    best = from_bytes(sample, cp_exclusion=unlikely).best()
    # French and Portuguese also fit the code page of Central Europe, short words fit nearly all. Of those that fit the
    # language equally well, Windows-1252 is by far the commonest.
    western = from_bytes(sample, cp_isolation=["cp1252"], enable_fallback=False).best()
    if best is None or (western is not None and western.coherence >= best.coherence):
        return "cp1252"
    return best.encoding


def looks_binary(raw: bytes) -> bool:
    """Whether `raw` is no text in any encoding (a video called .ts, an archive called .txt).

    Told from its first 64 KiB. Of random bytes 10 % are control characters that are counted; text that holds a few of
    them is still text.
    """
    sample = raw[:_BINARY_SAMPLE]
    if _marked(raw) or _unmarked_utf16(raw):
        return False
    strange = len(sample) - len(sample.translate(None, _NOT_TEXT))
    return strange >= 64 and strange * 25 > len(sample)


def clean_text(text: str) -> str:
    """A string of metadata as it may be stored: canonical, without the final LF, of bounded length."""
    return canonical(text[:METADATA_STRING]).strip()


def clean_line(text: object) -> str | None:
    """A title or a name: one line, white space collapsed; None when nothing visible is left or it is no string."""
    if not isinstance(text, str):
        return None
    line = " ".join(clean_text(text).split())
    return line if has_text(line) else None


def clean_metadata(value: object) -> JSON:
    """Return `value` as JSON that Postgres stores: clean strings, ISO dates, finite numbers, bounded size and depth.

    What JSON has no form for becomes its string; numbers that are not finite become null.
    """
    return _clean(value, _METADATA_DEPTH)


def _clean(value: object, depth: int) -> JSON:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        # Larger ones overflow what reads the JSON; hexadecimal, since Python refuses to write long ones in decimal.
        return int(value) if value.bit_length() <= 63 else hex(value)[:METADATA_STRING]
    if isinstance(value, float):
        return float(value) if abs(value) != float("inf") and value == value else None  # noqa: PLR0124 - tells NaN
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, bytes | bytearray):
        return clean_text(decode(bytes(value[:METADATA_STRING]))[0])
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if depth == 0:
        return "..."
    if isinstance(value, Mapping):
        items = list(value.items())[:_METADATA_ITEMS]
        return {_key(key): _clean(item, depth - 1) for key, item in items}
    if isinstance(value, Iterable):
        return [_clean(item, depth - 1) for item, _ in zip(value, range(_METADATA_ITEMS), strict=False)]
    return clean_text(str(value))


def _key(key: object) -> str:
    return clean_text(key if isinstance(key, str) else str(_clean(key, 1)))
