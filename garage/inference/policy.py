"""May this content go there? The one decision about every transfer, pure: no lookup, no connection, no database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from garage.config import CorpusClass, Egress


class Purpose(StrEnum):
    """What content is handed over for."""

    EMBEDDING = "embedding"
    FACTS = "facts"
    ANSWERS = "answers"
    MCP = "mcp"
    REST = "rest"


class Zone(StrEnum):
    """How far away a destination is, the nearest first."""

    LOCAL_PROCESS = "local_process"
    LOOPBACK = "loopback"
    LAN = "lan"
    REMOTE = "remote"

    @cached_property
    def distance(self) -> int:
        """0 for this process; larger is farther."""
        return list(Zone).index(self)


class Reason(StrEnum):
    """Why a transfer is allowed or refused. These codes are stored and printed: they are never renamed."""

    ALLOWED_LOCAL_PROCESS = "allowed_local_process"
    ALLOWED_LOOPBACK = "allowed_loopback"
    ALLOWED_LAN = "allowed_lan"
    ALLOWED_REMOTE = "allowed_remote"
    POLICY_LOCAL_ONLY = "policy_local_only"
    POLICY_LAN = "policy_lan"
    CLASS_COMMUNICATION = "class_communication"
    UNKNOWN_CONTENT = "unknown_content"
    URL_INVALID = "url_invalid"
    SCHEME_UNSUPPORTED = "scheme_unsupported"
    CREDENTIALS_IN_URL = "credentials_in_url"
    ADDRESS_AMBIGUOUS = "address_ambiguous"
    ADDRESS_UNUSABLE = "address_unusable"
    ORIGIN_NOT_CONFIGURED = "origin_not_configured"
    LOOPBACK_CLOSED = "loopback_closed"
    NAME_NOT_RESOLVED = "name_not_resolved"
    NAME_IS_LOOPBACK = "name_is_loopback"
    PEER_CHANGED = "peer_changed"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why nothing at all may go to a destination."""

    reason: Reason
    explanation: str


@dataclass(frozen=True, slots=True)
class Destination:
    """Where content would go: `scheme://host:port` and how far away that is.

    `addresses` are those that the host was found to have, and the only ones that a connection may be made to.
    """

    origin: str
    zone: Zone
    addresses: tuple[str, ...] = ()
    obstacle: Obstacle | None = None


IN_PROCESS = Destination("in process", Zone.LOCAL_PROCESS)
"""A model that runs in this process: content given to it goes nowhere."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether content may go to a destination in `zone`, and why, as a stable code and in words."""

    allowed: bool
    zone: Zone
    reason: Reason
    explanation: str


_FARTHEST: dict[Egress, Zone] = {"local_only": Zone.LOOPBACK, "lan": Zone.LAN, "remote": Zone.REMOTE}
_CLASS_FARTHEST: dict[CorpusClass, Zone] = {
    "document": Zone.REMOTE,
    "code": Zone.REMOTE,
    "communication": Zone.LOOPBACK,  # the words of others are not the owner's to give away
}
_ALLOWED = {
    Zone.LOCAL_PROCESS: (Reason.ALLOWED_LOCAL_PROCESS, "the model runs in this process"),
    Zone.LOOPBACK: (Reason.ALLOWED_LOOPBACK, "the destination is this machine"),
    Zone.LAN: (Reason.ALLOWED_LAN, "the destination is in the local network, and the policy of the source goes so far"),
    Zone.REMOTE: (Reason.ALLOWED_REMOTE, "the policy of the source lets it go to configured destinations anywhere"),
}
_WHERE = {Zone.LAN: "in the local network", Zone.REMOTE: "outside of the local network"}


def decide(
    policies: Iterable[Egress], classes: Iterable[CorpusClass], purpose: Purpose, destination: Destination
) -> Decision:
    """Whether content out of sources with these `policies`, of these `classes`, may go to `destination`.

    The strictest of all of them decides: what was derived from several documents is as confined as the most confined
    one, and being derived declassifies nothing. A word that is not known, and content that nothing is known of, is
    confined to this process. Every purpose has the same rule.
    """
    zone = destination.zone
    if destination.obstacle is not None:
        return Decision(False, zone, destination.obstacle.reason, f"For {purpose}: {destination.obstacle.explanation}.")
    policy = _strictest([_FARTHEST.get(word) for word in policies])
    rule = _strictest([_CLASS_FARTHEST.get(word) for word in classes])
    if zone.distance <= min(policy.distance, rule.distance):
        reason, why = _ALLOWED[zone]
        return Decision(True, zone, reason, f"For {purpose}: {why}.")
    reason, why = _refusal(policy, rule)
    where = _WHERE.get(zone, "another program")
    return Decision(False, zone, reason, f"For {purpose}: {why}, and the destination is {where}.")


def _refusal(policy: Zone, rule: Zone) -> tuple[Reason, str]:
    if Zone.LOCAL_PROCESS in (policy, rule):
        return Reason.UNKNOWN_CONTENT, "its source's policy or its class is not known"
    # On a tie the class is named: another policy would change nothing.
    if rule.distance <= policy.distance:
        return Reason.CLASS_COMMUNICATION, "a communication never leaves this machine, whatever its source's policy"
    if policy is Zone.LOOPBACK:
        return Reason.POLICY_LOCAL_ONLY, "the source's policy is local_only"
    return Reason.POLICY_LAN, "the source's policy is lan"


def _strictest(reaches: Iterable[Zone | None]) -> Zone:
    known = [reach or Zone.LOCAL_PROCESS for reach in reaches]
    return min(known, key=lambda zone: zone.distance, default=Zone.LOCAL_PROCESS)
