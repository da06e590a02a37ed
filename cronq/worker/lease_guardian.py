"""Keeps the leases of pool children that cannot do it themselves.

A body that holds the GIL for a minute starves the thread that renews in its own process. This runs in the
worker's parent. It renews only what a child has not renewed in time, and only while that child runs and works
on that job: a child that is dead, or frozen, loses its jobs as it should, and so does one that gave a job up
because SQL was away for too long.
"""

import os
import threading
from collections.abc import Callable, Container
from pathlib import Path

from cronq.errors import first_line
from cronq.store.database import Database
from cronq.store.leases import expiring, renew
from cronq.telemetry.log import get_logger

LOOKS_PER_LEASE = 4
NOT_RUNNING = frozenset("ZTtX")  # zombie, stopped, traced, dead: /proc/PID/stat, proc(5)

log = get_logger(__name__)


class LeaseGuardian:
    """Renews for children whose leases have less than half of their time left."""

    def __init__(
        self, database: Database, hostname: str, *, lease_s: float, in_hand: Callable[[], Container[str]]
    ) -> None:
        """in_hand: tells the ids of the jobs that the children work on now."""
        self._database, self._hostname, self._lease_s = database, hostname, lease_s
        self._in_hand = in_hand
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cronq-lease-guardian", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def look(self) -> list[str]:
        """Renew what is about to run out although its child runs; return those tokens."""
        due = expiring(self._database, worker_prefix=f"{self._hostname}/", within_s=self._lease_s / 2)
        in_hand = self._in_hand() if due else ()
        tokens = [
            token
            for job_id, worker, token in due
            if job_id in in_hand and _runs(int(worker.rpartition("/")[2]))
        ]
        if tokens:
            renew(self._database, tokens, lease_s=self._lease_s)
        return tokens

    def _run(self) -> None:
        while not self._stopping.wait(self._lease_s / LOOKS_PER_LEASE):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look comes soon
                log.warning_once("lease.not_guarded", error=first_line(error), consequence="tried again")


def _runs(pid: int) -> bool:
    """Tell whether the child `pid` of this process is there, and not frozen."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.exists():
        # The name in parentheses may hold anything; what follows the last one is the state, then the parent.
        fields = stat.read_text().rpartition(")")[2].split()
        return fields[0] not in NOT_RUNNING and int(fields[1]) == os.getpid()
    if Path("/proc/self").exists():
        return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
