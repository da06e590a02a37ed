"""What a task body may know about the job it works on. Standard library only."""

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime


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


running: ContextVar["JobContext | None"] = ContextVar("cronq_job", default=None)


def current_job() -> JobContext | None:
    """Return the job that this code runs in, or None outside one."""
    return running.get()
