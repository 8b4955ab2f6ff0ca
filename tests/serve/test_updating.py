"""`garage update`: starts the job, watches it, and tells what it wrote."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from garage.config import Config, load
from garage.serve.commands.update import _counted, _updated
from garage.serve.updating import RunFailed, SourceUpdate, Updated, update, written
from garage.store import runs, sources
from garage.store.database import Database
from garage.store.errors import DatabaseUnavailable

CHECKOUT = Path(__file__).resolve().parents[2]


def launcher(tmp_path: Path, program: str) -> list[str]:
    """A process in the place of the one that runs the job: the same protocol, another story."""
    script = tmp_path / "launcher.py"
    script.write_text(program, encoding="utf-8")
    return [sys.executable, str(script)]


SUCCESS = '{"source": "garden", "run_id": "r1", "status": "success", "message": "", "stages": {"documents": {}}}'
REFUSED = '{"source": "garden", "run_id": "r1", "status": "refused", "message": "too much is gone", "stages": {}}'


def test_options_are_handed_on_and_lines_come_back(stocked: Config, tmp_path: Path) -> None:
    program = (
        "import json, os, sys; print('noise'); print('more noise', file=sys.stderr)\n"
        "said = {'args': sys.argv[1:], 'cwd': os.getcwd(), 'home': os.environ['DAGSTER_HOME']}\n"
        "print(json.dumps({'source': 'garden', 'status': 'success', 'message': json.dumps(said), 'stages': {}}))"
    )
    result = update(stocked, ["garden"], force=True, rebuild=True, launch=launcher(tmp_path, program))
    (source,) = result.sources
    assert '"args": ["--source", "garden", "--force", "--rebuild"]' in source.message
    assert f'"cwd": "{stocked.home}"' in source.message
    assert f'"home": "{CHECKOUT}"' in source.message
    assert (stocked.logs_dir / "update.log").read_text(encoding="utf-8") == "more noise\n"


def test_a_refused_source_is_no_success(stocked: Config, tmp_path: Path) -> None:
    result = update(stocked, [], launch=launcher(tmp_path, f"print('''{REFUSED}'''); raise SystemExit(1)"))
    assert not result.succeeded
    assert list(_updated(result))[:2] == ["", "garden refused: too much is gone"]


@pytest.mark.parametrize(
    "program",
    [
        "raise SystemExit('out of luck')",
        "import sys; sys.stderr.write('out of luck\\n')",
        f"import os; print('''{SUCCESS}''', flush=True); os.write(2, b'out of luck\\n'); os.kill(os.getpid(), 9)",
    ],
)
def test_a_process_that_ends_without_an_account_is_a_failure_with_its_last_words(
    stocked: Config, tmp_path: Path, program: str
) -> None:
    with pytest.raises(RunFailed, match="out of luck") as caught:
        update(stocked, [], launch=launcher(tmp_path, program))
    assert "update.log" in caught.value.hint


def test_stages_are_seen_while_they_go_on_and_older_ones_are_not(
    stocked: Config, tmp_path: Path, database: Database
) -> None:
    with database.connection() as conn:
        row = sources.source(conn, "garden")
        runs.finish(conn, runs.begin(conn, row.id, "chunks", "before", 1), done=1, counts={})
    program = (
        "import os, sys, time; from garage.store import runs; from garage.store.database import Database\n"
        f"with Database(os.environ['GARAGE_DATABASE_URL']) as db, db.connection() as conn:\n"
        f"    run = runs.begin(conn, {row.id}, 'documents', 'r1', 10); runs.heartbeat(conn, run, 4)\n"
        f"    time.sleep(3); runs.finish(conn, run, done=10, counts={{}})\n"
        f"print('''{SUCCESS}''')"
    )
    seen: list[tuple[str, int, bool]] = []
    update(
        stocked,
        [],
        launch=launcher(tmp_path, program),
        watch=lambda found: seen.extend((run.stage, run.done, run.finished_at is None) for run in found),
    )
    assert ("documents", 4, True) in seen
    assert {stage for stage, _, _ in seen} == {"documents"}


def test_without_sources_it_says_how_to_add_one(garage: Any, garage_home: Any) -> None:
    answer = garage("update")
    assert answer.code == 1
    assert "garage source add FOLDER" in answer.err


def test_an_unknown_source_is_a_bad_argument(garage: Any, stocked: Config) -> None:
    answer = garage("update", "--source", "nowhere")
    assert answer.code == 2
    assert "There is no source 'nowhere'." in answer.err


def test_a_source_that_is_switched_off_is_a_bad_argument(garage: Any, garage_home: Any, stocked: Config) -> None:
    root = stocked.sources[0].root
    garage_home.configure({"name": "garden", "root": root, "enabled": False})
    answer = garage("update", "--source", "garden")
    assert answer.code == 2
    assert "The source 'garden' is switched off." in answer.err


def test_watching_ends_quietly_when_the_database_goes_and_the_run_tells_of_it(
    stocked: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Database] = []

    def gone(database: Database) -> dict[Any, Any]:
        asked.append(database)
        if len(asked) > 1:
            raise DatabaseUnavailable("The database cannot be reached.")
        return {}

    monkeypatch.setattr("garage.serve.updating._stages", gone)
    program = f"import time; time.sleep(2); print('''{SUCCESS}''')"
    assert update(stocked, [], launch=launcher(tmp_path, program)).succeeded
    assert len(asked) > 1


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_reaches_the_run_and_leaves_no_process(
    stocked: Config, tmp_path: Path, sent: signal.Signals
) -> None:
    told = tmp_path / "told"
    program = (
        "import signal, sys, time, pathlib\n"
        f"told = pathlib.Path({str(told)!r})\n"
        "try:\n    told.write_text('running'); time.sleep(600)\n"
        "except KeyboardInterrupt:\n    told.write_text('interrupted')\n"
    )
    launch = launcher(tmp_path, program)
    command = (
        "import sys; from garage.serve import cli, updating\n"
        f"updating.update.__kwdefaults__['launch'] = {launch!r}\n"
        "sys.exit(cli.run(['update']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", command], cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 100
        while not told.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        (child,) = psutil.Process(process.pid).children()
        process.send_signal(sent)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.read_text(encoding="utf-8") == "interrupted"
    assert not child.is_running()
    assert (out, err.strip()) == ("", "")


def test_what_was_written_is_added_up_over_sources_and_stages() -> None:
    def said(**counts: int) -> SourceUpdate:
        stages = {"documents": counts, "chunks": {"chunks_written": 1}, "embeddings/x": {"embedded": 2, "copied": 3}}
        return SourceUpdate("s", None, "success", "", stages)

    assert written([said(documents_written=4, chunks_written=5), said(documents_deleted=9)]) == {
        "documents": 4,
        "passages": 7,
        "vectors": 10,
    }


def test_an_update_with_nothing_to_do_says_so() -> None:
    done = SourceUpdate("notes", "r", "success", "", {"documents": {"documents_deleted": 0}})
    lines = list(_updated(Updated((done,), written([done]))))
    assert lines == ["notes  documents  nothing to do", "", "0 documents, 0 passages and 0 vectors written."]


def test_counts_read_as_words_and_what_is_zero_is_left_out() -> None:
    assert _counted({"documents_written": 1200, "chunks_kept": 0, "ok": 3}) == "documents written 1,200, ok 3"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_folder_is_read_once_then_only_what_changed(garage: Any, garage_home: Any, library: Path) -> None:
    garage_home.configure({"name": "notes", "root": library}, embedding={"models": ["all-minilm-l6-v2"]})
    first = garage("update", "--json")
    assert first.code == 0, first.err
    assert first.data["written"] == {"documents": 10, "passages": 11, "vectors": 11}
    assert list(first.data["sources"][0]["stages"]) == [
        "source_files",
        "documents",
        "attribution",
        "chunks",
        "embeddings/all-minilm-l6-v2",
    ]
    second = garage("update")
    assert second.code == 0
    assert second.out.endswith("0 documents, 0 passages and 0 vectors written.\n")
    hits = garage("search", "how many jars of honey", "--json").data["hits"]
    assert hits[0]["passage"]["uri"] == "bees.md"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_mass_deletion_is_refused_until_it_is_forced(garage: Any, garage_home: Any, library: Path) -> None:
    garage_home.configure({"name": "notes", "root": library}, embedding={"models": ["all-minilm-l6-v2"]})
    garage("update")
    for path in (library / "notes").iterdir():
        path.unlink()
    refused = garage("update", "--source", "notes")
    assert refused.code == 1
    assert "Refused to delete 8 of 10 files" in refused.out
    assert "garage update --source notes --force" in garage("status").out
    forced = garage("update", "--source", "notes", "--force", "--json")
    assert forced.code == 0
    assert forced.data["sources"][0]["stages"]["documents"]["documents_deleted"] == 8
    assert "--force" not in garage("status").out


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_on_a_terminal_progress_is_drawn_beside_the_answer(garage_home: Any, library: Path) -> None:
    garage_home.configure({"name": "notes", "root": library}, embedding={"models": ["all-minilm-l6-v2"]})
    assert load().sources
    controller, terminal = pty.openpty()
    shown = b""
    with subprocess.Popen(
        [sys.executable, "-m", "garage", "update"],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        text=True,
    ) as process:
        os.close(terminal)
        while True:
            try:
                read = os.read(controller, 65536)
            except OSError:  # the other side is closed
                break
            if not read:
                break
            shown += read
        assert process.stdout is not None
        out = process.stdout.read()
    os.close(controller)
    assert process.returncode == 0
    assert b"starting the run" in shown
    assert b"notes  documents" in shown
    assert "10 documents, 11 passages and 11 vectors written." in out
