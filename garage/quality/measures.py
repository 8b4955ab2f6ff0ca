"""What is measured of a sample beside runs, stamps and rows, each as a share of its lines or characters."""

import re

from garage.quality.sample import Sample

_SHAPE_LENGTH = 120
_SHAPE_LETTERS = 12  # a line with fewer letters says nothing that could be repeated
_LONG_LINE = 250
_CHARACTERS_A_SPACE = 14
_CHARACTERS_A_SIGN = 9
_SIGNS = b'(){}[];,="0123456789'

_LINK = re.compile(r"\W*(?:\[[^\]]*\](?:\(|:\s)|<a\s|https?://)")
_LOCK_LINE = re.compile(
    r"""[\s{-]*["']?(?:version|resolved|resolution|integrity|checksum|source|requires|dependencies|engines|node|dev|dist
    |optional|peer|hasBin|bin|license|funding|url|name|files?|hash|hashes|description|category|python-versions|specifier
    |cpu|os|groups|markers|peerDependencies|devDependencies|optionalDependencies|languageName|linkType|conditions
    |transitivePeerDependencies|index|sha256|type|reference|shasum)["']?\s*(?:[:={]|\s["'])""",
    re.VERBOSE,
)


def repetition(taken: Sample, folded: bytes) -> float:
    """The share of lines whose shape an earlier line has: digits folded, the first 120 characters.

    Only lines with words count. Rules, closing brackets, columns of numbers and short entries ("12 May 71.5 kg")
    repeat in what people keep, and so do lists of links. When fewer than half of the lines have words, the others are
    what the text is about, and nothing is said.
    """
    shapes = folded.decode("utf-8", "surrogatepass").split("\n")
    worded = [
        shape[:_SHAPE_LENGTH]
        for shape, letters in zip(shapes, taken.letters, strict=True)
        if letters >= _SHAPE_LETTERS and not _LINK.match(shape)
    ]
    if len(worded) * 2 < len(shapes):
        return 0.0
    return 1 - len(set(worded)) / len(worded)


def alphabetic(taken: Sample) -> float:
    """The share of letters in what is not white space."""
    visible = sum(taken.visible)
    return sum(taken.letters) / visible if visible else 1.0


def unbroken(taken: Sample) -> float:
    """The share of characters in long lines with hardly a space but many digits and brackets, as in minified code.

    A line that addresses two hundred recipients has few spaces too.
    """
    packed = sum(len(line) for line in taken.lines if len(line) > _LONG_LINE and _is_packed(line))
    return packed / len(taken.text) if packed else 0.0


def _is_packed(line: str) -> bool:
    if (line.count(" ") + line.count("\t")) * _CHARACTERS_A_SPACE >= len(line):
        return False
    encoded = line.encode("utf-8", "replace")
    signs = len(encoded) - len(encoded.translate(None, _SIGNS))
    return len(encoded) < 1.1 * len(line) and signs * _CHARACTERS_A_SIGN > len(line)


def locked(taken: Sample) -> float:
    """The share of lines that pin a dependency: versions, sources and checksums in a fixed vocabulary."""
    return sum(1 for line in taken.lines if _LOCK_LINE.match(line)) / len(taken.lines)
