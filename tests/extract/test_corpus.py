"""Every real file of the kinds that are read, in isolated workers, with the outcome that each must have."""

from functools import cache
from pathlib import Path

import pytest

from garage.config import Extraction
from garage.extract.mirror import canonical
from garage.extract.model import Extracted, ExtractError
from garage.extract.registry import extract, extractor_of, read
from garage.isolation import Failure, Isolated

# Everything that is not named here is read.
OUTCOMES = {
    "pdf/cmyk-image.pdf": "no_text",
    "pdf/empty.pdf": "no_text",
    "pdf/grayscale-image.pdf": "no_text",
    "pdf/imagemagick-ASCII85Decode.pdf": "no_text",
    "pdf/imagemagick-CCITTFaxDecode.pdf": "no_text",
    "pdf/imagemagick-lzw.pdf": "no_text",
    "pdf/libreoffice-writer-password.pdf": "encrypted",
    "pdf/password-example.pdf": "encrypted",
    "docx/blk-containing-table.docx": "no_text",
    "docx/default.docx": "no_text",
    "docx/doc-coreprops.docx": "no_text",
    "docx/doc-default.docx": "no_text",
    "docx/doc-no-coreprops.docx": "no_text",
    "docx/doc-word-default-blank.docx": "no_text",
    "docx/having-images.docx": "no_text",
    "docx/set-no-settings-part.docx": "no_text",
    "docx/shp-inline-shape-access.docx": "no_text",
    "docx/sty-behav-props.docx": "no_text",
    "docx/sty-having-no-styles-part.docx": "no_text",
    "docx/sty-having-styles-part.docx": "no_text",
    "docx/tbl-2x2-table.docx": "no_text",
    "docx/tbl-col-props.docx": "no_text",
    "docx/tbl-having-tables.docx": "no_text",
    "docx/tbl-on-off-props.docx": "no_text",
    "docx/testWORD_charts.docx": "no_text",
    "docx/testWORD_protected_passtika.docx": "encrypted",
}

PHRASES = {
    "pdf/002-trivial-libre-office-writer.pdf": "Lorem ipsum",
    "pdf/federal-register-2020-17221.pdf": "Federal Register",
    "pdf/habibi.pdf": "حَبيبي habibi حَبيبي",
    "pdf/multicolumn.pdf": "Lorem",
    "docx/footnotes.docx": "text so snoskoy\n\n[^1]: snoska\n",
    "docx/NullHeader.docx": "Hundreds injured in Yemen protest",
    "docx/par-known-paragraphs.docx": "# Heading Paragraph\n\nNormal paragraph",
    "docx/par-hyperlinks.docx": "Three hyperlinks: the first one here, the second one, and the third.",
    "docx/tbl-cell-access.docx": "| 1 | 2 | 3 |\n| --- | --- | --- |\n| 4 | 5 | 6 |",
    "docx/testOptionalHyphen.docx": "optionalhyphen",
    "docx/testWORD_numbered_list.docx": "- This\n  - Is\n    - A multi\n    - Level\n",
    "docx/testWORD_missing_text.docx": "Rich_text_in_cell",
    "text/testWebVTT_utf8.vtt": "WEBVTT",
    "text/test_subrip.srt": "-->",
}


def attempt(path: str) -> tuple[str, Extracted | None, dict[str, object]]:
    """The outcome of one file. Runs in a worker."""
    try:
        raw = read(path, max_bytes=64 * 2**20)
        (found,) = extract(raw.data, extractor=extractor_of(path) or "", name=Path(path).name, settings=Extraction())
    except ExtractError as error:
        return error.outcome, None, {**error.meta}
    return "ok", found, {**found.meta}


@cache
def _everything(corpus: Path) -> dict[str, tuple[str, Extracted | None, dict[str, object]]]:
    paths = [str(path) for path in sorted(corpus.rglob("*")) if path.is_file() and extractor_of(path.name)]
    with Isolated(workers=2, seconds=120, memory_bytes=1024 * 2**20) as workers:
        results = dict(workers.map(attempt, paths, ahead=4))
    failures = {path: result for path, result in results.items() if isinstance(result, Failure)}
    assert failures == {}
    return {
        Path(path).relative_to(corpus).as_posix(): result
        for path, result in results.items()
        if not isinstance(result, Failure)
    }


@pytest.fixture
def everything(shared: Path) -> dict[str, tuple[str, Extracted | None, dict[str, object]]]:
    return _everything(shared / "corpus")


Results = dict[str, tuple[str, Extracted | None, dict[str, object]]]


def test_every_file_has_the_outcome_that_it_must_have(everything: Results) -> None:
    assert len(everything) > 110
    unread = {name: outcome for name, (outcome, _, _) in everything.items() if outcome != "ok"}
    assert unread == OUTCOMES


def test_every_text_is_a_mirror(everything: Results) -> None:
    for name, (_, found, _) in everything.items():
        if found is not None:
            assert found.content == canonical(found.content), name
            assert 0 <= found.body_start < len(found.content), name


def test_pages_begin_where_they_are_said_to(everything: Results) -> None:
    pages = 0
    for name, (_, found, meta) in everything.items():
        if found is None or not name.endswith(".pdf"):
            continue
        starts = meta["page_starts"]
        assert isinstance(starts, list)
        assert len(starts) == meta["pages"], name
        assert starts == sorted(starts), name
        assert all(
            start == 0 or found.content[start - 2 : start] == "\n\n" or start >= len(found.content) - 1
            for start in starts
        )
        pages += len(starts)
    assert pages > 190


def test_pictures_of_pages_are_told_from_blank_ones(everything: Results) -> None:
    scanned = {name for name, (_, _, meta) in everything.items() if meta.get("likely_scanned")}
    assert scanned == {
        name for name, outcome in OUTCOMES.items() if name.startswith("pdf/") and outcome == "no_text"
    } - {"pdf/empty.pdf"}


def test_words_that_must_be_found(everything: Results) -> None:
    for name, phrase in PHRASES.items():
        found = everything[name][1]
        assert found is not None, name
        assert phrase in found.content, name


def test_what_files_say_of_themselves(everything: Results) -> None:
    def said(name: str, key: str) -> object:
        return everything[name][2].get(key)

    assert said("docx/EmbeddedPDF.docx", "author") == "Jeremy Anderson"
    assert said("docx/doc-coreprops.docx", "author") == "Steve Canny"  # known although it has no text
    assert said("docx/doc-no-coreprops.docx", "author") is None
    assert said("pdf/GeoTopo-komprimiert.pdf", "author") == "Martin Thoma"
    assert said("pdf/inline-image.pdf", "author") is None  # the tool's own "anonymous"
