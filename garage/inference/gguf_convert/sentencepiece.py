"""Reading the pieces out of a SentencePiece model, which is a protobuf message (sentencepiece_model.proto)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PIECES = 1  # ModelProto.pieces
_TEXT, _SCORE, _TYPE = 1, 2, 3  # ModelProto.SentencePiece
_NORMAL = 1


@dataclass(frozen=True, slots=True)
class Piece:
    """One entry of the vocabulary.

    `type` is SentencePiece's number: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte.
    """

    text: bytes
    score: float
    type: int


def read_pieces(path: Path) -> list[Piece]:
    """The vocabulary in id order. Raises `ValueError` for bytes that are not a protobuf message."""
    pieces = []
    for number, value in _fields(memoryview(path.read_bytes())):
        if number == _PIECES and isinstance(value, memoryview):
            pieces.append(_piece(value))
    return pieces


def _piece(message: memoryview) -> Piece:
    text, score, kind = b"", 0.0, _NORMAL
    for number, value in _fields(message):
        if number == _TEXT and isinstance(value, memoryview):
            text = bytes(value)
        elif number == _SCORE and isinstance(value, memoryview):
            (score,) = struct.unpack("<f", value)
        elif number == _TYPE and isinstance(value, int):
            kind = value
    return Piece(text, score, kind)


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Field numbers and values of one message: integers for varints, raw bytes for everything else."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield number, value
            continue
        if wire == 2:
            length, at = _varint(message, at)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"not a protobuf message: wire type {wire} at byte {at}")
        if at + length > len(message):
            raise ValueError("not a protobuf message: it ends in the middle of a field")
        yield number, message[at : at + length]
        at += length


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message):
            raise ValueError("not a protobuf message: it ends in the middle of a number")
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
