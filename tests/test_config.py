"""The one configuration: strict, with messages that say what to write instead."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from garage.config import Config, ConfigError, config_path, home, json_schema, load, parse

HERE = Path("/etc/garage.yaml")


def parsed(text: str) -> Config:
    return parse(text, HERE)


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as refused:
        parsed(text)
    assert str(HERE) in refused.value.message
    assert refused.value.fields["path"] == HERE
    return str(refused.value)


@pytest.mark.parametrize("text", ["", "# only a comment\n", "{}", "null", "---\n"])
def test_an_empty_file_means_the_defaults(text: str) -> None:
    config = parsed(text)
    assert config.sources == ()
    assert config.walk.max_deleted_share == 0.25
    assert (config.chunking.size, config.chunking.overlap) == (1000, 150)
    assert (config.search.rrf_k, config.search.candidates) == (60, 200)
    assert config.embedding.default == "all-minilm-l6-v2"


def test_yaml_and_json_say_the_same() -> None:
    written = "sources:\n  - name: notes\n    root: /srv/notes\n    class: communication\n    exclude: ['*.bak']\n"
    same = '{"sources": [{"name": "notes", "root": "/srv/notes", "class": "communication", "exclude": ["*.bak"]}]}'
    assert parsed(written) == parsed(same)
    (source,) = parsed(written).sources
    assert (source.name, source.root, source.corpus_class) == ("notes", Path("/srv/notes"), "communication")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("serch: {}", "unknown key 'serch' (nearest known: 'search')"),
        ("search: {rrf: 3}", "unknown key 'search.rrf' (nearest known: 'rrf_k')"),
        ("sources: [{name: a, root: /x, clas: code}]", "'sources.0.clas' (nearest known: 'class')"),
        ("models: {mine: {fil: x}}", "'models.mine.fil' (nearest known: 'file')"),
    ],
)
def test_an_unknown_key_names_the_nearest_known_one(text: str, said: str) -> None:
    assert said in refusal(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("walk: {}\nsearch: {}\nwalk: {}", "the key 'walk' is given twice"),
        ('{"walk": {"max_file_bytes": 1, "max_file_bytes": 2}}', "'max_file_bytes' is given twice"),
        ("sources: [{name: a, root: /x}, {name: a, root: /y}]", "source names must be unique: a"),
        ("embedding: {models: [a, a], default: a}", "a model is named twice"),
        ("embedding: {default: other}", "the default model 'other' is not among `models`"),
        ("sources: [{root: /x}]", "sources.0.name: Field required"),
        ("sources: [{name: Two Words, root: /x}]", "sources.0.name"),
        ("sources: [{name: a, root: /x, class: documents}]", "'document', 'code' or 'communication'"),
        ('sources: [{name: a, root: "/x\\0y"}]', "no NUL"),
        ("walk: {max_deleted_share: 25}", "less than or equal to 1"),
        ("walk: {max_file_bytes: yes}", "a number is wanted"),
        ("chunking: {size: 100, overlap: 100}", "an overlap must be smaller than its size"),
        ("chunking: {code_size: 60, code_overlap: 61}", "an overlap must be smaller than its size"),
        ("dagster: {port: 70000}", "dagster.port"),
        ("search: {ef_search: 1001}", "search.ef_search"),
        ("walk: [1]", "walk"),
        ("[1, 2]", "must hold keys and values"),
        ("just words", "must hold keys and values"),
        ("a: [", "is not YAML"),
        ("a: !!python/object/apply:os.getcwd []", "is not YAML"),
        ("1: x", "1"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_reason(text: str, said: str) -> None:
    assert said in refusal(text)


def test_every_mistake_is_named_at_once() -> None:
    said = refusal("serch: {}\nwalk: {max_file_bytes: 0}\nsources: [{name: a}]")
    assert all(part in said for part in ("'serch'", "walk.max_file_bytes", "sources.0.root"))


def test_merge_keys_of_yaml_still_work() -> None:
    config = parsed("sources:\n- &a {name: a, root: /a, class: code}\n- {<<: *a, name: b, root: /b}\n")
    assert [(s.name, s.corpus_class) for s in config.sources] == [("a", "code"), ("b", "code")]


def test_roots_are_absolute_and_know_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    first, second, third = parsed(
        "sources: [{name: a, root: ~/Documents}, {name: b, root: here/../there}, {name: c, root: /x//y/}]"
    ).sources
    assert (first.root, second.root, third.root) == (tmp_path / "Documents", tmp_path / "there", Path("/x/y"))


def test_a_configuration_cannot_be_changed_in_place() -> None:
    config = parsed("")
    with pytest.raises(ValidationError):
        config.search.rrf_k = 1


def test_the_home_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GARAGE_HOME", str(tmp_path / "x" / ".." / "home"))
    monkeypatch.delenv("GARAGE_CONFIG", raising=False)
    assert home() == tmp_path / "home"
    assert config_path() == tmp_path / "home" / "garage.yaml"
    monkeypatch.setenv("GARAGE_CONFIG", str(tmp_path / "other.yaml"))
    assert config_path() == tmp_path / "other.yaml"
    monkeypatch.delenv("GARAGE_HOME")
    assert home().is_absolute()


def test_a_missing_file_means_the_defaults_unless_it_was_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GARAGE_HOME", str(tmp_path))
    monkeypatch.delenv("GARAGE_CONFIG", raising=False)
    config = load()
    assert (config.sources, config.home, config.path) == ((), tmp_path, tmp_path / "garage.yaml")
    assert (config.models_dir, config.logs_dir) == (tmp_path / "models", tmp_path / "logs")
    with pytest.raises(ConfigError, match="There is no configuration file"):
        load(tmp_path / "named.yaml")
    monkeypatch.setenv("GARAGE_CONFIG", str(tmp_path / "named.yaml"))
    with pytest.raises(ConfigError, match="There is no configuration file"):
        load()
    (tmp_path / "named.yaml").write_text("search: {rrf_k: 10}")
    assert load().search.rrf_k == 10
    assert load(tmp_path / "named.yaml").path == tmp_path / "named.yaml"


@pytest.mark.parametrize("raw", [b"\xff\xfe\x00", b"sources: \x80"])
def test_a_file_that_is_not_text_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "garage.yaml").write_bytes(raw)
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "garage.yaml")


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path)


def test_models_are_kept_where_the_configuration_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert parsed("models_directory: ~/models").models_dir == tmp_path / "models"


def test_every_setting_is_described_and_the_schema_is_json() -> None:
    schema = json_schema()
    json.dumps(schema)
    sections = [schema, *schema["$defs"].values()]
    for section in sections:
        assert section.get("additionalProperties") is False
        for name, field in section["properties"].items():
            referred = schema["$defs"].get(str(field.get("$ref", "")).rpartition("/")[2], {})
            assert field.get("description") or referred.get("description"), name


def test_the_owner_and_rules_about_folders_are_configured_in_their_order() -> None:
    config = parsed(
        "identity: {name: Ada, identities: ['email:ada@example.org', 'git_name: Ada L']}\n"
        "attribution: {path_rules: {'Clients/*/In/': received, 'Books/': authored}}\n"
    )
    assert config.identity.identities == ("email:ada@example.org", "git_name: Ada L")
    assert list(config.attribution.path_rules.items()) == [("Clients/*/In/", "received"), ("Books/", "authored")]
    assert parsed("").identity.name == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("identity: {identities: ['ada@example.org']}", "identity.identities.0"),
        ("identity: {identities: ['fax:1']}", "identity.identities.0"),
        ("identity: {identities: ['email:ada']}", "'ada' is no address"),
        ("identity: {identities: ['git_email:@x']}", "'@x' is no address"),
        ("identity: {identities: ['name: ']}", "identity.identities.0"),
        ("attribution: {path_rules: {'/': authored}}", "attribution.path_rules"),
        ("attribution: {path_rules: {'Books/': mine}}", "'authored', 'received' or 'reference'"),
    ],
)
def test_an_owner_or_a_rule_that_says_nothing_is_refused(text: str, said: str) -> None:
    assert said in refusal(text)
