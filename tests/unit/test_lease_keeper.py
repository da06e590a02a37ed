"""One thread keeps all leases of a process, and tells a body whose lease is gone."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from cronq.errors import Cancelled, LeaseLost
from cronq.progress.reporter import Report
from cronq.worker import lease_keeper
from cronq.worker.lease_keeper import LeaseKeeper, Limits
from cronq.worker.verdict import HandedBack, HardTimeLimit

LEASE_S = 0.15
SOON_S = 10.0


class Renewals:
    """Stands for SQL: says which leases are held, and lets a test wait for rounds."""

    def __init__(self) -> None:
        self.lost: set[str] = set()
        self.cancelled: set[str] = set()
        self.failure: Exception | None = None
        self.rounds: list[list[str]] = []
        self._changed = threading.Condition()
        self.before_answer: Callable[[], None] = lambda: None

    def __call__(self, _database: object, tokens: Sequence[str], *, lease_s: float) -> dict[str, bool]:
        assert lease_s == LEASE_S
        self.before_answer()
        with self._changed:
            self.rounds.append(sorted(tokens))
            self._changed.notify_all()
            if self.failure is not None:
                raise self.failure
            return {token: token in self.cancelled for token in tokens if token not in self.lost}

    def wait_for(self, wanted: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(wanted, SOON_S), self.rounds

    def wait_for_round(self, *tokens: str) -> None:
        """Wait for two more rounds of these tokens, so that the first one's answer has been dealt with."""
        seen = len(self.rounds)
        self.wait_for(lambda: self.rounds[seen:].count(sorted(tokens)) >= 2)


@pytest.fixture
def renewals(monkeypatch: pytest.MonkeyPatch) -> Renewals:
    renewals = Renewals()
    monkeypatch.setattr(lease_keeper, "renew", renewals)
    return renewals


@pytest.fixture
def keeper(renewals: Renewals) -> Iterator[LeaseKeeper]:
    database: Any = None
    keeper = LeaseKeeper(database, lease_s=LEASE_S, flush_s=0.01)
    yield keeper
    keeper._held.clear()


def a_report(sent: list[float] | None = None) -> Report:
    kept: list[float] = [] if sent is None else sent
    return Report("j", 1, interval_s=3600, send=lambda report: kept.append(report.done))


def test_all_leases_are_renewed_in_one_statement_until_they_are_let_go(
    renewals: Renewals, keeper: LeaseKeeper
) -> None:
    for token in ("a", "b", "c"):
        keeper.hold(token, a_report())
    renewals.wait_for_round("a", "b", "c")
    keeper.let_go("b")
    renewals.wait_for_round("a", "c")
    assert ["b"] not in renewals.rounds


def test_a_keeper_without_leases_asks_nothing_and_wakes_for_the_next_one(
    renewals: Renewals, keeper: LeaseKeeper
) -> None:
    keeper.hold("a", a_report())
    renewals.wait_for_round("a")
    keeper.let_go("a")
    keeper.hold("b", a_report())
    renewals.wait_for_round("b")
    assert [] not in renewals.rounds


def test_a_body_whose_lease_was_taken_over_is_told(renewals: Renewals, keeper: LeaseKeeper) -> None:
    mine, other = a_report(), a_report()
    keeper.hold("mine", mine)
    keeper.hold("other", other)
    renewals.lost.add("mine")
    renewals.wait_for_round("mine", "other")
    with pytest.raises(LeaseLost):
        mine.update(1, None, None)
    other.update(1, None, None)


def test_a_body_that_is_to_stop_is_told_and_keeps_its_lease(renewals: Renewals, keeper: LeaseKeeper) -> None:
    report = a_report()
    keeper.hold("a", report)
    renewals.cancelled.add("a")
    renewals.wait_for_round("a")
    with pytest.raises(Cancelled):
        report.update(1, None, None)
    renewals.wait_for_round("a")


def test_a_database_that_is_away_loses_no_lease_and_is_asked_again(
    renewals: Renewals, keeper: LeaseKeeper
) -> None:
    report = a_report()
    renewals.failure = OperationalError("UPDATE", {}, Exception("gone"))
    keeper.hold("a", report)
    renewals.wait_for_round("a")
    assert report.stop is None
    renewals.failure = None
    renewals.cancelled.add("a")
    renewals.wait_for_round("a")
    assert report.stop is Cancelled


def test_a_lease_let_go_while_it_was_being_renewed_is_not_called_lost(
    renewals: Renewals, keeper: LeaseKeeper
) -> None:
    report, other = a_report(), a_report()
    renewals.lost.add("a")
    # The body ends and settles between the statement and its answer.
    renewals.before_answer = lambda: keeper.let_go("a")
    keeper.hold("a", report)
    keeper.hold("b", other)
    renewals.wait_for_round("b")
    assert report.stop is None


def test_the_last_report_of_a_quiet_body_is_sent_for_it(renewals: Renewals, keeper: LeaseKeeper) -> None:
    sent: list[float] = []
    report = a_report(sent)
    report.update(1, None, None)
    report.update(2, None, None)
    assert sent == [1]  # throttled
    keeper.hold("a", report)
    renewals.wait_for_round("a")
    assert sent == [1, 2]


class Ends:
    """What the keeper settled in the body's place."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.ended = threading.Event()

    def __call__(self, error: Exception) -> None:
        self.errors.append(error)
        self.ended.set()


def test_a_body_over_its_hard_limit_is_settled_in_its_place_and_its_lease_let_go(
    renewals: Renewals, keeper: LeaseKeeper
) -> None:
    ends, report = Ends(), a_report()
    keeper.hold("a", report, Limits(ends, hard_s=0.05))
    keeper.hold("b", a_report())
    assert ends.ended.wait(SOON_S)
    assert isinstance(ends.errors[0], HardTimeLimit)
    assert report.stop is LeaseLost
    renewals.wait_for_round("b")
    assert len(ends.errors) == 1


def test_a_body_over_its_soft_limit_learns_it_at_its_next_report_and_keeps_its_lease(
    renewals: Renewals, keeper: LeaseKeeper
) -> None:
    class SoftLimit(Exception):
        pass

    ends, report = Ends(), a_report()
    keeper.hold("a", report, Limits(ends, hard_s=3600, soft_s=0.0, soft_error=SoftLimit))
    renewals.wait_for_round("a")
    with pytest.raises(SoftLimit):
        report.update(1, 2, None)
    assert ends.errors == []


def test_handing_back_settles_whatever_runs_and_renews_none_of_it(
    renewals: Renewals, keeper: LeaseKeeper
) -> None:
    ends = {token: Ends() for token in ("a", "b")}
    for token, end in ends.items():
        keeper.hold(token, a_report(), Limits(end))
    assert keeper.holds_any()
    keeper.hand_back()
    assert not keeper.holds_any()
    assert [type(end.errors[0]) for end in ends.values()] == [HandedBack, HandedBack]
