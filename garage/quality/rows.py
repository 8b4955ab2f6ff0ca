"""Lines in the shape of a dump: rows of bytes, frames of a stack, listings of processes, sockets and memory, records.

A line is one of these when it opens as such rows do, or when most of its words are such as only programs write.
Numbers alone make no dump: price lists, statistics and chess games are full of them.
"""

import re
from collections.abc import Callable

from garage.quality.blobs import is_blob
from garage.quality.sample import Sample

_LOOKED_AT = 200  # code points of a line
_WORDS = 16  # of a line
_FEWEST_WORDS = 4
_MOST_LETTERS = 0.88  # of the visible characters of a dump's line; prose has 95 %

# Rows of memory or of a file: an offset, then groups of digits; or bytes one by one.
_BYTES = r"""
    (?:0x)?(?=0|\d{0,15}[a-fA-F])[0-9a-fA-F]{5,16}[:|]?(?:\s+[0-9a-fA-F]{2,16}){3,}(?!\w)
  | (?:[0-9a-fA-F]{2}[:\s]){8,}
  | \\?(?:[x0][0-9a-fA-F]{1,4}[,\s]+){6,}
"""
_OPENING = re.compile(
    rf"""(?:{_BYTES}
  | [0-9a-fA-F]{{2,16}}:\t[0-9a-fA-F]{{2}}\s      # an instruction
  | 0\d{{6}}(?:\s+\S{{1,3}}){{8}}                 # characters of a file
  | at\s[\w$.<>/@-]+\([^()]*\)                  # a frame of Java
  | at\s\S.*:\d+:\d+\)?$                        # of JavaScript
  | File\s"[^"]+",\sline\s\d+                   # of Python
  | (?:\d+\s+)?\S+\s\+\s\d+\s\(\S+\s\+         # of a sampled process
  | [|+o!:\s-]*(?:"[^"]{{1,60}}"\s=\s|\+-o\s)   # a device and its properties
  | INSERT\sINTO\s|\(.*\)[,;]\s*$               # a row of a database
  | (?:\d+|-|\#{{5}}|={{5}})\*?:\s+\d+:         # a counted line of a program
  | \{{"\w+":                                   # a record of JSON
  | \w+\(.*\)\s+=\s-?(?:\d|0x)                 # a system call
  | \w+\{{.*\}}\s[-+\d.eE]+$                    # a metric
)""",
    re.VERBOSE,
)
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}|\b(?=[0-9-]*[a-fA-F])[0-9a-fA-F]{8,16}-[0-9a-fA-F]{8,16}\b")
_FIELD = re.compile(r"\b[\w.]+=\S")
# Rows of numbers in a source file: a table that a program made.
_NUMBERS = re.compile(
    rf"(?:{_BYTES}|[{{\[(]*\s*(?:[-+]?(?:0x[0-9a-fA-F]+|\d[\d.eE+-]*)[uUlLfF]?[\s,;\])}}]+){{6,}}$)", re.VERBOSE
)
_ROW_OF_DATABASE = re.compile(r"INSERT\sINTO\s|\(.*\)[,;]$")
_PYTHON_FRAME = '\n  File "'
# Words that only programs write.
_MACHINE = re.compile(
    r"[-(\[\"']?/[\w.+-]+/"  # a path
    r"|[\w.-]+(?:/[\w.-]+)+\.\w{1,5}$"
    r"|-{0,2}[\w.-]+=."
    r"|[\"'(]?%[-.\d]*l{0,2}[dsuxpf]\b"
    r"|(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{6,}[:,]?$"
    r"|\D{0,20}\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}"  # an address of the network
    r"|[\w./-]+\[\d+\]"
    r"|\[\w+[/:_-][\w/:.+-]*\]$"  # a thread of the kernel
    r"|\w+(?:\.\w+){2,}$"
    r"|\w+::\w"
    r"|-{1,2}[A-Za-z][\w-]*$"  # an option
    r"|[-dlrwxsp]{3}[-rwxst/]{1,8}$"  # permissions
    r"|\w*[a-z0-9]_\w"
)
_NUMBER = re.compile(r"[-+(\[]?\d(?!\d{0,2}\.\d{1,3}\.\d{1,3}\.\d)(?![0-9a-fA-F]{5,}[:,]?$)|\d+[:,;]?$")
_ORDINARY = re.compile(r"\W{0,3}[A-Za-z]+(?:['-][A-Za-z]+)*\W{0,3}|\W*\d*\W*")
_SIGN = re.compile(r"[^\w\s]")
_SHORT = 12
_STRANGE = re.compile(r"[A-Za-z].*(?:\$(?!\s?\d)|[\\^`])|(?:\$(?!\s?\d)|[\\^`]).*[A-Za-z]")
_COMMAND = re.compile(r"\\[A-Za-z]")  # of TeX


