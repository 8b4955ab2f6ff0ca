r"""Where text may be cut: the separators of prose, Markdown and each programming language, strongest first.

A separator is a regular expression; text is cut in front of each match, so the match opens the piece behind it. A
separator that should close a piece (a full stop) is written as a look-behind, which matches the empty string behind
the mark. Every list ends with the empty string: between any two characters.

All expressions take time proportional to the text, whatever the text: after the line feed or mark that they start
with, no part of them can match the same characters in two ways, and repetition over lines is bounded.
"""

from collections.abc import Mapping
from types import MappingProxyType

BLANK_LINE = r"\n[^\S\n]*\n"
LINE = r"\n"
ANYWHERE = ""

# A sentence ends behind its mark and a quote or bracket that closes with it. Latin marks need white space behind them
# (3.14, e.g., v1.2); full-width ones do not, since Chinese and Japanese write none. The first look-behind repeats
# what the rest demands: it fails fast at nearly every position, which makes a long line three times as quick.
SENTENCE = (
    r"""(?<=[.!?…؟।。！？｡"'”’»)\]」』”’）])"""
    r"""(?:(?=\s)(?:(?<=[.!?…؟।])|(?<=[.!?…؟।]["'”’»)\]]))"""
    r"""|(?![」』”’）])(?:(?<=[。！？｡])|(?<=[。！？｡][」』”’）])))"""
)
CLAUSE = r"(?<=[,;:،؛，、；：､])(?:(?=\s)|(?<=[，、；：､]))"

PROSE = (BLANK_LINE, LINE, SENTENCE, CLAUSE, r"\s", ANYWHERE)

# Headings down to the third level open sections of their own; the deeper ones are the first choice inside a section.
MARKDOWN = (r"\n#{4,6}[ \t]", *PROSE)

# Inside a table row that is too long for one passage: behind a cell, then as in prose without sentences.
ROW = (r"(?<=[\t|])", r"(?<=[,;])", r"\s", ANYWHERE)

_LINES = (BLANK_LINE, LINE, r"[ \t]", ANYWHERE)
# Bundlers write a whole program on one line; behind a statement or a block is then the best place there is.
_STATEMENTS = (BLANK_LINE, LINE, r"(?<=[;{}])(?=\S)", r"[ \t]", ANYWHERE)
_ANNOTATION = r"@[^\n]*\n"


def _top(*openings: str, above: str = "") -> str:
    """Lines at the left margin that open with one of these, with up to four lines of `above` before them."""
    return rf"\n(?:{above}){{0,4}}(?:{'|'.join(openings)})" if above else rf"\n(?:{'|'.join(openings)})"


def _inner(*openings: str, above: str = "") -> str:
    """The same for indented lines."""
    indented = rf"[ \t]+(?:{'|'.join(openings)})"
    return rf"\n(?:[ \t]+{above}){{0,4}}{indented}" if above else rf"\n{indented}"


# C has no word for "function"; what starts at the left margin with a letter starts something.
_MARGIN = r"\n[A-Za-z_]"
_JS_TOP = ("export ", "async function", r"function\b", "class ", "const ", "let ", "var ")
_JS_INNER = ("async ", "static ", r"constructor\b", r"function\b", "get ", "set ", "class ")
_TS_TOP = ("abstract class ", "declare ", "enum ", "interface ", "namespace ", "type ")
_TS_INNER = ("public ", "protected ", "private ", "readonly ", "abstract ")
_JVM_ACCESS = ("public ", "protected ", "private ", "abstract ", "static ", "final ")
_CSHARP = ("public ", "protected ", "private ", "internal ", "static ", "abstract ", "sealed ", "partial ")
_CSHARP_TYPES = ("class ", "interface ", "enum ", "struct ", "record ", "delegate ")
_RUST = (r"pub\b", r"(?:const |async |unsafe )*fn ", "struct ", "enum ", "trait ", r"impl\b", "mod ", "macro_rules!")
_SWIFT = ("public ", "private ", "internal ", "open ", "final ", "static ", "func ", "class ", "struct ", "enum ")
_SCALA = (r"(?:case |abstract |sealed |final |implicit )*(?:class|object|trait) ", r"(?:override )?def ")
_KOTLIN = ("public ", "private ", "internal ", "override ", "suspend ", "fun ", "companion ", "data class ")
_RUBY = ("module ", "class ", "def ", r"private\b", r"protected\b")
_ELIXIR_TOP = ("defmodule ", "defprotocol ", "defimpl ")
_ELIXIR_INNER = ("defp? ", "defmacrop? ", "defguard ", "describe ", "test ")
_ELIXIR_NOTES = r"@(?:doc|spec|impl)[^\n]*\n"
_PHP = ("abstract ", "final ", "public ", "protected ", "private ", "static ", r"function\b")
_SOLIDITY_TOP = ("pragma ", "abstract contract ", "contract ", "interface ", "library ", "struct ", "enum ")
_SOLIDITY_INNER = ("constructor", "function ", "modifier ", "event ", "error ", "struct ", "enum ")
# Fixed-format COBOL keeps a line number and an indicator in its first seven columns.
_COBOL_MARGIN = r"(?:[ \d]{0,6}[ \t])?[ \t]{0,4}"
_HTML_PARTS = r"<(?i:head|body|main|article|section|header|footer|nav|aside|style|script|template)\b"
_HTML_BLOCKS = r"<(?i:div|p|pre|ul|ol|dl|table|form|figure|blockquote|details)\b"
_HTML_ITEMS = r"<(?i:li|dt|dd|tr|br|option|meta|link|title)\b"

LANGUAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "c": (_MARGIN, *_LINES),
        "cobol": (
            rf"\n{_COBOL_MARGIN}(?i:identification|environment|data|procedure) (?i:division)\b",
            rf"\n{_COBOL_MARGIN}[A-Za-z0-9-]+ (?i:section)\b",
            rf"\n{_COBOL_MARGIN}[A-Za-z0-9-]+\.[ \t]*(?=\n)",
            *_LINES,
        ),
        "cpp": (
            _MARGIN,
            _inner("class ", "struct ", "enum ", "template", "namespace ", "public:", "protected:", "private:"),
            *_LINES,
        ),
        "csharp": (
            _top("namespace ", *_CSHARP, *_CSHARP_TYPES, above=r"\[[^\n]*\n"),
            _inner(*_CSHARP, *_CSHARP_TYPES, above=r"\[[^\n]*\n"),
            *_LINES,
        ),
        "css": (_top("@media", "@layer", "@supports", "@font-face"), r"(?<=\n\})", *_STATEMENTS),
        "elixir": (
            _top(*_ELIXIR_TOP, "defp? ", "defmacrop? "),
            _inner(*_ELIXIR_TOP, *_ELIXIR_INNER, above=_ELIXIR_NOTES),
            *_LINES,
        ),
        "go": (_top("func ", "type ", "const ", "var "), *_LINES),
        "haskell": (
            _top("module ", "import ", "data ", "newtype ", "type ", "class ", "instance "),
            r"\n[a-z_][\w']*[ \t]*::",
            *_LINES,
        ),
        "html": (_HTML_PARTS, r"<[hH][1-6]\b", _HTML_BLOCKS, _HTML_ITEMS, BLANK_LINE, LINE, "<", *_LINES[2:]),
        "java": (
            _top(*_JVM_ACCESS, "class ", "interface ", "enum ", "record ", above=_ANNOTATION),
            _inner(*_JVM_ACCESS, "class ", "interface ", "enum ", "record ", above=_ANNOTATION),
            *_LINES,
        ),
        "javascript": (_top(*_JS_TOP), _inner(*_JS_INNER), *_STATEMENTS),
        "kotlin": (
            _top(*_KOTLIN, "class ", "interface ", "object ", "enum ", above=_ANNOTATION),
            _inner(*_KOTLIN, "class ", "interface ", "object ", "enum ", above=_ANNOTATION),
            *_LINES,
        ),
        "latex": (
            r"\n[ \t]*\\(?:part|chapter)\b",
            r"\n[ \t]*\\section\b",
            r"\n[ \t]*\\(?:subsection|subsubsection|paragraph)\b",
            r"\n[ \t]*\\begin\{",
            *PROSE,
        ),
        "lua": (_top("local function ", "function ", "local "), _inner("local function ", "function "), *_LINES),
        "php": (
            _top("namespace ", *_PHP, "class ", "interface ", "trait ", "enum ", above=r"#\[[^\n]*\n"),
            _inner(*_PHP, above=r"#\[[^\n]*\n"),
            *_LINES,
        ),
        "powershell": (_top(r"(?i:function|filter|class|enum|param|workflow)\b"), *_LINES),
        "proto": (_top("message ", "service ", "enum ", "extend "), _inner("rpc ", "message ", "enum "), *_LINES),
        "python": (
            _top("class ", "def ", "async def ", above=_ANNOTATION),
            _inner("class ", "def ", "async def ", above=_ANNOTATION),
            *_LINES,
        ),
        "r": (r"\n[A-Za-z_.][\w.]*[ \t]*(?:<-|=)[ \t]*function\b", _top(r"set(?:Class|Method|Generic)\("), *_LINES),
        "ruby": (_top(*_RUBY), _inner(*_RUBY), *_LINES),
        "rust": (_top(*_RUST, above=r"#\[[^\n]*\n"), _inner(*_RUST, above=r"#\[[^\n]*\n"), *_LINES),
        "scala": (_top(*_SCALA), _inner(*_SCALA), *_LINES),
        "shell": (r"\n(?:function[ \t]+)?[A-Za-z_][\w-]*[ \t]*\(\)", _top("function "), *_LINES),
        "solidity": (_top(*_SOLIDITY_TOP), _inner(*_SOLIDITY_INNER), *_LINES),
        "sql": (_top(r"(?i:create|alter|drop|insert|update|delete|select|with|grant|begin)\b"), *_LINES),
        "swift": (
            _top(*_SWIFT, "extension ", "protocol ", "actor ", above=_ANNOTATION),
            _inner(*_SWIFT, "init", above=_ANNOTATION),
            *_LINES,
        ),
        "text": _LINES,
        "typescript": (
            _top(*_JS_TOP, *_TS_TOP, above=_ANNOTATION),
            _inner(*_JS_INNER, *_TS_INNER, above=_ANNOTATION),
            *_STATEMENTS,
        ),
    }
)
"""Separators by language, for documents of kind `code:<language>`; `text` serves every language without a table."""
