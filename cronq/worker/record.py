"""What a body writes down while it runs: steps that are done, and the outcome in its own transaction."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from cronq.errors import LeaseLost
from cronq.failpoints import failpoint
from cronq.progress.reporter import Report
from cronq.store.attempts import Settlement
from cronq.store.once import MAX_KEY_CHARS, Remembered
from cronq.telemetry.log import get_logger
from cronq.worker.values import storable_json

T = TypeVar("T")

log = get_logger(__name__)


class NotCommitted(RuntimeError):
    """The body settled its job in a transaction that it did not commit; what it did there was rolled back."""


class Books(Protocol):
    """Where it is written."""

    def recall(self, job_id: str, token: str, key: str) -> Remembered:
        """Look a key up."""

    def remember(self, job_id: str, token: str, key: str, value: Any) -> bool:  # noqa: ANN401
        """Write down that a key is done; False: the lease is lost."""

    def settle_in(self, session: Any, settlement: Settlement) -> bool:  # noqa: ANN401
        """Write the outcome into the transaction of `session`; False: the lease is lost."""

    def is_completed_by(self, job_id: str, token: str) -> bool:
        """Tell whether that transaction was committed."""


class AttemptRecord:
    """The record of one attempt; `completed` builds the settlement of one that succeeded."""

    def __init__(
        self, books: Books, report: Report, token: str, completed: Callable[[Any], Settlement]
    ) -> None:
        self._books, self._report, self._token, self._completed = books, report, token, completed
        self._session: Any = None
        self._handed_in: Settlement | None = None

    def once(self, key: str, do: Callable[[], T]) -> T | None:
        """See `JobContext.once`."""
        if not 0 < len(key) <= MAX_KEY_CHARS:
            raise ValueError(f"the key {key!r} has {len(key)} characters, not 1 to {MAX_KEY_CHARS}")
        job_id = self._report.job_id
        known = self._books.recall(job_id, self._token, key)
        if not known.mine:
            raise LeaseLost(f"job {job_id} is not this worker's any more; {key!r} was not begun")
        if known.done:
            value: T | None = known.value
            return value
        value = storable_json(do(), job_id, what=f"what {key!r} returned")
        failpoint("after_once_before_record")
        if not self._books.remember(job_id, self._token, key, value):
            raise LeaseLost(f"job {job_id} is not this worker's any more; {key!r} may be done again")
        return value

    def settle(self, session: Any, result: Any) -> None:  # noqa: ANN401
        """See `JobContext.settle`."""
        settlement = self._completed(result)
        settlement = replace(settlement, progress={**(settlement.progress or {}), "progress": 100})
        if not self._books.settle_in(session, settlement):
            raise LeaseLost(
                f"job {settlement.job_id} is not this worker's any more; nothing is recorded here"
            )
        self._session, self._handed_in = session, settlement
        self._report.handed_in = True

    def outcome(self, error: BaseException | None) -> tuple[Settlement | None, BaseException | None]:
        """Return what the body committed by itself, or None; and the error that the attempt ended with."""
        if self._handed_in is None:
            return None, error
        # What is left open holds the lock on the job's own row.
        with contextlib.suppress(Exception):
            self._session.rollback()
        if not self._books.is_completed_by(self._handed_in.job_id, self._token):
            return None, error or NotCommitted(
                "the body settled its job, but did not commit that transaction"
            )
        if error is not None:
            log.warning(
                "job.failed_after_settling", job=self._handed_in.job_id, error=repr(error),
                consequence="it stays COMPLETED",
            )  # fmt: skip
        else:
            log.info(
                "job.settled", job=self._handed_in.job_id, state=self._handed_in.state, by="its own body"
            )
        return self._handed_in, None
