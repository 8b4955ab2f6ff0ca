"""RTF: the text of a document as Markdown, in the order in which it is read, from every code page.

striprtf drops footnotes, text boxes, headers, titles and the properties of the document, and looks for links with a
pattern whose time grows faster than the text; the control words are few, and are read here.
"""

import datetime as dt
import re
from dataclasses import dataclass, field

from garage.config import Extraction
from garage.extract.mirror import JSON, canonical, clean_line, clean_text
from garage.extract.model import Extracted, Malformed, NoText, Unsupported
from garage.extract.office.rtf_words import (
    CHARACTERS,
    CHARSETS,
    CONTEXTS,
    INFO,
    KNOWN,
    SECTIONS,
    SKIPPED,
    symbol,
)
from garage.extract.office.rtf_writer import Paragraph, Writer

NAME = "rtf"
LIBRARIES = ()
SETTINGS = ()
TOOLS = ()
SUFFIXES = {".rtf": "markdown"}

_TOKEN = re.compile(
    rb"\\(?P<word>[a-zA-Z]{1,32})(?P<number>-?[0-9]{1,10})? ?|\\'(?P<hex>[0-9a-fA-F]{2})|\\(?P<symbol>[^a-zA-Z])"
    rb"|(?P<brace>[{}])|(?P<line>[\r\n\0]+)|(?P<text>[^\\{}\r\n\0]+)|(?P<stray>.)",
    re.DOTALL,
)
_DEPTH = 2_000
_WARNINGS = 20


@dataclass(slots=True)
class _Group:
    """What holds inside a pair of braces."""

    writer: Writer
    skip: bool = False
    starred: bool = False  # a destination follows that may be ignored
    fresh: bool = True  # nothing but a star has been read of it
    outer_skip: bool = False  # of what stands twice, as text and in Unicode
    table: str = ""  # 'fonts', 'styles' or 'time': read for what it says, not as text
    font: int | None = None
    unicode_skip: int = 1
    hidden: bool = False
    deleted: bool = False
    paragraph: Paragraph = field(default_factory=Paragraph)

    def inner(self) -> "_Group":
        """What holds when a further pair of braces begins (`replace` takes several times as long)."""
        return _Group(
            self.writer,
            skip=self.skip,
            outer_skip=self.outer_skip,
            table=self.table,
            font=self.font,
            unicode_skip=self.unicode_skip,
            hidden=self.hidden,
            deleted=self.deleted,
            paragraph=self.paragraph,
        )


def extract(raw: bytes, *, name: str, settings: Extraction) -> Extracted:
    """Return headings as `#`, list items as `-`, tables as rows, text boxes behind the paragraph that they hang on.

    Footnotes follow the body, then the headers and footers, each once. Hidden and deleted text and remarks are left
    out.

    Raises:
        NoText: it holds none.
        Unsupported: it is no RTF.
        Malformed: its groups are nested without end, or it ends before its text.
    """
    del name, settings
    if not raw.lstrip().startswith(b"{\\rtf"):
        raise Unsupported("it is no RTF")
    reader = _Reader(raw)
    reader.read()
    body = reader.body
    meta = reader.meta
    blocks = [*body.finished(), *(f"[^{number}]: {note}" for number, note in enumerate(body.notes, start=1))]
    known = set(blocks)
    blocks += [text for text in dict.fromkeys(reader.margins) if text and text not in known]
    if not any(blocks) and reader.warnings:
        raise Malformed(reader.warnings[0], meta=meta)
    if not any(blocks):
        raise NoText("it holds no text", meta=meta)
    return Extracted(
        content=canonical(Writer.joined(blocks)),
        kind="markdown",
        title=clean_line(meta.pop("title", None)) or clean_line(body.title),
        meta=meta,
        warnings=tuple(reader.warnings)[:_WARNINGS],
    )


