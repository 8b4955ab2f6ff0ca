import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from garage.isolation import Isolated
from garage.store import chat as store
from garage.store import chat_snapshot
from garage.store.chat import ChatSnapshot, snapshot, threads
from garage.store.chat_snapshot import ChatDatabaseError, copied
from tests.builders.chat_db import ChatDatabase

ANNA = "anna@example.org"
GUID = f"iMessage;-;{ANNA}"

# The owner of the database: runs statements that it is sent, as a program of its own, because a process that opens and
# closes a file loses the locks that SQLite holds on it in the same process.
OWNER = """
import sqlite3, sys
conn = sqlite3.connect(sys.argv[1], isolation_level=None)
for line in sys.stdin:
    conn.execute(line.strip()).fetchall()
    print("done", flush=True)
"""


@contextmanager
def owner(path: Path) -> Iterator[Callable[[str], None]]:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(statement: str) -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(statement.replace("\n", " ") + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"

        try:
            yield run
        finally:
            process.kill()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "Messages"
    folder.mkdir()
    with ChatDatabase(folder / "chat.db", wal=True) as db:
        db.message(db.chat(GUID, ANNA), "in the database", sender=ANNA, guid="G0")
    return folder / "chat.db"


def add(number: int, text: str = "in the log") -> str:
    values = f"{number}, 'G{number}', '{text}', {number}, 1"
    return f"insert into message (ROWID, guid, text, date, handle_id) values ({values})"


def join(number: int) -> str:
    return f"insert into chat_message_join (chat_id, message_id) values (1, {number})"


def beside(path: Path) -> dict[str, tuple[bytes, int, int]]:
    """Every file of the folder: its bytes, time of change and inode."""
    return {
        file.name: (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_ino)
        for file in sorted(path.parent.iterdir())
    }


def texts(copy: ChatSnapshot) -> list[str]:
    return sorted(row.text or "" for row in store.messages(copy, GUID))


def test_what_is_still_in_the_log_is_seen_and_nothing_beside_the_database_changes(path: Path) -> None:
    with owner(path) as run:
        run("pragma wal_autocheckpoint = 0")
        run(add(100))
        run(join(100))
        before = beside(path)
        assert set(before) == {"chat.db", "chat.db-shm", "chat.db-wal"}
        assert b"in the log" not in before["chat.db"][0]
        with snapshot(path) as copy:
            assert texts(copy) == ["in the database", "in the log"]
            assert beside(path) == before
        assert beside(path) == before
        run(add(101))  # and the owner is not held up


def test_what_is_not_committed_is_not_seen(path: Path) -> None:
    with owner(path) as run:
        run("begin exclusive")
        run(add(100))
        run(join(100))
        with snapshot(path) as copy:
            assert texts(copy) == ["in the database"]
        run("commit")
        with snapshot(path) as copy:
            assert texts(copy) == ["in the database", "in the log"]


def test_the_log_of_an_owner_that_was_killed_is_seen(path: Path) -> None:
    with owner(path) as run:
        run(add(100))
        run(join(100))
    path.with_name("chat.db-shm").unlink()
    before = beside(path)
    assert set(before) == {"chat.db", "chat.db-wal"}
    with snapshot(path) as copy:
        assert texts(copy) == ["in the database", "in the log"]
    assert beside(path) == before


def test_an_owner_without_a_log_that_is_in_the_middle_of_writing_is_no_obstacle(path: Path) -> None:
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("pragma journal_mode = delete")
    with owner(path) as run:
        run("pragma cache_size = 1")  # so that it writes to the database before it commits
        run("begin exclusive")
        for number in range(100, 140):
            run(add(number, "x" * 4000))
            run(join(number))
        assert path.with_name("chat.db-journal").stat().st_size > 1000
        before = beside(path)
        assert b"xxxx" in before["chat.db"][0]
        with snapshot(path) as copy:
            assert texts(copy) == ["in the database"]
        assert beside(path) == before


def test_a_folder_that_may_only_be_read_is_no_obstacle(path: Path) -> None:
    with owner(path) as run:
        run(add(100))
        run(join(100))
    path.chmod(0o400)
    path.parent.chmod(0o500)
    before = beside(path)
    try:
        with snapshot(path) as copy:
            assert len(texts(copy)) == 2
        assert beside(path) == before
    finally:
        path.parent.chmod(0o700)


def test_a_log_that_begins_anew_while_it_is_read_makes_no_mixture(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_one = chat_snapshot._copy
    moved: list[Path] = []

    with owner(path) as run:
        run(add(100, "first"))
        run(join(100))

        def meanwhile(source: Path, target: Path, *, required: bool) -> None:
            copy_one(source, target, required=required)
            if required and not moved:
                moved.append(source)
                run("pragma wal_checkpoint(restart)")
                run(add(101, "second"))
                run(join(101))

        monkeypatch.setattr(chat_snapshot, "_copy", meanwhile)
        with snapshot(path) as copy:
            assert texts(copy) == ["first", "in the database", "second"]
    assert moved


def test_a_database_that_never_rests_is_told_in_the_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_one = chat_snapshot._copy

    def touched(source: Path, target: Path, *, required: bool) -> None:
        copy_one(source, target, required=required)
        os.utime(path, ns=(0, time.time_ns() - 10**9))

    monkeypatch.setattr(chat_snapshot, "_copy", touched)
    monkeypatch.setattr(chat_snapshot, "_LONGEST", 0.001)
    with pytest.raises(ChatDatabaseError, match="kept changing") as caught, snapshot(path):
        pass
    assert caught.value.reason == "busy"


@pytest.mark.slow
def test_every_copy_of_a_database_that_is_written_to_all_the_time_is_one_state_of_it(path: Path) -> None:
    program = (
        "import sqlite3, sys\n"
        "conn = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "conn.execute('pragma wal_autocheckpoint = 40')\n"
        "conn.execute('create table ledger (account integer primary key, amount integer, filler text)')\n"
        "conn.executemany('insert into ledger values (?, 100, ?)', [(n, 'x' * 3000) for n in range(50)])\n"
        "print('ready', flush=True)\n"
        "import random, time\n"
        "while True:\n"
        "    conn.execute('begin')\n"
        "    for sign in (1, -1):\n"
        "        conn.execute('update ledger set amount = amount + ? where account = ?', (sign, random.randrange(9)))\n"
        "    conn.execute('commit')\n"
        "    time.sleep(0.002)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            for _ in range(20):
                with copied(path) as copy, closing(sqlite3.connect(copy.path)) as conn:
                    assert conn.execute("pragma integrity_check").fetchone() == ("ok",)
                    assert conn.execute("select sum(amount) from ledger").fetchone() == (5000,)
        finally:
            process.kill()


def test_the_copy_is_nobody_elses_and_is_gone_afterwards(path: Path, tmp_path: Path) -> None:
    with snapshot(path, folder=tmp_path) as copy:
        place = copy.path.parent
        assert place.parent == tmp_path
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        assert sorted(file.name for file in place.iterdir()) == ["chat.db", "lock"]
    assert not place.exists()


def test_a_copy_that_a_killed_process_left_is_removed_and_a_living_ones_is_not(path: Path, tmp_path: Path) -> None:
    abandoned = tmp_path / "garage-messages-abandoned"
    abandoned.mkdir()
    (abandoned / "lock").touch()
    (abandoned / "chat.db").write_bytes(b"somebody's messages")
    (tmp_path / "garage-messages-not-ours").mkdir()
    with snapshot(path, folder=tmp_path) as first:
        assert not abandoned.exists()
        with snapshot(path, folder=tmp_path) as second:
            assert first.path.exists()
            assert first.path != second.path
    assert (tmp_path / "garage-messages-not-ours").exists()


def _read(copy: ChatSnapshot) -> int:
    return sum(thread.messages for thread in threads(copy)) + len(texts(copy))


def test_worker_processes_share_one_copy(path: Path) -> None:
    with snapshot(path) as copy, Isolated(workers=2, seconds=60, memory_bytes=1024 * 2**20) as workers:
        before = copy.path.stat()
        assert [result for _, result in workers.map(_read, [copy] * 4, ahead=4)] == [2] * 4
        assert copy.path.stat().st_mtime_ns == before.st_mtime_ns
        assert sorted(file.name for file in copy.path.parent.iterdir()) == ["chat.db", "lock"]


@pytest.mark.parametrize(("content", "reason"), [(b"", "foreign"), (b"no database at all" * 500, "foreign")])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "chat.db"
    path.write_bytes(content)
    with pytest.raises(ChatDatabaseError, match="not a database of Messages") as caught, snapshot(path):
        pass
    assert caught.value.reason == reason


@pytest.mark.parametrize("cut", [100, 5_000, 20_000])
def test_a_database_that_was_cut_short_is_damaged(path: Path, cut: int) -> None:
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("pragma journal_mode = delete")
    os.truncate(path, cut)
    with pytest.raises(ChatDatabaseError) as caught, snapshot(path) as copy:
        texts(copy)
    assert caught.value.reason == "damaged"


def test_what_is_missing_or_no_file_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (("missing.db", "missing"), ("pipe", "foreign"), ("", "foreign")):
        with pytest.raises(ChatDatabaseError) as caught, snapshot(tmp_path / name):
            pass
        assert caught.value.reason == reason, name


def test_macos_forbidding_the_file_is_explained(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def forbidden(file: Any, flags: int, mode: int = 0o777) -> int:
        if file == path:
            raise PermissionError(1, "Operation not permitted")
        return opened(file, flags, mode)

    monkeypatch.setattr(os, "open", forbidden)
    with pytest.raises(ChatDatabaseError, match="Full Disk Access") as caught, snapshot(path):
        pass
    assert (caught.value.reason, caught.value.path) == ("forbidden", str(path))
    assert list(path.parent.iterdir()) == [path]


def test_a_full_disk_is_explained(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(reading: int, writing: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(chat_snapshot, "_copy_bytes", full)
    with pytest.raises(ChatDatabaseError, match="no space") as caught, snapshot(path):
        pass
    assert caught.value.reason == "full"


def test_bytes_are_copied_where_the_system_cannot_do_it_itself(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "copy_file_range")
    with snapshot(path) as copy:
        assert texts(copy) == ["in the database"]
