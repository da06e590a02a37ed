"""What a task body may know about the job it works on, and ask of it. Standard library only."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Record(Protocol):
    """Where a running attempt writes down what it did."""

    def once(self, key: str, do: Callable[[], T]) -> T | None:
        """See `JobContext.once`."""

    def settle(self, session: Any, result: Any) -> None:  # noqa: ANN401
        """See `JobContext.settle`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """The job that runs here. `id` and `attempt` are what makes twice equal once."""

    id: str  #: the same for every attempt, and for every copy of the message
    task: str
    attempt: int  #: counts from 1
    max_attempts: int
    schedule: str | None  #: its name; None: an on-demand job
    fire_time: datetime | None  #: the nominal instant, however late this runs
    tenant: str | None
    record: Record | None = field(default=None, repr=False, compare=False)  #: None: a test's context

    def once(self, key: str, do: Callable[[], T]) -> T | None:
        """Call `do` unless an earlier attempt of this job has, and return what it returned then or now.

        What it returns is kept as JSON (at most 64 KiB; anything else becomes None). It is written down after
        `do` returned: a worker that dies between the two makes the next attempt call it again. Raises
        `LeaseLost`, before `do` is called, if another worker may have the job.
        """
        return do() if self.record is None else self.record.once(key, do)

    def settle(self, session: Any, result: Any = None) -> None:  # noqa: ANN401 - an SQLAlchemy session
        """Write into `session`'s transaction that this job is COMPLETED; the body then commits, and returns.

        session: an SQLAlchemy session or connection to cronq's database. Raises `LeaseLost` if another worker
        may have the job: let it through, so that the transaction is rolled back.
        """
        if self.record is not None:
            self.record.settle(session, result)


lease: ContextVar[str] = ContextVar("cronq_lease")
"""The token of the lease under which this code runs; unset outside a job."""

running: ContextVar["JobContext | None"] = ContextVar("cronq_job", default=None)


def current_job() -> JobContext | None:
    """Return the job that this code runs in, or None outside one."""
    return running.get()