class _Reader:
    """Goes through the tokens of a document once."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self.body = Writer()
        self.margins: list[str] = []
        self.meta: dict[str, JSON] = {}
        self.warnings: list[str] = []
        self._group = _Group(self.body)
        self._outer: list[_Group] = []
        self._contexts: list[tuple[int, str]] = []  # depth at which one was entered, and what it is
        self._fonts: dict[int, str] = {}
        self._font: int | None = None  # of the table, being read
        self._default_font: int | None = None
        self._codepage = "cp1252"
        self._styles: dict[int, str] = {}
        self._style = 0
        self._time: dict[str, int] = {}
        self._pending = bytearray()
        self._skip = 0  # characters that stand for one in Unicode before them

    def read(self) -> None:
        """Read to the end of the outermost group; what follows it is no part of the document."""
        position, length = 0, len(self._raw)
        while position < length:
            match = _TOKEN.match(self._raw, position)
            if match is None:
                break
            position = match.end()
            kind = match.lastgroup
            if kind in ("word", "number"):
                word, number = match["word"].decode().lower(), match["number"]
                if word == "bin" and number:
                    position += max(0, int(number))
                else:
                    self._word(word, int(number) if number else None)
            elif kind == "text":
                self._text(match["text"])
            elif kind == "hex":
                self._text(bytes((int(match["hex"], 16),)))
            elif kind == "brace":
                self._brace(match["brace"])
                if not self._outer:
                    break
            elif kind == "symbol":
                self._symbol(match["symbol"])
        if self._outer:
            self.warnings.append("it ends in the middle")
        while self._outer:
            self._brace(b"}")
        self._flush()

    def _brace(self, brace: bytes) -> None:
        self._flush()
        self._skip = 0
        if brace == b"{":
            if len(self._outer) >= _DEPTH:
                raise Malformed(f"its groups are nested more than {_DEPTH} deep")
            self._outer.append(self._group)
            self._group = self._group.inner()
            return
        if not self._outer:
            return
        inner, self._group = self._group, self._outer.pop()
        if self._contexts and self._contexts[-1][0] > len(self._outer):
            self._leave(self._contexts.pop()[1], inner.writer)
        elif inner.table == "time" and self._group.table != "time":
            self._dated()

    def _leave(self, context: str, writer: Writer) -> None:
        """Put what a footnote, a text box, a header or a property says where it belongs."""
        blocks = writer.finished()
        if context == "note":
            self._group.writer.note(" ".join(" ".join(blocks).split()))
        elif context == "box":
            self._group.writer.hang(blocks)
        elif context == "margin":
            self.margins += blocks
        elif text := clean_text(" ".join(blocks)):
            self.meta.setdefault(context, text)

    def _dated(self) -> None:
        name, time = ("created" if "created" in self._time else "modified"), self._time
        try:
            date = dt.datetime(time["yr"], time["mo"], time["dy"], time.get("hr", 0), time.get("min", 0))  # noqa: DTZ001 - the file gives no zone
        except (KeyError, ValueError, OverflowError):
            return
        self.meta.setdefault(name, date.isoformat())

    def _symbol(self, char: bytes) -> None:
        group = self._group
        if char == b"*":
            group.starred = True
            return
        group.fresh = False
        if char in b"\\{}":
            self._text(char)
        elif char in b"\r\n":
            self._word("par", None)
        elif char in b"~_":
            self._write("\u00a0" if char == b"~" else "-")

    def _text(self, data: bytes) -> None:
        group = self._group
        group.fresh = False
        if self._skip:
            skipped = min(self._skip, len(data))
            self._skip -= skipped
            data = data[skipped:]
        if group.skip or group.hidden or group.deleted or not data:
            return
        if group.table:
            self._entry(data)
        else:
            self._pending += data

    def _entry(self, data: bytes) -> None:
        """The name of a style; the names of fonts are of no use."""
        if self._group.table == "styles":
            self._styles[self._style] = self._styles.get(self._style, "") + data.decode("latin-1")

    def _flush(self) -> None:
        """Decode the bytes read so far; a character of two bytes may come as any mixture of hexadecimal and text."""
        if self._pending:
            data, encoding = bytes(self._pending), self._encoding()
            self._pending.clear()
            self._group.writer.write(symbol(data) if encoding == "symbol" else data.decode(encoding, "replace"))

    def _encoding(self) -> str:
        font = self._group.font if self._group.font is not None else self._default_font
        return (self._fonts.get(font, "") if font is not None else "") or self._codepage

    def _write(self, text: str) -> None:
        self._flush()
        group = self._group
        if not (group.skip or group.hidden or group.deleted or group.table):
            group.writer.write(text)

    def _word(self, word: str, number: int | None) -> None:
        group = self._group
        first, group.fresh = group.fresh, False
        if self._skip and word != "u":
            self._skip -= 1
            return
        if word == "u" and number is not None:
            self._write(chr(number % 0x10000))
            self._skip = group.unicode_skip
            return
        self._flush()
        if first and self._destination(word, number):
            return
        if group.skip:
            return
        if group.table:
            self._in_table(word, number)
        elif word in CHARACTERS:
            self._write(CHARACTERS[word])
        else:
            self._property(word, number)

    def _destination(self, word: str, number: int | None) -> bool:
        """Whether the first word of a group says that it is no part of the running text; it is then dealt with."""
        group = self._group
        starred, group.starred = group.starred, False
        if word == "ud":
            group.skip = group.outer_skip
            return True
        if word == "upr":
            group.outer_skip, group.skip = group.skip, True
            return True
        if group.skip:
            return True
        if word in ("fonttbl", "stylesheet"):
            group.table = "fonts" if word == "fonttbl" else "styles"
        elif group.table == "styles" and word in ("s", "cs", "ds", "ts", "tsrowd"):
            self._style = (number or 0) if word == "s" else -1
        elif word in ("creatim", "revtim"):
            group.table, self._time = "time", {"created" if word == "creatim" else "modified": 1}
        elif word in CONTEXTS or word in INFO:
            group.writer = Writer()
            group.paragraph = Paragraph()
            group.writer.begin(group.paragraph)
            self._contexts.append((len(self._outer), CONTEXTS.get(word) or INFO[word]))
        elif word in ("pntext", "listtext"):
            group.skip = True
            self._outer[-1].paragraph.is_item = True
        elif word in SKIPPED or (starred and word not in KNOWN):
            group.skip = True
        else:
            return False
        return True

    def _in_table(self, word: str, number: int | None) -> None:
        table = self._group.table
        if table == "fonts" and word == "f":
            self._font = number
        elif table == "fonts" and word in ("fcharset", "cpg") and self._font is not None and number is not None:
            encoding = CHARSETS.get(number, "") if word == "fcharset" else _codec(number)
            self._fonts[self._font] = self._fonts.get(self._font) or encoding
        elif table == "styles" and word == "s":
            self._style = number or 0
        elif table == "time" and number is not None:
            self._time[word] = number

    def _property(self, word: str, number: int | None) -> None:
        group = self._group
        if word == "ansicpg" and number:
            self._codepage = _codec(number) or self._codepage
        elif word in ("mac", "pc", "pca"):
            self._codepage = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}[word]
        elif word == "deff":
            self._default_font = number
        elif word == "f":
            group.font = number
        elif word == "uc":
            group.unicode_skip = min(max(number or 0, 0), 8)
        elif word == "plain":
            group.font, group.hidden = None, False
        elif word in ("v", "deleted"):
            setattr(group, "hidden" if word == "v" else "deleted", number != 0)
        elif word in SECTIONS:
            group.writer.end_paragraph()
            if word == "par" and not self._lists_by_number():
                group.paragraph.is_item = False
        elif word in ("cell", "nestcell", "row", "nestrow"):
            group.writer.end_cell() if word.endswith("cell") else group.writer.end_row(nested=word == "nestrow")
        else:
            self._paragraph(word, number)

    def _lists_by_number(self) -> bool:
        return self._group.paragraph.list_number > 0

    def _paragraph(self, word: str, number: int | None) -> None:
        group = self._group
        if word == "pard":
            group.paragraph = Paragraph()
        elif word == "s":
            group.paragraph.style = self._styles.get(number or 0, "").strip("; ")
        elif word == "outlinelevel":
            group.paragraph.outline = number
        elif word == "intbl":
            group.paragraph.in_table = True
        elif word == "ls":
            group.paragraph.list_number = number or 0
        elif word == "ilvl":
            group.paragraph.level = min(max(number or 0, 0), 8)
        else:
            return
        group.writer.begin(group.paragraph)


def _codec(number: int) -> str:
    """The name of the encoding that is a Windows code page; '' for none that is known."""
    import codecs

    names = {10000: "mac_roman", 65001: "utf-8", 10001: "shift_jis", 10007: "mac_cyrillic", 1361: "johab"}
    name = names.get(number, f"cp{number}")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return ""
