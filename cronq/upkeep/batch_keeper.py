"""Carries out what operators want of batches, and sees when a batch is over.

Each of its steps may be made again by the next leader, so it matters to nobody where one was killed.
"""

from collections.abc import Callable
from typing import Any, Final

from cronq.failpoints import failpoint
from cronq.store.batch_steps import cancel_items, end_batch, hold_items, open_batches, release_items
from cronq.store.database import Database
from cronq.store.terms import Term
from cronq.telemetry.log import get_logger

STEPS: Final = 5
"""Statements per batch and look: publishing waits meanwhile."""

log = get_logger(__name__)


class BatchKeeper:
    """Looks at the batches that are not over; each look costs a few reads by an index."""

    def __init__(self, database: Database, notice: Callable[[dict[str, Any]], None]) -> None:
        """notice: tells this beat's own loop what it has to look at now."""
        self._database, self._notice = database, notice

    def run(self, term: Term) -> None:
        """Look once."""
        for row in open_batches(self._database):
            step = hold_items if row.paused_at is not None else release_items
            if row.cancelled_at is not None:
                step = cancel_items
            changed = 0
            for _ in range(STEPS):
                done = step(self._database, row.id)
                changed += done
                if done == 0:
                    break
            if changed and step is release_items:
                self._notice({"kind": "items"})
            failpoint("before_batch_end")
            follow_up = end_batch(self._database, row.id, term)
            if follow_up is None:
                continue
            log.info("batch.ended", batch=row.id, then=follow_up or None)
            self._notice({"kind": "ended", "schedule_id": row.schedule_id})
            if follow_up:
                self._notice({"kind": "job", "job_id": follow_up})
