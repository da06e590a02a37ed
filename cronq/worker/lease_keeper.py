"""Keeps the leases of this process: one thread, one statement for all jobs that run here."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cronq.errors import Cancelled, LeaseLost
from cronq.progress.reporter import Report
from cronq.store.database import Database
from cronq.store.leases import Stop, renew
from cronq.telemetry.log import get_logger
from cronq.worker.verdict import HandedBack, HardTimeLimit

RENEWALS_PER_LEASE = 3
PARK_AFTER_S = 5.0
"""Seconds without a lease after which the thread waits to be woken."""
LONGEST_PAUSE_S = 2.0
"""A renewal also brings word that somebody wants the job to stop: it should not take long to arrive."""

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a body may run where Celery cannot end it: in a thread, or in the worker's own process."""

    end: Callable[[Exception], object]  #: settles the attempt as one that ended with this error
    hard_s: float | None = None
    soft_s: float | None = None
    soft_error: type[Exception] = Cancelled  #: what the body gets at its next progress report after `soft_s`


@dataclass(frozen=True, slots=True)
class Held:
    """A lease that this process holds."""

    token: str
    report: Report
    limits: Limits | None = None
    since: float = field(default_factory=time.monotonic)


class LeaseKeeper:
    """Renews until a job lets go; tells its body when the lease is lost or the job is to stop."""

    def __init__(
        self,
        database: Database,
        *,
        lease_s: float,
        flush_s: float,
        end_process: Callable[[], None] | None = None,
    ) -> None:
        """end_process: ends the body, where that harms no other one: in a child of a prefork pool."""
        self._database, self._lease_s, self._end_process = database, lease_s, end_process
        self._flush_s = max(flush_s, 0.05)
        self._held: dict[str, Held] = {}
        self._lock = threading.Lock()
        self._parked = False
        self._wanted = threading.Event()
        self._thread: threading.Thread | None = None

    def hold(self, token: str, report: Report, limits: Limits | None = None) -> None:
        """Keep the lease `token` from now on; within `limits`, if Celery does not see to them."""
        with self._lock:
            self._held[token] = Held(token, report, limits)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="cronq-lease-keeper", daemon=True)
                self._thread.start()
            if self._parked:
                self._parked = False
                self._wanted.set()

    def let_go(self, token: str) -> None:
        """Stop renewing the lease `token`."""
        with self._lock:
            self._held.pop(token, None)

    def holds_any(self) -> bool:
        """Tell whether a body runs here."""
        return bool(self._held)

    def hand_back(self) -> None:
        """Settle whatever runs here as handed back; its bodies learn it at their next progress report."""
        for lease in list(self._held.values()):
            self._end(lease, HandedBack("the worker shut down"))

    def _end(self, lease: Held, error: Exception) -> None:
        assert lease.limits is not None
        self.let_go(lease.token)
        lease.report.stop = LeaseLost
        lease.limits.end(error)

    def _limit(self, lease: Held) -> None:
        limits, ran_s = lease.limits, time.monotonic() - lease.since
        if limits is None:
            return
        if limits.hard_s is not None and ran_s >= limits.hard_s:
            log.warning("job.over_time", job=lease.report.job_id, consequence="its result will be refused")
            self._end(
                lease, HardTimeLimit(f"it ran for {ran_s:.1f} s, over its limit of {limits.hard_s:g} s")
            )
        elif limits.soft_s is not None and ran_s >= limits.soft_s and lease.report.stop is None:
            lease.report.stop = limits.soft_error

    def _run(self) -> None:
        # Short jobs never wake this thread: it looks around at its own pace, and parks when nothing is left.
        pause = min(self._lease_s / RENEWALS_PER_LEASE, LONGEST_PAUSE_S)
        tick = min(pause, self._flush_s)
        waited = idle = 0.0
        while True:
            time.sleep(tick)
            waited += tick
            with self._lock:
                held = list(self._held.values())
            for lease in held:
                lease.report.flush()
                self._limit(lease)
            if waited >= pause:
                waited = 0.0
                if held:
                    self._renew(held)
            idle = 0.0 if held else idle + tick
            if idle >= PARK_AFTER_S and self._park():
                waited = idle = 0.0

    def _park(self) -> bool:
        """Wait for the next lease, if there is none; return whether it was so."""
        with self._lock:
            if self._held:
                return False
            self._parked = True
            self._wanted.clear()
        self._wanted.wait()
        return True

    def _stop(self, lease: Held, wish: Stop) -> None:
        if wish != Stop.NO:
            lease.report.stop = Cancelled
        if wish == Stop.END and self._end_process is not None:
            log.warning("job.ended", job=lease.report.job_id, why="it was asked to stop, and did not")
            self._end_process()

    def _renew(self, held: list[Held]) -> None:
        try:
            kept = renew(self._database, [lease.token for lease in held], lease_s=self._lease_s)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next round tries again
            log.warning_once("lease.not_renewed", error=str(error).split("\n")[0], consequence="tried again")
            return
        for lease in held:
            if lease.token in kept:
                self._stop(lease, kept[lease.token])
            elif lease.token in self._held and not lease.report.handed_in:
                # Not settled here in the meantime: somebody else decided.
                lease.report.stop = LeaseLost
                log.warning("lease.lost", job=lease.report.job_id, consequence="its result will be refused")
