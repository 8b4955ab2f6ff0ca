"""The owner, as documents may name them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from garage.attribute.identity import ADDRESSES, Identity, Person, identity, parsed

_SIGNING = frozenset({"name", "git_name", "handle"})


@dataclass(frozen=True, slots=True)
class Owner:
    """What tells the owner apart, by where it is looked for; empty where the configuration names nobody.

    Attributes:
        addresses: those that mail and commits bear.
        committers: names under which the owner commits.
        names: names that stand in documents.
        contacts: phone numbers and handles.
    """

    addresses: frozenset[str] = frozenset()
    committers: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    contacts: frozenset[str] = frozenset()

    @property
    def commits(self) -> bool:
        """Whether the owner would be known among committers."""
        return bool(self.addresses or self.committers)

    @property
    def signs(self) -> bool:
        """Whether the owner would be known among the authors that documents name."""
        return bool(self.addresses or self.names)

    def committed(self, *, name: str, email: str) -> bool:
        """Whether a commit of this author is the owner's."""
        address, called = identity("git_email", email), identity("git_name", name)
        return bool(address and address.value in self.addresses) or bool(called and called.value in self.committers)

    def wrote(self, person: Person) -> bool:
        """Whether an author that a document names is the owner."""
        return any(one.value in (self.addresses if one.kind in ADDRESSES else self.names) for one in person.identities)

    def is_mailbox(self, person: Person) -> bool:
        """Whether who is named in a mail or a conversation is the owner: by address, or by name where there is none."""
        return any(
            one.value in (self.addresses if one.kind in ADDRESSES else self.contacts | self.names)
            for one in person.identities
        ) or (
            not self.addresses and (called := identity("name", person.name)) is not None and called.value in self.names
        )


def configured(name: str, identities: Iterable[str]) -> tuple[Identity, ...]:
    """The owner's identities, the name among them."""
    called = identity("name", name)
    found = [*([called] if called else []), *(one for written in identities if (one := parsed(written)))]
    return tuple(dict.fromkeys(found))


def owner(identities: Sequence[Identity]) -> Owner:
    """The owner of all these identities.

    Many bear the name of one who commits: it counts where nothing better is known. Who commits under a name signs with
    it too.
    """
    values = {
        kind: frozenset(one.value for one in identities if one.kind == kind) for kind in {i.kind for i in identities}
    }
    none: frozenset[str] = frozenset()
    addresses = frozenset(one.value for one in identities if one.kind in ADDRESSES)
    committers = values.get("git_name", none)
    if not addresses and not committers:
        committers = values.get("name", none)
    return Owner(
        addresses=addresses,
        committers=committers,
        names=frozenset(one.value for one in identities if one.kind in _SIGNING),
        contacts=values.get("phone", none) | values.get("handle", none),
    )
