"""Where this process's attempts get their leases and hand in their outcomes."""

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import redis
from billiard import current_process

from cronq.coordination.notices import send_notice
from cronq.delivery.progress_event import ProgressEvents
from cronq.job import ENDS, State
from cronq.progress.board import Board
from cronq.progress.reporter import Report
from cronq.settings import Settings
from cronq.store.attempts import (
    Claim,
    Settlement,
    age_s,
    bury,
    claim,
    is_completed_by,
    settle,
    settle_in,
)
from cronq.store.database import Database, is_outage
from cronq.store.dead_messages import DeadMessage, record_message
from cronq.store.guarded import Guard, claim_guarded
from cronq.store.leases import renew
from cronq.store.once import Remembered, recall, remember
from cronq.telemetry.log import get_logger
from cronq.worker.attempt import Work
from cronq.worker.breakers import tell_breakers
from cronq.worker.expansion import expand
from cronq.worker.guards import Guards
from cronq.worker.lease_keeper import LeaseKeeper, Limits

T = TypeVar("T")
OUTAGE_PAUSE_S = 0.5
CLAIM_PATIENCE_S = 60.0
"""How long a claim waits for the database; then the message is let go, and sent again later."""
REFUSE_PATIENCE_S = 5.0
"""How long the worker's event loop waits for it, with a message that nobody can run; then it goes back."""
HAND_BACK_S = 5.0
"""How long a shutdown waits for that; what is not handed back then is rescued."""

log = get_logger(__name__)


