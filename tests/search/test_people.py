"""Searching for what somebody wrote or sent: whom a part of a name means, and which passages are theirs."""

from dataclasses import replace
from typing import Any

import pytest

from garage.chunk.stage import passages, settings
from garage.config import Chunking
from garage.search.people import wanted
from garage.store import authors
from garage.store.authors import UnknownAuthor, Who
from garage.store.database import Database
from garage.store.search import Filters

ADA = Who((("email", "ada@example.org"),), "Ada Byron")
ANNA = Who((("phone", "+15550100"),), "Anna Maria Straße")
BOB = Who((("email", "bob@example.net"),), "Bob")
# Sender, direction and words of each message.
TALK = (
    ("+1 555 0100", "received", "I saw a heron on the pond today"),
    ("Me", "sent", "A heron, are you sure it was one"),
    ("bob@example.net", "received", "It must have been the grey heron again"),
)


@pytest.fixture
def letters(database: Database, shelf: Any) -> dict[str, int]:
    """A conversation of three, a mail of Bob's, one of Ada's, and a paper that Anna wrote."""
    content = "".join(f"{words}\n" for _, _, words in TALK)
    cut, start = [], 0
    for number, (sender, direction, words) in enumerate(TALK):
        (row,) = passages(words + "\n", title="", kind="prose", body_start=0, sizes=settings(Chunking())).rows
        said: Any = {"sender": sender, "direction": direction, "text": words, "char_end": start + len(words)}
        cut.append(replace(row, ord=number, char_start=start, **said))
        start += len(words) + 1
    shelf.put_rows(
        "talk",
        content,
        replace(passages(content, title="", kind="prose", body_start=0, sizes=settings(Chunking())), rows=cut),
        source="shelf",
        kind="conversation",
        title="Talk",
        corpus_class="communication",
        trust="received",
    )
    shelf.put("bob.eml", "The heron is back, writes Bob", corpus_class="communication", trust="authored")
    shelf.put("ada.eml", "What a heron, writes Ada", corpus_class="communication")
    shelf.put("anna.md", "On the life of the heron", trust="reference")
    with database.transaction() as conn:
        authors.set_owner(conn, "Ada Byron", [("email", "ada@example.org")])
        ids = authors.resolve(conn, [ADA, ANNA, BOB])
        for uri, who, role in (
            *(("talk", who, "sender") for who in (ADA, ANNA, BOB)),
            *(("bob.eml", BOB, "sender"), ("bob.eml", ADA, "recipient")),
            *(("ada.eml", ADA, "sender"), ("ada.eml", BOB, "recipient")),
            ("anna.md", ANNA, "author"),
        ):
            conn.execute(
                "insert into document_authors (document_id, author_id, role, confidence, evidence)"
                " select id, %s, %s, 1, '' from documents where uri = %s",
                (ids[who], role, uri),
            )
        # Bob's mail is in a repository of Ada's: whose the document is and who sent it are two things.
        for uri, said in (("bob.eml", "received"), ("ada.eml", "authored"), ("talk", "received")):
            conn.execute(
                "update documents set signals = jsonb_build_array(jsonb_build_object('signal', 'git', 'said',"
                " 'authored'), jsonb_build_object('signal', 'sender', 'said', %s::text)) where uri = %s",
                (said, uri),
            )
    shelf.ready()
    return {"ada": ids[ADA], "anna": ids[ANNA], "bob": ids[BOB]}


def found(shelf: Any, filters: Filters, mode: str) -> set[str]:
    hits = shelf.ask("heron", mode=mode, filters=filters, limit=50).hits
    return {hit.passage.text.strip() if hit.passage.uri == "talk" else hit.passage.uri for hit in hits}


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("anna", {TALK[0][2], "anna.md"}),
        ("BOB@", {TALK[2][2], "bob.eml"}),
        ("ada", {TALK[1][2], "ada.eml"}),
    ],
)
def test_what_somebody_wrote_is_found_and_of_a_conversation_their_messages_alone(
    database: Database, shelf: Any, letters: dict[str, int], written: str, expected: set[str], mode: str
) -> None:
    with database.connection() as conn:
        who = wanted(conn, [written])
    assert who.notes == ()
    filters = Filters(authors=who.authors, speakers=who.speakers, owner_speaks=who.owner_speaks)
    assert found(shelf, filters, mode) == expected


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_direction_is_a_message_s_own_and_a_mail_s_is_its_sender_s(
    shelf: Any, letters: dict[str, int], mode: str
) -> None:
    sent, received = {TALK[1][2], "ada.eml"}, {TALK[0][2], TALK[2][2], "bob.eml"}
    assert found(shelf, Filters(directions=("sent",)), mode) == sent
    assert found(shelf, Filters(directions=("received",)), mode) == received
    assert found(shelf, Filters(directions=("sent", "received")), mode) == sent | received


def test_a_hit_knows_its_authors_and_its_direction(shelf: Any, letters: dict[str, int]) -> None:
    hits = {hit.passage.text.strip(): hit.passage for hit in shelf.ask("heron", limit=50).hits}
    assert hits[TALK[1][2]].direction == "sent"
    assert hits[TALK[0][2]].sender == "+1 555 0100"
    mail = hits["The heron is back, writes Bob"]
    assert (mail.direction, mail.authors, mail.quoted) == ("received", ["Bob"], False)
    assert hits["On the life of the heron"].direction is None


def test_case_and_spelling_of_a_part_of_a_name_do_not_matter(database: Database, letters: dict[str, int]) -> None:
    with database.connection() as conn:
        for written in ("maria", "MARIA", "straße", "5550100", " Anna ", "+1 (555) 0100", "phone:001 555 0100"):
            assert wanted(conn, [written]).authors == (letters["anna"],), written


def test_a_part_of_several_names_takes_all_of_them_and_says_so(database: Database, letters: dict[str, int]) -> None:
    with database.connection() as conn:
        who = wanted(conn, ["a"])
    assert set(who.authors) == set(letters.values())
    assert who.notes == ("'a' is part of 3 authors: Ada Byron, Anna Maria Straße, Bob",)
    assert who.owner_speaks
    assert set(who.speakers or ()) == {"+1 555 0100", "bob@example.net"}


def test_several_texts_are_alternatives(database: Database, letters: dict[str, int]) -> None:
    with database.connection() as conn:
        assert set(wanted(conn, ["bob", "anna"]).authors) == {letters["bob"], letters["anna"]}
        assert wanted(conn, []).authors == ()


@pytest.mark.parametrize(
    ("written", "near"), [("ana", "Anna Maria Straße"), ("email:bop@example.net", "Bob"), ("", "")]
)
def test_somebody_unknown_is_answered_with_the_nearest(
    database: Database, letters: dict[str, int], written: str, near: str
) -> None:
    with database.connection() as conn, pytest.raises(UnknownAuthor) as caught:
        wanted(conn, [written])
    assert near in caught.value.hint
    assert caught.value.fields["author"] == written
