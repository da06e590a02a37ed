"""A chain of schedules on real SQL: a job goes once those before it are done, or is recorded as not run."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from cronq.errors import NotLeader
from cronq.job import State, batch_end_job_id
from cronq.schedule import After, Join, schedule_id
from cronq.store.agenda import foreign_jobs, read_waiting, waiting_jobs
from cronq.store.control import pause
from cronq.store.jobs import request_cancel
from cronq.upkeep.dependency_resolver import DependencyResolver

from .rows import Rows, at_once
from .test_batches import Floor

HOUR = timedelta(hours=1)


class Chain:
    """Schedules with one fire time in common."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.fire_time = rows.now() - timedelta(seconds=1)
        self.heard: list[dict[str, Any]] = []
        self.term = rows.begin_term("me")
        self.resolver = DependencyResolver(rows.database, self.heard.append)

    def declare(self, name: str, *, planned: bool = True, **after: Any) -> str:
        """Store a schedule that comes after others; return the id of its job if that is planned."""
        first = self.fire_time + (HOUR if planned else timedelta(0))
        waits = After(**after) if after else None
        self.rows.schedule(name, first=first, after=waits)
        return self.plan(name, waits) if planned else ""

    def plan(self, name: str, waits: After | None = None) -> str:
        held = None if waits is None else self.fire_time
        return self.rows.job(schedule=name, fire_time=self.fire_time, held_at=held)

    def settle(self, job_id: str, state: State = State.COMPLETED) -> None:
        token = f"token {job_id[:20]}"
        assert self.rows.claim(job_id, token) is not None
        assert self.rows.settle(job_id, token, state=state)

    def look(self) -> None:
        self.resolver.run(self.term)

    def became(self, job_id: str) -> tuple[str, str | None, bool]:
        row = self.rows.row(job_id)
        return row["state"], row["reason"], row["held_at"] is not None


WAITS, GOES, LEFT_OUT = (
    ("SCHEDULED", None, True),
    ("SCHEDULED", None, False),
    ("SKIPPED", "upstream", False),
)


@pytest.fixture
def chain(rows: Rows) -> Chain:
    return Chain(rows)


def test_a_job_waits_until_the_one_before_it_is_completed_and_then_is_due(chain: Chain) -> None:
    extract = chain.declare("extract")
    report = chain.declare("report", schedules=("extract",))
    mail = chain.declare("mail", schedules=("report",))
    chain.look()
    assert chain.became(report) == chain.became(mail) == WAITS
    assert chain.rows.claim(report, "x") is None, "a stray message does not start it"
    assert waiting_jobs(chain.rows.database, until=chain.rows.now(), limit=9)[0].id == extract
    chain.settle(extract)
    chain.look()
    assert chain.became(report) == GOES
    assert chain.became(mail) == WAITS
    assert chain.heard == [{"kind": "job", "job_id": report}]
    assert [due.id for due in read_waiting(chain.rows.database, [report, mail])] == [report]
    chain.settle(report)
    chain.look()
    assert chain.became(mail) == GOES


@pytest.mark.parametrize("end", [State.FAILED, State.TIMED_OUT, State.CANCELLED])
def test_what_comes_after_a_job_that_did_not_complete_is_left_out_down_the_chain(
    chain: Chain, end: State
) -> None:
    extract = chain.declare("extract")
    mail = chain.declare("mail", schedules=("report",))
    report = chain.declare("report", schedules=("extract",))
    chain.settle(extract, end)
    chain.look()
    assert chain.became(report) == chain.became(mail) == LEFT_OUT


def test_a_job_that_is_tried_again_is_waited_for(chain: Chain) -> None:
    extract = chain.declare("extract")
    report = chain.declare("report", schedules=("extract",))
    chain.settle(extract, State.RETRYING)
    chain.look()
    assert chain.became(report) == WAITS


@pytest.mark.parametrize(
    ("end", "became"),
    [(State.FAILED, GOES), (State.TIMED_OUT, GOES), (State.COMPLETED, GOES), (State.CANCELLED, LEFT_OUT)],
)
def test_also_on_failure_means_failed_and_not_left_out(chain: Chain, end: State, became: Any) -> None:
    extract = chain.declare("extract")
    report = chain.declare("report", schedules=("extract",), on_failure=True)
    chain.settle(extract, end)
    chain.look()
    assert chain.became(report) == became


def test_all_of_several_have_to_be_done(chain: Chain) -> None:
    a, b = chain.declare("a"), chain.declare("b")
    both = chain.declare("both", schedules=("a", "b"))
    chain.settle(a)
    chain.look()
    assert chain.became(both) == WAITS
    chain.settle(b)
    chain.look()
    assert chain.became(both) == GOES


def test_one_of_several_that_failed_is_enough_to_leave_out_what_needs_all(chain: Chain) -> None:
    a, _b = chain.declare("a"), chain.declare("b")
    both = chain.declare("both", schedules=("a", "b"))
    chain.settle(a, State.FAILED)
    chain.look()
    assert chain.became(both) == LEFT_OUT


