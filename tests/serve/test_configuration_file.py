"""Changing garage.yaml: what a person wrote stays, and nothing invalid is ever written."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from garage.config import ConfigError, load
from garage.serve.configuration_file import add_source, choose_default_model, enable_model, remove_source

WRITTEN = """\
# My settings.
sources:
  # Everything I write.
  - name: notes   # the short name
    root: '/tmp/notes'
    exclude: [drafts/, "*.bak"]
  - {name: letters, root: /tmp/letters}

search:
  rrf_k: 40 # tried 60, too flat
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "garage.yaml"
    path.write_text(WRITTEN, encoding="utf-8")
    return path


def test_a_source_is_appended_and_every_other_line_stays(path: Path) -> None:
    config = add_source(path, {"name": "code", "root": "/tmp/code", "include_code": True})
    added = "  - name: code\n    root: /tmp/code\n    include_code: true\n"
    assert path.read_text(encoding="utf-8") == WRITTEN.replace("\nsearch:", f"{added}\nsearch:")
    assert [source.name for source in config.sources] == ["notes", "letters", "code"]
    assert config.search.rrf_k == 40


def test_removing_what_was_added_gives_the_file_back(path: Path) -> None:
    add_source(path, {"name": "code", "root": "/tmp/code"})
    remove_source(path, "code")
    assert path.read_text(encoding="utf-8").split() == WRITTEN.split()


def test_a_removed_source_takes_no_comment_of_another_along(path: Path) -> None:
    config = remove_source(path, "letters")
    text = path.read_text(encoding="utf-8")
    assert [source.name for source in config.sources] == ["notes"]
    assert "# Everything I write." in text
    assert "rrf_k: 40 # tried 60, too flat" in text


def test_removing_what_is_not_there_leaves_the_file_alone(path: Path) -> None:
    before = path.stat().st_mtime_ns
    remove_source(path, "nothing")
    assert path.stat().st_mtime_ns == before


def test_the_last_source_goes_even_where_a_comment_stood_above_it(path: Path) -> None:
    config = remove_source(path, "letters")
    config = remove_source(path, "notes")
    assert config.sources == ()
    assert config.search.rrf_k == 40
    assert path.read_text(encoding="utf-8").startswith("# My settings.\n")


def test_a_file_that_loses_its_only_key_takes_a_new_one(path: Path) -> None:
    path.write_text("# mine\n\nsources:\n  # one\n  - name: notes\n    root: /tmp/notes\n", encoding="utf-8")
    assert remove_source(path, "notes").sources == ()
    assert path.read_text(encoding="utf-8") == "# mine\n\n"
    add_source(path, {"name": "code", "root": "/tmp/code"})
    expected = "# mine\n\nsources:\n  - name: code\n    root: /tmp/code\n"
    assert path.read_text(encoding="utf-8") == expected


@pytest.mark.parametrize("item", ["- name: {}\n  root: /x/{}\n", "    - name: {}\n      root: /x/{}\n"])
def test_a_list_keeps_the_indentation_that_it_has(path: Path, item: str) -> None:
    path.write_text("sources:\n" + item.format("one", "one"), encoding="utf-8")
    add_source(path, {"name": "two", "root": "/x/two"})
    expected = "sources:\n" + item.format("one", "one") + item.format("two", "two")
    assert path.read_text(encoding="utf-8") == expected


