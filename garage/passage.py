"""What a passage is to the two engines: the text a model may be given, and the terms keyword search sees."""

import hashlib
import json
import re
from dataclasses import dataclass

# Chinese, Japanese and Korean write without spaces; a run of these is indexed as overlapping pairs, which needs no
# dictionary (Hiragana, Katakana, CJK ideographs with extension A, compatibility ideographs, Hangul syllables).
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_CJK_RUN = re.compile(f"[{_CJK}]+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:[.\-:/]+\w+)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


@dataclass(frozen=True, slots=True)
class Lexical:
    """The terms of a passage for keyword search: exactly one of the two is set."""

    prose: str | None
    code: str | None


def input_sha256(title: str, heading_path: str | None, text: str) -> bytes:
    """Digest of all that a model may be given of a passage; model-independent (see `vector_sha256`)."""
    return hashlib.sha256(json.dumps([title, heading_path or "", text], ensure_ascii=False).encode()).digest()


def is_code(kind: str) -> bool:
    """Whether documents of this kind are searched without stemming."""
    return kind.startswith("code:")


def lexical(kind: str, title: str, heading_path: str | None, text: str) -> Lexical:
    """Title, heading and text as keyword search sees them; code gains the parts of its identifiers."""
    whole = "\n".join(part for part in (title, heading_path, text) if part)
    if is_code(kind):
        return Lexical(None, with_bigrams(with_parts(whole)))
    return Lexical(with_bigrams(whole), None)


def with_parts(text: str) -> str:
    """Appends the parts of compound identifiers: `getUserName` is also found by `user`, `max_size` by `size`."""
    parts: list[str] = []
    for identifier in dict.fromkeys(_IDENTIFIER.findall(text)):
        found = _PART.findall(identifier)
        if len(found) > 1:
            parts.extend(found)
    return f"{text}\n{' '.join(parts)}" if parts else text


def with_bigrams(text: str) -> str:
    """Writes runs of Chinese, Japanese and Korean as overlapping pairs; everything else stays as it is."""
    return _CJK_RUN.sub(_pairs, text)


def _pairs(match: re.Match[str]) -> str:
    run = match.group()
    if len(run) == 1:
        return f" {run} "
    return f" {' '.join(run[i : i + 2] for i in range(len(run) - 1))} "
