"""Digests of code: what would make the same input come out differently.

A stage records the digest of the code that did its work on every row, so an upgrade redoes exactly the rows that it
concerns. Source text is compared by meaning: comments, docstrings and formatting leave a digest as it is, while any
change of a statement, in the module itself or in one of ours that it imports, makes a new one. Nothing is imported on
the way, so asking for a digest costs milliseconds.
"""

import ast
import hashlib
import importlib.metadata
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

STOP = frozenset(
    {
        "garage.config",
        "garage.errors",
        "garage.fingerprint",
        "garage.inference",
        "garage.isolation",
        "garage.store",
        "garage.worklist",
    }
)
"""Modules and packages of ours that imports are not followed into: they say where and when work is done, how it is
kept and how failures are worded, but never what comes out of an input. A stage whose results depend on more than its
code (a model's file, a setting) names that among its parameters."""

_ROOT = Path(__file__).parent
_OURS = __name__.partition(".")[0]
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_digest(*modules: str, libraries: Iterable[str] = (), parameters: Mapping[str, object] | None = None) -> str:
    """Return 16 hexadecimal digits that stand for what `modules` do.

    Args:
        modules: Dotted names of modules of this package; what they import of ours belongs to them, except `STOP`.
        libraries: Distribution names whose installed versions matter. One that is not installed counts as such.
        parameters: Further values that decide the result; whatever `json` can write, the order of keys aside.

    Raises:
        ModuleNotFoundError: a module, or one that it imports from this package, has no source file.
        TypeError: a parameter cannot be written as JSON.
    """
    values = json.dumps(parameters or {}, sort_keys=True, separators=(",", ":"))
    return _digest(tuple(sorted(set(modules))), tuple(sorted(set(libraries))), values)


@cache
def _digest(modules: tuple[str, ...], libraries: tuple[str, ...], parameters: str) -> str:
    lines = [f"module {name} {_meaning(name)[0]}" for name in _reachable(modules)]
    lines += [f"library {name} {_version(name)}" for name in libraries]
    lines.append(f"parameters {parameters}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _reachable(modules: Iterable[str]) -> list[str]:
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _meaning(name)[1]
    return sorted(found)


@cache
def _meaning(module: str) -> tuple[str, tuple[str, ...]]:
    """The digest of one module's statements, and the modules of ours that it imports."""
    source = _source(module)
    if source is None:
        raise ModuleNotFoundError(f"the module {module} has no source file below {_ROOT}", name=module)
    tree = ast.parse(source.read_bytes(), filename=str(source))
    package = module if source.name == "__init__.py" else module.rpartition(".")[0]
    imports = {name for name in _imports(tree, package) if not _stops(name)}
    return hashlib.sha256(_written(tree).encode()).hexdigest(), tuple(sorted(imports))


def _source(module: str) -> Path | None:
    top, *rest = module.split(".")
    if top != _OURS:
        return None
    path = _ROOT.joinpath(*rest)
    for candidate in (path / "__init__.py", path.with_suffix(".py")):
        if candidate.is_file():
            return candidate
    return None


def _stops(module: str) -> bool:
    return any(module == stop or module.startswith(stop + ".") for stop in STOP)


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    """Modules of ours that run because of the imports in `tree`, those inside functions among them."""
    for node in _running(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            # What is imported from a package may be a module of it or a name that its __init__ defines.
            names = [f"{base}.{alias.name}" for alias in node.names if _source(f"{base}.{alias.name}")]
            if _source(base) or len(names) < len(node.names):
                names.append(base)
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == _OURS)


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements below `tree` but those that only a type checker sees; expressions hold no statements."""
    waiting = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
                yield from node.orelse
                waiting += node.orelse
            elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
                yield node
                waiting.append(node)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def _body(node: ast.AST) -> list[ast.stmt]:
    """The statements of a module, class or function without its docstring."""
    body: list[ast.stmt] = getattr(node, "body", [])
    first = body[0] if body else None
    documented = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return body[1:] if documented else body


def _written(value: object) -> str:
    """A syntax tree as text; empty fields are left out, so that a Python with more of them writes the same."""
    if isinstance(value, ast.AST):
        fields = []
        for name, field in ast.iter_fields(value):
            kept = _body(value) if name == "body" and isinstance(value, _DOCUMENTED) else field
            # A string's u prefix says nothing; None is written for constants, whose value it may be.
            if name != "kind" and kept != [] and (kept is not None or isinstance(value, ast.Constant)):
                fields.append(f"{name}={_written(kept)}")
        return f"{type(value).__name__}({','.join(fields)})"
    if isinstance(value, list):
        return f"[{','.join(map(_written, value))}]"
    return repr(value)