def test_a_missing_file_is_made_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "garage.yaml"
    add_source(path, {"name": "notes", "root": "/tmp/notes"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [source.name for source in load(path).sources] == ["notes"]


def test_a_file_of_comments_keeps_them(path: Path) -> None:
    path.write_text("# nothing yet", encoding="utf-8")
    add_source(path, {"name": "notes", "root": "/tmp/notes"})
    assert path.read_text(encoding="utf-8").startswith("# nothing yet\nsources:\n")


def test_the_permissions_of_a_file_stay(path: Path) -> None:
    path.chmod(0o640)
    add_source(path, {"name": "code", "root": "/tmp/code"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    add_source(link, {"name": "code", "root": "/tmp/code"})
    assert link.is_symlink()
    assert len(load(path).sources) == 3


def test_json_stays_json(path: Path) -> None:
    path.write_text('{"sources": [{"name": "notes", "root": "/tmp/ä"}], "search": {"rrf_k": 40}}', encoding="utf-8")
    add_source(path, {"name": "code", "root": "/tmp/code"})
    data = json.loads(path.read_text(encoding="utf-8"))
    assert [source["name"] for source in data["sources"]] == ["notes", "code"]
    assert data["search"] == {"rrf_k": 40}


def test_yaml_in_braces_is_changed_too(path: Path) -> None:
    path.write_text("{sources: [{name: notes, root: /tmp/notes}]} # short\n", encoding="utf-8")
    add_source(path, {"name": "code", "root": "/tmp/code"})
    assert [source.name for source in load(path).sources] == ["notes", "code"]


@pytest.mark.parametrize(
    "values",
    [
        {"name": "No Slug", "root": "/tmp/x"},
        {"name": "notes", "root": "/tmp/again"},
        {"name": "x", "root": "/tmp/x", "colour": "red"},
    ],
)
def test_what_would_not_be_valid_is_never_written(path: Path, values: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        add_source(path, values)
    assert path.read_text(encoding="utf-8") == WRITTEN
    assert {p.name for p in path.parent.iterdir()} <= {"garage.yaml", ".garage.yaml.lock"}


@pytest.mark.parametrize("text", ["sources: [", "- a\n- b\n", "search: {}\nsearch: {}\n"])
def test_a_file_that_cannot_be_understood_is_left_alone(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError):
        add_source(path, {"name": "notes", "root": "/tmp/notes"})
    assert path.read_text(encoding="utf-8") == text


def test_two_changes_at_once_are_both_kept(path: Path) -> None:
    names = [f"source-{number}" for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda name: add_source(path, {"name": name, "root": f"/tmp/{name}"}), names))
    assert {source.name for source in load(path).sources} == {"notes", "letters", *names}


def test_a_model_is_enabled_beside_those_that_were_enabled_by_default(path: Path) -> None:
    config = enable_model(path, "all-minilm-l6-v2-q8_0", enabled=("all-minilm-l6-v2",), described=None)
    assert config.embedding.models == ("all-minilm-l6-v2", "all-minilm-l6-v2-q8_0")
    assert "# Everything I write." in path.read_text(encoding="utf-8")


def test_a_model_of_one_s_own_is_described_and_enabled(path: Path) -> None:
    described = {"file": "/models/mine.gguf", "dims": 10, "context": 32}
    config = enable_model(path, "mine", enabled=("all-minilm-l6-v2",), described=described)
    assert config.models["mine"].dims == 10
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["models"] == {"mine": described}


def test_the_default_model_is_written_with_the_models_it_is_one_of(path: Path) -> None:
    enabled = ("all-minilm-l6-v2", "all-minilm-l6-v2-q8_0")
    config = choose_default_model(path, "all-minilm-l6-v2-q8_0", enabled=enabled)
    assert config.embedding.default == "all-minilm-l6-v2-q8_0"
    assert config.embedding.models == enabled


def test_a_folder_that_cannot_be_written_to_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be changed"):
        add_source(tmp_path / "file" / "garage.yaml", {"name": "notes", "root": "/tmp/notes"})


@pytest.mark.parametrize(
    "written",
    [
        'identity:\n  name: Ada\n  identities: ["email:ada@example.org"]\n',
        "embedding: {models: [all-minilm-l6-v2]}\n",
        "identity:\n    identities: []\nwalk:\n    exclude: ['*.bak']\n",
        "search:\n rrf_k: 40\nwalk:\n exclude:\n - '*.bak'\n",
        "models_directory: /models\n",
        "walk:\n  exclude:\n      - '*.bak'\n",
    ],
)
def test_a_source_is_added_to_a_file_of_any_style(path: Path, written: str) -> None:
    path.write_text(written, encoding="utf-8")
    config = add_source(path, {"name": "code", "root": "/tmp/code", "exclude": ["/drafts/"]})
    assert [(source.name, source.exclude) for source in config.sources] == [("code", ("/drafts/",))]
    before, after = yaml.safe_load(written), yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {key: after[key] for key in before} == before
    config = add_source(path, {"name": "more", "root": "/tmp/more"})
    assert [source.name for source in config.sources] == ["code", "more"]
