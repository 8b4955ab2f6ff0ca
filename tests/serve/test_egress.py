"""`garage egress`: what may leave, and what did."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import psycopg
import pytest

from garage.config import Config, CorpusClass
from garage.inference.policy import Purpose, Reason, Zone
from garage.store.schema import migrations

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "operating.md").read_text(encoding="utf-8")
SERVER = "http://10.20.30.40:11434"
FAR = "http://203.0.113.7"
STAYS = "a communication never leaves this machine, whatever its source's policy"


@pytest.fixture
def garden(garage_home: Any, stocked: Config, tmp_path: Path) -> Config:
    """A source of policy `lan` with two documents and a communication."""
    config: Config = garage_home.configure(
        {"name": "garden", "root": tmp_path / "garden", "egress": "lan"},
        egress={"origins": [SERVER, FAR, "http://garage-test.invalid"]},
    )
    with psycopg.connect(garage_home.database_url) as conn:
        conn.execute("update garage.documents set corpus_class = 'communication' where uri = 'people.md'")
    return config


def test_a_check_says_for_every_class_what_would_happen_and_why(garage: Any, garden: Config) -> None:
    answer = garage("egress", "check", "garden", "--to", f"{SERVER}/v1/embeddings")
    assert answer.code == 1
    assert answer.out.splitlines() == [
        "From garden (policy lan) to http://10.20.30.40:11434 (lan, at 10.20.30.40):",
        "  communication, 1 document: withheld (class_communication)",
        f"    For embedding: {STAYS}, and the destination is in the local network.",
        "  document, 2 documents: may go (allowed_lan)",
        "    For embedding: the destination is in the local network, and the policy of the source goes so far.",
    ]
    assert answer.err == ""


def test_one_class_and_one_purpose_can_be_asked_about(garage: Any, garden: Config) -> None:
    answer = garage("egress", "check", "garden", "--to", SERVER, "--class", "document", "--purpose", "mcp", "--json")
    assert answer.code == 0
    assert answer.data == {
        "source": "garden",
        "policy": "lan",
        "destination": SERVER,
        "zone": "lan",
        "addresses": ["10.20.30.40"],
        "purpose": "mcp",
        "allowed": True,
        "classes": [
            {
                "corpus_class": "document",
                "documents": 2,
                "allowed": True,
                "reason": "allowed_lan",
                "explanation": "For mcp: the destination is in the local network, and the policy of the source goes"
                " so far.",
            }
        ],
    }
    unused = garage("egress", "check", "garden", "--to", SERVER, "--class", "code", "--json").data
    assert [(v["corpus_class"], v["documents"], v["allowed"]) for v in unused["classes"]] == [("code", 0, True)]


@pytest.mark.parametrize(
    ("url", "code", "reasons"),
    [
        ("http://localhost:11434", 0, {"allowed_loopback"}),
        ("http://[::1]:11434/v1", 0, {"allowed_loopback"}),
        (FAR, 1, {"class_communication", "policy_lan"}),
        ("http://203.0.113.7:8080", 1, {"origin_not_configured"}),
        ("https://203.0.113.7", 1, {"origin_not_configured"}),
        ("http://me:secret@localhost:11434", 1, {"credentials_in_url"}),
        ("http://[::ffff:127.0.0.1]:11434", 1, {"address_ambiguous"}),
        ("http://garage-test.invalid", 1, {"name_not_resolved"}),
        ("localhost:11434", 1, {"scheme_unsupported"}),
        ("no url", 1, {"scheme_unsupported"}),
    ],
)
def test_each_destination_is_decided_for_all_classes(
    garage: Any, garden: Config, url: str, code: int, reasons: set[str]
) -> None:
    answer = garage("egress", "check", "garden", "--to", url, "--json")
    assert answer.code == code
    assert {verdict["reason"] for verdict in answer.data["classes"]} == reasons
    assert "secret" not in answer.out


def test_a_source_without_documents_is_judged_by_its_default_class(
    garage: Any, garage_home: Any, tmp_path: Path
) -> None:
    garage_home.configure({"name": "letters", "root": tmp_path, "class": "communication"})
    answer = garage("egress", "check", "letters", "--to", "http://127.0.0.1:9", "--json")
    assert answer.code == 0
    assert [(v["corpus_class"], v["documents"]) for v in answer.data["classes"]] == [("communication", 0)]


def test_a_source_is_local_only_unless_something_else_is_said(garage: Any, stocked: Config, garage_home: Any) -> None:
    text = garage_home.config_path.read_text(encoding="utf-8")
    garage_home.config_path.write_text(f"{text}egress: {{origins: ['{SERVER}']}}\n", encoding="utf-8")
    answer = garage("egress", "check", "garden", "--to", SERVER)
    assert answer.code == 1
    assert "document, 3 documents: withheld (policy_local_only)" in answer.out


def test_a_check_sends_and_records_nothing(garage: Any, garden: Config) -> None:
    garage("egress", "check", "garden", "--to", SERVER)
    assert garage("egress", "log", "--json").data == {"transfers": []}


def test_an_unknown_source_is_a_bad_argument(garage: Any, garden: Config) -> None:
    answer = garage("egress", "check", "gardn", "--to", SERVER)
    assert answer.code == 2
    assert answer.err.startswith("There is no source 'gardn'.\nKnown sources: garden.")


def test_the_log_lists_what_went_and_what_was_withheld(garage: Any, garden: Config, garage_home: Any) -> None:
    with psycopg.connect(garage_home.database_url) as conn:
        for kind, allowed, reason, items, age in (
            ("document", True, "allowed_lan", 1200, "2 hours"),
            ("communication", False, "class_communication", 7, "3 days"),
        ):
            conn.execute(
                "insert into garage.egress_audits (last_at, purpose, destination, zone, source, corpus_class, allowed,"
                " reason, items) values (now() - %s::interval, 'embedding', %s, 'lan', 'garden', %s, %s, %s, %s)",
                (age, SERVER, kind, allowed, reason, items),
            )
    assert [re.split("  +", line) for line in garage("egress", "log").out.splitlines()] == [
        ["LAST", "ITEMS", "SOURCE", "CLASS", "PURPOSE", "DESTINATION", "ZONE", "WHAT", "REASON"],
        ["2 hours ago", "1,200", "garden", "document", "embedding", SERVER, "lan", "sent", "allowed_lan"],
        ["3 days ago", "7", "garden", "communication", "embedding", SERVER, "lan", "withheld", "class_communication"],
    ]
    (row,) = garage("egress", "log", "-n", "1", "--json").data["transfers"]
    assert (row["items"], row["allowed"], row["transfers"]) == (1200, True, 1)


def test_an_empty_log_says_so(garage: Any, garage_home: Any) -> None:
    answer = garage("egress", "log")
    assert (answer.code, answer.out) == (0, "No content was handed to another program, and none was withheld.\n")


@pytest.mark.parametrize(
    "origin",
    [
        "http://gpu.example:8080/v1",
        "http://me@gpu.example",
        "ftp://gpu.example",
        "gpu.example:8080",
        "http://*.example",
        "http://bücher.example",
        "http://gpu.example:123456",
        "http://gpu.example?x",
        "",
    ],
)
def test_an_origin_in_the_configuration_is_a_scheme_a_host_and_a_port(
    garage: Any, garage_home: Any, origin: str
) -> None:
    garage_home.config_path.write_text(f"egress: {{origins: ['{origin}']}}\n", encoding="utf-8")
    answer = garage("egress", "log")
    assert answer.code == 2
    assert "egress.origins.0" in answer.err


@pytest.mark.parametrize("code", Reason)
def test_every_reason_is_explained_in_the_operating_page(code: str) -> None:
    assert f"`{code}`" in PAGE


def test_the_table_takes_the_words_that_the_library_has() -> None:
    text = next(migration.text for migration in migrations() if migration.name == "egress")
    for column, words in (("purpose", Purpose), ("zone", Zone)):
        checked = text.partition(f"check ({column} in ")[2].partition("))")[0] + ")"
        assert ast.literal_eval(checked) == tuple(words)
    assert set(get_args(CorpusClass)) == {"document", "code", "communication"}


WATCHED = """
import os, sys
from garage.serve.cli import run
reached = []
def look(event, arguments):
    if event in {"socket.connect", "socket.sendto", "socket.sendmsg"} and not isinstance(arguments[1], (str, bytes)):
        reached.append((event, arguments[1]))
    elif event in {"socket.getaddrinfo", "socket.gethostbyname", "socket.bind", "urllib.Request"}:
        reached.append((event, arguments))
sys.addaudithook(look)
code = run(sys.argv[1:])
print("reached", code, reached, file=sys.stderr)
"""


def watched(program: str, arguments: list[str]) -> tuple[str, str]:
    """The exit code of a command, and the places that its process tried to reach."""
    command = [sys.executable, "-c", program, *arguments]
    ran = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    code, _, reached = ran.stderr.rpartition("reached ")[2].strip().partition(" ")
    return code, reached


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "greenhouse heating"],
        ["status"],
        ["outcomes"],
        ["egress", "check", "garden", "--to", "https://unconfigured.example"],
        ["egress", "log"],
        ["models", "list"],
    ],
    ids=" ".join,
)
def test_no_command_looks_a_name_up_or_connects_to_anything_but_this_machine(
    arguments: list[str], stocked: Config
) -> None:
    code, reached = watched(WATCHED, arguments)
    assert code in {"0", "1"}
    assert reached == "[]"


def test_a_connection_would_have_been_seen() -> None:
    contacting = "from garage.serve.webserver import answers\ncode = answers('http://127.0.0.1:9')"
    assert "('127.0.0.1', 9)" in watched(WATCHED.replace("code = run(sys.argv[1:])", contacting), [])[1]
