"""The whole job on a real database, with the real models: what is written, what is not, what is refused."""

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import dagster as dg
import pytest


@pytest.fixture
def instance() -> Any:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


def rows(home: Any) -> dict[str, int]:
    """A fingerprint of every stored row with its place: it moves when a row is so much as rewritten."""
    from garage.store.database import Database

    tables = ["source_files", "documents", "chunks", "ingest_outcomes", "embedding_models"]
    with Database(home.database_url) as database, database.connection() as conn:
        tables += [name for (name,) in conn.execute("select table_name from embedding_models order by 1")]
        query = "select coalesce(sum(hashtext(ctid::text || xmin::text)), 0) from "
        return {table: scalar(conn.execute((query + table).encode()).fetchone()) for table in tables}


def scalar(row: tuple[Any, ...] | None) -> int:
    assert row is not None
    return int(row[0])


def contents(home: Any) -> dict[str, list[Any]]:
    """What is stored, without surrogate keys: equal for equal end states."""
    from garage.store.database import Database

    with Database(home.database_url) as database, database.connection() as conn:
        models = [name for (name,) in conn.execute("select table_name from embedding_models order by 1")]
        return {
            "files": conn.execute("select uri, size, mtime_ns from source_files order by 1").fetchall(),
            "documents": conn.execute(
                "select uri, title, kind, content, source_sha256 from documents order by 1"
            ).fetchall(),
            "chunks": conn.execute(
                "select d.uri, c.ord, c.text, c.char_start, c.char_end, c.heading_path from chunks c"
                " join documents d on d.id = c.document_id order by 1, 2"
            ).fetchall(),
            "outcomes": conn.execute("select uri, outcome from ingest_outcomes order by 1").fetchall(),
            **{
                table: conn.execute(
                    f"select d.uri, c.ord, e.input_sha256, e.embedding::text from {table} e"
                    " join chunks c on c.id = e.chunk_id join documents d on d.id = c.document_id"
                    " order by 1, 2".encode()
                ).fetchall()
                for table in models
            },
        }


def run(instance: dg.DagsterInstance, home: Any, slug: str = "lib", **options: bool) -> dict[str, Any]:
    from garage.store.database import Database
    from garage_assets.launch import launch, outcome

    result = launch(instance, slug, **options)
    with Database(home.database_url) as database:
        return outcome(database, slug, result)


def test_a_folder_becomes_documents_passages_and_vectors_of_two_models(
    garage_home: Any, library: Path, instance: dg.DagsterInstance
) -> None:
    garage_home.configure({"name": "lib", "root": library})
    said = run(instance, garage_home)
    assert said["status"] == "success", said
    assert said["stages"]["source_files"]["added"] == 10
    assert said["stages"]["documents"]["documents_written"] == 10
    chunks = said["stages"]["documents"]["chunks_written"]
    for model in ("all-minilm-l6-v2", "all-minilm-l6-v2-q8_0"):
        assert said["stages"][f"embeddings/{model}"]["embedded"] == chunks
    stored = contents(garage_home)
    contents_of = {uri: content for uri, _, _, content, _ in stored["documents"]}
    for uri, _, text, start, end, _ in stored["chunks"]:
        assert contents_of[uri][start:end] == text


def test_a_second_run_opens_no_file_and_writes_no_row(
    garage_home: Any, library: Path, instance: dg.DagsterInstance
) -> None:
    garage_home.configure({"name": "lib", "root": library})
    run(instance, garage_home)
    before, opened = rows(garage_home), []
    watching = True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event == "open" and isinstance(arguments[0], str | bytes):
            path = os.fsdecode(arguments[0])
            if path.startswith(str(library)) and Path(path).is_file():
                opened.append(path)

    sys.addaudithook(hook)
    said = run(instance, garage_home)
    watching = False
    assert said["status"] == "success"
    assert opened == []
    assert rows(garage_home) == before
    written = {
        count: n
        for counts in said["stages"].values()
        for count, n in counts.items()
        if n and count in ("added", "changed", "deleted", "documents_written", "chunks_written", "embedded", "copied")
    }
    assert written == {}


