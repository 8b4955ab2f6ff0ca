from __future__ import annotations

import itertools
from typing import get_args

import pytest

from garage.config import CorpusClass, Egress
from garage.inference.policy import IN_PROCESS, Destination, Obstacle, Purpose, Reason, Zone, decide

POLICIES: tuple[Egress, ...] = get_args(Egress)
CLASSES: tuple[CorpusClass, ...] = get_args(CorpusClass)
LOOPBACK = Destination("http://localhost:11434", Zone.LOOPBACK)
LAN = Destination("http://gpu.home.arpa:11434", Zone.LAN)
REMOTE = Destination("https://api.example:443", Zone.REMOTE)
PLACES = (IN_PROCESS, LOOPBACK, LAN, REMOTE)

# How far what a person wrote travels, by policy; and what a communication adds.
ALLOWED: set[tuple[str, str, Zone]] = {
    *((policy, kind, zone) for policy in POLICIES for kind in CLASSES for zone in (Zone.LOCAL_PROCESS, Zone.LOOPBACK)),
    *((policy, kind, Zone.LAN) for policy in ("lan", "remote") for kind in ("document", "code")),
    *(("remote", kind, Zone.REMOTE) for kind in ("document", "code")),
}


@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.zone)
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("policy", POLICIES)
def test_content_goes_as_far_as_its_source_and_its_class_both_let_it(
    policy: Egress, kind: CorpusClass, place: Destination, purpose: Purpose
) -> None:
    decision = decide([policy], [kind], purpose, place)
    assert decision.allowed is ((policy, kind, place.zone) in ALLOWED)
    assert decision.zone is place.zone
    assert decision.allowed is decision.reason.startswith("allowed_")
    assert purpose in decision.explanation


@pytest.mark.parametrize(
    ("policy", "kind", "place", "reason"),
    [
        ("local_only", "document", IN_PROCESS, Reason.ALLOWED_LOCAL_PROCESS),
        ("local_only", "communication", LOOPBACK, Reason.ALLOWED_LOOPBACK),
        ("lan", "code", LAN, Reason.ALLOWED_LAN),
        ("remote", "code", LAN, Reason.ALLOWED_LAN),
        ("remote", "document", REMOTE, Reason.ALLOWED_REMOTE),
        ("local_only", "document", LAN, Reason.POLICY_LOCAL_ONLY),
        ("local_only", "document", REMOTE, Reason.POLICY_LOCAL_ONLY),
        ("lan", "document", REMOTE, Reason.POLICY_LAN),
        ("remote", "communication", REMOTE, Reason.CLASS_COMMUNICATION),
        ("lan", "communication", REMOTE, Reason.CLASS_COMMUNICATION),
        ("local_only", "communication", LAN, Reason.CLASS_COMMUNICATION),  # another policy would change nothing
    ],
)
def test_the_reason_names_the_rule_that_decided(
    policy: Egress, kind: CorpusClass, place: Destination, reason: Reason
) -> None:
    assert decide([policy], [kind], Purpose.ANSWERS, place).reason is reason


def test_what_was_made_of_several_documents_is_as_confined_as_the_most_confined() -> None:
    for policies in itertools.product(POLICIES, repeat=3):
        for classes in itertools.product(CLASSES, repeat=2):
            for place in PLACES:
                alone = [decide([p], [c], Purpose.FACTS, place).allowed for p in policies for c in classes]
                together = decide(policies, classes, Purpose.FACTS, place)
                assert together.allowed is all(alone), (policies, classes, place)


@pytest.mark.parametrize(("policies", "classes"), [([], ["code"]), (["remote"], []), ([], [])])
@pytest.mark.parametrize("place", [LOOPBACK, LAN, REMOTE], ids=lambda place: place.zone)
def test_content_that_nothing_is_known_of_stays_in_the_process(
    policies: list[Egress], classes: list[CorpusClass], place: Destination
) -> None:
    decision = decide(policies, classes, Purpose.REST, place)
    assert (decision.allowed, decision.reason) == (False, Reason.UNKNOWN_CONTENT)
    assert decide(policies, classes, Purpose.REST, IN_PROCESS).allowed


@pytest.mark.parametrize(("policy", "kind"), [("open", "code"), ("remote", "diary"), ("", "")])
def test_a_word_that_is_not_known_confines(policy: str, kind: str) -> None:
    decision = decide([policy], [kind], Purpose.MCP, LOOPBACK)  # type: ignore[list-item]  # what no type allows
    assert (decision.allowed, decision.reason) == (False, Reason.UNKNOWN_CONTENT)


def test_a_destination_with_an_obstacle_gets_nothing_whatever_the_policy() -> None:
    obstacle = Obstacle(Reason.ORIGIN_NOT_CONFIGURED, "it was not configured")
    decision = decide(["remote"], ["code"], Purpose.MCP, Destination("x", Zone.LOOPBACK, obstacle=obstacle))
    assert (decision.allowed, decision.reason) == (False, Reason.ORIGIN_NOT_CONFIGURED)
    assert decision.explanation == "For mcp: it was not configured."


def test_zones_are_in_order_of_distance() -> None:
    assert sorted(Zone, key=lambda zone: zone.distance) == ["local_process", "loopback", "lan", "remote"]


def test_the_codes_that_are_stored_stay_as_they_are() -> None:
    assert set(Reason) == {
        "allowed_local_process",
        "allowed_loopback",
        "allowed_lan",
        "allowed_remote",
        "policy_local_only",
        "policy_lan",
        "class_communication",
        "unknown_content",
        "url_invalid",
        "scheme_unsupported",
        "credentials_in_url",
        "address_ambiguous",
        "address_unusable",
        "origin_not_configured",
        "loopback_closed",
        "name_not_resolved",
        "name_is_loopback",
        "peer_changed",
    }
