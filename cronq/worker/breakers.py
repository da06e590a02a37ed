"""How did a job go for the dependencies that it calls? Noted with the end of each attempt."""

from collections.abc import Sequence
from typing import Final

from cronq.job import Outcome
from cronq.retry import Kind
from cronq.retry.kinds import FINAL
from cronq.store.attempts import Settlement
from cronq.store.breakers import note_failure, note_success
from cronq.store.database import Database
from cronq.store.guarded import Guard
from cronq.telemetry.log import get_logger

NOT_ITS_FAULT: Final = FINAL | {Kind.RATE_LIMITED, Kind.WORKER_LOST, Kind.DEADLOCK}
"""Kinds of failures that say nothing about whether the other side is well."""

log = get_logger(__name__)


def tell_breakers(database: Database, guards: Sequence[Guard], settlement: Settlement) -> bool:
    """Note how the job went; tell whether a breaker lets more or fewer jobs out since."""
    well = settlement.outcome is Outcome.COMPLETED
    failed = settlement.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)
    if not well and (not failed or settlement.kind in NOT_ITS_FAULT):
        return False
    moved = False
    for key, limit in guards:
        if limit.break_after is None:
            continue
        error = (settlement.error or "").strip().rsplit("\n", 1)[-1]
        before, after = note_success(database, key) if well else note_failure(database, key, limit, error)
        if before.room != after.room:
            moved = True
            log.warning("breaker.moved", dependency=key, state=after.state, failures=after.failures)
    return moved
