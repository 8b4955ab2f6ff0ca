"""Which signal decides, what each says, and who is credited with what."""

from typing import Any

import pytest

from garage.attribute.signals import attribute
from garage.store.git import Contributor

ADA = Contributor("Ada Lovelace", "ada@example.org", 4)
MARY = Contributor("Mary Somerville", "mary@example.net", 6)
MAIL: dict[str, Any] = {"extractor": "mail", "sender": "Mary <mary@example.net>", "recipients": ["ada@example.org"]}


def told(decided: Any) -> dict[str, tuple[str | None, str]]:
    return {one["signal"]: (one["said"], one["evidence"]) for one in decided.signals}


def winner(decided: Any) -> str:
    (won,) = [one["signal"] for one in decided.signals if one["won"] and one["signal"] != "class"]
    return str(won)


def people(decided: Any) -> dict[tuple[str, str], tuple[float, str]]:
    return {
        (":".join(c.who.identities[0]) if c.who.identities else "self", c.role): (round(c.confidence, 2), c.evidence)
        for c in decided.credits
    }


def test_git_goes_before_what_the_file_says_and_that_before_its_folder(facts: Any, rules: Any) -> None:
    mine = rules("email:ada@example.org")
    everything = facts("Books/a.pdf", author="Mary Somerville", history=(MARY, ADA))
    decided = attribute(everything, mine)
    assert (decided.trust, winner(decided)) == ("authored", "git")
    assert told(decided) == {
        "git": ("authored", "git-log:self-commits:4/10"),
        "metadata": ("reference", "metadata:author:Mary Somerville"),
        "path": ("reference", "path-rule:Books/"),
        "source": ("authored", "source-default"),
        "class": ("document", "class:source-default"),
    }
    assert [one["signal"] for one in decided.signals] == ["git", "metadata", "path", "source", "class"]
    without_git = attribute(facts("Books/a.pdf", author="Ada Lovelace"), mine)
    assert (without_git.trust, winner(without_git)) == ("authored", "metadata")
    by_folder = attribute(facts("Books/a.pdf", author="python-docx"), mine)
    assert (by_folder.trust, winner(by_folder)) == ("reference", "path")
    assert told(by_folder)["metadata"] == (None, "metadata:tool:python-docx")
    by_source = attribute(facts("a.pdf"), rules(default_trust="received"))
    assert (by_source.trust, winner(by_source)) == ("received", "source")
    assert told(by_source)["path"] == (None, "path-rule:none")


def test_a_file_of_others_in_a_repository_is_reference(facts: Any, rules: Any) -> None:
    decided = attribute(facts(history=(MARY,)), rules("email:ada@example.org"))
    assert (decided.trust, told(decided)["git"]) == ("reference", ("reference", "git-log:self-commits:0/6"))
    assert people(decided) == {("git_email:mary@example.net", "author"): (1.0, "git-log:commits:6/6")}


@pytest.mark.parametrize(
    "identity", ["email:ada@example.org", "git_email:ADA@example.org", "git_name:lovelace, ada", "email:x@y.z"]
)
def test_the_owner_is_known_among_committers_by_what_is_configured(facts: Any, rules: Any, identity: str) -> None:
    decided = attribute(facts(history=(ADA, MARY)), rules(identity))
    assert decided.trust == ("reference" if identity == "email:x@y.z" else "authored")
    assert (("self", "author") in people(decided)) is (identity != "email:x@y.z")


def test_a_name_tells_the_committer_only_where_nothing_better_is_known(facts: Any, rules: Any) -> None:
    elsewhere = Contributor("Ada Lovelace", "ada@namesake.example", 1)
    assert attribute(facts(history=(elsewhere,)), rules()).trust == "authored"
    assert attribute(facts(history=(elsewhere,)), rules("email:ada@example.org")).trust == "reference"


def test_who_only_committed_the_work_of_others_wrote_nothing(facts: Any, rules: Any) -> None:
    decided = attribute(
        facts(history=(MARY, Contributor("Ada Lovelace", "ada@example.org", 0))), rules("email:ada@example.org")
    )
    assert told(decided)["git"] == ("reference", "git-log:self-commits:0/6")
    assert people(decided)["self", "committer"] == (1.0, "git-log:committer")


def test_a_history_that_is_cut_off_or_missing_says_nothing(facts: Any, rules: Any) -> None:
    assert told(attribute(facts(history=()), rules()))["git"] == (None, "git-log:history-cut-off")
    assert told(attribute(facts(), rules()))["git"] == (None, "git-log:untracked")


def test_without_a_word_on_the_owner_nobody_can_be_told_from_them(facts: Any, rules: Any) -> None:
    nobody = rules(name="")
    decided = attribute(facts(author="Mary Somerville", history=(MARY,)), nobody)
    assert (decided.trust, winner(decided)) == ("authored", "source")
    assert told(decided)["git"] == (None, "git-log:owner-unknown")
    assert told(decided)["metadata"] == (None, "metadata:author:Mary Somerville owner-unknown")
    assert {role for _, role in people(decided)} == {"author"}


