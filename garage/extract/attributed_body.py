"""Text with attributes as NSArchiver writes it: the column attributedBody of a Messages database.

The format, called typedstream, is undocumented. What is known of it: a header names it and a version. Then come
groups: a type encoding of Objective-C, and a value for each of its letters. Strings that may recur (type encodings and
names of classes) are written once and later named by their number; objects, classes and C strings share a second
numbering. Integers take one byte, or a tag and two or four; tags also announce something new, nothing, or an end.

The bytes come from other people's devices, so nothing in them is trusted: no length, no number, no depth.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

T = TypeVar("T")

_SIGNATURE = b"\x04\x0bstreamtyped"
_INT16, _INT32, _REAL, _NEW, _NIL, _END = 0x81, 0x82, 0x83, 0x84, 0x85, 0x86
_TAGS = range(0x80, 0x92)
_FIRST_REFERENCE = -110
_DEPTH = 40
_STRING_CLASSES = frozenset({"NSString", "NSMutableString"})
_TEXT_MARK = b"\x84\x01+"

Plain: TypeAlias = "int | float | str | bytes | None"
Node: TypeAlias = "Plain | _Object | _Class"


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of the text with the same attributes; `start` and `end` are code points."""

    start: int
    end: int
    attributes: dict[str, Plain]


@dataclass(frozen=True, slots=True)
class AttributedText:
    """A text and its runs; without runs when only the text could be read."""

    text: str
    runs: tuple[Run, ...] = ()


@dataclass(slots=True)
class _Class:
    name: str


@dataclass(slots=True)
class _Object:
    kind: str = ""
    values: list[Node] = field(default_factory=list)


class _Unreadable(Exception):
    """The bytes are not of the format, or use what is not known of it."""


def text_of(raw: bytes) -> str | None:
    """Return the text alone, which takes a tenth of the time; None when `raw` stands for none; never raises."""
    return _text_alone(raw) if raw.startswith(_SIGNATURE) else None


def decode(raw: bytes) -> AttributedText | None:
    """Return the text that `raw` stands for, None when it stands for none; never raises.

    Where the whole cannot be understood, the text alone is looked for.
    """
    if not raw.startswith(_SIGNATURE):
        return None
    try:
        found = _attributed(_Reader(raw).root())
    except (_Unreadable, struct.error, IndexError):
        found = None
    if found is None:
        text = _text_alone(raw)
        return None if text is None else AttributedText(text)
    return found


