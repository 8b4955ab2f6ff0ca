"""`garage config`: what is set, where, and what may be."""

import json
from pathlib import Path
from typing import Any

import yaml

from garage.config import json_schema, load, parse


def test_show_prints_a_configuration_that_means_the_same(garage: Any, garage_home: Any, library: Path) -> None:
    garage_home.configure({"name": "notes", "root": library, "class": "code"}, search={"rrf_k": 7})
    answer = garage("config", "show")
    assert answer.code == 0
    assert parse(answer.out, garage_home.config_path) == load()
    data = garage("config", "show", "--json").data
    assert data == yaml.safe_load(answer.out)
    assert (data["search"]["rrf_k"], data["sources"][0]["class"]) == (7, "code")


def test_path_says_which_file_is_read(garage: Any, garage_home: Any) -> None:
    assert garage("config", "path").out.strip() == str(garage_home.config_path)
    data = garage("config", "path", "--json").data
    assert data == {
        "path": str(garage_home.config_path),
        "exists": True,
        "home": str(garage_home.path),
        "models": str(garage_home.models_dir),
    }


def test_path_says_which_file_would_be_read(garage: Any, plain_home: Path) -> None:
    assert garage("config", "path", "--json").data["exists"] is False
    assert not plain_home.exists()


def test_schema_prints_the_schema(garage: Any, garage_home: Any) -> None:
    assert json.loads(garage("config", "schema").out) == json_schema()
    assert garage("config", "schema", "--json").data == json_schema()
