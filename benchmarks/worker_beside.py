"""How a worker does beside something else: as fast as it can, and at a pace that leaves it time."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from celery import Celery
from sqlalchemy import ColumnElement, func, select

from benchmarks.cronq_store import count_by_state
from benchmarks.figures import spread
from benchmarks.noop import TASK
from benchmarks.stage import QUEUE, Stage
from cronq.delivery.publisher import Publisher, open_publisher
from cronq.job import State, Trigger, demanded_job_id
from cronq.store.agenda import DueJob, insert_jobs
from cronq.store.tables import job
from tests.support.processes import wait_for

JOBS = 6000
START_SHARE, END_SHARE = 0.15, 0.95
"""The rate is taken between these shares of the jobs: neither start-up nor the end count."""
PACE_S, BATCH = 0.05, 10
"""At a pace: so many jobs, so often. 200 a second are a fifth of what a worker does on two cores."""
STEADY_S = 10.0
LIMIT_S = 120.0
ARGV = ["-P", "prefork", "-c", "2", "--without-gossip", "--without-mingle", "--without-heartbeat"]

Meanwhile = Callable[[], None]
"""Called over and over while the worker works; takes at most a second."""


def full_speed(stage: Stage, meanwhile: Meanwhile) -> float:
    """Return how many no-op jobs a second one worker of two processes ends."""
    since, jobs = stage.database.clock(), [_noop(stage) for _ in range(JOBS)]
    with _publisher(stage) as publisher:
        _send(stage, publisher, jobs)
    with stage.worker("cronq_app", *ARGV):
        _until_completed(stage, since, JOBS, meanwhile)
    # By what stands in the database: to count now and then is not exact, and is work itself.
    ended = sorted(finished for _, _, finished in _times(stage, since))
    first, last = int(START_SHARE * JOBS), int(END_SHARE * JOBS)
    return round((last - first) / (ended[last] - ended[first]).total_seconds(), 1)


def at_a_pace(stage: Stage, meanwhile: Meanwhile) -> dict[str, Any]:
    """Return how long after they were due no-op jobs began, when a worker has time for them."""
    with _publisher(stage) as publisher, stage.worker("cronq_app", *ARGV):
        since = stage.database.clock()
        _send(stage, publisher, [_noop(stage) for _ in range(BATCH)])
        _until_completed(stage, since, BATCH, lambda: time.sleep(0.05))
        since = stage.database.clock()
        sending = threading.Thread(target=_send_steadily, args=(stage, publisher))
        sending.start()
        while sending.is_alive():
            meanwhile()
        sending.join()
        _until_completed(stage, since, BATCH * int(STEADY_S / PACE_S), meanwhile)
    return spread([(started - due).total_seconds() for due, started, _ in _times(stage, since)], "start")


def _send_steadily(stage: Stage, publisher: Publisher) -> None:
    begun = time.monotonic()
    for number in range(int(STEADY_S / PACE_S)):
        time.sleep(max(0.0, begun + number * PACE_S - time.monotonic()))
        _send(stage, publisher, [_noop(stage) for _ in range(BATCH)])


def _send(stage: Stage, publisher: Publisher, jobs: list[DueJob]) -> None:
    with stage.database.begin() as connection:
        insert_jobs(stage.database, connection, jobs, datetime.now(UTC))
    publisher.publish(jobs)


def _until_completed(stage: Stage, since: datetime, count: int, meanwhile: Meanwhile) -> None:
    ended = select(func.count()).select_from(job).where(*_completed(since))

    def completed() -> bool:
        meanwhile()
        with stage.database.autocommit() as connection:
            return bool(connection.execute(ended).scalar_one() >= count)

    wait_for(completed, LIMIT_S, f"{count} jobs to be completed: {count_by_state(stage.database)}")


def _times(stage: Stage, since: datetime) -> list[tuple[datetime, datetime, datetime]]:
    """Return when the completed no-op jobs of the time `since` were due, started and finished."""
    query = select(job.c.due_at, job.c.started_at, job.c.finished_at).where(*_completed(since))
    with stage.database.autocommit() as connection:
        return [(row.due_at, row.started_at, row.finished_at) for row in connection.execute(query)]


def _completed(since: datetime) -> list[ColumnElement[bool]]:
    return [job.c.task == TASK, job.c.state == State.COMPLETED, job.c.due_at >= since]


def _noop(stage: Stage) -> DueJob:
    return DueJob(
        id=demanded_job_id(None), task=TASK, args=["tenant-0000001", 0], kwargs={},
        due_at=stage.database.clock(), trigger=Trigger.DEMAND, queue=QUEUE,
    )  # fmt: skip


@contextmanager
def _publisher(stage: Stage) -> Iterator[Publisher]:
    app = Celery("bench", broker=stage.broker_url, set_as_current=False)
    app.conf.update(task_default_queue=QUEUE)
    publisher = open_publisher(app, flower_names="task")
    try:
        yield publisher
    finally:
        publisher.close()
