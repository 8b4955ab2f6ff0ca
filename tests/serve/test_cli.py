"""The command line as a whole: help, exit codes, errors as sentences, silence when it is interrupted."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import pytest

from garage.config import CorpusClass, Egress, Model, SourceKind, Trust
from garage.inference.policy import Purpose
from garage.passage import Part
from garage.search.hybrid import Mode
from garage.serve import choices
from garage.serve.cli import cli

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "operating.md").read_text(encoding="utf-8")


def commands(group: click.Group = cli, path: tuple[str, ...] = ("garage",)) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands())


def groups(group: click.Group = cli) -> Iterator[click.Group]:
    yield group
    for command in group.commands.values():
        if isinstance(command, click.Group):
            yield from groups(command)


def section(name: str) -> str:
    """The part of docs/operating.md that describes a command."""
    parts = re.split(r"^#+ ", PAGE, flags=re.MULTILINE)
    return next((part for part in parts if part.startswith(f"`{name}`\n")), "")


def test_the_commands_are_those_that_were_promised() -> None:
    assert set(COMMANDS) == {
        "garage up",
        "garage down",
        "garage source add",
        "garage source list",
        "garage source remove",
        "garage update",
        "garage search",
        "garage status",
        "garage outcomes",
        "garage explain",
        "garage authors list",
        "garage authors merge",
        "garage authors detach",
        "garage models list",
        "garage models add",
        "garage models default",
        "garage egress check",
        "garage egress log",
        "garage config show",
        "garage config path",
        "garage config schema",
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_described_in_the_operating_page(name: str) -> None:
    assert section(name), f"docs/operating.md has no section `{name}`"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_described_beside_its_command(name: str) -> None:
    own = [p for p in COMMANDS[name].params if isinstance(p, click.Option) and p.name not in {"as_json", "config_path"}]
    words = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", section(name)))
    assert [option.opts for option in own if not words & set(option.opts)] == []


def test_the_operating_page_describes_no_command_that_is_gone() -> None:
    described = set(re.findall(r"^#+ `(garage [a-z ]+)`$", PAGE, flags=re.MULTILINE))
    assert described == set(COMMANDS)


def test_every_command_group_and_option_has_help() -> None:
    assert [name for name, command in COMMANDS.items() if not command.help] == []
    assert [group.name for group in groups() if not group.help] == []
    silent = [
        f"{name} {option.opts}"
        for name, command in COMMANDS.items()
        for option in command.params
        if isinstance(option, click.Option) and not option.help
    ]
    assert silent == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_answers_in_json_and_takes_a_configuration(name: str) -> None:
    spellings = {spelling for parameter in COMMANDS[name].params for spelling in parameter.opts}
    assert {"--json", "--config"} <= spellings


def test_the_words_that_options_accept_are_the_library_s() -> None:
    assert get_args(CorpusClass) == choices.CLASSES
    assert get_args(Trust) == choices.TRUSTS
    assert get_args(get_args(Part.__annotations__["direction"])[0]) == choices.DIRECTIONS
    assert get_args(SourceKind) == choices.KINDS
    assert get_args(Egress) == choices.EGRESS
    assert get_args(Mode) == choices.MODES
    assert tuple(Purpose) == choices.PURPOSES
    assert get_args(Model.model_fields["pooling"].annotation) == choices.POOLINGS


def test_an_unknown_key_in_the_configuration_ends_in_one_sentence_and_exit_code_2(
    garage: Any, garage_home: Any
) -> None:
    garage_home.config_path.write_text("surces: []\n", encoding="utf-8")
    answer = garage("status")
    assert answer.code == 2
    assert "unknown key 'surces' (nearest known: 'sources')" in answer.err
    assert "Traceback" not in answer.err
    assert answer.out == ""


def test_a_configuration_that_was_named_and_is_not_there_is_said_to_be_missing(garage: Any, garage_home: Any) -> None:
    answer = garage("status", "--config", garage_home.path / "other.yaml")
    assert answer.code == 2
    assert f"There is no configuration file {garage_home.path / 'other.yaml'}." in answer.err


def test_a_database_that_is_not_there_ends_in_a_sentence_and_exit_code_1(
    garage: Any, garage_home: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GARAGE_DATABASE_URL", f"postgresql://nobody@/garage?host={tmp_path}")
    answer = garage("search", "anything", "--mode", "keyword")
    assert answer.code == 1
    assert answer.err.startswith("The database cannot be reached")
    assert "GARAGE_DATABASE_URL" in answer.err
    assert "Traceback" not in answer.err


def test_an_error_is_an_object_on_standard_output_when_json_is_asked_for(garage: Any, garage_home: Any) -> None:
    answer = garage("search", "anything", "--source", "nowhere", "--json")
    assert answer.code == 2
    error = answer.data["error"]
    assert error["kind"] == "UnknownSource"
    assert error["source"] == "nowhere"
    assert error["message"] in answer.err
    assert error["hint"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "1", "--source", "\udcff"),
        ("search", "hens", "--source", "\udcff"),
        ("search", "hens", "--author", "\udcff"),
        ("authors", "merge", "\udcff", "Ada"),
        ("egress", "check", "\udcff", "--to", "http://localhost"),
        ("source", "remove", "\udcff"),
        ("source", "add", ".", "--name", "\udcff"),
    ],
)
def test_a_name_in_bytes_that_are_no_text_is_told_so(garage: Any, garage_home: Any, arguments: tuple[str, ...]) -> None:
    answer = garage(*arguments, "--json")
    assert answer.code == 2
    assert answer.data["error"]["kind"] in {"NotText", "UnknownSource"}
    assert "that should not have" not in answer.err


def test_a_failure_nobody_foresaw_is_a_sentence_too(
    garage: Any, garage_home: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr("garage.serve.state.state", fail)
    answer = garage("status")
    assert answer.code == 1
    assert "ZeroDivisionError: by nothing" in answer.err
    assert "GARAGE_DEBUG=1" in answer.err
    assert "Traceback" not in answer.err


def test_a_file_in_the_place_of_a_folder_is_named(garage: Any, plain_home: Path) -> None:
    plain_home.mkdir()
    (plain_home / "services").write_text("", encoding="utf-8")
    answer = garage("up")
    assert answer.code == 1
    assert f"{plain_home}/services: File exists." in answer.err
    assert "that should not have" not in answer.err


def test_garage_debug_shows_where_it_failed(garage: Any, garage_home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr("garage.serve.state.state", fail)
    monkeypatch.setenv("GARAGE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        garage("status")


def test_an_interruption_is_quiet_and_exits_with_130(
    garage: Any, garage_home: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("garage.serve.state.state", interrupt)
    answer = garage("status")
    assert (answer.code, answer.out, answer.err.strip()) == (130, "", "")


def test_a_reader_that_goes_away_is_no_error(garage_home: Any) -> None:
    command = [sys.executable, "-m", "garage", "config", "schema"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=CHECKOUT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert said == b""


def test_a_mistyped_command_is_answered_with_the_nearest_one(garage: Any) -> None:
    answer = garage("updat")
    assert answer.code == 2
    assert "update" in answer.err


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--help"], ("pydantic", "psycopg", "numpy", "rich", "httpx", "dagster", "llama_cpp")),
        (["search", "--help"], ("pydantic", "psycopg", "numpy", "rich", "httpx", "dagster", "llama_cpp")),
        (["search", "--mode", "keyword", "hens"], ("rich", "httpx", "ruamel", "dagster", "llama_cpp")),
        (["status"], ("rich", "httpx", "ruamel", "dagster", "llama_cpp")),
    ],
)
def test_a_command_loads_nothing_that_it_does_not_use(
    arguments: list[str], unwanted: tuple[str, ...], garage_home: Any
) -> None:
    program = (
        "import sys; from garage.serve.cli import run; code = run(sys.argv[1:]);"
        f"print([name for name in {unwanted!r} if name in sys.modules], code, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert ran.stderr.strip() == "[] 0"
