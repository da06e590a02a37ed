"""The beat's main loop: lead, publish at the due instant, plan ahead, look after the rest."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final

from cronq.beat.garbage import Garbage
from cronq.beat.lookout import AGENDA_ENOUGH, Lookout
from cronq.beat.planner import LATE_AFTER
from cronq.beat.planning import Planning
from cronq.beat.publishing import Publishing
from cronq.clock import Sighting, StoreClock
from cronq.coordination.leadership import Leadership
from cronq.errors import NotLeader
from cronq.settings import Settings
from cronq.store import agenda as store
from cronq.store.database import Database, is_outage
from cronq.store.terms import Term
from cronq.telemetry.log import get_logger

STANDBY_S: Final = 0.5
OUTAGE_PAUSE_S: Final = 0.5
STILL_S: Final = 0.04
"""Seconds before a due instant in which nothing else is begun."""
LOOK_AHEAD_S: Final = 0.1
"""Seconds before a due instant from which on the schedules of the jobs that are due then are looked up."""
CHORES_PUT_OFF_S: Final = 0.5
"""Seconds for which planning and the rest may be put off that way."""
CHORE_S: Final = 0.02
CHORE_MOST_S: Final = 0.1
"""Seconds that one step of planning, marking or rendering should take: little when something is due soon,
more when nothing is, because larger steps cost less in all."""

log = get_logger(__name__)


@dataclass(slots=True)
class Upkeep:
    """One service that runs while this beat leads: what it does, and how often."""

    name: str
    every_s: float
    run: Callable[[Term], None]
    after_ends: bool = False  #: also at once when a job has ended whose end somebody waits for
    next_at: float = 0.0

    def run_if_time(self, term: Term, _within_s: float) -> None:
        """Run it, if its time has come."""
        now = time.monotonic()
        if now >= self.next_at:
            self.next_at = now + self.every_s
            self.run(term)


@dataclass(slots=True)
class BeatLoop:
    """Everything one beat does, in one thread, one step at a time."""

    settings: Settings
    database: Database
    leadership: Leadership
    planning: Planning
    publishing: Publishing
    clock: StoreClock
    sight: Callable[[], Sighting]
    begin_term: Callable[[Term], None]
    upkeep: list[Upkeep] = field(default_factory=list)
    wake: threading.Event = field(default_factory=threading.Event)
    notices: "SimpleQueue[dict[str, Any]]" = field(default_factory=SimpleQueue)
    _term: Term | None = None
    _next_clock: float = 0.0
    _chores_by: float = 0.0
    _garbage: Garbage = field(default_factory=Garbage)
    lookout: Lookout = field(init=False)

    def __post_init__(self) -> None:
        self.lookout = Lookout(self.database, self.planning, self.publishing, self.clock)

    def notice(self, what: dict[str, Any]) -> None:
        """Take a change notice; from any thread."""
        self.notices.put(what)
        self.wake.set()

    def run_once(self, longest_s: float = STANDBY_S) -> None:
        """Do what is due, then wait for the next due instant, a notice, or at most `longest_s` seconds."""
        wait = min(longest_s, self.step())
        if wait > 0 and self.wake.wait(wait):
            self.wake.clear()

    def step(self) -> float:
        """Do what is due now; return the seconds until there is something to do."""
        term = self.leadership.current()
        try:
            wait = self._stand_by() if term is None else self._lead(term)
        except NotLeader as error:
            if term is not None:
                self.leadership.step_down(term)
            log.warning("beat.fenced", error=str(error), consequence="this beat stands by")
            self._forget()
            return 0.0
        except Exception as error:
            self.lookout.doubt()
            if not is_outage(error):
                log.exception("beat.step_failed", consequence="nothing is lost; the beat tries again")
            else:
                log.warning_once(
                    "beat.database_away", error=str(error).split("\n")[0], consequence="waiting for it"
                )
            return OUTAGE_PAUSE_S
        # A step that failed is none: a leader that alone cannot reach SQL must not lead for ever.
        self.leadership.moved()
        return wait

    def _stand_by(self) -> float:
        self._read_clocks()
        self._drop_notices()
        if self._term is not None:
            self._forget()
        return STANDBY_S

    def _lead(self, term: Term) -> float:
        if term != self._term:
            self._read_clocks()
            self._drop_notices()
            self._begin(term)
        self._take_notices()
        busy = False
        for chore in self._chores(term):
            until_due = self._publish(term)
            if until_due is not None and self._keeps_still(until_due):
                return until_due
            busy |= bool(chore(_time_for_a_chore(until_due)))
        self._chores_by = time.monotonic() + CHORES_PUT_OFF_S
        return 0.0 if busy else self._seconds_to_wait()

    def _publish(self, term: Term) -> float | None:
        """Send what is due; return the seconds until more is, None: nothing waits."""
        if self.publishing.is_back(LATE_AFTER.total_seconds()):
            self._catch_up(term)
        self.publishing.publish_due(lambda: self.leadership.current() == term)
        until_due = self.publishing.seconds_to_due()
        if until_due is not None and STILL_S < until_due <= LOOK_AHEAD_S:
            self.publishing.look_ahead()
            until_due = self.publishing.seconds_to_due()
        return until_due

    def _chores(self, term: Term) -> Iterator[Callable[[float], object]]:
        """Yield what is to be done between two due instants, in small steps.

        Each is told how many seconds it should take at the most, and returns True if it has to go on at once.
        """
        yield lambda _within_s: self._read_clocks()
        yield self.publishing.mark_published
        yield lambda _within_s: self.publishing.look_for_room()
        yield partial(self._plan, term)
        yield lambda _within_s: self.lookout.look_for_foreign()
        yield lambda _within_s: self.lookout.look_for_overdue()
        for service in self.upkeep:
            yield partial(service.run_if_time, term)
        yield self.publishing.render_ahead
        yield lambda _within_s: self._garbage.look(self.publishing.seconds_to_due())

    def _keeps_still(self, until_due: float) -> bool:
        """Tell whether all else waits, because a job is due before it could be done; never for long."""
        return 0 < until_due <= STILL_S and time.monotonic() < self._chores_by

    def _plan(self, term: Term, within_s: float) -> None:
        enough = len(self.publishing.agenda) >= AGENDA_ENOUGH
        self.publishing.agenda.add(self.planning.step(term, enough=enough, within_s=within_s))

    def _seconds_to_wait(self) -> float:
        waits = [self.lookout.seconds_to_look()]
        if (until_due := self.publishing.seconds_to_due()) is not None:
            waits.append(until_due - LOOK_AHEAD_S if until_due > LOOK_AHEAD_S else until_due)
        if self.planning.next_at is not None:
            waits.append((self.planning.next_at - self.clock.now()).total_seconds())
        if (until_room := self.publishing.seconds_to_room()) is not None:
            waits.append(until_room)
        return max(0.0, min(waits))

    # -- taking over ---------------------------------------------------------------------------------------

    def _begin(self, term: Term) -> None:
        self._forget()
        self.begin_term(term)
        self.lookout.take_back_overdue(term)
        self.publishing.begin()
        self.lookout.look_again()
        self._term = term
        self.lookout.read_all()

    def _catch_up(self, term: Term) -> None:
        """Leave to the catch-up policy what was due while the broker was away."""
        while self.publishing.mark_published(CHORE_MOST_S):
            pass  # what was sent is not overdue
        self.lookout.read_again(self.lookout.take_back_overdue(term))
        self.publishing.away_since = None

    def _forget(self) -> None:
        self._term = None
        self.publishing.forget()

    def _read_clocks(self) -> None:
        if time.monotonic() >= self._next_clock:
            self._next_clock = time.monotonic() + self.settings.lock_s / 2
            trouble = self.clock.observe(self.sight())
            if trouble is not None:
                log.warning_once("clock.trouble", what=trouble, consequence="no fire time is doubled or lost")

    # -- notices -------------------------------------------------------------------------------------------

    def _drop_notices(self) -> None:
        """Forget what was told to a beat that did not lead: what it begins with, it reads from SQL."""
        for _notice in self._unread():
            pass

    def _unread(self) -> Iterator[dict[str, Any]]:
        with suppress(Empty):
            while True:
                yield self.notices.get_nowait()

    def _take_notices(self) -> None:
        fresh: list[str] = []
        changed: list[str] = []
        for notice in self._unread():
            match notice.get("kind"):
                case "job":
                    fresh.append(notice["job_id"])
                    self.publishing.ended(notice["job_id"])
                case "ended":
                    if "job_id" in notice:
                        self.publishing.ended(notice["job_id"])
                    if notice.get("schedule_id") is not None:
                        self._take_end(notice["schedule_id"])
                case "breaker":
                    self.publishing.waiting_room.look_at_breakers()
                case "schedule":
                    changed.append(notice["schedule_id"])
                case _:
                    self.lookout.look_again()
        if fresh:
            self.publishing.add_unknown(store.read_waiting(self.database, fresh))
        if changed:
            self.lookout.read_again(changed)

    def _take_end(self, schedule_id: str) -> None:
        """Go on with a schedule that waited for the end of a job."""
        self.publishing.release_held([schedule_id])
        for service in self.upkeep:
            if service.after_ends:
                service.next_at = 0.0


def _time_for_a_chore(until_due: float | None) -> float:
    """Return how many seconds one step may take if a job is due in `until_due` seconds (None: none is)."""
    return CHORE_MOST_S if until_due is None else max(CHORE_S, min(CHORE_MOST_S, until_due / 2))
