"""Takes jobs over from workers that went silent: their lease ran out, whatever happened to them.

Except when nobody could have renewed it: after a time in which this beat saw nothing of SQL, the workers get
a moment to renew first. Else each outage longer than a lease would run what was going on a second time.
"""

import time
from collections.abc import Callable
from typing import Any

from cronq.job import Outcome, State
from cronq.settings import Settings
from cronq.store.attempts import Settlement, settle
from cronq.store.database import Database, is_outage
from cronq.store.leases import silent_jobs
from cronq.store.terms import Term
from cronq.telemetry.log import get_logger

BATCH = 200
LEAST_GAP_S = 2.0
LEAST_GRACE_S = 2.0
"""Seconds that workers get after an outage: one failed renewal, and the next."""

log = get_logger(__name__)


class JobRescuer:
    """Every orphan gets another attempt at once, unless it keeps taking its worker with it."""

    def __init__(
        self, database: Database, settings: Settings, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._database, self._max_crashes = database, settings.max_crashes
        self._lease_s, self._monotonic = settings.lease_s, monotonic
        self._looked_at, self._wait_until = monotonic(), 0.0

    def run(self, _term: Term) -> None:
        """Rescue what is silent now. The lease's token guards each write: a live worker wins every race."""
        silent = silent_jobs(self._database, limit=BATCH)
        self.saw_sql()
        if self._monotonic() < self._wait_until:
            return
        for row in silent:
            try:
                self._rescue(row)
            except Exception as error:
                if is_outage(error):
                    raise
                log.exception("job.not_rescued", job=row.id, consequence="the others are; it is tried again")

    def _rescue(self, row: Any) -> None:  # noqa: ANN401 - a row of `silent_jobs`
        crashes = row.crashes + 1
        dead = crashes >= self._max_crashes
        cancelled = row.cancel_requested_at is not None
        state = State.CANCELLED if cancelled else State.FAILED if dead else State.RETRYING
        settlement = Settlement(
            job_id=row.id,
            token=row.lease_token,
            worker=row.worker,
            number=row.attempts,
            outcome=Outcome.LOST,
            state=state,
            kind="worker_lost",
            error=_said(row.worker, crashes, self._max_crashes),
            dead=state is State.FAILED,
        )
        if settle(self._database, settlement, only_expired=True):
            log.warning(
                "job.rescued", job=row.id, worker=row.worker, losses=crashes, state=state,
                consequence="it is dead" if dead else "another worker gets it",
            )  # fmt: skip

    def saw_sql(self) -> None:
        """Note that SQL answers: if it was away, or unseen by this beat, for long, workers may yet renew.

        A standby says so too: once it leads, it need not take the time before for an outage.
        """
        now = self._monotonic()
        # Two renewals fit into what an outage of a third leaves of a lease: so short a one costs no job. A
        # loop that is slow for a moment is no outage.
        if now - self._looked_at > max(LEAST_GAP_S, self._lease_s / 3):
            self.let_renew()
        self._looked_at = now

    def let_renew(self) -> None:
        """Let workers renew before any job is taken over: whether they could until now is not known."""
        self._wait_until = self._monotonic() + max(LEAST_GRACE_S, self._lease_s / 2)


def _said(worker: str, crashes: int, most: int) -> str:
    if crashes < most:
        return f"the worker {worker} went silent (loss {crashes} of {most})"
    return (
        f"not given to another worker: it took {crashes} with it, {worker} was the last, the limit is {most} "
        "(CRONQ_MAX_CRASHES); find out what ends them (memory, a native library), then: cronq dead retry"
    )