class StoreDesk:
    """The desk of one worker process: SQL decides, Redis shows."""

    def __init__(
        self,
        database: Database,
        client: redis.Redis,
        board: Board,
        settings: Settings,
        events: ProgressEvents | None = None,
    ) -> None:
        """events: where progress is shown besides the board, if this worker sends Celery's task events."""
        self._database, self._client, self._board, self._settings = database, client, board, settings
        self._events = events
        self._is_child = _is_pool_child()
        self._guards = Guards(database)
        self._keeper = LeaseKeeper(
            database,
            lease_s=settings.lease_s,
            flush_s=settings.progress_interval_s,
            end_process=_end_process if self._is_child else None,
        )

    def claim(self, work: Work, token: str) -> Claim | None:
        """Take the lease; wait for a database that is away."""
        got = _patiently(lambda: self._claim(work, token), patience_s=CLAIM_PATIENCE_S)
        if isinstance(got, str):
            log.info("job.sent_back", job=work.job_id, why=f"there is no room under {got}")
            send_notice(self._client, self._settings.key_prefix, "job", job_id=work.job_id)
            return None
        return got

    def _claim(self, work: Work, token: str) -> Claim | str | None:
        job_id, worker, lease_s = work.job_id, work.worker, self._settings.lease_s
        # A queue's limit is the leader's alone: what the broker has of it is few enough.
        guards = [each for each in self._guards_of(work) if each[1].kind != "queue"]
        if guards:
            return claim_guarded(self._database, job_id, guards, token=token, worker=worker, lease_s=lease_s)
        return claim(self._database, job_id, token=token, worker=worker, lease_s=lease_s)

    def _guards_of(self, work: Work) -> list[Guard]:
        return self._guards.of(work.tenant, work.task, work.queue)

    def still_holds(self, token: str, asked: float) -> bool:
        """Tell whether a lease that was asked for at the monotonic instant `asked` is still held.

        A process that froze, or whose answer came late, asks SQL: the job may be another's by now.
        """
        lease_s = self._settings.lease_s
        if time.monotonic() - asked < lease_s:
            return True
        kept = _patiently(
            lambda: renew(self._database, [token], lease_s=lease_s), patience_s=CLAIM_PATIENCE_S
        )
        return kept is not None and token in kept

    def hold(self, token: str, report: Report, limits: Limits) -> None:
        """Keep the lease; end what runs over its limits, unless Celery can."""
        self._keeper.hold(token, report, None if self._is_child else limits)

    def holds_any(self) -> bool:
        """Tell whether a body runs in this process."""
        return self._keeper.holds_any()

    def hand_back(self) -> None:
        """Settle whatever runs in this process as handed back: it is to end, and its threads cannot be."""
        # In a thread of its own: a signal handler may have interrupted the holder of a lock.
        thread = threading.Thread(target=self._keeper.hand_back, name="cronq-hand-back", daemon=True)
        thread.start()
        thread.join(HAND_BACK_S)

    def let_go(self, token: str) -> None:
        """Stop keeping it."""
        self._keeper.let_go(token)

    def settle(self, settlement: Settlement) -> bool:
        """Write the outcome, however long the database is away: the work is done, and counts."""
        return bool(_patiently(lambda: settle(self._database, settlement), patience_s=None))

    def age_s(self, job_id: str, earlier: int) -> float:
        """Return the seconds since the first attempt after number `earlier` began."""
        return _patiently(lambda: age_s(self._database, job_id, earlier=earlier), patience_s=None) or 0.0

    def settle_in(self, session: Any, settlement: Settlement) -> bool:  # noqa: ANN401
        """Write the outcome into the transaction of `session`; False: the lease was lost."""
        return settle_in(self._database, session, settlement)

    def is_completed_by(self, job_id: str, token: str) -> bool:
        """Tell whether that transaction was committed, however long the database is away."""
        return bool(_patiently(lambda: is_completed_by(self._database, job_id, token), patience_s=None))

    def recall(self, job_id: str, token: str, key: str) -> Remembered:
        """Look up what the body asked to be remembered, however long the database is away."""
        known = _patiently(lambda: recall(self._database, job_id, token, key), patience_s=None)
        assert known is not None
        return known

    def remember(self, job_id: str, token: str, key: str, value: Any) -> bool:  # noqa: ANN401
        """Write it down, however long the database is away; False: the lease was lost."""
        return bool(_patiently(lambda: remember(self._database, job_id, token, key, value), patience_s=None))

    def bury(self, job_id: str, *, kind: str, error: str) -> bool | None:
        """End a job that this worker was sent and cannot run: it becomes a dead letter.

        False: it is not waiting any more. None: the database is away, nothing is written.
        """
        return _patiently(
            lambda: bury(self._database, job_id, kind=kind, error=error), patience_s=REFUSE_PATIENCE_S
        )

    def keep_message(self, message: DeadMessage) -> str | None:
        """Write down a message that nobody can run; None: the database is away, nothing is written."""
        return _patiently(lambda: record_message(self._database, message), patience_s=REFUSE_PATIENCE_S)

    def tell_leader(self, work: Work, settlement: Settlement, awaited_by: str | None) -> None:
        """Let the leader know at once what it would otherwise find within a second.

        awaited_by: the schedule whose next job may wait for this end.
        """
        prefix, job_id = self._settings.key_prefix, work.job_id
        moved = _patiently(
            lambda: tell_breakers(self._database, self._guards_of(work), settlement), patience_s=5.0
        )
        if moved:
            send_notice(self._client, prefix, "breaker")
        if settlement.state is State.RETRYING:
            send_notice(self._client, prefix, "job", job_id=job_id)
        elif settlement.state in ENDS and (awaited_by is not None or self._guards_of(work)):
            facts = {} if awaited_by is None else {"schedule_id": awaited_by}
            send_notice(self._client, prefix, "ended", job_id=job_id, **facts)

    def expand(self, head_id: str) -> dict[str, int]:
        """Add the jobs of a batch, and let the leader know."""
        counts = expand(self._database, head_id, max_payload_bytes=self._settings.max_payload_bytes)
        send_notice(self._client, self._settings.key_prefix, "items", batch_id=head_id)
        return counts

    def report(self, job_id: str, attempt: int, *, events: bool) -> Report:
        """Open the job's progress."""
        send = self._show if self._events is None or not events else self._show_everywhere
        return Report(job_id, attempt, interval_s=self._settings.progress_interval_s, send=send)

    def _show(self, report: Report) -> None:
        try:
            self._board.write(report.job_id, report.state(), report.take_lines())
        except Exception as error:  # noqa: BLE001 - showing progress must never harm the job
            log.warning_once("progress.not_shown", error=str(error), consequence="the job goes on")

    def _show_everywhere(self, report: Report) -> None:
        self._show(report)
        if report.closed:
            return  # Celery's own event of the end follows; this one might overtake it
        assert self._events is not None
        try:
            self._events.send(report.state())
        except Exception as error:  # noqa: BLE001 - nor does it here
            log.warning_once("progress.not_in_events", error=str(error), consequence="the job goes on")


def _patiently(call: Callable[[], T], *, patience_s: float | None) -> T | None:
    started = time.monotonic()
    while True:
        try:
            return call()
        except Exception as error:
            if not is_outage(error):
                raise
            if patience_s is not None and time.monotonic() - started > patience_s:
                log.warning(
                    "job.let_go", why="the database is away", consequence="its message is sent again later"
                )
                return None
            log.warning_once(
                "worker.database_away", error=str(error).split("\n")[0], consequence="waiting for it"
            )
            time.sleep(OUTAGE_PAUSE_S)


def _is_pool_child() -> bool:
    return str(current_process().name).startswith("ForkPoolWorker")


def _end_process() -> None:
    # Celery's pool starts another child; the body sees SystemExit, and its attempt is settled as cancelled.
    os.kill(os.getpid(), signal.SIGTERM)
