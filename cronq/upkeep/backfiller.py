"""Carries backfills on: as many jobs at a time as each may have under way."""

from collections.abc import Callable

from cronq.store.backfills import go_on, running_backfills
from cronq.store.database import Database
from cronq.store.terms import Term


class Backfiller:
    """Where a backfill stands is in SQL, so the next leader goes on where this one stopped."""

    def __init__(self, database: Database, tell_loop: Callable[[], None]) -> None:
        self._database, self._tell_loop = database, tell_loop

    def run(self, term: Term) -> None:
        """Start what there is room for now. Raises `NotLeader`."""
        started = [go_on(self._database, term, each) for each in running_backfills(self._database)]
        if any(started):
            self._tell_loop()
