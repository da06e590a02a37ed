"""What a task body calls to say how far it is.

Outside a job nothing happens, so that a task can be called and tested like any function. Reports are
throttled: a call that is not sent costs a fraction of a microsecond more than looking at the clock. The last
report of a job is always kept. No fault of Redis ever reaches the body.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from contextvars import ContextVar
from typing import Any, TypeVar

from cronq.telemetry.masking import without_secrets

T = TypeVar("T")
MAX_LINE = 500
MAX_PENDING_LINES = 200
STEP_INTERVAL_S = 0.05
"""Seconds between two reports that are sent early because the step is new."""


class Report:
    """One running job's progress: written by the body's thread, sent by it or by the lease keeper's."""

    def __init__(
        self, job_id: str, attempt: int, *, interval_s: float, send: Callable[["Report"], None]
    ) -> None:
        self.job_id, self.attempt = job_id, attempt
        self.done: float = 0
        self.total: float | None = None
        self.step: str | None = None
        self.lines: deque[str] = deque(maxlen=MAX_PENDING_LINES)
        self.stop: type[Exception] | None = None  #: set by the lease keeper
        self.dirty = False
        self.completed = False
        self.closed = False
        self.handed_in = False  #: the body itself settles the job, in its own transaction
        self._interval_s, self._send = interval_s, send
        self._send_after = self._send_step_after = 0.0
        self._sending = threading.Lock()

    def update(self, done: float, total: float | None, step: str | None) -> None:
        """Take a report in; send it if the last one is long enough ago, which is sooner for a new step."""
        if self.stop is not None:
            raise self.stop(f"job {self.job_id} was told to stop")
        new_step = step is not None and step != self.step
        self.done = done
        if total is not None:
            self.total = total
        if step is not None:
            self.step = step
        self.dirty = True
        now = time.monotonic()
        if now >= self._send_after or (new_step and now >= self._send_step_after):
            self._send_after, self._send_step_after = now + self._interval_s, now + STEP_INTERVAL_S
            self.flush()

    def flush(self) -> None:
        """Send what has not been sent."""
        # One at a time: or what the lease keeper's thread took down first may arrive last.
        with self._sending:
            self._send_unsent()

    def close(self, *, completed: bool) -> None:
        """Send the last word of a body that reported anything, so that Redis ends with what SQL keeps."""
        with self._sending:
            self.completed, self.closed = completed, True
            if completed and self._send_after > 0.0:
                self.dirty = True
            self._send_unsent()

    def _send_unsent(self) -> None:
        if self.dirty or self.lines:
            self.dirty = False
            self._send(self)

    def take_lines(self) -> list[str]:
        """Return the log lines that have not been sent, with passwords in addresses masked; forget them."""
        lines, self.lines = self.lines, deque(maxlen=MAX_PENDING_LINES)
        return [without_secrets(line) for line in lines]

    def state(self) -> dict[str, Any]:
        """Return the progress as it is shown: `progress` is 0 to 100."""
        done, total = _number(self.done) or 0, _number(self.total)
        percent = 0 if not total else int(max(0, min(100, 100.0 * done / total)))
        if self.completed:
            percent = 100
        return {
            "job_id": self.job_id,
            "attempt": self.attempt,
            "progress": percent,
            "current_step": without_secrets(self.step),
            "steps_completed": done,
            "steps_total": total,
            "updated_at": time.time(),
        }


def _number(given: Any) -> float | None:  # noqa: ANN401 - whatever a body reported
    """Return `given` as a number that JSON has, or None: a job's end must not fail by what it reported."""
    try:
        if not math.isfinite(given):
            return None
        return given if isinstance(given, int | float) else float(given)
    except (TypeError, ValueError, OverflowError):
        return None


reporting: ContextVar[Report | None] = ContextVar("cronq_report", default=None)


def update(done: float, total: float | None = None, step: str | None = None) -> None:
    """Say that `done` of `total` is done, and which `step` is under way.

    Raises `Cancelled` when somebody asked for the job to stop, and `LeaseLost` when another worker has it.
    """
    report = reporting.get()
    if report is not None:
        report.update(done, total, step)


def track(items: Iterable[T], total: int | None = None, step: str | None = None) -> Iterator[T]:
    """Yield `items`, reporting how many have been worked through; `total` defaults to their number."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    update(0, total, step)
    for done, item in enumerate(items, start=1):
        yield item
        update(done, total, step)


def log(line: str) -> None:
    """Attach a line to the job; the last 200 are kept, each of at most 500 characters."""
    report = reporting.get()
    if report is not None:
        report.lines.append(line[:MAX_LINE])
