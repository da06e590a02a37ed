"""Guarantees of cronq, switched off one at a time in the bench's processes: the checker has to notice.

Each is a patch made when the process starts; cronq itself has no switch for any of them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.faults.bench.timings import HORIZON_S


@dataclass(frozen=True)
class Mutant:
    """A cronq without one of its guarantees, and what it takes to see the difference."""

    patch: Callable[[], None]
    faults: tuple[str, ...]
    caught_as: frozenset[str]  #: one of these is what the checker has to find
    broker: str = "redis"
    database: str = "sqlite"
    statements: tuple[str, ...] = ()  #: done to the database before anything starts
    horizon_s: float = HORIZON_S


def apply(name: str | None) -> None:
    """Switch the guarantee `name` off in this process."""
    if name is not None:
        MUTANTS[name].patch()


def _no_term() -> None:
    """A leader believes that its term is the newest, whatever SQL says."""
    from cronq.beat import planning  # noqa: PLC0415 - here and below: only where it is patched
    from cronq.coordination import leadership  # noqa: PLC0415

    planning.hold_term = lambda *_args: None

    def renew_by_term(self: Any, term: Any, sent: float) -> None:
        self._held = (term, sent + self._lock_s)

    leadership.Leadership._renew_by_term = renew_by_term


def _no_unique_key() -> None:
    """A fire time that is planned twice is two jobs."""
    import uuid  # noqa: PLC0415

    from cronq.store import scheduled  # noqa: PLC0415

    scheduled.scheduled_job_id = lambda *_args: str(uuid.uuid4())


def _no_claim_check() -> None:
    """A worker runs whatever message it gets."""
    from cronq.store import attempts  # noqa: PLC0415
    from cronq.worker import desk  # noqa: PLC0415

    claim = attempts.claim

    def careless(database: Any, job_id: str, **how: Any) -> Any:
        with database.direct() as run:
            run(
                "UPDATE cronq_job SET state = 'PENDING' WHERE id = :id AND state = 'COMPLETED' RETURNING id",
                {"id": job_id},
            )
        return claim(database, job_id, **how)

    desk.claim = careless


def _no_reconciler() -> None:
    """Nobody looks for messages that got lost."""
    from cronq.upkeep.publish_reconciler import PublishReconciler  # noqa: PLC0415

    PublishReconciler.run = lambda *_args: None


def _no_rescuer() -> None:
    """Nobody takes over what a silent worker ran."""
    from cronq.upkeep.job_rescuer import JobRescuer  # noqa: PLC0415

    JobRescuer.run = lambda *_args: None


def _mark_before_publish() -> None:
    """A job counts as sent before the broker has it, and nobody looks for messages that got lost."""
    _no_reconciler()
    from cronq.beat.publishing import Publishing  # noqa: PLC0415
    from cronq.store import agenda  # noqa: PLC0415

    send = Publishing._send

    def eager(self: Any, batch: Any) -> bool:
        agenda.mark_published(self.database, batch)
        return bool(send(self, batch))

    Publishing._send = eager


def _cursor_moved_first() -> None:
    """A schedule's cursor moves on before the jobs are there, in a transaction of its own."""
    import os  # noqa: PLC0415
    import signal  # noqa: PLC0415

    from cronq.beat.planning import Planning  # noqa: PLC0415
    from cronq.store import agenda  # noqa: PLC0415

    armed = "mid_plan" in os.environ.get("CRONQ_FAILPOINT", "")
    plan, counted = Planning._plan_batch, iter(range(10**9))

    def first_the_cursor(self: Any, *args: Any) -> Any:
        insert = agenda.insert_jobs
        agenda.insert_jobs = lambda *_args: None
        try:
            planned, more = plan(self, *args)
        finally:
            agenda.insert_jobs = insert
        if armed and next(counted) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        with self.database.begin() as connection:
            insert(self.database, connection, planned, self.clock.now())
        return planned, more

    Planning._plan_batch = first_the_cursor


def _no_overlap_policy() -> None:
    """Nobody asks whether the previous job still goes on."""
    from cronq.beat import overlap  # noqa: PLC0415
    from cronq.store.agenda import DueJob  # noqa: PLC0415

    overlap._gated = lambda _job: False
    DueJob.exclusive = property(lambda _self: False)


def _local_clock() -> None:
    """A beat believes the wall clock of its machine, and a worker does not ask when a job is due."""
    from cronq.clock import StoreClock  # noqa: PLC0415
    from cronq.store import attempts  # noqa: PLC0415

    StoreClock.timestamp = lambda _self: time.time()
    attempts.EARLY_S = 1_000_000


def _outage_ends_beat() -> None:
    """A beat ends when Redis is away."""
    import os  # noqa: PLC0415

    from cronq.coordination.leadership import Leadership  # noqa: PLC0415

    Leadership._renew_by_term = lambda *_args: os._exit(1)


MUTANTS = {
    "no term": Mutant(
        _no_term, ("leader cut off from redis",), frozenset({"two leaders"}), "rabbitmq", "postgresql"
    ),
    "no unique key": Mutant(
        _no_unique_key, ("schedules set back",), frozenset({"doubled"}), "redis", "postgresql",
        ("ALTER TABLE cronq_job DROP CONSTRAINT cronq_job_one_per_fire_time",),
    ),
    "no claim check": Mutant(
        _no_claim_check, ("old messages come again",), frozenset({"doubled"})
    ),
    "no reconciler": Mutant(
        _no_reconciler, ("redis emptied while messages wait",), frozenset({"stuck"})
    ),
    # Killed at any moment, it may have nothing to do.
    "no rescuer": Mutant(_no_rescuer, ("worker killed at after_claim",), frozenset({"stuck"})),
    "mark before publish": Mutant(
        _mark_before_publish, ("leader killed at before_publish",) * 2, frozenset({"stuck"})
    ),
    "cursor moved first": Mutant(
        _cursor_moved_first, ("leader killed at mid_plan",) * 2, frozenset({"missing"}), horizon_s=2.0
    ),
    "no overlap policy": Mutant(
        _no_overlap_policy, ("standby killed", "standby killed"), frozenset({"overlap"})
    ),
    "local clock": Mutant(
        _local_clock, ("clock of leader an hour ahead",), frozenset({"early"}), "redis", "postgresql"
    ),
    "an outage ends the beat": Mutant(
        _outage_ends_beat, ("redis killed",), frozenset({"unexplained"}), "rabbitmq"
    ),
}  # fmt: skip
"""What a cronq may lack, by name."""
