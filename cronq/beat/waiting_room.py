"""Due jobs that wait for room under a limit: in SQL, with the reason, and in memory only the next ones."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from cronq.beat.admission import WINDOW, Admission
from cronq.beat.buckets import Bucket
from cronq.delivery.publisher import Publisher
from cronq.limits import Limits
from cronq.store import breakers
from cronq.store import room as store
from cronq.store.agenda import DueJob
from cronq.store.database import Database
from cronq.store.limits import read_limits
from cronq.telemetry.log import get_logger

MARK_BATCH: Final = 2000
FILL_LANES: Final = 50
SOUND_S: Final = 0.05
"""Seconds between two looks at how deep a queue is that somebody waits for."""
AWAY_S: Final = 0.5
COUNT_S: Final = 1.0
BREAK_S: Final = 0.5
RECOUNT_S: Final = 5.0
LIMITS_S: Final = 5.0
OFFERS_S: Final = 0.5
"""Seconds between two looks at who works, while a job waits for a place."""
REST: Final = 20
"""A look is not repeated before this many times as long as it took."""

log = get_logger(__name__)


@dataclass(slots=True)
class WaitingRoom:
    """The admission of one leader, and what it knows of SQL and the broker."""

    database: Database
    publisher: Publisher
    offers: Callable[[], Mapping[str, int] | None]  #: jobs at a time by queue; None: it cannot be known now
    admission: Admission = field(init=False)
    _limits: Limits = field(default_factory=Limits)
    _begun: float = 0.0
    _next_count: float = 0.0
    _next_recount: float = 0.0
    _next_sounding: float = 0.0
    _next_offers: float = 0.0
    _next_limits: float = 0.0
    _next_breakers: float = 0.0
    _has_breakers: bool = False

    def __post_init__(self) -> None:
        self.admission = Admission(self.publisher.queue_of)

    def begin(self) -> None:
        """Start a term with the limits and the counts that SQL has."""
        self._take_up(self._read_limits(Limits()))

    def _read_limits(self, known: Limits) -> Limits:
        self._next_limits = time.monotonic() + LIMITS_S
        try:
            return read_limits(self.database)
        except ValueError as error:
            log.error(  # noqa: TRY400 - the sentence says it
                "limits.unreadable",
                error=str(error),
                consequence="this beat goes on with those it knew; at its start it knows none",
            )
            return known

    def _take_up(self, limits: Limits) -> None:
        self._begun, self._limits = time.monotonic(), limits
        self._next_offers = self._next_sounding = 0.0
        self._has_breakers = any(each.break_after is not None for each in self._limits.limits.values())
        self.admission.reset(self._limits, self._begun, self._recent)
        self.look_at_breakers()
        if self._limits:
            self._count(())
        self.admission.recount(store.waiting_lanes(self.database))

    def forget(self) -> None:
        """Forget everything; SQL has it all."""
        self.admission.reset(Limits(), time.monotonic())

    def sort(self, batch: list[DueJob]) -> list[DueJob]:
        """Return those of `batch` that no limit counts for; the others wait for `release`."""
        if not self.admission and all(job.needs is None for job in batch):
            return batch
        return self.admission.sort(batch)

    def release(self) -> list[DueJob]:
        """Return the next jobs that there is room for."""
        return self.admission.release(time.monotonic(), self.publisher.batch) if self.admission else []

    def give_back(self, jobs: list[DueJob]) -> None:
        """Take back that `jobs` went out: the broker did not take them."""
        if self.admission:
            self.admission.give_back(jobs)

    def step(self, on_the_way: Iterable[str]) -> bool:
        """Write down who waits, read who is next, look for room; tell whether there is more to do at once.

        on_the_way: jobs that were sent, and whose rows do not say so yet.
        """
        if time.monotonic() >= self._next_limits:
            self.look_at_limits(on_the_way)
        if not self.admission:
            return False
        unmarked = self.admission.unmarked(MARK_BATCH)
        store.mark_waiting(self.database, unmarked)
        self.admission.marked(job_id for job_id, _key in unmarked)
        self._fill(frozenset(on_the_way))
        now = time.monotonic()
        if now >= self._next_offers and self.admission.keys.seeks_places:
            self._look_at_offers(now)
        if now >= self._next_sounding:
            self._sound(now)
        if now >= self._next_breakers:
            self.look_at_breakers()
        if now >= self._next_count and self.admission.waits:
            self._count(on_the_way)
        if now >= self._next_recount and not self.admission.unmarked(1):
            self._recount()
        return self.admission.ready or len(unmarked) == MARK_BATCH or bool(self.admission.hungry())

    def look_at_limits(self, on_the_way: Iterable[str] = ()) -> None:
        """See whether somebody changed the limits; what goes on and waits is counted anew by them."""
        if any(True for _ in on_the_way) or self.admission.unmarked(1):
            return  # SQL does not know all yet: in the next step
        found = self._read_limits(self._limits)
        if found != self._limits:
            log.info("limits.changed", consequence="they count from now on")
            self._take_up(found)

    def look_at_breakers(self) -> None:
        """See which dependencies fail, and let one job try where the time is up."""
        self._next_breakers = time.monotonic() + BREAK_S
        if self._has_breakers:
            if breakers.let_try(self.database):
                log.info(
                    "breaker.half_open", consequence="one job tries whether the dependency is well again"
                )
            found = breakers.read_breakers(self.database).items()
            self.admission.keys.break_off({key: each.room for key, each in found})

    def seconds_to_wait(self) -> float | None:
        """Return the seconds until there may be room; None: nothing says when."""
        if not self.admission:
            return None
        now = time.monotonic()
        waits = [self.admission.keys.opens_in(now)]
        if self.admission.keys.deep():
            waits.append(max(0.0, self._next_sounding - now))
        return min((wait for wait in waits if wait is not None), default=None)

    def _fill(self, on_the_way: frozenset[str]) -> None:
        for lane in self.admission.hungry()[:FILL_LANES]:
            found = store.jobs_of_lane(self.database, lane, limit=WINDOW + 1)
            jobs = [job for job in found[:WINDOW] if job.id not in on_the_way]
            self.admission.fill(lane, jobs, all_read=len(found) <= WINDOW)

    def _sound(self, now: float) -> None:
        self._next_sounding = now + SOUND_S
        for queue in self.admission.keys.deep():
            try:
                self.admission.keys.sounded(queue, self.publisher.depth(queue))
            except self.publisher.outages as error:
                self.publisher.close()
                self._next_sounding = now + AWAY_S
                log.warning_once(
                    "queue.not_sounded", queue=queue, error=str(error), consequence="its jobs wait"
                )

    def _look_at_offers(self, now: float) -> None:
        self._next_offers = now + OFFERS_S
        slots = self.offers()
        if slots is not None:
            # Without an answer what was known counts on; if nothing was, the first place does.
            self.admission.keys.offered(slots)

    def _count(self, on_the_way: Iterable[str]) -> None:
        started = time.monotonic()
        self.admission.count_again(store.jobs_going_on(self.database, self._limits), on_the_way)
        took = time.monotonic() - started
        self._next_count = started + max(COUNT_S, took * REST)

    def _recount(self) -> None:
        started = time.monotonic()
        self.admission.recount(store.waiting_lanes(self.database))
        took = time.monotonic() - started
        self._next_recount = started + max(RECOUNT_S, took * REST)

    def _recent(self, bucket: Bucket) -> int:
        """Return how much of a rate was used a moment ago, by the leader before this one."""
        if time.monotonic() - self._begun > bucket.refill_s:
            return 0
        return store.count_recent(self.database, bucket.key, bucket.limit, within_s=bucket.refill_s)
