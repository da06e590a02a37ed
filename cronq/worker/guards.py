"""Which limits count for the jobs of this process? Read from SQL now and then; none cost nothing."""

import time
from typing import Final

from cronq.limits import Limits
from cronq.store.database import Database, is_outage
from cronq.store.guarded import Guard
from cronq.store.limits import read_limits
from cronq.telemetry.log import get_logger

READ_AGAIN_S: Final = 5.0

log = get_logger(__name__)


class Guards:
    """The limits as this process knows them: a few seconds old at most, while the database answers."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._limits = Limits()
        self._read_at: float | None = None

    def of(self, tenant: str | None, task: str, queue: str | None) -> list[Guard]:
        """Return the limits that count jobs, of those that concern such a job."""
        self._read()
        if not self._limits:
            return []
        return [guard for guard in self._limits.of(tenant, task, queue) if guard[1].counts_jobs]

    def _read(self) -> None:
        now = time.monotonic()
        if self._read_at is not None and now < self._read_at + READ_AGAIN_S:
            return
        self._read_at = now
        try:
            self._limits = read_limits(self._database)
        except ValueError as error:
            log.error(  # noqa: TRY400 - the sentence says it
                "limits.unreadable", error=str(error), consequence="this worker goes on with those it knew"
            )
        except Exception as error:
            if not is_outage(error):
                raise
