"""Why did a fire time run, or not? What is on record, with who leads, who works, and what attempts met."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from cronq.app import Cronq
from cronq.job import ENDS, Outcome, State
from cronq.queues import unserved_reason
from cronq.store import fires
from cronq.store.fires import UNDECIDED, Fire
from cronq.store.jobs import attempts_of
from cronq.store.schedules import StoredSchedule
from cronq.timing.durations import in_words
from cronq.views import NOBODY_LEADS, attempt_fields, last_line, leader_fields

TOLD: Final = 3
"""Attempts that an answer tells of: the last ones."""


def why(parts: Cronq, stored: StoredSchedule, at: datetime) -> list[Fire]:
    """Return what became of the fire times at `at`, as the store has it, with what holds it up."""
    now = parts.database.clock()
    return [replace(each, detail=_detail(parts, each, now)) for each in fires.why(parts.database, stored, at)]


def _detail(parts: Cronq, fire: Fire, now: datetime) -> str:
    row = fire.job
    if row is None:
        late = fire.disposition == UNDECIDED
        return _overdue(parts, fire.detail, now - fire.fire_time) if late else fire.detail
    if fire.batch is not None:
        waits = State.PENDING in fire.batch.counts
        return fire.detail + (_unserved(parts, row) if waits else "")
    if row["state"] in (State.SCHEDULED, State.RETRYING) and row["held_at"] is None:
        return _unpublished(parts, fire, now) + _attempts(parts, row)
    if row["state"] == State.PENDING:
        return fire.detail + _unserved(parts, row) + _attempts(parts, row)
    return fire.detail + _attempts(parts, row)


def _unpublished(parts: Cronq, fire: Fire, now: datetime) -> str:
    """Say of a job that waits to be published what for, once it is due."""
    assert fire.job is not None
    if fire.job["waits_for"] is not None:
        return f"it is due, and waits for room under {fire.job['waits_for']}" + _unserved(parts, fire.job)
    if fire.job["published_at"] is not None:
        return fire.detail
    return _overdue(parts, fire.detail, now - fire.job["due_at"])


def _overdue(parts: Cronq, detail: str, late: timedelta) -> str:
    seconds = int(late.total_seconds())
    if seconds < 1:
        return detail
    return f"{detail}, and overdue by {in_words(timedelta(seconds=seconds))}: {_leader(parts)}"


def _leader(parts: Cronq) -> str:
    known = leader_fields(parts)
    if known["redis_error"] is not None:
        return "Redis does not answer, so who leads is not known"
    if known["holder"] is None:
        return NOBODY_LEADS
    return f"{known['holder']} leads, in term {known['term']}"


def _unserved(parts: Cronq, row: Any) -> str:  # noqa: ANN401 - a row of the job table
    reason = unserved_reason(parts, row)
    return "" if reason is None else f"; {reason}"


def _attempts(parts: Cronq, row: Any) -> str:  # noqa: ANN401 - a row of the job table
    """Say what the attempts met before the one that ended the job, and how that one failed."""
    if row["state"] in (State.SCHEDULED, State.PENDING, State.SKIPPED):
        return ""
    ended = [attempt_fields(each) for each in attempts_of(parts.database, row["id"])]
    said = ""
    if ended and State(row["state"]) in ENDS and ended[-1]["outcome"] == row["state"]:
        last = ended.pop()
        said = f" at attempt {last['number']}" if ended else ""
        said += f": {last_line(last['error'])}" if last["error"] else ""
    return said + "".join(f"; attempt {each['number']}: {_met(each)}" for each in ended[-TOLD:])


def _met(attempt: dict[str, Any]) -> str:
    if attempt["outcome"] == Outcome.LOST:
        return f"worker {attempt['worker']} went silent"
    if attempt["outcome"] == Outcome.HANDED_BACK:
        return f"worker {attempt['worker']} shut down and handed it back"
    return last_line(attempt["error"]) or str(attempt["outcome"]).lower().replace("_", " ")
