import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garage.walk.errors import DeletionRefused
from garage.walk.guard import Decision, Verdict, judge


def verdict(
    *,
    known: int = 100,
    vanished: int = 0,
    complete: bool = True,
    root_empty: bool = False,
    device: int = 1,
    known_device: int | None = 1,
    allow_deletes: bool = False,
    **limit: float,
) -> Verdict:
    return judge(
        known=known,
        vanished=vanished,
        complete=complete,
        root_empty=root_empty,
        device=device,
        known_device=known_device,
        allow_deletes=allow_deletes,
        **limit,
    )


def test_a_few_vanished_files_may_be_deleted() -> None:
    assert verdict(vanished=3) == Verdict(Decision.DELETE, known=100, vanished=3)


def test_exactly_a_quarter_may_go_and_one_file_more_may_not() -> None:
    assert verdict(vanished=25).decision is Decision.DELETE
    assert verdict(vanished=26).decision is Decision.REFUSE


@pytest.mark.parametrize(("percent", "known"), [(29, 100), (7, 100), (10, 30), (57, 100), (58, 100)])
def test_a_share_that_binary_fractions_cannot_hold_is_met_exactly(percent: int, known: int) -> None:
    allowed = known * percent // 100
    assert verdict(known=known, vanished=allowed, limit=percent / 100).decision is Decision.DELETE
    assert verdict(known=known, vanished=allowed + 1, limit=percent / 100).decision is Decision.REFUSE


def test_the_last_file_of_a_source_goes_only_when_asked() -> None:
    assert verdict(known=1, vanished=1, root_empty=True).decision is Decision.REFUSE
    assert verdict(known=1, vanished=1, root_empty=True, allow_deletes=True).decision is Decision.DELETE


def test_an_empty_root_is_named_as_the_cause() -> None:
    assert "empty" in verdict(vanished=100, root_empty=True).cause


def test_an_empty_root_of_a_source_without_files_is_fine() -> None:
    assert verdict(known=0, root_empty=True).decision is Decision.DELETE


def test_another_device_refuses_as_soon_as_a_single_file_vanished() -> None:
    refused = verdict(vanished=1, device=2)
    assert refused.decision is Decision.REFUSE
    assert "another device" in refused.cause
    assert not refused.accepts_device


def test_another_device_with_every_file_on_it_is_accepted() -> None:
    moved = verdict(vanished=0, device=2)
    assert moved.decision is Decision.DELETE
    assert moved.accepts_device


def test_a_source_whose_device_was_never_recorded_is_not_on_another() -> None:
    assert verdict(vanished=1, known_device=None).decision is Decision.DELETE


@pytest.mark.parametrize(("vanished", "root_empty", "device"), [(26, False, 1), (100, True, 1), (1, False, 2)])
def test_allowing_deletes_lets_every_refusal_through(vanished: int, root_empty: bool, device: int) -> None:
    allowed = verdict(vanished=vanished, root_empty=root_empty, device=device, allow_deletes=True)
    assert allowed.decision is Decision.DELETE
    assert allowed.cause == ""
    assert allowed.accepts_device


counts = st.integers(0, 10_000).flatmap(lambda known: st.tuples(st.just(known), st.integers(0, known)))


@given(counts, st.booleans(), st.sampled_from([None, 1, 2]), st.booleans())
def test_an_incomplete_walk_deletes_nothing_whatever_is_allowed(
    counted: tuple[int, int], root_empty: bool, known_device: int | None, allow_deletes: bool
) -> None:
    known, vanished = counted
    withheld = verdict(
        known=known,
        vanished=vanished,
        complete=False,
        root_empty=root_empty,
        known_device=known_device,
        allow_deletes=allow_deletes,
    )
    assert withheld.decision is Decision.WITHHOLD
    assert withheld.vanished == vanished
    assert withheld.accepts_device == (vanished == 0)


@given(counts, st.booleans(), st.sampled_from([None, 1, 2]))
def test_nothing_above_the_limit_is_deleted_unasked_and_nothing_vanished_is_never_refused(
    counted: tuple[int, int], root_empty: bool, known_device: int | None
) -> None:
    known, vanished = counted
    decided = verdict(known=known, vanished=vanished, root_empty=root_empty, known_device=known_device)
    if decided.decision is Decision.DELETE:
        assert 4 * vanished <= known
    else:
        assert vanished > 0
        assert decided.cause


def test_a_refusal_says_what_is_gone_of_what_and_how_to_go_on() -> None:
    error = verdict(known=500, vanished=130).refusal("notes")
    assert (error.source, error.vanished, error.known, error.share) == ("notes", 130, 500, 0.26)
    assert "130 of 500 files (26.0%) of source 'notes'" in str(error)
    assert "more than 25%" in error.cause
    assert "garage update --source notes --force" in error.hint


def test_a_refusal_crosses_a_process_border_whole() -> None:
    error = pickle.loads(pickle.dumps(verdict(known=4, vanished=2).refusal("notes")))
    assert isinstance(error, DeletionRefused)
    assert (error.source, error.vanished, error.known, error.share) == ("notes", 2, 4, 0.5)


@pytest.mark.parametrize(("known", "vanished"), [(1, 2), (1, -1)])
def test_counts_that_cannot_be_are_an_error_of_the_caller(known: int, vanished: int) -> None:
    with pytest.raises(ValueError, match="cannot have vanished"):
        verdict(known=known, vanished=vanished)
