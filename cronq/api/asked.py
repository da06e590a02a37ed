"""What the API takes: unknown fields are refused, so that no wish is silently ignored."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from cronq.job import State
from cronq.needs import parse
from cronq.schedule import CatchUp, Dst, Overlap
from cronq.store.backfills import MOST_AT_ONCE, BackfillRange
from cronq.store.dead import DeadFilter
from cronq.store.jobs import JobFilter
from cronq.webhooks.address import LONGEST_URL

MOST_PRIORITY = 9
Duration = Annotated[str | float, Field(description='a number of seconds, or a text such as "90s", "1h30m"')]
FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def _within_reach(moment: datetime) -> datetime:
    if not FIRST <= moment < LAST:
        raise ValueError("an instant must lie between 1970 and 2200")
    return moment


Instant = Annotated[AwareDatetime, AfterValidator(_within_reach)]
Name = Annotated[str, Field(min_length=1, max_length=255)]
CallbackUrl = Annotated[
    str, Field(max_length=LONGEST_URL, description="whom to tell of the end, by a signed webhook")
]


NeedsText = Annotated[
    Name,
    AfterValidator(lambda text: str(parse(text))),
    Field(description="instead of a queue: kind of machine and places, `cpu@eu-west.a,eu-west+30`"),
]


def wrong_field(field: str, said: str) -> PydanticCustomError:
    """Return the error that says what is wrong with one field, as it stands beside others."""
    return PydanticCustomError("wrong_field", "{said}", {"field": field, "said": said})


def _not_both(queue: str | None, needs: str | None) -> None:
    if queue is not None and needs is not None:
        raise wrong_field("needs", "give queue or needs, not both: needs say which queues")


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


class JobIn(_In):
    """A job to run, now or later."""

    type: Name = Field(description="the Celery task's registered name")
    input: dict[str, Any] | None = Field(None, description="keyword arguments; the same as `kwargs`")
    args: list[Any] = Field(default_factory=list)
    kwargs: dict[str, Any] = Field(default_factory=dict)
    run_at: Instant | None = Field(None, description="when, with an offset; now by default")
    run_in: Duration | None = Field(None, description="how long from now; not together with `run_at`")
    queue: Name | None = Field(None, description="by default Celery's own routing decides")
    needs: NeedsText | None = None
    priority: int | None = Field(None, ge=0, le=MOST_PRIORITY, description="higher is sooner")
    max_attempts: int | None = Field(None, ge=1, le=1000)
    dedup_key: Name | None = Field(None, description="the same as the header `Idempotency-Key`")
    tenant: Name | None = None
    callback_url: CallbackUrl | None = None

    @model_validator(mode="after")
    def _one_way(self) -> "JobIn":
        if self.run_at is not None and self.run_in is not None:
            raise ValueError("give run_at or run_in, not both")
        if self.input is not None and self.kwargs:
            raise ValueError("give input or kwargs, not both: they are the same")
        _not_both(self.queue, self.needs)
        return self


class JobQuery(_In):
    """Which jobs; what is left out does not matter."""

    state: State | None = None
    schedule: Name | None = None
    type: Name | None = None
    tenant: Name | None = None
    queue: Name | None = None
    since: Instant | None = Field(None, description="planned then or later")
    until: Instant | None = Field(None, description="planned before")
    q: Name | None = Field(None, description="part of the id, type, schedule, tenant or error")

    def filter(self, before: tuple[datetime, str] | None = None) -> JobFilter:
        """Return the same as the store takes it; before: where a page begins."""
        names = {"state", "schedule", "tenant", "queue", "since", "until"}
        given = self.model_dump(include=names)
        return JobFilter(**given, task=self.type, text=self.q, before=before)


class JobsQuery(JobQuery):
    """Which jobs, and which page of them."""

    cursor: str | None = None
    limit: int = Field(50, ge=1, le=500)


class BulkIn(_In):
    """Many jobs to act on."""

    filter: JobQuery
    dry_run: bool = Field(True, description="only say how many there are")

    @model_validator(mode="after")
    def _not_all(self) -> "BulkIn":
        if not self.filter.model_dump(exclude_none=True):
            raise ValueError("the filter is empty; say which jobs")
        return self


class DeadQuery(_In):
    """Which dead letters; what is left out does not matter."""

    task: Name | None = None
    schedule: Name | None = None
    tenant: Name | None = None
    kind: Name | None = Field(None, description="what sort of failure")
    since: Instant | None = Field(None, description="dead since then or later")
    until: Instant | None = None

    def filter(self) -> DeadFilter:
        """Return the same as the store takes it."""
        return DeadFilter(**self.model_dump(include=set(DeadQuery.model_fields)))


class DeadsQuery(DeadQuery):
    """Which dead letters, and which page of them."""

    cursor: str | None = None
    limit: int = Field(50, ge=1, le=500)


class DeadBulkIn(_In):
    """Many dead letters to act on; an empty filter means all."""

    filter: DeadQuery
    dry_run: bool = Field(True, description="only say how many there are")


class BackfillIn(_In):
    """A range of past fire times to run again."""

    start: Instant = Field(description="the first instant of the range")
    end: Instant = Field(description="the first instant behind it")
    concurrency: int = Field(1, ge=1, le=MOST_AT_ONCE, description="how many of its jobs run at a time")
    newest_first: bool = False
    again: bool = Field(False, description="also fire times that completed, or are under way")
    dry_run: bool = Field(False, description="only say what would run")

    def range(self) -> BackfillRange:
        """Return the same as the store takes it."""
        return BackfillRange(**self.model_dump(exclude={"dry_run"}))


class Note(_In):
    """Why something is done."""

    note: str | None = Field(None, max_length=1000, description="for whoever finds it paused")


class ItemIn(_In):
    """One item of a fan-out, with what is its own."""

    item: StrictStr | StrictInt
    kwargs: dict[str, Any] = Field(default_factory=dict)
    tenant: Name | None = None
    callback_url: CallbackUrl | None = None


class AfterIn(_In):
    """Which schedules go first: exactly one of `all` and `any`."""

    all: Name | list[Name] | None = None
    any: Name | list[Name] | None = None
    on_failure: bool = Field(False, description="a failed job counts as well as a completed one")


class ScheduleIn(_In):
    """A schedule to create or replace: exactly one of `cron`, `every`, `delay`, `at`, `rrule` says when."""

    task: Name
    cron: str | list[str] | None = None
    every: Duration | None = None
    delay: Duration | None = None
    at: Instant | None = None
    rrule: str | None = None
    tz: str | None = Field(None, description="an IANA time zone; of `cron` and `rrule`")
    dst: Dst | None = Field(None, description="of `cron`")
    args: list[Any] = Field(default_factory=list)
    kwargs: dict[str, Any] = Field(default_factory=dict)
    queue: Name | None = None
    needs: NeedsText | None = None
    priority: int | None = Field(None, ge=0, le=MOST_PRIORITY)
    overlap: Overlap = Overlap.SKIP
    buffer: int = Field(100, ge=1, le=100_000)
    catch_up: CatchUp = CatchUp.LATEST
    catch_up_window: Duration = "1h"
    jitter: Duration = 0.0
    spread: Duration = 0.0
    max_attempts: int | None = Field(None, ge=1, le=1000)
    pause_after: int | None = Field(None, ge=1, le=1000, description="failures in a row that pause it")
    tenant: Name | None = None
    callback_url: CallbackUrl | None = None
    fan_out: list[StrictStr | StrictInt | ItemIn] | None = Field(
        None, min_length=1, description="one job for each of these items"
    )
    on_complete: Name | None = Field(None, description="of a fan-out: the task that runs when all have ended")
    after: Name | list[Name] | AfterIn | None = Field(None, description="which schedules go first")

    @field_validator("fan_out", mode="before")
    @classmethod
    def _no_code(cls, given: Any) -> Any:  # noqa: ANN401 - whatever is sent
        if isinstance(given, str | dict):
            raise ValueError(  # noqa: TRY004 - what pydantic answers with
                "give a list of items. A function or a query is declared in code (see the fan-out guide): "
                "from here it would let whoever may write schedules run anything in the workers"
            )
        return given

    @model_validator(mode="after")
    def _one_timing(self) -> "ScheduleIn":
        given = [n for n in ("cron", "every", "delay", "at", "rrule") if getattr(self, n) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of cron, every, delay, at, rrule, not {len(given)}")
        if self.tz is not None and given[0] not in ("cron", "rrule"):
            raise wrong_field("tz", f"tz goes with cron and rrule, not with {given[0]}")
        if self.dst is not None and given[0] != "cron":
            raise wrong_field("dst", f"dst goes with cron, not with {given[0]}")
        _not_both(self.queue, self.needs)
        return self
