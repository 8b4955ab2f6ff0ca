"""The pages that are made from the code say what the code says."""

import json
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]  # it comes without types
import pytest
import yaml

from garage.config import Config, ConfigError, json_schema, parse
from garage.serve.reference import page_text, schema_text, write

DOCS = Path(__file__).resolve().parents[2] / "docs"
REMEDY = "run `python -m garage.serve.reference`"


def test_the_published_schema_has_not_drifted() -> None:
    assert (DOCS / "garage.schema.json").read_text(encoding="utf-8") == schema_text(), REMEDY


def test_the_configuration_page_has_not_drifted() -> None:
    assert (DOCS / "configuration.md").read_text(encoding="utf-8") == page_text(), REMEDY


def test_every_key_of_the_configuration_is_on_the_page_with_its_meaning() -> None:
    schema = json_schema()
    page = page_text()
    for section in (schema, *schema["$defs"].values()):
        for name in section.get("properties", {}):
            rows = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
            assert rows, name
            assert all(row.split("|")[-2].strip() for row in rows), name


def test_a_mapping_is_told_by_what_it_maps_to() -> None:
    page = page_text()
    assert "| `models` | sections by name |" in page
    assert "| `path_rules` | `authored` or `received` or `reference`, by name |" in page


def test_the_page_s_example_is_a_valid_configuration() -> None:
    example = page_text().split("```yaml\n")[1].split("```")[0]
    assert [source.name for source in parse(example, Path("garage.yaml")).sources] == ["notes"]
    jsonschema.validate(yaml.safe_load(example), json.loads(schema_text()))


@pytest.mark.parametrize(
    "text", ["sources: [{name: A B, root: /x}]", "sources: [{root: /x}]", "walk: {max_file_bytes: 0}", "colour: red"]
)
def test_the_schema_refuses_what_the_configuration_refuses(text: str) -> None:
    with pytest.raises(ConfigError):
        parse(text, Path("garage.yaml"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(text), json.loads(schema_text()))


def test_the_schema_accepts_every_default() -> None:
    jsonschema.validate(Config().model_dump(mode="json", by_alias=True), json.loads(schema_text()))


def test_pages_are_written_once(tmp_path: Path) -> None:
    assert {path.name for path in write(tmp_path)} == {"garage.schema.json", "configuration.md", "formats.md"}
    assert write(tmp_path) == []
