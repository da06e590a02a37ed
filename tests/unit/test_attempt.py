"""One attempt, from claim to settlement, at a desk that is not real."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from cronq import current_job, progress
from cronq.context import JobContext
from cronq.errors import Cancelled, LeaseLost, Permanent
from cronq.job import Outcome, State
from cronq.progress.reporter import Report
from cronq.retry import Exponential, Policy
from cronq.store.attempts import Claim, Settlement
from cronq.worker.attempt import Ended, Work, run_attempt
from cronq.worker.lease_keeper import Limits
from cronq.worker.values import MAX_BYTES
from cronq.worker.verdict import RetryAsked, ToldToEnd

HUGE = 10**400
FIRE = datetime(2026, 11, 1, tzinfo=UTC)


class SoftLimit(Exception):
    pass


@dataclass
class FakeDesk:
    """Writes down what happens, in order."""

    offer: Claim | None = field(
        default_factory=lambda: Claim(attempt=1, max_attempts=None, crashes=0, cancel_requested=False)
    )
    keeps_lease: bool = True
    lease_in_time: bool = True
    events: list[str] = field(default_factory=list)
    settled: list[Settlement] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)

    def claim(self, work: Work, token: str) -> Claim | None:
        self.events.append("claim")
        self.token = token
        return self.offer

    def still_holds(self, token: str, asked: float) -> bool:
        assert token == self.token
        return self.lease_in_time

    def hold(self, token: str, report: Report, limits: Limits) -> None:
        assert token == self.token
        self.events.append("hold")

    def let_go(self, token: str) -> None:
        assert token == self.token
        self.events.append("let go")

    def settle(self, settlement: Settlement) -> bool:
        assert settlement.token == self.token
        self.events.append("settle")
        if self.keeps_lease:
            self.settled.append(settlement)
        return self.keeps_lease

    def age_s(self, job_id: str, earlier: int) -> float:
        return 0.0

    def report(self, job_id: str, attempt: int, *, events: bool) -> Report:
        self.reports.append(Report(job_id, attempt, interval_s=0, send=lambda _report: None))
        return self.reports[-1]


def work(**changes: Any) -> Work:
    facts: dict[str, Any] = {
        "job_id": "j1",
        "task": "t",
        "schedule": "s",
        "fire_time": FIRE,
        "tenant": "acme",
        "worker": "w@h",
        "default_attempts": 4,
        "time_out": (SoftLimit,),
    }
    return Work(**{**facts, **changes})


def run(desk: FakeDesk, body: Callable[[], Any], **changes: Any) -> Ended:
    def noted() -> Any:
        desk.events.append("body")
        return body()

    return run_attempt(desk, work(**changes), noted, lambda _claim: desk.events.append("told"))


def raising(error: BaseException) -> Callable[[], None]:
    def body() -> None:
        raise error

    return body


def claim(attempt: int = 1, max_attempts: int | None = None, *, cancelled: bool = False) -> Claim:
    return Claim(attempt=attempt, max_attempts=max_attempts, crashes=0, cancel_requested=cancelled)


def test_success_is_settled_with_its_result_after_the_lease_was_let_go() -> None:
    desk = FakeDesk()
    ended = run(desk, lambda: {"rows": 7})
    assert desk.events == ["claim", "told", "hold", "body", "let go", "settle"]
    (settlement,) = desk.settled
    assert (settlement.outcome, settlement.state) == (Outcome.COMPLETED, State.COMPLETED)
    assert (settlement.result, settlement.error, settlement.dead) == ({"rows": 7}, None, False)
    assert settlement.progress is not None
    assert settlement.progress["progress"] == 100
    assert (ended.settlement, ended.result, ended.error) == (settlement, {"rows": 7}, None)


def test_without_a_lease_the_body_never_starts() -> None:
    desk = FakeDesk(offer=None)
    ended = run(desk, lambda: pytest.fail("ran without a lease"))
    assert desk.events == ["claim"]
    assert ended.settlement is None


def test_a_lease_that_ran_out_before_the_body_could_start_is_another_workers() -> None:
    desk = FakeDesk(lease_in_time=False)
    ended = run(desk, lambda: pytest.fail("ran without a lease"))
    assert desk.events == ["claim"]
    assert ended.settlement is None


def test_two_attempts_never_share_a_token() -> None:
    first, second = FakeDesk(), FakeDesk()
    run(first, lambda: None)
    run(second, lambda: None)
    assert first.token != second.token


def test_the_body_knows_its_job_and_nothing_leaks_out_of_it() -> None:
    seen: list[JobContext | None] = []
    desk = FakeDesk(offer=claim(2, 5))
    run(desk, lambda: seen.append(current_job()))
    assert seen == [
        JobContext(id="j1", task="t", attempt=2, max_attempts=5, schedule="s", fire_time=FIRE, tenant="acme")
    ]
    assert current_job() is None
    run(FakeDesk(), raising(ValueError("x")))
    assert current_job() is None


def test_progress_of_the_body_is_settled_with_it() -> None:
    desk = FakeDesk()
    run(desk, lambda: [progress.update(3, 4, "load"), None][1])
    run(desk, lambda: [progress.update(1, 4, "load"), raising(ValueError())()])
    done, failed = (each.progress for each in desk.settled)
    assert done is not None
    assert failed is not None
    assert (done["progress"], done["current_step"], done["steps_completed"]) == (100, "load", 3)
    assert failed["progress"] == 25


@pytest.mark.parametrize(
    ("done", "total"),
    [
        (math.nan, 10),
        (3, math.nan),
        (math.inf, math.inf),
        (HUGE, 2),
        (3, HUGE),
        (10**308, 2),
        ("3", 10),
        (None, 10),
    ],
    ids=lambda given: repr(given)[:9],
)
def test_what_is_no_number_in_its_progress_does_not_cost_the_outcome(done: Any, total: Any) -> None:
    desk = FakeDesk()
    run(desk, lambda: progress.update(done, total, "reading"))
    (settlement,) = desk.settled
    assert settlement.state is State.COMPLETED
    json.dumps(settlement.progress, allow_nan=False)


def test_another_librarys_numbers_are_kept_as_numbers() -> None:
    desk = FakeDesk()
    run(desk, lambda: progress.update(Decimal(3), Fraction(12, 2)))
    assert desk.settled[0].progress is not None
    assert (desk.settled[0].progress["steps_completed"], desk.settled[0].progress["steps_total"]) == (
        3.0,
        6.0,
    )


class Unspeakable(Exception):
    """An error that fails when somebody looks at it."""

    @property
    def retry_after(self) -> float:
        raise RuntimeError("no response was stored")


def test_an_error_that_cannot_be_looked_at_ends_the_job_and_says_so() -> None:
    desk = FakeDesk()
    ended = run(desk, raising(Unspeakable("lost")))
    (settlement,) = desk.settled
    assert (settlement.state, settlement.dead) == (State.FAILED, True)
    assert settlement.error is not None
    assert "no response was stored" in settlement.error
    assert "Unspeakable: lost" in settlement.error
    assert isinstance(ended.error, Unspeakable)


def test_a_plain_error_of_a_plain_task_is_not_tried_again() -> None:
    # Celery's rule: only what the task asks for is retried.
    desk = FakeDesk()
    ended = run(desk, raising(ValueError("bad rows")))
    (settlement,) = desk.settled
    assert (settlement.outcome, settlement.state) == (Outcome.FAILED, State.FAILED)
    assert settlement.dead
    assert settlement.retry_in_s is None
    assert "ValueError: bad rows" in (settlement.error or "")
    assert isinstance(ended.error, ValueError)


def test_a_plain_error_is_tried_again_where_the_schedule_says_how_often() -> None:
    states = []
    for number in (1, 2, 3):
        desk = FakeDesk(offer=claim(number, 3))
        run(desk, raising(ConnectionError("gone")))
        states.append((desk.settled[0].state, desk.settled[0].kind, desk.settled[0].dead))
    assert states == [
        (State.RETRYING, "network", False),
        (State.RETRYING, "network", False),
        (State.FAILED, "network", True),
    ]


def test_a_retry_that_the_body_asks_for_waits_as_long_as_it_says() -> None:
    desk = FakeDesk()
    cause = ValueError("not yet")
    run(desk, raising(RetryAsked(cause, 42.0, None)))
    (settlement,) = desk.settled
    assert (settlement.outcome, settlement.state) == (Outcome.FAILED, State.RETRYING)
    assert (settlement.retry_in_s, settlement.kind) == (42.0, "retry")
    assert "ValueError: not yet" in (settlement.error or "")
    assert "RetryAsked" not in (settlement.error or "")


@pytest.mark.parametrize(
    ("of_job", "asked", "of_task", "attempts"), [(None, None, 4, 4), (None, 2, 4, 2), (6, 2, 4, 6)]
)
def test_the_job_limits_attempts_before_the_body_and_the_body_before_the_task(
    of_job: int | None, asked: int | None, of_task: int, attempts: int
) -> None:
    for number, state in ((attempts - 1, State.RETRYING), (attempts, State.FAILED)):
        desk = FakeDesk(offer=claim(number, of_job))
        run(desk, raising(RetryAsked(None, 1.0, asked)), default_attempts=of_task)
        assert desk.settled[0].state is state


def test_a_permanent_error_is_not_tried_again_however_many_attempts_are_left() -> None:
    desk = FakeDesk(offer=claim(1, 9))
    run(desk, raising(Permanent("no such customer")))
    assert (desk.settled[0].state, desk.settled[0].kind) == (State.FAILED, "permanent")


def test_the_back_off_decides_the_wait_when_nobody_asked() -> None:
    waits = []
    for _ in range(50):
        desk = FakeDesk(offer=claim(2, 9))
        run(desk, raising(OSError()), policies=(Policy(wait=Exponential(base_s=8)),))
        waits.append(desk.settled[0].retry_in_s or 0.0)
    assert max(waits) <= 16
    assert max(waits) > 4


def test_a_time_out_is_an_outcome_of_its_own() -> None:
    last, first = FakeDesk(offer=claim(3, 3)), FakeDesk(offer=claim(1, 3))
    run(last, raising(SoftLimit()))
    run(first, raising(SoftLimit()))
    assert (last.settled[0].outcome, last.settled[0].state) == (Outcome.TIMED_OUT, State.TIMED_OUT)
    assert last.settled[0].dead
    assert (first.settled[0].outcome, first.settled[0].state) == (Outcome.TIMED_OUT, State.RETRYING)


def test_a_job_cancelled_before_it_started_never_starts() -> None:
    desk = FakeDesk(offer=claim(cancelled=True))
    run(desk, lambda: pytest.fail("started although cancelled"))
    assert "body" not in desk.events
    assert (desk.settled[0].outcome, desk.settled[0].state) == (Outcome.CANCELLED, State.CANCELLED)


def test_a_running_job_that_is_cancelled_learns_it_at_its_next_report() -> None:
    desk = FakeDesk()

    def body() -> None:
        progress.update(1, 2)
        desk.reports[0].stop = Cancelled
        progress.update(2, 2)
        pytest.fail("went on although cancelled")

    run(desk, body)
    assert (desk.settled[0].outcome, desk.settled[0].state) == (Outcome.CANCELLED, State.CANCELLED)
    assert not desk.settled[0].dead


def test_a_worker_that_lost_its_lease_stops_and_settles_nothing() -> None:
    desk = FakeDesk(keeps_lease=False)

    def body() -> None:
        desk.reports[0].stop = LeaseLost
        progress.update(1)
        pytest.fail("went on without a lease")

    ended = run(desk, body)
    assert desk.settled == []
    assert ended.settlement is None


def test_the_result_of_a_zombie_is_refused() -> None:
    desk = FakeDesk(keeps_lease=False)
    ended = run(desk, lambda: "late")
    assert (ended.settlement, ended.result) == (None, None)


@pytest.mark.parametrize("told", [SystemExit(15 - 256), ToldToEnd()])
def test_a_job_whose_worker_shuts_down_is_handed_back_and_is_no_dead_letter(told: SystemExit) -> None:
    desk = FakeDesk(offer=claim(3, 3))
    ended = run(desk, raising(told))
    (settlement,) = desk.settled
    assert (settlement.outcome, settlement.state) == (Outcome.HANDED_BACK, State.RETRYING)
    assert (settlement.retry_in_s, settlement.dead) == (0.0, False)
    assert ended.exits
    assert desk.events == ["claim", "told", "hold", "body", "let go", "settle"]
    assert current_job() is None


@pytest.mark.parametrize("code", [None, 0, 1, "no file given"])
def test_a_body_that_calls_exit_has_failed_like_any_other(code: object) -> None:
    desk = FakeDesk()
    ended = run(desk, raising(SystemExit(code)))
    (settlement,) = desk.settled
    assert (settlement.outcome, settlement.state, settlement.dead) == (Outcome.FAILED, State.FAILED, True)
    assert f"the task called sys.exit({code!r})" in str(settlement.error)
    assert not ended.exits


def test_a_body_that_was_ended_at_its_time_limit_timed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([100.0, 100.0, 130.0])
    monkeypatch.setattr("cronq.worker.attempt.time.monotonic", lambda: next(now))
    desk = FakeDesk()
    run(desk, raising(SystemExit(15 - 256)), time_limit_s=30.0)
    assert (desk.settled[0].outcome, desk.settled[0].state) == (Outcome.TIMED_OUT, State.TIMED_OUT)


def test_a_cancelled_body_that_had_to_be_ended_is_cancelled() -> None:
    desk = FakeDesk()

    def body() -> None:
        desk.reports[0].stop = Cancelled
        raise SystemExit(15 - 256)

    run(desk, body)
    assert (desk.settled[0].outcome, desk.settled[0].state) == (Outcome.CANCELLED, State.CANCELLED)


def test_the_lease_is_let_go_even_when_the_process_is_torn_down() -> None:
    desk = FakeDesk()
    with pytest.raises(KeyboardInterrupt):
        run(desk, raising(KeyboardInterrupt()))
    assert desk.events[-1] == "let go"
    assert current_job() is None


def nested(levels: int) -> list[Any]:
    return [nested(levels - 1)] if levels else []


@pytest.mark.parametrize(
    "result",
    [object(), float("nan"), "x" * (MAX_BYTES + 1), {1, 2}, nested(200)],
    ids=["no value", "no number", "large", "a set", "deep"],
)
def test_a_result_that_cannot_be_kept_is_dropped_and_the_job_is_done(result: object) -> None:
    desk = FakeDesk()
    ended = run(desk, lambda: result)
    assert desk.settled[0].state is State.COMPLETED
    assert desk.settled[0].result is None
    assert ended.result is result


def test_a_long_traceback_keeps_its_end() -> None:
    desk = FakeDesk()
    run(desk, raising(ValueError("head" + "x" * 50_000 + "tail")))
    error = desk.settled[0].error or ""
    assert len(error) <= 8_000
    assert error.rstrip().endswith("tail")
