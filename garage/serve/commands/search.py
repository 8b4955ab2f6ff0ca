"""`garage search`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from garage.serve.choices import CLASSES, DIRECTIONS, MODES, TRUSTS
from garage.serve.invocation import Invocation, takes_invocation

if TYPE_CHECKING:
    from garage.search.hybrid import Hit, Results
    from garage.store.search import Passage

_SNIPPET = 280  # code points of a hit's text
_AUTHORS = 3  # of a hit that are named


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Number of hits.")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="hybrid",
    show_default=True,
    help="By meaning (vector), by words (keyword), or by both.",
)
@click.option("--source", "sources", multiple=True, metavar="NAME", help="Only this source; may be repeated.")
@click.option("--class", "classes", multiple=True, type=click.Choice(CLASSES), help="Only this class; may be repeated.")
@click.option("--trust", "trusts", multiple=True, type=click.Choice(TRUSTS), help="Only this trust; may be repeated.")
@click.option(
    "--author",
    "authors",
    multiple=True,
    metavar="NAME",
    help="Only what they wrote or sent: part of a name or address; may be repeated.",
)
@click.option(
    "--direction", "directions", multiple=True, type=click.Choice(DIRECTIONS), help="Only mails and messages sent so."
)
@takes_invocation
def search(
    invocation: Invocation,
    query: tuple[str, ...],
    *,
    limit: int,
    mode: str,
    sources: tuple[str, ...],
    classes: tuple[str, ...],
    trusts: tuple[str, ...],
    authors: tuple[str, ...],
    directions: tuple[str, ...],
) -> None:
    """Find the passages that answer QUERY.

    Each hit says its title, where it is (source:file:lines), class, trust and authors, the headings above it, its
    score, and which side found it.
    A phrase in "quotes", OR and a leading minus are heeded on the keyword side.
    """
    from garage.serve.searching import Asked, ask

    # What a shell hands on of bytes that are not text would fail far from here.
    text = " ".join(query).encode("utf-8", "replace").decode("utf-8")
    asked = Asked(text, limit, mode, sources, classes, trusts, authors, directions)
    results = ask(invocation.config(), asked, starting=lambda: invocation.note("Starting the database"))
    invocation.answer(results, lambda: _results(results))


def _results(results: Results) -> Iterator[str]:
    for note in results.notes:
        yield f"({note})"
    if not results.hits:
        yield "Nothing was found."
    words = _words(results.query)
    for rank, hit in enumerate(results.hits, 1):
        if rank > 1:
            yield ""
        yield from _hit(rank, hit, words)


def _hit(rank: int, hit: Hit, words: re.Pattern[str] | None) -> Iterator[str]:
    from garage.serve.output import printable

    passage = hit.passage
    found_by = {"both": "both sides", "vector": "meaning", "keyword": "words"}[hit.matched_by]
    lines = f"{passage.start_line}-{passage.end_line}"
    if passage.start_line == passage.end_line:
        lines = str(passage.start_line)
    title = click.style(printable(passage.title), bold=True)
    yield f"{rank}. {title}  {click.style(f'{hit.score:.4f}, by {found_by}', dim=True)}"
    yield f"   {click.style(f'{passage.source}:{printable(passage.uri)}:{lines}', fg='cyan')}"
    yield f"   {printable(_about(passage))}"
    if passage.heading_path:
        yield f"   {printable(passage.heading_path)}"
    yield f"   {_highlighted(_snippet(printable(passage.text), words), words)}"


def _about(passage: Passage) -> str:
    """Class, trust, and whose words they are."""
    from garage.serve.output import joined

    more = len(passage.authors) - _AUTHORS
    names = [*passage.authors[:_AUTHORS], *([f"{more} more"] if more > 0 else [])]
    if passage.kind == "conversation" or not names:
        names = [passage.sender] if passage.sender else []
    said = {"sent": "sent by you", "received": f"from {joined(names)}" if names else ""}
    who = said.get(passage.direction or "", f"by {joined(names)}" if names else "")
    parts = (passage.corpus_class, passage.trust_tier, who, "words that it quotes" if passage.quoted else "")
    return ", ".join(filter(None, parts))


def _words(query: str) -> re.Pattern[str] | None:
    """What to mark: the query's words, and longer ones that begin with them."""
    words = sorted({word for word in re.findall(r"\w+", query) if len(word) > 1}, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\w*", re.IGNORECASE) if words else None


def _snippet(text: str, words: re.Pattern[str] | None) -> str:
    """The part of a passage with the most of the query's words, about `_SNIPPET` code points long."""
    text = " ".join(text.split())
    if len(text) <= _SNIPPET:
        return text
    starts = [match.start() for match in words.finditer(text)] if words else []
    best = max(starts, key=lambda start: sum(start <= other < start + _SNIPPET for other in starts), default=0)
    begin = text.rfind(" ", 0, max(0, best - _SNIPPET // 4) + 1) + 1
    end = text.rfind(" ", begin, begin + _SNIPPET)
    cut = text[begin : end if end > begin else begin + _SNIPPET]
    return ("... " if begin else "") + cut + (" ..." if begin + len(cut) < len(text) else "")


def _highlighted(text: str, words: re.Pattern[str] | None) -> str:
    return words.sub(lambda match: click.style(match.group(), fg="yellow", bold=True), text) if words else text
