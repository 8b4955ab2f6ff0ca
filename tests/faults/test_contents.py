"""What files hold and how large they are, and what becomes of their documents when they go or move."""

import base64
import io
import random
import shutil
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from garage.extract import reading, stage
from garage.store import documents
from garage.store.lexical import has_bm25, make_tsvectors
from garage.walk.errors import DeletionRefused, SourceUnavailable

MIB = 1 << 20
WORDS = [
    "the",
    "boat",
    "is",
    "late",
    "again",
    "and",
    "nobody",
    "at",
    "harbour",
    "knows",
    "why",
    "before",
    "spring",
    "or",
    "after",
    "it",
]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def pdf(content: bytes, title: bytes = b"(A title)") -> bytes:
    """A PDF of one page; `title` as PDF writes strings."""
    stream = zlib.compress(content, 9)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Title %s>>" % title,
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return (
        out
        + b"xref\n0 7\n0000000000 65535 f \n%strailer<</Size 7/Root 1 0 R/Info 6 0 R>>\nstartxref\n%d\n%%%%EOF\n"
        % (
            table,
            len(out),
        )
    )


def docx(text: str, title: str = "A title") -> bytes:
    """A Word document of one paragraph of runs; `text` and `title` as XML writes them."""
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    core = "application/vnd.openxmlformats-package.core-properties+xml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{word}"/>'
        f'<Override PartName="/docProps/core.xml" ContentType="{core}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{office}/officeDocument" Target="word/document.xml"/>'
        f'<Relationship Id="r2" Type="{package}/relationships/metadata/core-properties" Target="docProps/core.xml"/>'
        "</Relationships>",
        "docProps/core.xml": f'<cp:coreProperties xmlns:cp="{package}/metadata/core-properties"'
        f' xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></cp:coreProperties>',
        "word/document.xml": '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
        f"<w:body><w:p>{text}</w:p></w:body></w:document>",
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return made.getvalue()


def words(number: int) -> str:
    return f"<w:r><w:t>word {number} </w:t></w:r>"


# Contents


def test_nul_in_texts_titles_and_metadata_is_removed_before_anything_is_counted(spine: Any, folder: Path) -> None:
    (folder / "plain.txt").write_bytes(b"one\0 two\n\0three four\0\n")
    (folder / "front.md").write_bytes(
        b'---\ntitle: "Bees\\0 and hives"\nauthor: A\0da\ntags: ["\\0", {"k\\0": "v"}]\n---\n'
        b"\n# Head\0ing\n\nbody\0 text\n"
    )
    (folder / "paper.pdf").write_bytes(pdf(b"BT /F 12 Tf (paper \\000words) Tj ET", b"<FEFF005000000041>"))
    (folder / "word.docx").write_bytes(docx(words(1), "Word title"))
    (folder / "broken.docx").write_bytes(docx(words(2), "Broken&#0; title"))
    spine.update()
    assert set(spine.outcomes().values()) == {"ok"}
    assert spine.contents()["plain.txt"] == "one two\nthree four\n"
    titles = dict(spine.rows("select uri, title from documents"))
    assert (titles["front.md"], titles["paper.pdf"], titles["word.docx"]) == (
        "Bees and hives",
        "PA",
        "Word title",
    )
    assert spine.rows("select meta -> 'author' from documents where uri = 'front.md'") == [("Ada",)]
    for text, start, end, content in spine.rows(
        "select text, char_start, char_end, content from chunks join documents d on d.id = document_id"
    ):
        assert text == content[start:end]


def test_lone_surrogates_in_texts_and_titles_are_replaced(spine: Any, folder: Path) -> None:
    (folder / "utf-16.txt").write_bytes("\ufeffwide \ud800 words\n".encode("utf-16-le", "surrogatepass"))
    (folder / "cesu.txt").write_bytes("smuggled \udc00 words and some more of them\n".encode("utf-8", "surrogatepass"))
    (folder / "front.md").write_text('---\ntitle: "a \\uD800 b"\n---\n\nmarked words\n', encoding="utf-8")
    (folder / "paper.pdf").write_bytes(pdf(b"BT /F 12 Tf (paper words) Tj ET", b"<FEFFD8000041>"))
    spine.update()
    assert set(spine.outcomes().values()) == {"ok"}
    assert spine.contents()["utf-16.txt"] == "wide \ufffd words\n"
    assert sorted(spine.found("words", "keyword")) == ["cesu.txt", "front.md", "paper.pdf", "utf-16.txt"]


