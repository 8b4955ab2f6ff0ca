"""The reference pages that are made from the code: `python -m garage.serve.reference [FOLDER]` writes them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from garage.config import json_schema
from garage.serve import formats

SCHEMA_FILE, PAGE_FILE, FORMATS_FILE = "garage.schema.json", "configuration.md", "formats.md"
_INTRODUCTION = """\
# Configuration

<!-- Written by `python -m garage.serve.reference` from the configuration's model; change that instead. -->

Everything that can be set stands in `garage.yaml`. It is the file of `--config` or of `GARAGE_CONFIG`, else
`garage.yaml` in `GARAGE_HOME`; `garage config path` says which. JSON is accepted as well. Without a file, everything
has its default. An unknown key is an error that names the nearest known one. `garage config show` prints every setting
with its present value, and [garage.schema.json](garage.schema.json) is the JSON Schema for editors.

```yaml
# yaml-language-server: $schema=garage.schema.json
sources:
  - name: notes
    root: ~/Documents/notes
    exclude: ["/drafts/"]
embedding:
  models: [all-minilm-l6-v2, all-minilm-l6-v2-q8_0]
  default: all-minilm-l6-v2
```
"""
_ENVIRONMENT = """\
## Environment

| Variable | What it does |
|---|---|
| `GARAGE_HOME` | The folder of the database, Dagster's files, models and logs. |
| `GARAGE_CONFIG` | The configuration file, where it is not `garage.yaml` in `GARAGE_HOME`. |
| `GARAGE_DATABASE_URL` | A Postgres of your own, with pgvector 0.8 or newer, instead of the embedded one. |
| `GARAGE_DAGSTER_URL` | Where Dagster keeps runs and events, instead of the database `dagster` on the same server. |
| `GARAGE_DEBUG` | Set to 1, a failing command shows where it failed. |
"""


def schema_text() -> str:
    """The published JSON Schema."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def page_text() -> str:
    """The page that lists every key with its type, default and meaning."""
    schema = json_schema()
    parts = [_INTRODUCTION, "## Top level\n", "\n".join(_table(schema, schema)) + "\n"]
    for name, found in schema["properties"].items():
        section = _section(found, schema)
        if section is not None:
            where = {"array": f"`{name}[]`", "object": f"`{name}.NAME`"}.get(found.get("type", ""), f"`{name}`")
            parts += [f"## {where}\n", _sentence(section) + "\n", "\n".join(_table(section, schema)) + "\n"]
    return "\n".join([*parts, _ENVIRONMENT])


def write(folder: Path) -> list[Path]:
    """Writes the pages into `folder`; returns those that changed."""
    changed = []
    pages = ((SCHEMA_FILE, schema_text()), (PAGE_FILE, page_text()), (FORMATS_FILE, formats.page_text()))
    for name, text in pages:
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


def _section(found: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any] | None:
    """The object that a key holds, one of its items, or one of its values; None for a plain value."""
    reference = (found.get("items") or _by_name(found) or found).get("$ref")
    section: dict[str, Any] | None = schema["$defs"][reference.rpartition("/")[2]] if reference else None
    return section


def _by_name(found: dict[str, Any]) -> dict[str, Any]:
    """What each value of a mapping is; nothing for a key that holds no mapping."""
    values: dict[str, Any] = next(iter(found.get("patternProperties", {}).values()), {})
    return values


def _sentence(section: dict[str, Any]) -> str:
    return " ".join(str(section.get("description", "")).split())


def _table(section: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    yield "| Key | Type | Default | Meaning |"
    yield "|---|---|---|---|"
    required = section.get("required", ())
    for name, found in section["properties"].items():
        default = "required" if name in required else _default(found, schema)
        meaning = found.get("description") or _sentence(_section(found, schema) or {})
        yield f"| `{name}` | {_type(found, schema)} | {default} | {meaning} |"


def _default(found: dict[str, Any], schema: dict[str, Any]) -> str:
    default = found.get("default")
    if _section(found, schema) is not None and "$ref" in found:
        return "see below"
    return "" if default is None or default == "" else f"`{json.dumps(default)}`"


def _type(found: dict[str, Any], schema: dict[str, Any]) -> str:
    if "$ref" in found:
        return "section"
    if "enum" in found:
        return " or ".join(f"`{value}`" for value in found["enum"])
    if "const" in found:
        return f"`{found['const']}`"
    if "anyOf" in found:
        return " or ".join(_type(option, schema) for option in found["anyOf"] if option.get("type") != "null")
    kind = str(found["type"])
    if kind == "array":
        return f"list of {_type(found['items'], schema)}s"
    if kind == "object":
        return "sections by name" if _section(found, schema) else f"{_type(_by_name(found), schema)}, by name"
    words = {"integer": "whole number", "string": "path" if found.get("format") == "path" else "text"}
    return words.get(kind, kind) + _limits(found)


def _limits(found: dict[str, Any]) -> str:
    low = found.get("minimum", found.get("exclusiveMinimum"))
    high = found.get("maximum")
    above = "more than" if "exclusiveMinimum" in found else "at least"
    if low is not None and high is not None:
        return f", {low} to {high}"
    return f", {above} {low}" if low is not None else ""


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2] / "docs"
    for written in write(target):
        sys.stdout.write(f"{written}\n")
