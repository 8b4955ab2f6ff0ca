"""The signals that tell whose a document is, in the order in which they are asked; the first that speaks decides.

1. `git`: who wrote the commits of the file. The owner among them: authored, else reference.
2. `metadata`: the author that the file names, tools left out. The owner: authored, anybody else: reference. In mail and
   conversations it is `sender`. The owner: authored, anybody else: received.
3. `path`: what the folders on its way are called.
4. `source`: what the configuration says of the source.

Without a word on who the owner is, `git` and `metadata` cannot tell and leave it to the others. Each signal leaves its
evidence, silent ones too: why it did not speak.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from garage.attribute.classes import COMMUNICATIONS, class_of
from garage.attribute.identity import Person, by_address, by_contact, by_name, mailboxes
from garage.attribute.names import authors
from garage.attribute.owner import Owner
from garage.attribute.rules import PathRules
from garage.store.attribution import Attribution, Credit, DocumentFacts
from garage.store.authors import OWNER, Who
from garage.store.git import Contributor

_SHOWN = 3  # names in a piece of evidence
_PEOPLE = 100  # credits of one document and signal
_SIGNED = 0.8  # confidence in a name that a file bears: anybody may have written it there


@dataclass(frozen=True, slots=True)
class Rules:
    """What is the same for all documents of a source.

    `folder` is the name of the source's root, '' where it does not count.
    """

    owner: Owner
    paths: PathRules
    default_class: str
    default_trust: str
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Signal:
    """What a signal says of a document: a trust, or None when it is silent."""

    signal: str
    said: str | None
    evidence: str
    credits: tuple[Credit, ...] = ()


def attribute(document: DocumentFacts, rules: Rules) -> Attribution:
    """Class, trust and people of a document, with what each signal said."""
    asked = tuple(_signals(document, rules))
    winner = next(signal for signal in asked if signal.said is not None)
    corpus_class, why = class_of(
        kind=document.kind, extractor=document.extractor, uri=document.uri, default=rules.default_class
    )
    told: list[dict[str, Any]] = [
        {"signal": one.signal, "said": one.said, "evidence": one.evidence, "won": one is winner} for one in asked
    ]
    told.append({"signal": "class", "said": corpus_class, "evidence": f"class:{why}", "won": True})
    return Attribution(
        document=document,
        corpus_class=corpus_class,
        trust=str(winner.said),
        signals=tuple(told),
        credits=tuple(credit for one in asked for credit in one.credits),
    )


def _signals(document: DocumentFacts, rules: Rules) -> Iterator[Signal]:
    yield _git(document.history, rules.owner)
    if document.kind == "conversation":
        yield _conversation(document, rules.owner)
    elif document.extractor in COMMUNICATIONS:
        yield _mail(document, rules.owner)
    else:
        yield _metadata(document.author, rules.owner)
    yield _path(document.uri, rules)
    yield Signal("source", rules.default_trust, "source-default")


def _git(history: tuple[Contributor, ...] | None, owner: Owner) -> Signal:
    if history is None:
        return Signal("git", None, "git-log:untracked")
    if not history:
        return Signal("git", None, "git-log:history-cut-off")
    total = sum(person.commits for person in history)
    known = [(owner.committed(name=person.name, email=person.email), person) for person in history]
    mine = sum(person.commits for own, person in known if own)
    known.sort(key=lambda pair: not pair[0])  # the owner is among those that count, however many there are
    credits_ = tuple(
        Credit(
            OWNER if own else _committer(person.name, person.email),
            "author" if person.commits else "committer",
            person.commits / total if person.commits else 1.0,
            f"git-log:commits:{person.commits}/{total}" if person.commits else "git-log:committer",
        )
        for own, person in known[:_PEOPLE]
        if person.name or person.email
    )
    if not owner.commits:
        return Signal("git", None, "git-log:owner-unknown", credits_)
    return Signal("git", "authored" if mine else "reference", f"git-log:self-commits:{mine}/{total}", credits_)


@lru_cache(10_000)
def _committer(name: str, email: str) -> Who:
    found = by_address(email, name, git=True) or by_name(name or email, git=True)
    return _who(found) if found else Who((("git_name", "unknown"),), "unknown")


def _metadata(field: Any, owner: Owner) -> Signal:  # noqa: ANN401 - whatever JSON holds
    found = authors(field)
    mine = [person for person in found.people if owner.wrote(person)]
    if not found.people:
        return Signal(
            "metadata", None, f"metadata:tool:{_listed(found.tools)}" if found.tools else "metadata:no-author"
        )
    evidence = f"metadata:author:{_listed(person.name for person in mine or found.people)}"
    credits_ = tuple(
        Credit(OWNER if person in mine else _who(person), "author", _SIGNED, f"metadata:author:{person.name}")
        for person in found.people
    )
    if not mine and not owner.signs:
        return Signal("metadata", None, f"{evidence} owner-unknown", credits_)
    return Signal("metadata", "authored" if mine else "reference", evidence, credits_)


def _mail(document: DocumentFacts, owner: Owner) -> Signal:
    senders = mailboxes(_texts(document.sender))
    to, cc = mailboxes(_texts(document.recipients)), mailboxes(_texts(document.cc))
    mine = [person for person in senders if owner.is_mailbox(person)]
    credits_ = (
        *_credits(senders, "sender", owner),
        *_credits(to, "recipient", owner),
        *_credits(cc, "cc", owner),
    )
    if mine:
        return Signal("sender", "authored", "message-sender:self", credits_)
    if senders:
        shown = _listed(person.identities[0].value for person in senders)
        return Signal("sender", "received", f"message-sender:{shown}", credits_)
    return Signal("sender", None, "message-sender:none", credits_)


def _conversation(document: DocumentFacts, owner: Owner) -> Signal:
    total = sum(count for _, _, count in document.speakers)
    mine = 0
    senders: list[Person] = []
    sent = False
    for name, direction, count in document.speakers:
        person = by_contact(name) if name and direction != "sent" else None
        if direction == "sent" or (person is not None and owner.is_mailbox(person)):
            mine += count
            sent = True
        elif person is not None:
            senders.append(person)
    spoke = {person.identities[0] for person in senders}
    listeners = [
        p for text in _texts(document.participants) if (p := by_contact(text)) and p.identities[0] not in spoke
    ]
    credits_ = [*_credits(senders, "sender", owner), *_credits(listeners, "recipient", owner)]
    credits_.append(Credit(OWNER, "sender" if sent else "recipient", 1.0, "conversation:self"))
    if not total:
        return Signal("sender", None, "conversation:no-messages", tuple(credits_))
    said = "authored" if mine == total else "received"
    return Signal("sender", said, f"conversation:self-messages:{mine}/{total}", tuple(credits_))


def _path(uri: str, rules: Rules) -> Signal:
    rule = rules.paths.match(uri)
    where = ""
    if rule is None and rules.folder:
        rule, where = rules.paths.match(f"{rules.folder}/{uri}"), " (of the source's own folder)"
    if rule is None:
        return Signal("path", None, "path-rule:none")
    vendored = "vendored:" if rule.vendored else ""
    return Signal("path", rule.trust, f"path-rule:{vendored}{rule.glob}{where}")


def _credits(people: Iterable[Person], role: str, owner: Owner) -> Iterator[Credit]:
    for person, _ in zip(people, range(_PEOPLE), strict=False):
        mine = owner.is_mailbox(person)
        evidence = f"message-{role}:{'self' if mine else person.identities[0].value}"
        yield Credit(OWNER if mine else _who(person), role, 1.0, evidence)


def _who(person: Person) -> Who:
    return Who(tuple((one.kind, one.value) for one in person.identities), person.name)


def _texts(value: Any) -> list[str]:  # noqa: ANN401 - whatever JSON holds
    return [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]


def _listed(names: Iterable[str]) -> str:
    everyone = list(names)
    more = f" and {len(everyone) - _SHOWN} more" if len(everyone) > _SHOWN else ""
    return ", ".join(everyone[:_SHOWN]) + more
