"""Which jobs fit, page by page? A page costs little, however much is stored and however rare the text is."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy import RowMapping, select, tuple_

from cronq.store.database import Database
from cronq.store.jobs import JobFilter, matching
from cronq.store.tables import job

LOOKED_AT: Final = 20_000
"""Jobs that one page looks at for a text, a task or a queue; no index helps there."""

Cursor = tuple[datetime, str]


def search_jobs(
    database: Database, wanted: JobFilter, *, limit: int
) -> tuple[list[RowMapping], Cursor | None]:
    """Return jobs, the newest planned first, and the cursor of the next page (None: no more).

    With a text, a task or a queue a page may have fewer than `limit` jobs, even none, and still a next one.
    """
    indexed = replace(wanted, text=None, task=None, queue=None)
    edge = None if indexed == wanted else _edge(database, indexed)
    query = matching(select(job), wanted)
    if edge is not None:
        query = query.where(tuple_(job.c.planned_at, job.c.id) >= edge)
    query = query.order_by(job.c.planned_at.desc(), job.c.id.desc()).limit(limit + 1)
    with database.autocommit() as connection:
        rows = list(connection.execute(query).mappings())
    if len(rows) > limit:
        return rows[:limit], (rows[limit - 1]["planned_at"], rows[limit - 1]["id"])
    return rows, edge


def first_jobs(database: Database, wanted: JobFilter, *, limit: int) -> list[RowMapping]:
    """Return the newest planned `limit` jobs, however long it takes: each statement is a short one."""
    found, more = search_jobs(database, wanted, limit=limit)
    while more is not None and len(found) < limit:
        rows, more = search_jobs(database, replace(wanted, before=more), limit=limit - len(found))
        found += rows
    return found


def _edge(database: Database, wanted: JobFilter) -> Cursor | None:
    """Return where the jobs that one page looks at end."""
    query = (
        matching(select(job.c.planned_at, job.c.id), wanted)
        .order_by(job.c.planned_at.desc(), job.c.id.desc())
        .offset(LOOKED_AT - 1)
        .limit(1)
    )
    with database.autocommit() as connection:
        row = connection.execute(query).one_or_none()
    return None if row is None else (row.planned_at, row.id)