@pytest.mark.parametrize(
    "nothing", [b"", b" \n\t\n\r\n \xc2\xa0\n", b"\xef\xbb\xbf", b"\0\0\0\0", b"---\ntitle: only\n---\n"]
)
def test_a_file_without_text_is_no_document_and_one_that_loses_its_text_loses_its_document(
    spine: Any, folder: Path, nothing: bytes
) -> None:
    (folder / "empty.md").write_bytes(nothing)
    file = write(folder / "full.md", "words that go away\n")
    spine.update()
    assert spine.outcomes() == {"empty.md": "no_text", "full.md": "ok"}
    file.write_bytes(nothing)
    assert spine.update()["documents"]["documents_deleted"] == 1
    assert spine.outcomes() == {"empty.md": "no_text", "full.md": "no_text"}
    assert spine.state()["chunks"] == spine.state()["documents"] == []
    assert spine.update()["documents"] == {}
    write(file, "words that come back\n")
    spine.update()
    assert spine.found("words") == ["full.md"]


def test_a_loop_of_links_and_a_link_out_of_the_root_are_not_followed(spine: Any, folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "outside" / "secret.txt", "not part of the source\n")
    write(folder / "sub" / "note.txt", "part of the source\n")
    (folder / "sub" / "up").symlink_to(folder)
    (folder / "itself.txt").symlink_to("itself.txt")
    (folder / "way-out").symlink_to(tmp_path / "outside")
    (folder / "secret.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (folder / "nowhere.txt").symlink_to(tmp_path / "nothing.txt")
    walked = spine.walk()
    assert walked.details["skipped"] == {"link": 5}
    spine.read()
    assert spine.outcomes() == {"sub/note.txt": "ok"}


@pytest.mark.parametrize("keyword_side", ["bm25", "tsvector"])
def test_a_line_of_900_kilobytes_is_cut_and_found_like_any_other_text(
    spine: Any, folder: Path, keyword_side: str
) -> None:
    with spine.database.connection() as conn:
        if keyword_side == "tsvector":
            conn.execute("drop extension if exists pg_textsearch cascade")
            make_tsvectors(conn)
        elif not has_bm25(conn):
            pytest.skip("this server has no pg_textsearch")
    line = base64.b64encode(random.Random(1).randbytes(675_000)).decode()
    write(folder / "plain.txt", f"pelican {line}\n")
    write(folder / "heading.md", f"# pelican {line}\n\nheron below a heading\n")
    write(folder / "front.md", f"---\ntitle: stork {line[:60_000]}\n---\n\nheron behind a title\n")
    write(folder / "data.json", f'{{"pelican": "{line}", "heron": 1}}\n')
    ungated = {"reject_machine_generated": False}
    spine.configure({"name": "lib", "root": folder, "include_code": True}, quality=ungated)
    spine.walk()
    spine.read()
    assert spine.outcomes() == dict.fromkeys(("data.json", "front.md", "heading.md", "plain.txt"), "ok")
    assert set(spine.found("heron", "keyword")) == {"heading.md", "front.md", "data.json"}
    assert set(spine.found("stork", "keyword")) == {"front.md"}
    assert "heading.md" in spine.found("pelican", "keyword")
    (longest,) = spine.rows("select max(octet_length(coalesce(lexical_prose, lexical_code))) from chunks")[0]
    assert longest < 20_000  # what stands above a passage is repeated with each


def test_passages_beyond_the_cap_are_dropped_and_counted(spine: Any, folder: Path) -> None:
    words = random.Random(3)
    lines = (" ".join(words.choices(WORDS, k=words.randint(3, 9))) for _ in range(60_000))
    write(folder / "long.txt", "\n".join(lines))
    counts = spine.read().counts if spine.walk() else {}
    assert counts["chunks_written"] == 1500
    assert counts["chunks_dropped"] > 100
    ((dropped,),) = spine.rows("select chunks_dropped from documents")
    assert dropped == counts["chunks_dropped"]
    assert len(spine.contents()["long.txt"]) > 1_500_000


# Sizes and limits


def test_a_sparse_gigabyte_is_never_opened(spine: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (folder / "disk.txt").open("wb") as file:
        file.write(b"of a disk\n")  # without a block of its own it would pass for a placeholder
        file.truncate(1024 * MIB)
    write(folder / "note.txt", "beside the giant\n")
    spine.walk()
    opened: list[bytes] = []
    with monkeypatch.context() as patched:
        patched.setattr(reading, "read", lambda path, **_: opened.append(path))
        (giant,) = (task for task in _documents(spine).pending() if task.file.uri == "disk.txt")
        assert reading.read_file(giant).outcome == "too_large"
    assert opened == []
    spine.read()
    assert spine.outcomes() == {"disk.txt": "too_large", "note.txt": "ok"}
    assert spine.rows("select reason from ingest_outcomes where uri = 'disk.txt'") == [
        (f"{1024 * MIB} bytes; the limit is {64 * MIB}",)
    ]
    assert spine.update()["documents"] == {}


def _documents(spine: Any) -> stage.DocumentsStage:
    from garage import stages
    from garage.config import load

    return stages.documents(spine.database, load(), spine.row())


def test_a_file_that_grows_past_the_limit_keeps_its_good_version(spine: Any, folder: Path) -> None:
    spine.configure({"name": "lib", "root": folder}, walk={"max_file_bytes": 1000})
    file = write(folder / "log.txt", "the first entry\n")
    spine.update()
    write(file, "the first entry\n" * 100)
    assert spine.update()["documents"]["too_large"] == 1
    assert spine.contents() == {"log.txt": "the first entry\n"}
    assert spine.found("entry") == ["log.txt"]
    write(file, "the second entry\n")
    spine.update()
    assert spine.contents() == {"log.txt": "the second entry\n"}


def test_a_file_that_grows_between_walk_and_reading_is_not_read_beyond_the_limit(spine: Any, folder: Path) -> None:
    spine.configure({"name": "lib", "root": folder}, walk={"max_file_bytes": 1000})
    file = write(folder / "log.txt", "the first entry\n")
    spine.walk()
    write(file, "the first entry\n" * 100)
    spine.read()
    assert spine.outcomes() == {"log.txt": "too_large"}
    write(file, "the first entry\n")
    spine.update()
    assert spine.outcomes() == {"log.txt": "ok"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "name", "make", "ends"),
    [
        ({"seconds": 2}, "endless.pdf", lambda: pdf(b"BT /F 12 Tf (x) Tj ET\n" * 300_000), {"timeout"}),
        # pypdf and libxml2 have limits of their own, which may speak first.
        ({"memory_bytes": 64 * MIB}, "bomb.pdf", lambda: pdf(b" " * 500_000_000), {"memory", "too_large", "error"}),
        ({"memory_bytes": 64 * MIB}, "bomb.docx", lambda: docx(words(1) * 400_000), {"memory", "too_large", "error"}),
    ],
    ids=["time", "memory-pdf", "memory-docx"],
)
def test_a_hostile_file_costs_one_outcome_and_is_not_tried_again(
    spine: Any, folder: Path, limits: dict[str, int], name: str, make: Callable[[], bytes], ends: set[str]
) -> None:
    spine.configure({"name": "lib", "root": folder}, extraction={"workers": 1, **limits})
    (folder / name).write_bytes(make())
    (folder / "a.pdf").write_bytes(pdf(b"BT /F 12 Tf (good words) Tj ET"))
    (folder / "z.docx").write_bytes(docx(words(2)))
    started = time.monotonic()
    spine.update()
    assert time.monotonic() - started < 60
    outcomes = spine.outcomes()
    assert outcomes.pop(name) in ends
    assert outcomes == {"a.pdf": "ok", "z.docx": "ok"}
    ((reason,),) = spine.rows("select reason from ingest_outcomes where uri = %s", name)
    assert reason
    assert spine.update()["documents"] == {}


@pytest.mark.slow
def test_a_file_that_was_hostile_for_a_while_is_well_again_with_its_old_bytes(spine: Any, folder: Path) -> None:
    spine.configure({"name": "lib", "root": folder}, extraction={"workers": 1, "seconds": 2})
    file = folder / "paper.pdf"
    good = pdf(b"BT /F 12 Tf (good words) Tj ET")
    file.write_bytes(good)
    spine.update()
    file.write_bytes(pdf(b"BT /F 12 Tf (x) Tj ET\n" * 300_000))
    spine.update()
    assert spine.outcomes() == {"paper.pdf": "timeout"}
    assert spine.contents() == {"paper.pdf": "good words\n"}
    file.write_bytes(good)
    spine.update()
    assert spine.outcomes() == {"paper.pdf": "ok"}


# Deleting and moving


def test_a_quarter_may_go_unasked_and_one_file_more_may_not(spine: Any, folder: Path) -> None:
    for number in range(100):
        write(folder / f"{number:02}.txt", f"number {number}\n")
    spine.update()
    before = spine.state()
    aside = [(folder / f"{number:02}.txt").read_text(encoding="utf-8") for number in range(26)]
    for number in range(26):
        (folder / f"{number:02}.txt").unlink()
    with pytest.raises(DeletionRefused, match=r"26 of 100 files \(26.0%\)") as refused:
        spine.update()
    assert "--force" in refused.value.hint
    assert spine.state() == before
    assert spine.rows("select cause, known, vanished from refusals") == [
        ("more than 25% of its files are gone", 100, 26)
    ]
    write(folder / "25.txt", aside[25])
    assert spine.update()["documents"]["documents_deleted"] == 25
    assert len(spine.contents()) == 75
    assert spine.rows("select * from refusals") == []


def test_what_was_deleted_is_found_nowhere(spine: Any, folder: Path) -> None:
    for number in range(5):
        write(folder / f"{number}.md", f"# Bird {number}\n\nThe heron number {number} stands in the pond.\n")
    secret = write(folder / "secret.md", "# Pelican\n\nThe pelican eats a confidential fish.\n")
    spine.update()
    for mode in ("keyword", "vector", "hybrid"):
        assert spine.found("confidential pelican", mode)[0] == "secret.md"
    secret.unlink()
    assert spine.update()["documents"]["documents_deleted"] == 1
    for mode in ("keyword", "vector", "hybrid"):
        assert "secret.md" not in spine.found("confidential pelican", mode)
    assert spine.found("confidential pelican", "keyword") == []
    assert "secret.md" not in repr(spine.state())
    ((passages, vectors),) = spine.rows(
        "select (select count(*) from chunks), (select count(*) from emb_all_minilm_l6_v2)"
    )
    assert passages == vectors


def test_another_root_is_refused_and_reading_alone_loses_nothing(spine: Any, folder: Path, tmp_path: Path) -> None:
    for number in range(4):
        write(folder / f"{number}.txt", f"number {number}\n")
    write(tmp_path / "other" / "strange.txt", "another folder altogether\n")
    spine.update()
    before = spine.contents()
    spine.configure({"name": "lib", "root": tmp_path / "other"})
    with pytest.raises(DeletionRefused, match="4 of 4"):
        spine.update()
    spine.read(rebuild=True)  # an asset can be asked for without those before it
    assert spine.contents() == before
    assert set(spine.outcomes().values()) == {"unreadable"}
    spine.configure({"name": "lib", "root": tmp_path / "nothing here"})
    with pytest.raises(SourceUnavailable, match="does not exist"):
        spine.update()
    assert spine.contents() == before
    spine.configure({"name": "lib", "root": folder})
    spine.update()
    assert set(spine.outcomes().values()) == {"ok"}
    spine.configure({"name": "lib", "root": tmp_path / "other"})
    spine.update(allow_deletes=True)
    assert spine.contents() == {"strange.txt": "another folder altogether\n"}


def test_a_source_whose_folder_moved_goes_on_where_it_was(spine: Any, folder: Path, tmp_path: Path) -> None:
    for number in range(4):
        write(folder / "sub" / f"{number}.txt", f"number {number}\n")
    spine.update()
    shutil.copytree(folder, tmp_path / "copy")
    spine.configure({"name": "lib", "root": tmp_path / "copy"})
    counts = spine.update()
    assert counts["documents"] == counts["chunks"] == counts["embeddings/all-minilm-l6-v2"] == {}
    assert counts["source_files"]["files"] == 4


@pytest.mark.parametrize("to", ["sub/moved.txt", "NOTE.txt", "note.md"])
def test_a_file_that_moves_is_found_at_its_new_place_only(spine: Any, folder: Path, to: str) -> None:
    for number in range(5):
        write(folder / f"{number}.txt", f"number {number}\n")
    file = write(folder / "note.txt", "a heron in the pond\n")
    spine.update()
    (folder / to).parent.mkdir(exist_ok=True)
    file.rename(folder / to)
    counts = spine.update()
    assert (counts["source_files"]["added"], counts["source_files"]["deleted"]) == (1, 1)
    assert spine.found("heron", "keyword") == [to]
    assert spine.found("a heron in the pond", "vector")[0] == to
    assert "note.txt" not in spine.outcomes()
    assert len(spine.contents()) == 6


def test_documents_of_files_deleted_by_a_walk_alone_go_with_the_next_reading(spine: Any, folder: Path) -> None:
    for number in range(5):
        write(folder / f"{number}.txt", f"number {number}\n")
    spine.update()
    (folder / "0.txt").unlink()
    assert spine.walk().counts["deleted"] == 1
    with spine.database.connection() as conn:
        assert documents.counts(conn, spine.row().id) == (5, 5)
    assert spine.read().counts["documents_deleted"] == 1
    assert "0.txt" not in spine.outcomes()