def test_any_of_several_is_enough_and_none_of_them_is_not(chain: Chain) -> None:
    a, b = chain.declare("a"), chain.declare("b")
    c, d = chain.declare("c"), chain.declare("d")
    first = chain.declare("first", schedules=("a", "b"), join=Join.ANY)
    second = chain.declare("second", schedules=("c", "d"), join=Join.ANY)
    chain.settle(a, State.FAILED)
    chain.settle(c, State.FAILED)
    chain.look()
    assert chain.became(first) == chain.became(second) == WAITS
    chain.settle(b)
    chain.settle(d, State.FAILED)
    chain.look()
    assert chain.became(first) == GOES
    assert chain.became(second) == LEFT_OUT


def test_a_fire_time_that_is_still_to_be_planned_is_waited_for(chain: Chain) -> None:
    chain.declare("extract", planned=False)
    report = chain.declare("report", schedules=("extract",))
    chain.look()
    assert chain.became(report) == WAITS
    extract = chain.plan("extract")
    chain.settle(extract)
    chain.look()
    assert chain.became(report) == GOES


def test_a_paused_schedule_is_waited_for(chain: Chain) -> None:
    chain.declare("extract", planned=False)
    report = chain.declare("report", schedules=("extract",))
    pause(chain.rows.database, "extract", note=None)
    chain.look()
    assert chain.became(report) == WAITS


def test_a_fire_time_that_the_other_schedule_does_not_have_leaves_it_out(chain: Chain) -> None:
    chain.rows.schedule("extract", first=chain.fire_time + HOUR)
    report = chain.declare("report", schedules=("extract",))
    nowhere = chain.declare("nowhere", schedules=("unknown",))
    chain.look()
    assert chain.became(report) == chain.became(nowhere) == LEFT_OUT


def test_a_backfilled_fire_time_is_not_the_fire_time_itself(chain: Chain) -> None:
    chain.declare("extract", planned=False)
    report = chain.declare("report", schedules=("extract",))
    again = chain.rows.job(schedule="extract", fire_time=chain.fire_time - HOUR, item="backfill:1")
    chain.rows.set(again, fire_time=f"(SELECT fire_time FROM cronq_job WHERE id = '{report}')")
    chain.settle(again)
    chain.look()
    assert chain.became(report) == WAITS


def test_a_whole_batch_is_waited_for(rows: Rows) -> None:
    floor, chain = Floor(rows), Chain(rows)
    chain.term = floor.term = rows.begin_term("me")
    head = floor.began(name="extract", fan_out={"items": ["a", "b"]})
    chain.fire_time = rows.row(head)["fire_time"]
    report = chain.declare("report", schedules=("extract",))
    either = chain.declare("either", schedules=("extract",), on_failure=True)
    a, b = floor.items(head).values()
    floor.settle(a)
    chain.look()
    assert chain.became(report) == WAITS
    floor.settle(b, State.FAILED)
    floor.look()
    chain.look()
    assert chain.became(report) == LEFT_OUT
    assert chain.became(either) == GOES
    assert batch_end_job_id(head) not in [
        due.id for due in foreign_jobs(rows.database, until=rows.now(), limit=9)
    ]


def test_leaders_that_decide_at_once_let_each_job_go_once(chain: Chain) -> None:
    extract = chain.declare("extract")
    report = chain.declare("report", schedules=("extract",))
    chain.settle(extract)
    at_once([partial(chain.look)] * 4)
    assert chain.became(report) == GOES
    chain.settle(report)
    chain.look()
    assert chain.rows.row(report)["attempts"] == 1


def test_a_job_that_was_cancelled_meanwhile_stays_so(chain: Chain) -> None:
    extract = chain.declare("extract")
    report = chain.declare("report", schedules=("extract",))
    request_cancel(chain.rows.database, report)
    chain.settle(extract)
    chain.look()
    assert chain.rows.state(report) is State.CANCELLED


def test_a_former_leader_lets_nothing_go(chain: Chain) -> None:
    extract = chain.declare("extract")
    report = chain.declare("report", schedules=("extract",))
    chain.settle(extract)
    chain.rows.begin_term("another")
    with pytest.raises(NotLeader):
        chain.look()
    assert chain.became(report) == WAITS


def test_more_than_a_page_of_jobs_that_wait_hides_nobody(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cronq.upkeep.dependency_resolver.PAGE", 2)
    chain.declare("never", planned=False)
    for number in range(5):
        chain.declare(f"waits-{number}", schedules=("never",))
    extract = chain.declare("extract")
    reports = [chain.declare(f"report-{number}", schedules=("extract",)) for number in range(3)]
    chain.settle(extract)
    chain.look()
    assert [chain.became(report) for report in reports] == [GOES] * 3
    assert schedule_id("extract") == chain.rows.row(extract)["schedule_id"]
