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

NETWORK_MODULES = {
    "aiohttp",
    "ftplib",
    "http",
    "httpcore",
    "httpx",
    "imaplib",
    "poplib",
    "requests",
    "smtplib",
    "socket",
    "socketserver",
    "ssl",
    "telnetlib",
    "urllib.error",
    "urllib.request",
    "urllib3",
    "websocket",
    "websockets",
    "xmlrpc",
}
# Module of the product -> the network modules it may import after all, each with its reason.
NETWORK_EXCEPTIONS: dict[str, set[str]] = {}

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
    for node in ast.walk(syntax(path)):
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


def test_only_the_inference_package_imports_network_modules() -> None:
    found = [
        f"{place(path, line)} {name}"
        for path in python_files(*PRODUCT)
        if path.relative_to(ROOT).parts[:2] != ("garage", "inference")
        for line, name in imported(path)
        if is_within(name, NETWORK_MODULES - NETWORK_EXCEPTIONS.get(path.relative_to(ROOT).as_posix(), set()))
    ]
    assert found == []


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
