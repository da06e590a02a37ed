"""Keeps the leases of this process: one thread, one statement for all jobs that run here."""

import threading
from dataclasses import dataclass

from cronq.errors import Cancelled, LeaseLost
from cronq.progress.reporter import Report
from cronq.store.attempts import renew
from cronq.store.database import Database
from cronq.telemetry.log import get_logger

RENEWALS_PER_LEASE = 3
LONGEST_PAUSE_S = 2.0
"""A renewal also brings word that somebody wants the job to stop: it should not take long to arrive."""

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Held:
    """A lease that this process holds."""

    token: str
    report: Report


class LeaseKeeper:
    """Renews until a job lets go; tells its body when the lease is lost or the job is to stop."""

    def __init__(self, database: Database, *, lease_s: float, flush_s: float) -> None:
        self._database, self._lease_s = database, lease_s
        self._flush_s = max(flush_s, 0.05)
        self._held: dict[str, Held] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def hold(self, token: str, report: Report) -> None:
        """Keep the lease `token` from now on."""
        with self._changed:
            self._held[token] = Held(token, report)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="cronq-lease-keeper", daemon=True)
                self._thread.start()
            self._changed.notify()

    def let_go(self, token: str) -> None:
        """Stop renewing the lease `token`."""
        with self._changed:
            self._held.pop(token, None)

    def _run(self) -> None:
        pause = min(self._lease_s / RENEWALS_PER_LEASE, LONGEST_PAUSE_S)
        waited = 0.0
        while True:
            with self._changed:
                while not self._held:
                    self._changed.wait()
                    waited = 0.0
                self._changed.wait(min(pause, self._flush_s))
                held = list(self._held.values())
            waited += min(pause, self._flush_s)
            for lease in held:
                lease.report.flush()
            if held and waited >= pause:
                waited = 0.0
                self._renew(held)

    def _renew(self, held: list[Held]) -> None:
        try:
            kept = renew(self._database, [lease.token for lease in held], lease_s=self._lease_s)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next round tries again
            log.warning_once("lease.not_renewed", error=str(error).split("\n")[0], consequence="tried again")
            return
        for lease in held:
            if lease.token in kept:
                if kept[lease.token]:
                    lease.report.stop = Cancelled
            elif lease.token in self._held:
                # Not settled here in the meantime: somebody else decided.
                lease.report.stop = LeaseLost
                log.warning("lease.lost", job=lease.report.job_id, consequence="its result will be refused")
