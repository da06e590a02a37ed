"""A schedule: when a task is due, with which arguments, under which policy. Standard library only."""

import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any

NAMESPACE = uuid.UUID("6f3f5bd4-6f0b-5c3a-9a0e-6a1c1d0d6a57")
"""The uuid5 namespace of every id that cronq derives."""


class Overlap(StrEnum):
    """What to do when a fire time comes while the schedule's previous job is not at an end."""

    SKIP = "skip"  #: the new fire time is recorded as skipped
    QUEUE = "queue"  #: it waits its turn, at most `Schedule.buffer` of them; later ones are skipped
    QUEUE_ONE = "queue_one"  #: at most one waits; later ones are skipped
    ALLOW = "allow"  #: both run side by side
    CANCEL_PREVIOUS = (
        "cancel_previous"  #: the previous job is asked to stop (ended after 10 s), then this one starts
    )
    TERMINATE_PREVIOUS = "terminate_previous"  #: the previous job is ended, then this one starts


class CatchUp(StrEnum):
    """What to do with fire times that passed while nobody was leading, within `Schedule.catch_up_window`."""

    SKIP = "skip"  #: none of them runs
    LATEST = "latest"  #: only the newest runs; the others are recorded as coalesced into it
    ALL = "all"  #: every one runs, spread over time


class Dst(StrEnum):
    """How a cron expression treats a change of the zone's UTC offset."""

    VIXIE = "vixie"  #: interval-like: every real instant; fixed-time: once per local day and time
    SKIP = "skip"  #: a fixed time inside a gap does not run at all
    BOTH = "both"  #: a fixed time runs in both copies of a repeated hour
    UTC = "utc"  #: the expression is matched against UTC


class Join(StrEnum):
    """Of several schedules that another one comes after: how many have to be done."""

    ALL = "all"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class After:
    """Which other schedules' jobs of the same fire time have to be completed first."""

    schedules: tuple[str, ...]  #: their names
    join: Join = Join.ALL
    on_failure: bool = False  #: a failed or timed-out job counts as well as a completed one


class Reason(StrEnum):
    """Why a fire time did not become a running job."""

    OVERLAP = "overlap"
    MISSED_WINDOW = "missed_window"
    COALESCED = "coalesced"
    PAUSED = "paused"
    EXCLUDED = "excluded"
    DST_GAP = "dst_gap"
    DST_REPEAT = "dst_repeat"
    BUFFER_FULL = "buffer_full"
    LIMIT_REACHED = "limit_reached"
    UPSTREAM = "upstream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One schedule as it was declared; `timing` is the data that `cronq.timing.timing_from` reads."""

    name: str
    task: str
    timing: dict[str, Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    queue: str | None = None  #: None: Celery's own routing decides
    needs: str | None = None  #: the kind of machine, and the places, instead of a queue (`cronq.needs`)
    priority: int | None = None  #: 0 to 9, higher is sooner, on both brokers
    overlap: Overlap = Overlap.SKIP
    buffer: int = 100  #: how many fire times may wait under `Overlap.QUEUE`
    catch_up: CatchUp = CatchUp.LATEST
    catch_up_window: timedelta = timedelta(hours=1)
    jitter: timedelta = timedelta(0)  #: each fire time is delayed by another part of this
    spread: timedelta = timedelta(0)  #: every fire time is delayed by the schedule's own part of this
    max_attempts: int | None = None  #: None: the task's own `max_retries` + 1
    pause_after: int | None = None  #: pause it, for a person to look, after so many failures in a row
    tenant: str | None = None
    callback_url: str | None = None  #: where a webhook tells that one of its jobs ended
    fan_out: dict[str, Any] | None = None  #: where its items come from: one job each (`cronq.declaration`)
    on_complete: str | None = None  #: of a fan-out: the task that runs once when all items are at an end
    after: After | None = None
    followed: bool = False  #: another schedule of the same code comes after it

    @property
    def id(self) -> str:
        """The schedule's id: it depends on the name only, so that it survives every edit and redeploy."""
        return schedule_id(self.name)


@lru_cache(maxsize=1024)
def schedule_id(name: str) -> str:
    """Return the id of the schedule that is called `name`."""
    return str(uuid.uuid5(NAMESPACE, name))
