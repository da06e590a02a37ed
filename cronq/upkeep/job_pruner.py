"""Deletes jobs whose time is over, so that the database does not grow for ever."""

from typing import Final

from cronq.store.database import Database
from cronq.store.pruning import prune_jobs
from cronq.store.terms import Term
from cronq.telemetry.log import get_logger

CHUNK: Final = 200
"""Jobs that one look deletes: publishing waits meanwhile."""
REST: Final = 60
"""Looks that are left out after one that found no more to delete."""

log = get_logger(__name__)


class JobPruner:
    """Looks once a second while there is something to delete, else once a minute."""

    def __init__(self, database: Database, keep_s: float) -> None:
        """Take how many seconds after its end a job is kept."""
        self._database, self._keep_s = database, keep_s
        self._rest = 0

    def run(self, _term: Term) -> None:
        """Delete a chunk. That a deposed leader does so too harms nobody."""
        if self._rest > 0:
            self._rest -= 1
            return
        deleted = prune_jobs(self._database, older_than_s=self._keep_s, limit=CHUNK)
        if deleted < CHUNK:
            self._rest = REST
        if deleted:
            log.info("jobs.pruned", jobs=deleted, ended_before_s=self._keep_s)
