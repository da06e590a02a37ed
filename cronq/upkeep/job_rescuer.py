"""Takes jobs over from workers that went silent: their lease ran out, whatever happened to them."""

from cronq.job import Outcome, State
from cronq.settings import Settings
from cronq.store.attempts import Settlement, settle, silent_jobs
from cronq.store.database import Database
from cronq.store.terms import Term
from cronq.telemetry.log import get_logger

BATCH = 200

log = get_logger(__name__)


class JobRescuer:
    """Every orphan gets another attempt at once, unless it keeps taking its worker with it."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self._max_crashes = database, settings.max_crashes

    def run(self, _term: Term) -> None:
        """Rescue what is silent now. The lease's token guards each write: a live worker wins every race."""
        for row in silent_jobs(self._database, limit=BATCH):
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
                error=f"the worker {row.worker} went silent (loss {crashes} of {self._max_crashes})",
                dead=state is State.FAILED,
            )
            if settle(self._database, settlement, only_expired=True):
                log.warning(
                    "job.rescued", job=row.id, worker=row.worker, losses=crashes, state=state,
                    consequence="it is dead" if dead else "another worker gets it",
                )  # fmt: skip
