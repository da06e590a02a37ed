"""What the API gives."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from cronq.job import State
from cronq.store.dead import DeadLetter


class Metadata(BaseModel):
    """How far a job is."""

    current_step: str | None
    steps_completed: float | None
    steps_total: float | None


class Job(BaseModel):
    """A job as it stands."""

    id: str
    type: str
    status: State
    progress: int = Field(ge=0, le=100)
    created_at: datetime
    due_at: datetime
    published_at: datetime | None
    started_at: datetime | None
    updated_at: datetime
    finished_at: datetime | None
    metadata: Metadata
    attempts: int
    max_attempts: int | None
    error: str | None
    kind: str | None
    result: Any
    schedule: str | None
    fire_time: datetime | None
    item: str | None = Field(description="of a fan-out or a backfill")
    batch: str | None = Field(description="of a fan-out: see `/api/batches`")
    trigger: str
    reason: str | None
    waits_for: str | None
    coalesced_into: datetime | None
    tenant: str | None
    queue: str | None
    needs: str | None = Field(description="the kind of machine, and the places: `cpu@eu-west.a,eu-west+30`")
    priority: int | None
    worker: str | None
    args: list[Any]
    kwargs: dict[str, Any]
    cancel_requested_at: datetime | None
    callback_url: str | None


class JobPage(BaseModel):
    """Some jobs, and where the next ones are."""

    items: list[Job]
    next_cursor: str | None


class BulkOut(BaseModel):
    """What was done to how many jobs. When more fit than were changed, send it again."""

    dry_run: bool
    matching: int
    changed: int


class Attempt(BaseModel):
    """One finished attempt."""

    number: int
    worker: str | None
    started_at: datetime | None
    ended_at: datetime
    outcome: str
    kind: str | None
    error: str | None


class Attempts(BaseModel):
    """The finished attempts of a job."""

    items: list[Attempt]


class Log(BaseModel):
    """The last lines that a job logged."""

    lines: list[str]


class FireBatch(BaseModel):
    """How the batch of a fan-out's fire time stands."""

    id: str
    status: str
    total: int
    done: int
    failed: int
    ended_at: datetime | None


class Fire(BaseModel):
    """What became of one fire time."""

    fire_time: datetime
    disposition: str
    reason: str | None
    detail: str
    into: datetime | None
    job: Job | None
    batch: FireBatch | None


class Fires(BaseModel):
    """Fire times, oldest first; `next_from` is where the next page starts."""

    schedule: str
    items: list[Fire]
    next_from: datetime | None


class DeadPage(BaseModel):
    """Some dead letters, and where the next ones are."""

    items: list[DeadLetter]
    next_cursor: str | None


class BackfillRow(BaseModel):
    """A backfill as it stands."""

    id: str
    schedule_id: str
    schedule_name: str
    range_start: datetime
    range_end: datetime
    concurrency: int
    newest_first: bool
    again: bool
    state: str
    note: str | None
    position: datetime | None
    fires: int
    planned: int
    actor: str
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None


class Backfill(BackfillRow):
    """The same with how many of its jobs stand in each state."""

    jobs: dict[str, int]


class Backfills(BaseModel):
    """Some backfills, the newest first."""

    items: list[BackfillRow]


class FieldChange(BaseModel):
    """One field of a declaration that a version changed."""

    field: str
    before: Any
    after: Any


class Version(BaseModel):
    """How a schedule was declared."""

    version: int
    at: datetime
    actor: str
    definition: dict[str, Any]
    changes: list[FieldChange]


class Versions(BaseModel):
    """A schedule's versions, the newest first."""

    schedule: str
    items: list[Version]


class CalendarOut(BaseModel):
    """A calendar, and who uses it."""

    name: str
    calendar: dict[str, Any]
    schedules: list[str]


class Calendars(BaseModel):
    """The calendars in use."""

    items: list[CalendarOut]


class ProblemOut(BaseModel):
    """An RFC 9457 problem document."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