def test_the_data_versions_of_a_second_run_are_those_of_the_first(
    garage_home: Any, library: Path, instance: dg.DagsterInstance
) -> None:
    from garage_assets.definitions import defs

    garage_home.configure({"name": "lib", "root": library})

    def versions() -> dict[str, Any]:
        run(instance, garage_home)
        found = {}
        for key in defs.resolve_asset_graph().get_all_asset_keys():
            records = instance.fetch_materializations(
                dg.AssetRecordsFilter(asset_key=key, asset_partitions=["lib"]), limit=1
            ).records
            materialization = records[0].asset_materialization
            assert materialization is not None
            assert materialization.tags is not None
            found[key.to_user_string()] = materialization.tags["dagster/data_version"]
        return found

    first = versions()
    assert versions() == first
    (library / "bees.md").write_text("# Hives\n\nThe hive moved to the orchard.\n", encoding="utf-8")
    after = versions()
    assert after.pop("sources") == first.pop("sources")
    assert after.pop("attribution") == first.pop("attribution")  # it is still the same people's
    assert all(after[key] != first[key] for key in first)


def test_an_edit_near_the_end_keeps_the_other_passages_and_their_vectors(
    garage_home: Any, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    root = tmp_path / "long"
    root.mkdir()
    paragraphs = [f"Paragraph {n} tells of the orchard in year {1900 + n}. " * 12 for n in range(12)]
    (root / "a.txt").write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")
    garage_home.configure({"name": "lib", "root": root})
    first = run(instance, garage_home)["stages"]
    paragraphs[-1] = "The end was written again."
    (root / "a.txt").write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")
    second = run(instance, garage_home)["stages"]
    assert second["documents"]["chunks_kept"] >= first["documents"]["chunks_written"] - 2
    assert second["embeddings/all-minilm-l6-v2"]["embedded"] == second["documents"]["chunks_written"] <= 2


def test_identical_texts_share_their_vectors(garage_home: Any, tmp_path: Path, instance: dg.DagsterInstance) -> None:
    root = tmp_path / "twins"
    for folder in ("a", "b"):
        (root / folder).mkdir(parents=True)
        (root / folder / "note.md").write_text("# Note\n\nThe same words twice.\n", encoding="utf-8")
    garage_home.configure({"name": "lib", "root": root / "a"}, {"name": "other", "root": root / "b"})
    assert run(instance, garage_home, "lib")["stages"]["embeddings/all-minilm-l6-v2"] == {"embedded": 1}
    assert run(instance, garage_home, "other")["stages"]["embeddings/all-minilm-l6-v2"] == {"copied": 1}


def test_a_touched_file_with_the_same_bytes_is_not_extracted_again(
    garage_home: Any, library: Path, instance: dg.DagsterInstance
) -> None:
    garage_home.configure({"name": "lib", "root": library})
    run(instance, garage_home)
    os.utime(library / "bees.md", ns=(time.time_ns(), time.time_ns()))
    said = run(instance, garage_home)["stages"]
    assert said["documents"]["unchanged"] == 1
    assert "documents_written" not in said["documents"]
    assert run(instance, garage_home)["stages"]["documents"].get("unchanged", 0) == 0


def test_rebuild_redoes_what_is_current_and_changes_nothing(
    garage_home: Any, library: Path, instance: dg.DagsterInstance
) -> None:
    garage_home.configure({"name": "lib", "root": library})
    run(instance, garage_home)
    before = contents(garage_home)
    said = run(instance, garage_home, rebuild=True)["stages"]
    assert said["documents"]["documents_written"] == 10
    assert said["embeddings/all-minilm-l6-v2"]["embedded"] > 0
    assert contents(garage_home) == before


def test_losing_more_than_a_quarter_is_refused_until_it_is_allowed(
    garage_home: Any, library: Path, instance: dg.DagsterInstance
) -> None:
    garage_home.configure({"name": "lib", "root": library})
    run(instance, garage_home)
    before = contents(garage_home)
    for number in range(3):  # 3 of 10 files
        (library / "notes" / f"day-{number}.md").unlink()
    said = run(instance, garage_home)
    assert said["status"] == "refused"
    assert "3 of 10" in said["message"]
    assert "--force" in said["message"]
    assert contents(garage_home) == before
    allowed = run(instance, garage_home, allow_deletes=True)
    assert allowed["stages"]["source_files"]["deleted"] == 3
    assert allowed["stages"]["documents"]["documents_deleted"] == 3
    assert len(contents(garage_home)["documents"]) == 7


def test_losing_a_fifth_is_simply_followed(garage_home: Any, library: Path, instance: dg.DagsterInstance) -> None:
    garage_home.configure({"name": "lib", "root": library})
    run(instance, garage_home)
    for number in range(2):
        (library / "notes" / f"day-{number}.md").unlink()
    assert run(instance, garage_home)["stages"]["documents"]["documents_deleted"] == 2
    stored = contents(garage_home)
    gone = {"notes/day-0.md", "notes/day-1.md"}
    assert not gone & {row[0] for part in stored.values() for row in part}


def test_a_refusal_is_settled_when_the_files_return(
    garage_home: Any, library: Path, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    from garage.store import runs
    from garage.store.database import Database

    def refused() -> list[str]:
        with Database(garage_home.database_url) as database, database.connection() as conn:
            return [refusal.source for refusal in runs.refusals(conn)]

    garage_home.configure({"name": "lib", "root": library})
    run(instance, garage_home)
    shutil.move(library / "notes", tmp_path / "elsewhere")
    assert run(instance, garage_home)["status"] == "refused"
    assert refused() == ["lib"]
    shutil.move(tmp_path / "elsewhere", library / "notes")
    assert run(instance, garage_home)["status"] == "success"
    assert refused() == []


@pytest.mark.parametrize("loss", ["unmounted", "emptied"])
def test_a_root_that_is_gone_or_empty_deletes_nothing(
    garage_home: Any, library: Path, instance: dg.DagsterInstance, tmp_path: Path, loss: str
) -> None:
    garage_home.configure({"name": "lib", "root": library})
    run(instance, garage_home)
    before = contents(garage_home)
    shutil.move(library, tmp_path / "elsewhere")
    if loss == "emptied":
        library.mkdir()
    said = run(instance, garage_home)
    assert said["status"] == "refused"
    assert "Nothing was deleted" in said["message"]
    assert contents(garage_home) == before
    if loss == "emptied":
        assert run(instance, garage_home, allow_deletes=True)["stages"]["documents"]["documents_deleted"] == 10


def test_the_last_file_of_a_source_goes_when_it_is_allowed(
    garage_home: Any, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    root = tmp_path / "one"
    root.mkdir()
    (root / "only.txt").write_text("The only file of this folder.\n", encoding="utf-8")
    garage_home.configure({"name": "lib", "root": root})
    run(instance, garage_home)
    (root / "only.txt").unlink()
    assert run(instance, garage_home)["status"] == "refused"
    assert run(instance, garage_home, allow_deletes=True)["status"] == "success"
    assert contents(garage_home)["documents"] == contents(garage_home)["chunks"] == []


def test_a_failed_reading_keeps_the_good_version_and_is_not_tried_again(
    garage_home: Any, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    root = tmp_path / "papers"
    root.mkdir()
    for number in range(5):
        (root / f"{number}.txt").write_text(f"Text number {number}.\n", encoding="utf-8")
    paper = root / "paper.pdf"
    shutil.copy(Path(__file__).parents[2] / "examples/library/money/grant-report-2024.pdf", paper)
    garage_home.configure({"name": "lib", "root": root})
    run(instance, garage_home)
    good = [row for row in contents(garage_home)["documents"] if row[0] == "paper.pdf"]
    assert good
    paper.write_bytes(b"%PDF-1.7\nthis is no longer a document\n")
    said = run(instance, garage_home)
    assert said["status"] == "success"
    assert said["stages"]["documents"]["error"] == 1
    assert [row for row in contents(garage_home)["documents"] if row[0] == "paper.pdf"] == good
    assert "error" not in run(instance, garage_home)["stages"]["documents"]


def test_an_unknown_source_fails_with_what_to_do(garage_home: Any, instance: dg.DagsterInstance) -> None:
    said = run(instance, garage_home, "nowhere")
    assert said["status"] == "failed"
    assert "garage source add" in said["message"]
