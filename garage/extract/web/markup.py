"""HTML -> Markdown: of a page, the body of a mail, a chapter of a book.

What a person would see is kept, in the order in which they would read it: headings as `#`, lists, quotations as `>`,
tables as rows, preformatted text as it stands. What the page is made with goes: scripts, styles, comments, what is
hidden. The work grows with the length of the page, however it is nested.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from garage.extract.mirror import JSON, clean_line
from garage.extract.web.charset import declared, decode_as
from garage.extract.web.layout import Writer

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

LIBRARIES = ("selectolax", "charset-normalizer")

_UNSEEN = frozenset(
    (
        *("head", "script", "style", "noscript", "template", "iframe", "svg", "select", "datalist", "input"),
        *("audio", "video", "canvas", "map", "annotation", "annotation-xml", "noembed", "-comment", "!doctype"),
    )
)
_HIDING = re.compile(r"hidden|display\s*:\s*none", re.IGNORECASE)
_HIDDEN_STYLE = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden|mso-hide\s*:\s*all)", re.IGNORECASE
)

# A parser of HTML looks up its open elements at nearly every tag, so that its time is the sum of the depths at which
# the tags stand; elements of formatting are opened again in every block besides. Pages of people stay below a hundredth
# of this limit.
_DEPTH_SUM = 100_000_000
_FORMATTING_WEIGHT = 20
_FEW_TAGS = 5_000
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_WHOLE_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/<>]*)[^<>]*>")
_VOID = frozenset(
    (
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta"),
        *("param", "source", "track", "wbr"),
    )
)
# The next of these closes the one before it, so that leaving out the closing tag nests nothing.
_CLOSED_BY_THE_NEXT = frozenset(
    (
        *("p", "li", "dt", "dd", "tr", "td", "th", "tbody", "thead", "tfoot"),
        *("option", "optgroup", "colgroup", "rt", "rp"),
    )
)
_FORMATTING = frozenset(
    (
        *("a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small"),
        *("strike", "strong", "tt", "u"),
    )
)
_FLAT = frozenset(
    (
        *("p", "br", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "script"),
        *("style", "title", "textarea", "noscript", "html", "head", "body"),
    )
)
_INLINE = _FORMATTING | frozenset(
    (
        *("span", "abbr", "acronym", "cite", "dfn", "kbd", "q", "samp", "sub", "sup"),
        *("var", "label", "bdo", "bdi", "ins", "del", "mark"),
    )
)

_XHTML = re.compile(r"\s*(?:<\?xml\b|<!DOCTYPE[^>]*XHTML|<html[^>]*\bxmlns\b)", re.IGNORECASE)
_SELF_CLOSED = re.compile(
    r"<(a|b|div|em|i|iframe|li|noscript|p|pre|script|span|strong|style|table|td|textarea|th|title|tr|ul|ol)"
    r"((?:\s[^<>]*)?)/>",
    re.IGNORECASE,
)
_AUTHOR = ("author", "article:author", "dc.creator", "dcterms.creator", "citation_author")
_CREATED = (
    *("article:published_time", "date", "dc.date", "dcterms.created", "dc.date.created", "dcterms.date"),
    *("dc.date.issued", "citation_date", "citation_publication_date", "datepublished", "pubdate", "created"),
)
_MODIFIED = ("article:modified_time", "og:updated_time", "dcterms.modified", "last-modified", "datemodified", "revised")
_META = {
    **dict.fromkeys(_AUTHOR, "author"),
    **dict.fromkeys(_CREATED, "created"),
    **dict.fromkeys(_MODIFIED, "modified"),
    "description": "description",
    "og:description": "description",
    "dc.description": "description",
    "keywords": "keywords",
    "news_keywords": "keywords",
    "og:site_name": "site",
}
_META_TAGS = 500


@dataclass(frozen=True, slots=True)
class Marked:
    """A page as Markdown, not yet canonical.

    `title` is the page's own (its `<title>`, else what it tells social networks), `heading` the first of the text;
    each may be None. `meta` has of `author`, `created`, `modified`, `description`, `keywords`, `site`, `language` and
    `encoding` what the page says, as clean strings.
    """

    text: str
    title: str | None = None
    heading: str | None = None
    meta: dict[str, JSON] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def to_markdown(html: str | bytes, *, charset: str | None = None, fences: bool = True) -> Marked:
    """Return what a person would read on a page, as Markdown.

    Bytes are decoded by their byte order mark, else as `charset` (what a mail or an archive says), else as the page
    itself declares, else as is likeliest. Without `fences`, preformatted text is written without its marks, as for
    mail, whose programs use it for everything.

    Raises nothing of its own: anything is HTML of some kind.
    """
    from selectolax.lexbor import LexborHTMLParser

    warnings: list[str] = []
    encoding = None
    if isinstance(html, bytes):
        html, encoding, damaged = decode_as(html, charset or declared(html))
        if damaged:
            warnings.append("some bytes do not fit the encoding and were replaced")
    html = html.replace("\0", "")
    if _XHTML.match(html[:4096]):
        html = _SELF_CLOSED.sub(r"<\1\2></\1>", html)
    if _too_deep(html):
        html = _WHOLE_TAG.sub(_flattened, html)
        warnings.append("it is nested so deeply that its structure was left out")
    page = LexborHTMLParser(html)
    writer = Writer(fences=fences)
    root = page.root
    if root is not None:
        _walk(root, writer, hiding=_HIDING.search(html) is not None)
    text = writer.text()
    titles, meta = _about(page)
    if encoding and encoding != "utf-8":
        meta["encoding"] = encoding
    return Marked(text, next(iter(titles), None), clean_line(writer.heading), meta, tuple(warnings))


def _walk(root: "LexborNode", writer: Writer, *, hiding: bool) -> None:
    """Tell the writer what begins, ends and stands between, in the order of the page, without recursion."""
    node: LexborNode | None = root
    depth = 0
    while node is not None:
        tag = node.tag or ""
        following: LexborNode | None = None
        if tag == "-text":
            writer.words(node.text_content or "")
        elif tag not in _UNSEEN and not (hiding and _hidden(node)):
            writer.begin(tag, node)
            following = node.child
            if following is None:
                writer.end(tag)
            else:
                depth += 1
        while following is None and depth and node is not None:
            following = node.next
            if following is None:
                node = node.parent
                depth -= 1
                if node is not None:
                    writer.end(node.tag or "")
        node = following


def _hidden(node: "LexborNode") -> bool:
    attributes = node.attributes
    if not attributes:
        return False
    return "hidden" in attributes or bool(_HIDDEN_STYLE.search(attributes.get("style") or ""))


def _too_deep(html: str) -> bool:
    """Whether parsing would take time out of all proportion; told from its tags alone, sooner too often than not."""
    if html.count("<") < _FEW_TAGS:
        return False
    foreign = "<svg" in html or "<math" in html  # where nothing closes by itself
    opened: dict[str, int] = {}
    depth = total = 0
    for closing, name in _TAG.findall(html):
        tag = name.lower()
        total += depth
        if total > _DEPTH_SUM:
            return True
        if tag in _VOID or (tag in _CLOSED_BY_THE_NEXT and not foreign):
            continue
        weight = _FORMATTING_WEIGHT if tag in _FORMATTING else 1
        if not closing:
            opened[tag] = opened.get(tag, 0) + 1
            depth += weight
        elif opened.get(tag):
            opened[tag] -= 1
            depth -= weight
    return False


def _flattened(match: re.Match[str]) -> str:
    tag = match[2].lower()
    if tag in _FLAT:
        return match[0]
    return "" if tag in _INLINE else "<p>"


def _about(page: "LexborHTMLParser") -> tuple[list[str], dict[str, JSON]]:
    """The titles that a page gives itself, best first, and what else it says of itself."""
    titles, social = [], []
    if (node := page.css_first("head > title")) is not None and (title := clean_line(node.text())):
        titles.append(title)
    meta: dict[str, JSON] = {}
    for name, content in _statements(page):
        value = clean_line(content)
        if not value:
            continue
        if name in {"og:title", "twitter:title", "dc.title", "title"}:
            social.append(value)
        elif (key := _META.get(name)) and key not in meta:
            meta[key] = value
    root = page.root
    language = clean_line(
        (root.attributes.get("lang") or root.attributes.get("xml:lang")) if root is not None else None
    )
    if language and len(language) <= 35:
        meta["language"] = language
    return [*titles, *social], meta


def _statements(page: "LexborHTMLParser") -> Iterator[tuple[str, str | None]]:
    for node in page.css("meta")[:_META_TAGS]:
        said = node.attributes
        name = said.get("property") or said.get("name") or said.get("itemprop") or said.get("http-equiv") or ""
        yield name.lower(), said.get("content")