def test_one_of_several_authors_is_enough(facts: Any, rules: Any) -> None:
    decided = attribute(facts(author="Mary Somerville; Lovelace, Ada"), rules())
    assert (decided.trust, told(decided)["metadata"][1]) == ("authored", "metadata:author:Ada Lovelace")
    assert people(decided) == {
        ("name:mary somerville", "author"): (0.8, "metadata:author:Mary Somerville"),
        ("self", "author"): (0.8, "metadata:author:Ada Lovelace"),
    }
    many = attribute(facts(author="Ann Bo; Cy Di; Ed Fo; Gu Hi; Jo Ki"), rules())
    assert told(many)["metadata"] == ("reference", "metadata:author:Ann Bo, Cy Di, Ed Fo and 2 more")


@pytest.mark.parametrize("author", ["ada@example.org", "Countess <ada@example.org>", "ADA LOVELACE", "alovelace"])
def test_the_owner_signs_with_name_address_or_account(facts: Any, rules: Any, author: str) -> None:
    mine = rules("email:ada@example.org", "handle:alovelace")
    assert attribute(facts(author=author), mine).trust == "authored"


def test_the_sender_of_a_mail_decides_and_not_the_author_it_names(facts: Any, rules: Any) -> None:
    mine = rules("email:ada@example.org")
    received = attribute(facts(author="Ada Lovelace", **MAIL), mine)
    assert (received.corpus_class, received.trust) == ("communication", "received")
    assert told(received)["sender"] == ("received", "message-sender:mary@example.net")
    assert "metadata" not in told(received)
    assert people(received) == {
        ("email:mary@example.net", "sender"): (1.0, "message-sender:mary@example.net"),
        ("self", "recipient"): (1.0, "message-recipient:self"),
    }
    sent = attribute(facts(extractor="mbox", sender="Ada <Ada@Example.org>", cc=["Bob <bob@example.com>"]), mine)
    assert (sent.trust, told(sent)["sender"]) == ("authored", ("authored", "message-sender:self"))
    assert ("email:bob@example.com", "cc") in people(sent)


def test_a_namesake_is_not_the_owner_once_an_address_is_configured(facts: Any, rules: Any) -> None:
    mail = facts(extractor="mail", sender="Ada Lovelace <ada@namesake.example>")
    assert attribute(mail, rules("email:ada@example.org")).trust == "received"
    assert attribute(mail, rules()).trust == "authored"


def test_git_wins_over_the_sender_too(facts: Any, rules: Any) -> None:
    decided = attribute(facts(history=(ADA,), **MAIL), rules("email:ada@example.org"))
    assert (decided.corpus_class, decided.trust, winner(decided)) == ("communication", "authored", "git")


def test_a_mail_without_a_sender_goes_by_its_folder_and_its_source(facts: Any, rules: Any) -> None:
    decided = attribute(facts("Notes/draft.eml", extractor="mail"), rules(default_trust="received"))
    assert (decided.trust, winner(decided)) == ("authored", "path")
    assert told(decided)["sender"] == (None, "message-sender:none")
    assert attribute(facts(extractor="mail"), rules(default_trust="received")).trust == "received"


def test_a_conversation_is_the_owners_when_nobody_else_speaks(facts: Any, rules: Any) -> None:
    talk = {"kind": "conversation", "extractor": "messages", "participants": ["+1 555 010 9999", "mary@example.net"]}
    decided = attribute(facts(speakers=(("Me", "sent", 3), ("+15550109999", "received", 2)), **talk), rules())
    assert (decided.corpus_class, decided.trust) == ("communication", "received")
    assert told(decided)["sender"] == ("received", "conversation:self-messages:3/5")
    assert people(decided) == {
        ("phone:+15550109999", "sender"): (1.0, "message-sender:+15550109999"),
        ("email:mary@example.net", "recipient"): (1.0, "message-recipient:mary@example.net"),
        ("self", "sender"): (1.0, "conversation:self"),
    }
    alone = attribute(facts(speakers=(("Me", "sent", 3),), **talk), rules())
    assert (alone.trust, told(alone)["sender"][1]) == ("authored", "conversation:self-messages:3/3")
    silent = attribute(facts(speakers=(("+15550109999", "received", 2),), **talk), rules())
    assert people(silent)["self", "recipient"] == (1.0, "conversation:self")
    assert told(attribute(facts(**talk), rules()))["sender"] == (None, "conversation:no-messages")


def test_the_name_of_the_sources_own_folder_counts_as_well(facts: Any, rules: Any) -> None:
    decided = attribute(facts("emma.epub"), rules(folder="Books"))
    assert (decided.trust, told(decided)["path"][1]) == ("reference", "path-rule:Books/ (of the source's own folder)")
    assert attribute(facts("Notes/emma.md"), rules(folder="Books")).trust == "authored"
    assert attribute(facts("Research/bees.md"), rules(folder="Documents")).trust == "authored"
    assert told(attribute(facts("Research/bees.md"), rules(folder="Documents")))["path"][0] == "authored"


def test_a_committer_without_an_address_is_known_by_name(facts: Any, rules: Any) -> None:
    decided = attribute(facts(history=(Contributor("J. Random", "", 1), Contributor("", "svn", 1))), rules())
    assert set(people(decided)) == {("git_name:j. random", "author"), ("git_name:svn", "author")}
