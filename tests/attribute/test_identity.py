"""Identities: what is one person however it is spelt, and what is not."""

import pytest

from garage.attribute.identity import (
    Identity,
    better_name,
    by_address,
    by_contact,
    by_name,
    identity,
    mailboxes,
    parsed,
)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("email", " Ada.Lovelace@Example.ORG ", "ada.lovelace@example.org"),
        ("email", "<ada@example.org>", "ada@example.org"),
        ("email", "ada+lists@example.org", "ada+lists@example.org"),
        ("email", "märy@exämple.net", "märy@exämple.net"),
        ("git_email", "12345+ada@users.noreply.github.com", "ada@users.noreply.github.com"),
        ("git_email", "ada@users.noreply.github.com", "ada@users.noreply.github.com"),
        ("name", "Lovelace, Ada", "ada lovelace"),
        ("name", "  ADA\tLovelace ", "ada lovelace"),
        ("name", "Allison, Timothy B.", "timothy b. allison"),
        ("name", "Ada Lovelace, Ph.D.", "ada lovelace, ph.d."),
        ("name", "Gábor", "gábor"),
        ("name", "Weiß", "weiss"),
        ("git_name", '"Ada Lovelace"', "ada lovelace"),
        ("phone", "+49 (0)30 1234-567", "+49301234567"),
        ("phone", "0049 30 1234567", "+49301234567"),
        ("phone", "tel:+1-555-010-9999", "+15550109999"),
        ("phone", "(555) 010-9999 ext. 12", "5550109999"),
        ("phone", "+٤٩١٢٣٤٥٦", "+49123456"),
        ("handle", "@Ada", "ada"),
    ],
)
def test_spellings_of_one_identity_have_one_value(kind: str, text: str, value: str) -> None:
    assert identity(kind, text) == Identity(kind, value)
    assert identity(kind, value) == Identity(kind, value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("email", "ada"), ("email", "@"), ("email", ""), ("name", " "), ("phone", "none"), ("handle", "@")],
)
def test_what_tells_nobody_apart_is_no_identity(kind: str, text: str) -> None:
    assert identity(kind, text) is None


def test_an_identity_is_written_with_its_kind() -> None:
    found = parsed("email: Ada@Example.org")
    assert found == Identity("email", "ada@example.org")
    assert str(found) == "email:ada@example.org"
    assert parsed("fax:1234567") is None
    assert parsed("email:nobody") is None


def test_mail_and_git_know_the_same_people_by_their_address() -> None:
    mail, git = by_address("ada@example.org", "Ada"), by_address("ADA@example.org", git=True)
    assert mail is not None
    assert git is not None
    assert mail.identities == git.identities[::-1]
    assert (mail.name, git.name) == ("Ada", "ada@example.org")
    assert by_address("no address") is None


def test_a_name_is_remembered_as_such() -> None:
    person = by_name("Lovelace, Ada")
    assert person is not None
    assert (person.identities, person.name) == ((Identity("name", "ada lovelace"),), "Ada Lovelace")
    assert by_name("  ") is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("+1 555 010 9999", "phone"),
        ("55512", "phone"),
        ("12", "handle"),
        ("ada@example.org", "email"),
        ("ada_l", "handle"),
        ("Ada Lovelace", "name"),
    ],
)
def test_a_contact_is_known_by_what_it_looks_like(text: str, kind: str) -> None:
    person = by_contact(text)
    assert person is not None
    assert person.identities[0].kind == kind


@pytest.mark.parametrize(
    ("written", "people"),
    [
        (["Ada Lovelace <ada@example.org>"], [("email:ada@example.org", "Ada Lovelace")]),
        (["LastßlName, FirstName <c@example.com>"], [("email:c@example.com", "FirstName LastßlName")]),
        (
            ["Mikel Lindsaar <test@lindsaar.net>, jack@lindsar.com"],
            [("email:test@lindsaar.net", "Mikel Lindsaar"), ("email:jack@lindsar.com", "jack@lindsar.com")],
        ),
        (
            ["jack@lindsar.com, Mikel Lindsaar <test@lindsaar.net>"],
            [("email:jack@lindsar.com", "jack@lindsar.com"), ("email:test@lindsaar.net", "Mikel Lindsaar")],
        ),
        (["alice@example.com <bob@example.com>"], [("email:bob@example.com", "alice@example.com")]),
        (["Allison, Timothy B."], [("name:timothy b. allison", "Timothy B. Allison")]),
        (["xxxxx@xxxxx <matmail>"], [("name:xxxxx@xxxxx", "xxxxx@xxxxx")]),
        (["Ada <ada@example.org>", "ADA@example.org"], [("email:ada@example.org", "Ada")]),
        (["", " "], []),
    ],
)
def test_the_people_of_a_header_are_told_apart(written: list[str], people: list[tuple[str, str]]) -> None:
    assert [(str(person.identities[0]), person.name) for person in mailboxes(written)] == people


@pytest.mark.parametrize(
    ("best", "others"),
    [
        ("Ada Lovelace", ["ada@example.org", "ada lovelace", "ADA LOVELACE", "Ada", "ada_l", "alovelace99"]),
        ("张先生", ["baoguan@hotmail.com"]),
        ("Ada King Lovelace", ["Ada Lovelace"]),
    ],
)
def test_the_name_that_is_shown_does_not_depend_on_the_order(best: str, others: list[str]) -> None:
    for other in others:
        assert better_name(best, other) == better_name(other, best) == best