def dump_shaped(taken: Sample, least: float) -> int:
    """How many lines have the shape of a dump; 0 when it cannot be more than `least`."""
    measured = zip(taken.lines, taken.letters, taken.visible, strict=True)
    eligible = [
        line
        for line, letters, visible in measured
        if letters <= _MOST_LETTERS * visible or ("_" in line and " " not in line)
    ]
    quoted = taken.text.count(_PYTHON_FRAME)  # each with the line of source below it
    return min(_count(eligible, least - quoted, _is_dump) + quoted, len(taken.lines))


def data_shaped(taken: Sample, least: float) -> int:
    """How many lines of a source file are data that a program wrote: bytes, numbers, base64, rows of a database."""
    return _count(taken.lines, least, _is_data)


def _count(eligible: list[str], least: float, judged: Callable[[str], bool]) -> int:
    left = len(eligible) - least  # how many of them may be something else before it is clear
    found = 0
    for line in eligible:
        if judged(line[:_LOOKED_AT].strip()):
            found += 1
        else:
            left -= 1
            if left <= 0:
                return 0
    return found if found > least else 0


def _is_data(line: str) -> bool:
    words = line.split(None, _FEWEST_WORDS)
    if len(words) < _FEWEST_WORDS and is_blob(line):
        return True
    if line.startswith(("INSERT", "(")):
        return _ROW_OF_DATABASE.match(line) is not None
    # Numbers, unless the second word is one of a language: x in the first may be of hexadecimal.
    return (len(words) < 2 or not words[1].isalpha()) and _NUMBERS.match(line) is not None


def _is_dump(line: str) -> bool:
    if _OPENING.match(line):
        return True
    words = line.split(None, _WORDS)[:_WORDS]
    if len(words) == 1:
        return _is_symbol(line) or is_blob(line) or _is_soup(line)
    if ("0x" in line or "-" in line) and _ADDRESS.search(line):
        return True
    if line.count("=") >= 3 and len(_FIELD.findall(line)) >= 3:
        return True
    if len(words) < _FEWEST_WORDS:
        return is_blob(line) or _is_soup(line)
    if line.count("\ufffd") * 10 > len(line):
        return True
    machine = numbers = 0
    for word in words:
        if not word.isalpha():
            if _NUMBER.match(word):
                numbers += 1
            elif _MACHINE.match(word):
                machine += 1
    return machine > 0 and 2 * (machine + numbers) > len(words)


def _is_symbol(word: str) -> bool:
    """Whether a word on a line of its own is one of a program: a mangled name, a section, a key."""
    if not word.isascii() or "://" in word or "@" in word or len(word) < 4 or _COMMAND.match(word):
        return False
    return not word.isdigit() and _ORDINARY.fullmatch(word) is None


def _is_soup(line: str) -> bool:
    """Whether letters and signs stand mixed as in what is found between the texts of a binary file."""
    if _COMMAND.match(line):
        return False
    if "\ufffd" in line or (len(line) <= _SHORT and _STRANGE.search(line)):
        return True
    return 5 * len(_SIGN.findall(line)) > 2 * len(line) and any(map(str.isalpha, line))
