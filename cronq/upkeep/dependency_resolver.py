"""Lets jobs go that come after others, once those are done; or records that they do not run."""

from collections.abc import Callable, Collection
from typing import Any, Final

from cronq.failpoints import failpoint
from cronq.schedule import After, Join
from cronq.store.database import Database
from cronq.store.dependencies import Upstream, let_go, waiting_for_others
from cronq.store.terms import Term
from cronq.telemetry.log import get_logger

PAGE: Final = 500

log = get_logger(__name__)


class DependencyResolver:
    """Looks at every job that waits for others; what it decides frees others in the same look."""

    def __init__(self, database: Database, notice: Callable[[dict[str, Any]], None]) -> None:
        """notice: tells this beat's own loop what it has to look at now."""
        self._database, self._notice = database, notice

    def run(self, term: Term) -> None:
        """Look until nothing more follows."""
        while self._look(term):
            pass

    def _look(self, term: Term) -> int:
        """Decide about what can be decided; return how many do not run, for others may wait for those."""
        skipped, seen = 0, None
        while page := waiting_for_others(self._database, seen=seen, limit=PAGE):
            seen = page[-1]
            verdicts = {waiting.id: decide(waiting.after, waiting.upstream.values()) for waiting in page}
            go = [job_id for job_id, goes in verdicts.items() if goes]
            skip = [job_id for job_id, goes in verdicts.items() if goes is False]
            failpoint("before_let_go")
            let_go(self._database, term, go, skip)
            if skip:
                log.info("fire.skipped", reason="upstream", count=len(skip), jobs=",".join(skip[:3]))
            for job_id in go:
                self._notice({"kind": "job", "job_id": job_id})
            skipped += len(skip)
        return skipped


def decide(after: After, upstream: Collection[Upstream]) -> bool | None:
    """Tell whether a job runs (True), does not (False), or still has to wait (None)."""
    good = {Upstream.COMPLETED, Upstream.FAILED} if after.on_failure else {Upstream.COMPLETED}
    done = [state in good for state in upstream if state is not Upstream.OPEN]
    if after.join is Join.ANY:
        settled = any(done) or len(done) == len(upstream)
        return any(done) if settled else None
    if not all(done):
        return False
    return True if len(done) == len(upstream) else None
