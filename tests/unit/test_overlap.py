"""May a due job go out beside an earlier one of its schedule?"""

from datetime import UTC, datetime, timedelta

import pytest

from cronq.beat.overlap import OverlapGate
from cronq.job import State, Trigger
from cronq.schedule import Overlap, Reason
from cronq.store.agenda import DueJob

START = datetime(2026, 11, 1, tzinfo=UTC)
HOLDING = [Overlap.QUEUE, Overlap.QUEUE_ONE, Overlap.CANCEL_PREVIOUS, Overlap.TERMINATE_PREVIOUS]
STOPPING = [Overlap.CANCEL_PREVIOUS, Overlap.TERMINATE_PREVIOUS]
GATED = [Overlap.SKIP, *HOLDING]


def job(
    number: int, overlap: Overlap, *, schedule: str | None = "s", state: State = State.SCHEDULED
) -> DueJob:
    return DueJob(
        id=f"{schedule}-{number}",
        task="t",
        args=[],
        kwargs={},
        due_at=START + timedelta(seconds=number),
        trigger=Trigger.SCHEDULE,
        schedule_id=schedule,
        overlap=overlap,
        state=state,
    )


def ids(jobs: list[DueJob]) -> list[str]:
    return [each.id for each in jobs]


def busy_gate() -> OverlapGate:
    gate = OverlapGate()
    gate.reset(["s"])
    return gate


@pytest.mark.parametrize("overlap", list(Overlap))
def test_a_job_of_an_idle_schedule_goes_out(overlap: Overlap) -> None:
    gate = OverlapGate()
    gate.reset(["another"])
    assert ids(gate.decide([job(1, overlap)]).go) == ["s-1"]


def test_allowed_overlap_is_never_held_back() -> None:
    batch = [job(1, Overlap.ALLOW), job(2, Overlap.ALLOW)]
    assert ids(busy_gate().decide(batch).go) == ["s-1", "s-2"]


@pytest.mark.parametrize("overlap", list(Overlap))
def test_on_demand_jobs_are_never_held_back(overlap: Overlap) -> None:
    batch = [job(1, overlap, schedule=None), job(2, overlap, schedule=None)]
    assert ids(OverlapGate().decide(batch).go) == ["None-1", "None-2"]


@pytest.mark.parametrize("overlap", GATED)
def test_a_retry_does_not_wait_for_the_job_that_it_belongs_to(overlap: Overlap) -> None:
    gate = busy_gate()
    assert ids(gate.decide([job(1, overlap, state=State.RETRYING)]).go) == ["s-1"]
    assert gate.doubtful([job(1, overlap, state=State.RETRYING)]) == []


@pytest.mark.parametrize("overlap", GATED)
def test_the_second_of_one_batch_meets_the_first(overlap: Overlap) -> None:
    verdict = OverlapGate().decide([job(1, overlap), job(2, overlap)])
    assert ids(verdict.go) == ["s-1"]


def test_skip_records_the_fire_time_as_overlapping() -> None:
    gate = busy_gate()
    verdict = gate.decide([job(1, Overlap.SKIP)])
    assert verdict.go == []
    assert verdict.skipped == {Reason.OVERLAP: ["s-1"]}
    assert gate.waiting() == []


def test_queue_waits_its_turn_in_order_up_to_its_buffer_and_counts_the_rest() -> None:
    gate = busy_gate()
    verdict = gate.decide([job(n, Overlap.QUEUE) for n in range(1, 5)], {"s": 2})
    assert verdict.skipped == {Reason.BUFFER_FULL: ["s-3", "s-4"]}
    assert gate.holds() == {"s-1", "s-2"}
    for expected in ("s-1", "s-2"):
        gate.refresh(["s"], set())
        released = gate.release()
        assert ids(released) == [expected]
        assert ids(gate.decide(released).go) == [expected]
    assert gate.waiting() == []


def test_queue_one_keeps_the_first_that_waits() -> None:
    gate = busy_gate()
    verdict = gate.decide([job(1, Overlap.QUEUE_ONE), job(2, Overlap.QUEUE_ONE)])
    assert verdict.skipped == {Reason.BUFFER_FULL: ["s-2"]}
    assert gate.holds() == {"s-1"}


@pytest.mark.parametrize("overlap", STOPPING)
def test_the_newest_replaces_the_waiting_one_and_the_previous_is_told_to_stop(overlap: Overlap) -> None:
    gate = busy_gate()
    verdict = gate.decide([job(1, overlap), job(2, overlap)])
    assert verdict.stop_previous == {"s": overlap}
    assert verdict.skipped == {Reason.OVERLAP: ["s-1"]}
    assert gate.holds() == {"s-2"}


@pytest.mark.parametrize("overlap", HOLDING)
def test_nothing_is_released_while_the_schedule_is_busy(overlap: Overlap) -> None:
    gate = busy_gate()
    gate.decide([job(1, overlap)])
    assert gate.release() == []
    gate.refresh(["s"], {"s"})
    assert gate.release() == []
    gate.refresh(["s"], set())
    assert ids(gate.release()) == ["s-1"]
    assert gate.release() == []


def test_only_schedules_believed_busy_are_looked_up() -> None:
    gate = busy_gate()
    batch = [
        job(1, Overlap.SKIP),
        job(2, Overlap.SKIP),
        job(3, Overlap.ALLOW),
        job(4, Overlap.SKIP, schedule="idle"),
        job(5, Overlap.SKIP, schedule=None),
    ]
    assert gate.doubtful(batch) == ["s"]


def test_a_schedule_that_turns_out_idle_goes_out() -> None:
    gate = busy_gate()
    gate.refresh(["s"], set())
    assert ids(gate.decide([job(1, Overlap.SKIP)]).go) == ["s-1"]


def test_what_was_not_asked_for_stays_busy() -> None:
    gate = OverlapGate()
    gate.reset(["s", "r"])
    gate.refresh(["s"], set())
    assert gate.doubtful([job(1, Overlap.SKIP), job(1, Overlap.SKIP, schedule="r")]) == ["r"]


def test_an_edit_or_a_new_term_forgets_what_waits() -> None:
    gate = busy_gate()
    gate.decide([job(1, Overlap.QUEUE)])
    gate.drop_schedule("s")
    assert gate.holds() == set()
    gate.decide([job(2, Overlap.QUEUE)])
    gate.reset(())
    assert gate.holds() == set()
    assert ids(gate.decide([job(3, Overlap.QUEUE)]).go) == ["s-3"]