class _Reader:
    """Reads one object with all that it holds. Every step consumes a byte, and none reads beyond the end."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = len(_SIGNATURE)
        self._strings: list[bytes] = []
        self._objects: list[_Object | _Class | bytes | None] = []

    def root(self) -> Node:
        self._integer(self._byte())  # the version of the system, 1000 ever since
        values = self._group(0)
        if len(values) != 1:
            raise _Unreadable
        return values[0]

    def _byte(self) -> int:
        self._at += 1
        return self._raw[self._at - 1]

    def _bytes(self, length: int) -> bytes:
        if not 0 <= length <= len(self._raw) - self._at:
            raise _Unreadable
        self._at += length
        return self._raw[self._at - length : self._at]

    def _integer(self, head: int, *, signed: bool = False) -> int:
        if head == _INT16:
            return int.from_bytes(self._bytes(2), "little", signed=signed)
        if head == _INT32:
            return int.from_bytes(self._bytes(4), "little", signed=signed)
        if head in _TAGS:
            raise _Unreadable
        return head - 256 if head > _TAGS[-1] else head

    def _reference(self, head: int) -> int:
        return self._integer(head, signed=True) - _FIRST_REFERENCE

    def _real(self, code: str) -> float:
        head = self._byte()
        if head != _REAL:
            return float(self._integer(head, signed=True))
        (value,) = struct.unpack(f"<{code}", self._bytes(struct.calcsize(code)))
        return float(value)

    def _shared_string(self, head: int) -> bytes:
        if head == _NIL:
            return b""
        if head == _NEW:
            text = self._bytes(self._integer(self._byte()))
            self._strings.append(text)
            return text
        return _known(self._strings, self._reference(head))

    def _group(self, depth: int) -> list[Node]:
        return self._values(self._shared_string(self._byte()), depth)

    def _values(self, encoding: bytes, depth: int) -> list[Node]:
        values: list[Node] = []
        at = 0
        while at < len(encoding):
            letter = encoding[at : at + 1]
            if letter == b"{":  # a structure, written as its fields: {_NSRange=QQ}
                at = encoding.find(b"=", at) + 1
                if not at:
                    raise _Unreadable
                continue
            if letter == b"[":
                end = encoding.find(b"]", at)
                values.append(self._array(encoding[at + 1 : end]))
                at = end + 1 if end > 0 else len(encoding)
                continue
            if letter != b"}":
                values.append(self._value(letter, depth))
            at += 1
        return values

    def _array(self, encoding: bytes) -> bytes:
        if encoding[-1:] not in {b"c", b"C"} or not encoding[:-1].isdigit() or len(encoding) > 12:
            raise _Unreadable
        return self._bytes(int(encoding[:-1]))

    def _value(self, letter: bytes, depth: int) -> Node:
        match letter:
            case b"@":
                return self._object(depth + 1)
            case b"+":
                return self._bytes(self._integer(self._byte()))
            case b"*":
                return self._c_string()
            case b"%" | b":":
                return self._shared_string(self._byte())
            case b"#":
                return self._class()
            case b"c" | b"C" | b"B":
                return self._byte()
            case b"f" | b"d":
                return self._real(letter.decode())
            case b"s" | b"i" | b"l" | b"q":
                return self._integer(self._byte(), signed=True)
            case b"S" | b"I" | b"L" | b"Q":
                return self._integer(self._byte())
        raise _Unreadable

    def _object(self, depth: int) -> _Object | None:
        head = self._byte()
        if head == _NIL:
            return None
        if head != _NEW:
            known = _known(self._objects, self._reference(head))
            if isinstance(known, _Object):
                return known
            raise _Unreadable
        if depth > _DEPTH:
            raise _Unreadable
        made = _Object()
        self._objects.append(made)
        kind = self._class()
        made.kind = kind.name if kind else ""
        while self._raw[self._at] != _END:
            made.values += self._group(depth)
        self._at += 1
        return made

    def _class(self) -> _Class | None:
        """A class; those that it inherits from follow it until one is known already, or there is no other."""
        first: _Class | None = None
        while (head := self._byte()) == _NEW:
            made = _Class(self._shared_string(self._byte()).decode("ascii", "replace"))
            self._integer(self._byte())  # its version
            self._objects.append(made)
            first = first or made
        if head == _NIL:
            return first
        known = _known(self._objects, self._reference(head))
        if not isinstance(known, _Class):
            raise _Unreadable
        return first or known

    def _c_string(self) -> bytes | None:
        head = self._byte()
        if head == _NIL:
            return None
        if head == _NEW:
            self._objects.append(None)
            number = len(self._objects) - 1
            text = self._shared_string(self._byte())
            self._objects[number] = text
            return text
        known = _known(self._objects, self._reference(head))
        if not isinstance(known, bytes):
            raise _Unreadable
        return known


def _known(table: list[T], number: int) -> T:
    if number < 0:
        raise _Unreadable
    return table[number]


def _attributed(root: Node) -> AttributedText | None:
    if not isinstance(root, _Object) or not root.values:
        return None
    text = _string(root) if root.kind in _STRING_CLASSES else _string(root.values[0])
    if text is None:
        return None
    return AttributedText(text, tuple(_runs(text, root.values[1:])))


def _string(node: Node) -> str | None:
    if not isinstance(node, _Object) or node.kind not in _STRING_CLASSES or not node.values:
        return None
    raw = node.values[0]
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else None


def _runs(text: str, values: list[Node]) -> Iterator[Run]:
    """The runs: each is the number of its attributes and a length in UTF-16 units; new attributes follow at once."""
    encoded = text.encode("utf-16-le")
    known: dict[int, dict[str, Plain]] = {}
    unit = start = at = 0
    while at + 1 < len(values):
        number, length = values[at], values[at + 1]
        if not isinstance(number, int) or not isinstance(length, int) or length < 0:
            return
        at += 2
        if at < len(values) and isinstance(values[at], _Object):
            known[number] = _dictionary(values[at])
            at += 1
        end = start + len(encoded[unit * 2 : (unit + length) * 2].decode("utf-16-le", "replace"))
        yield Run(start, min(end, len(text)), known.get(number, {}))
        start, unit = min(end, len(text)), unit + length


def _dictionary(node: Node) -> dict[str, Plain]:
    if not isinstance(node, _Object) or node.kind not in {"NSDictionary", "NSMutableDictionary"}:
        return {}
    pairs = node.values[1:]
    found: dict[str, Plain] = {}
    for key, value in zip(pairs[::2], pairs[1::2], strict=False):
        name = _string(key)
        if name is not None:
            found[name] = _plain(value)
    return found


def _plain(node: Node) -> Plain:
    """A value of an attribute as Python has it; None for what has no such form."""
    if not isinstance(node, _Object):
        return None if isinstance(node, _Class) else node
    if node.kind == "NSNumber":
        last = node.values[-1] if node.values else None
        return last if isinstance(last, int | float) else None
    if node.kind == "NSURL":
        return next((text for value in node.values if (text := _string(value))), None)
    return _string(node)


def _text_alone(raw: bytes) -> str | None:
    """The first string: its type encoding stands there in full, and its length and bytes behind it."""
    at = raw.find(_TEXT_MARK) + len(_TEXT_MARK)
    if at < len(_TEXT_MARK) or at >= len(raw):
        return None
    width = {_INT16: 2, _INT32: 4}.get(raw[at], 0)
    length = int.from_bytes(raw[at + 1 : at + 1 + width], "little") if width else raw[at]
    text = raw[at + 1 + width : at + 1 + width + length]
    if (not width and length in _TAGS) or len(text) < length:
        return None
    return text.decode("utf-8", "replace")
