from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import pytest

from garage.config import CorpusClass, Egress
from garage.inference.policy import IN_PROCESS, Destination, Obstacle, Purpose, Reason, Zone
from garage.inference.transfers import Account, Content, Origin, transfer

LOOPBACK = Destination("http://localhost:11434", Zone.LOOPBACK)
LAN = Destination("http://gpu.example:11434", Zone.LAN)


class Recorder:
    def __init__(self) -> None:
        self.batches: list[list[Account]] = []

    def __call__(self, accounts: Sequence[Account]) -> None:
        self.batches.append(list(accounts))


@pytest.fixture
def record() -> Recorder:
    return Recorder()


def origin(number: int, source: str, policy: Egress, kind: CorpusClass = "document") -> Origin:
    return Origin(number, source, policy, kind)


BATCH = [
    Content((origin(1, "manuals", "lan"),), "one"),
    Content((origin(2, "notes", "local_only"),), "two"),
    Content((origin(3, "manuals", "lan"),), "three"),
    Content((origin(4, "manuals", "lan", "communication"),), "four"),
    Content((origin(5, "code", "remote", "code"),), "five"),
]


def test_a_batch_is_divided_in_order_and_counted(record: Recorder) -> None:
    done = transfer(BATCH, purpose=Purpose.EMBEDDING, destination=LAN, record=record)
    assert done.cleared == ("one", "three", "five")
    assert [(content.item, decision.reason) for content, decision in done.withheld] == [
        ("two", Reason.POLICY_LOCAL_ONLY),
        ("four", Reason.CLASS_COMMUNICATION),
    ]
    assert done.counts == {"sent": 3, "withheld": 2}
    assert done.reasons == {Reason.POLICY_LOCAL_ONLY: 1, Reason.CLASS_COMMUNICATION: 1}


def test_the_account_of_a_batch_is_recorded_once_by_source_and_class(record: Recorder) -> None:
    transfer(BATCH, purpose=Purpose.FACTS, destination=LAN, record=record)
    (batch,) = record.batches
    assert {(row.purpose, row.destination, row.zone) for row in batch} == {("facts", "http://gpu.example:11434", "lan")}
    assert [(row.source, row.corpus_class, row.allowed, row.reason, row.items) for row in batch] == [
        ("code", "code", True, "allowed_lan", 1),
        ("manuals", "communication", False, "class_communication", 1),
        ("manuals", "document", True, "allowed_lan", 2),
        ("notes", "document", False, "policy_local_only", 1),
    ]


def test_an_account_has_no_room_for_content() -> None:
    assert {field.name for field in fields(Account)} == {
        "purpose", "destination", "zone", "source", "corpus_class", "allowed", "reason", "items",
    }  # fmt: skip


def test_what_was_made_of_several_documents_is_withheld_when_one_of_them_would_be(record: Recorder) -> None:
    open_, confined = origin(1, "manuals", "remote"), origin(2, "letters", "remote", "communication")
    batch = [Content((open_, open_), "open"), Content((open_, confined), "mixed")]
    done = transfer(batch, purpose=Purpose.ANSWERS, destination=LAN, record=record)
    assert done.cleared == ("open",)
    assert done.reasons == {Reason.CLASS_COMMUNICATION: 1}
    # The mixed item is told of under both of its sources, each document of a source not once more.
    assert [(row.source, row.allowed, row.items) for row in record.batches[0]] == [
        ("letters", False, 1),
        ("manuals", False, 1),
        ("manuals", True, 1),
    ]


def test_a_model_in_this_process_gets_everything_and_nothing_is_recorded(record: Recorder) -> None:
    done = transfer(BATCH, purpose=Purpose.EMBEDDING, destination=IN_PROCESS, record=record)
    assert done.counts == {"sent": 5, "withheld": 0}
    assert record.batches == []


def test_what_another_program_on_this_machine_gets_is_recorded(record: Recorder) -> None:
    done = transfer(BATCH, purpose=Purpose.EMBEDDING, destination=LOOPBACK, record=record)
    assert done.counts == {"sent": 5, "withheld": 0}
    assert sum(row.items for row in record.batches[0]) == 5


def test_a_destination_that_may_not_be_contacted_gets_nothing_and_that_is_recorded(record: Recorder) -> None:
    obstacle = Obstacle(Reason.ORIGIN_NOT_CONFIGURED, "it was not configured")
    destination = Destination("https://evil.example:443", Zone.REMOTE, obstacle=obstacle)
    done = transfer(BATCH, purpose=Purpose.MCP, destination=destination, record=record)
    assert done.cleared == ()
    assert done.reasons == {Reason.ORIGIN_NOT_CONFIGURED: 5}
    assert {(row.destination, row.allowed) for row in record.batches[0]} == {("https://evil.example:443", False)}


def test_content_of_unknown_origin_stays_and_that_is_recorded(record: Recorder) -> None:
    done = transfer([Content((), "text")], purpose=Purpose.REST, destination=LOOPBACK, record=record)
    assert done.reasons == {Reason.UNKNOWN_CONTENT: 1}
    assert [(row.source, row.corpus_class, row.items) for row in record.batches[0]] == [("", "", 1)]


def test_an_empty_batch_is_no_transfer(record: Recorder) -> None:
    empty: list[Content[str]] = []
    assert transfer(empty, purpose=Purpose.REST, destination=LAN, record=record).counts == {"sent": 0, "withheld": 0}
    assert record.batches == []


def test_nothing_is_cleared_that_could_not_be_recorded() -> None:
    def fail(accounts: Sequence[Account]) -> None:
        raise ConnectionError("the database is gone")

    with pytest.raises(ConnectionError):
        transfer(BATCH, purpose=Purpose.EMBEDDING, destination=LAN, record=fail)
