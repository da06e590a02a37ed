"""Whatever one body reports, the leases of all the others are kept."""

from typing import Any, Self

import pytest

from cronq.errors import LeaseLost
from cronq.job import State
from cronq.progress.board import Board
from cronq.progress.reporter import Report, reporting
from cronq.settings import Settings
from cronq.worker import lease_keeper
from cronq.worker.desk import StoreDesk
from cronq.worker.lease_keeper import Limits

from .test_attempt import FakeDesk, run
from .test_lease_keeper import LEASE_S, Renewals

UNUSED: Any = None


@pytest.mark.parametrize("step", [object(), b"bytes", "a lone surrogate \udcff"])
def test_a_report_that_cannot_be_sent_costs_nobody_the_lease(
    monkeypatch: pytest.MonkeyPatch, step: Any
) -> None:
    renewals = Renewals()
    monkeypatch.setattr(lease_keeper, "renew", renewals)
    client: Any = NoRedis()
    desk = StoreDesk(UNUSED, client, Board(client, prefix="p:"), Settings(progress_interval_s=0))
    desk._keeper._lease_s = LEASE_S
    broken = desk.report("broken", 1, events=True)
    broken.step, broken.dirty = step, True
    limits = Limits(end=lambda _error: None)
    desk.hold("a", broken, limits)
    desk.hold("b", Report("fine", 1, interval_s=0, send=lambda _report: None), limits)
    try:
        renewals.wait_for_round("a", "b")
    finally:
        desk._keeper._held.clear()
    assert broken.stop is not LeaseLost


class NoRedis:
    """A Redis client that encodes what it is given, and sends it nowhere."""

    def pipeline(self, **_options: Any) -> "NoRedis":
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def set(self, _key: str, value: str, **_options: Any) -> None:
        value.encode()

    def publish(self, _channel: str, value: str) -> None:
        value.encode()

    def execute(self) -> None:
        pass


def test_a_last_report_that_cannot_be_sent_does_not_cost_the_outcome() -> None:
    def fail(_report: Report) -> None:
        raise TypeError("Object of type Path is not JSON serializable")

    class BrokenBoard(FakeDesk):
        def report(self, job_id: str, attempt: int, *, events: bool) -> Report:
            return Report(job_id, attempt, interval_s=0, send=fail)

    def body() -> str:
        report = reporting.get()
        assert report is not None
        report.dirty = True  # a report that was throttled
        return "done"

    desk = BrokenBoard()
    ended = run(desk, body)
    assert [settlement.state for settlement in desk.settled] == [State.COMPLETED]
    assert ended.result == "done"
