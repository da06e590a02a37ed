"""Does this beat lead? Keeps the lock and the term together; the package's docstring has the rules."""

import threading
import time
from collections.abc import Callable

from cronq.coordination.lock import LeaderLock, Renewal
from cronq.coordination.redis_client import RedisError
from cronq.errors import first_line
from cronq.store.database import Database
from cronq.store.terms import Term, begin_term, read_term
from cronq.telemetry.log import get_logger

RENEWALS_PER_LOCK = 3
WEDGED_AFTER_S = 30.0
"""Seconds without a step of the main loop after which the beat gives up leading."""

log = get_logger(__name__)


class Leadership:
    """Runs a thread that tries to lead, and answers `current()` from any thread without I/O."""

    def __init__(
        self,
        *,
        lock: LeaderLock,
        database: Database,
        shard: int,
        host: str,
        pid: int,
        lock_s: float,
        standby_poll_s: float,
        on_change: Callable[[], None] = lambda: None,
        on_beat: Callable[[bool], None] = lambda _leads: None,
    ) -> None:
        self._lock, self._database = lock, database
        self._shard, self._host, self._pid = shard, host, pid
        self._lock_s, self._standby_poll_s = lock_s, standby_poll_s
        self._on_change, self._on_beat = on_change, on_beat
        self._held: tuple[Term, float] | None = None  # the term, and the monotonic instant its trust ends
        self._moved_at = time.monotonic()
        self._stopping = False
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cronq-leadership", daemon=True)

    def start(self) -> None:
        """Begin to try."""
        self._thread.start()

    def current(self) -> Term | None:
        """Return the term in which this beat leads now, or None."""
        held = self._held
        return held[0] if held is not None and time.monotonic() < held[1] else None

    def moved(self) -> None:
        """Note that the main loop is alive."""
        self._moved_at = time.monotonic()

    def step_down(self, term: Term) -> None:
        """Stop leading in `term`: a write of it was refused, so another beat leads."""
        held = self._held
        if held is not None and held[0] == term:
            self._lose("another beat started a newer term")

    def look(self) -> None:
        """Look at the lock now: its holder released it. From any thread."""
        self._woken.set()

    def stop(self, timeout_s: float = 1.5) -> None:
        """Stop leading and release the lock. Safe in a signal handler: the thread does the work."""
        self._stopping = True
        self._woken.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._step()
            except Exception:
                log.exception("leadership.step_failed", consequence="this beat stands by and tries again")
                self._held = None
            self._on_beat(self.current() is not None)
            pause = self._lock_s / RENEWALS_PER_LOCK if self._held is not None else self._standby_poll_s
            self._woken.wait(pause)
            self._woken.clear()
        if self._held is not None:
            self._release("this beat was told to stop")

    def _step(self) -> None:
        if self._held is None:
            self._try_to_lead()
        elif time.monotonic() - self._moved_at > WEDGED_AFTER_S:
            self._release("the main loop has not moved")
        else:
            self._renew(self._held[0])

    def _try_to_lead(self) -> None:
        if time.monotonic() - self._moved_at > WEDGED_AFTER_S:
            return
        sent = time.monotonic()
        try:
            if not self._lock.take():
                return
        except RedisError as error:
            log.warning_once(
                "leadership.redis_away", error=first_line(error), consequence="no new leader until it is back"
            )
            return
        try:
            term = begin_term(
                self._database, shard=self._shard, holder=self._lock.holder, host=self._host, pid=self._pid
            )
        except Exception as error:  # noqa: BLE001 - whatever SQL says, without a term nobody leads
            log.warning_once(
                "leadership.no_term", error=first_line(error), consequence="the lock is given back"
            )
            self._give_back()
            return
        self._held = (term, sent + self._lock_s)
        log.info("leadership.acquired", term=term.term, holder=term.holder)
        self._on_change()

    def _renew(self, term: Term) -> None:
        sent = time.monotonic()
        try:
            renewal = self._lock.renew()
        except RedisError as error:
            log.warning_once(
                "leadership.redis_away", error=first_line(error), consequence="the term in SQL is asked"
            )
            self._renew_by_term(term, sent)
            return
        if renewal is Renewal.LOST:
            self._lose("another beat holds the lock")
        elif renewal is Renewal.REGAINED:
            # Redis forgot us; somebody may have led in between.
            self._renew_by_term(term, sent)
        else:
            self._held = (term, sent + self._lock_s)

    def _renew_by_term(self, term: Term, sent: float) -> None:
        try:
            newest = read_term(self._database, self._shard)
        except Exception as error:  # noqa: BLE001 - any failure to read means: not confirmed
            log.warning_once("leadership.unconfirmed", error=first_line(error), consequence="trust runs out")
            if self.current() is None:
                self._lose("neither Redis nor SQL confirmed it in time")
            return
        if newest is not None and newest.term == term.term:
            self._held = (term, sent + self._lock_s)
        else:
            self._lose("another beat started a newer term")
            self._give_back()  # the lock may have come back to us, and nobody could lead until it runs out

    def _lose(self, why: str) -> None:
        held, self._held = self._held, None
        if held is not None:
            log.warning("leadership.lost", term=held[0].term, why=why, consequence="this beat stands by")
            self._on_change()

    def _release(self, why: str) -> None:
        held, self._held = self._held, None
        self._give_back()
        if held is not None:
            log.info("leadership.released", term=held[0].term, why=why)
            self._lock.tell_free()
            self._on_change()

    def _give_back(self) -> None:
        try:
            self._lock.release()
        except RedisError as error:
            log.warning(
                "leadership.not_released", error=first_line(error), consequence="the lock expires by itself"
            )
