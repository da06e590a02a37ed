"""How much work did each queue have lately? What workers are scaled by."""

from collections import defaultdict

from sqlalchemy import ColumnElement, func, literal_column, or_, select, text

from cronq.job import State
from cronq.scaling import Load
from cronq.store.database import Database
from cronq.store.tables import FOR_ROOM, job

TOOK_S = {
    "sqlite": "(julianday(finished_at) - julianday(started_at)) * 86400.0",
    "postgresql": "extract(epoch FROM finished_at - started_at)",
}


def load_by_queue(database: Database, *, window_s: float) -> dict[tuple[str | None, str], Load]:
    """Return the load of each (queue, task); queue None: wherever Celery routes the task.

    window_s: over how many seconds ended jobs are counted.
    """
    took: ColumnElement[float] = literal_column(TOOK_S[database.dialect])
    runs: ColumnElement[int] = literal_column("CASE WHEN state = 'RUNNING' THEN 1 ELSE 0 END")
    unfinished = (
        select(job.c.queue, job.c.task, func.count(), func.sum(runs))
        .where(or_(job.c.state.in_([State.PENDING, State.RUNNING]), text(FOR_ROOM)))
        .group_by(job.c.queue, job.c.task)
    )
    found: defaultdict[tuple[str | None, str], Load] = defaultdict(Load)
    with database.autocommit() as connection:
        for queue, task, count, of_these in connection.execute(unfinished):
            found[queue, task] += Load(waiting=count - int(of_these), running=int(of_these))
        since = database.clock_in(connection)
        ended = (
            select(job.c.queue, job.c.task, func.count(), func.sum(took))
            .where(
                job.c.updated_at > database.now(-window_s),
                job.c.finished_at > database.now(-window_s),
                job.c.finished_at <= since,
                job.c.started_at.is_not(None),
            )
            .group_by(job.c.queue, job.c.task)
        )
        for queue, task, count, worked_s in connection.execute(ended):
            found[queue, task] += Load(ended=count, worked_s=float(worked_s))
    return dict(found)
