"""Which dead letters are there, and what becomes of them? Jobs and messages that are none, as one list.

Both are written down in SQL; the broker's dead-letter queue follows what is decided here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, false, func, select, update

from cronq.errors import JobRefused, UnknownDeadLetter
from cronq.schedule import schedule_id
from cronq.store.database import Database
from cronq.store.dead_messages import KEPT_BYTES
from cronq.store.jobs import SENT_BACK_FROM, sent_back
from cronq.store.tables import dead_message, job

BATCH: Final = 500
"""Letters that one transaction changes: it stays far below the time that a statement may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadFilter:
    """Which dead letters; None: any. A message that is no job has neither schedule nor tenant."""

    ids: Sequence[str] | None = None
    task: str | None = None
    schedule: str | None = None
    tenant: str | None = None
    kind: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A job that failed for good, or a message that nobody can run."""

    id: str
    what: Literal["job", "message"]
    task: str | None
    schedule: str | None
    tenant: str | None
    queue: str | None
    kind: str | None
    error: str | None
    attempts: int
    dead_at: datetime
    copied_at: datetime | None  #: when the broker's dead-letter queue got it; None: not yet


_JOB: Final = (
    job.c.id,
    job.c.task,
    job.c.schedule_name.label("schedule"),
    job.c.tenant,
    job.c.queue,
    job.c.kind,
    job.c.error,
    job.c.attempts,
    job.c.dead_at,
    job.c.copied_at,
)
_MESSAGE: Final = (
    dead_message.c.id,
    dead_message.c.task,
    dead_message.c.routing_key.label("queue"),
    dead_message.c.kind,
    dead_message.c.error,
    dead_message.c.dead_at,
    dead_message.c.copied_at,
)


def list_dead(
    database: Database, wanted: DeadFilter, *, limit: int, before: tuple[datetime, str] | None = None
) -> list[DeadLetter]:
    """Return dead letters, the newest first. before: the cursor, (dead_at, id) of the last one seen."""
    found = []
    with database.autocommit() as connection:
        for make, query, table in (
            (_of_job, select(*_JOB).where(*_jobs(wanted)), job),
            (_of_message, select(*_MESSAGE).where(*_messages(wanted)), dead_message),
        ):
            page = query.where(*_older(table, before)).order_by(table.c.dead_at.desc(), table.c.id.desc())
            found += [make(row) for row in connection.execute(page.limit(limit))]
    return sorted(found, key=lambda letter: (letter.dead_at, letter.id), reverse=True)[:limit]


def count_dead_letters(database: Database, wanted: DeadFilter) -> int:
    """Return how many dead letters fit."""
    jobs = select(func.count()).select_from(job).where(*_jobs(wanted))
    messages = select(func.count()).select_from(dead_message).where(*_messages(wanted))
    with database.autocommit() as connection:
        return int(connection.execute(jobs).scalar_one()) + int(connection.execute(messages).scalar_one())


def get_dead(database: Database, dead_id: str) -> DeadLetter:
    """Return one dead letter; raise `UnknownDeadLetter`."""
    found = list_dead(database, DeadFilter(ids=[dead_id]), limit=1)
    if not found:
        raise UnknownDeadLetter(dead_id)
    return found[0]


def retry_dead_letters(database: Database, wanted: DeadFilter) -> list[str]:
    """Send back every dead letter that fits, and return their ids.

    A job keeps its id and its history; a message goes to the queue it came from, once the leader sends it. A
    message that was cut, or never was one, stays.
    """
    jobs = _in_batches(
        database,
        lambda: select(job.c.id).where(*_jobs(wanted), job.c.state.in_(SENT_BACK_FROM)),
        lambda ids: (
            update(job).where(job.c.id.in_(ids), job.c.dead_at.is_not(None)).values(sent_back(database))
        ),
    )
    whole = (dead_message.c.routing_key != "") & (dead_message.c.body_bytes <= KEPT_BYTES)
    return jobs + _wish(database, "retry", [*_messages(wanted), whole])


def discard_dead_letters(database: Database, wanted: DeadFilter) -> list[str]:
    """Take every dead letter that fits off the list, and return their ids. A job stays as it failed."""
    jobs = _in_batches(
        database,
        lambda: select(job.c.id).where(*_jobs(wanted)),
        lambda ids: update(job).where(job.c.id.in_(ids)).values(dead_at=None, updated_at=database.now()),
    )
    return jobs + _wish(database, "discard", _messages(wanted))


def retry_dead_letter(database: Database, dead_id: str) -> None:
    """Send one back; raise `UnknownDeadLetter`, or `JobRefused` for a message that cannot be."""
    get_dead(database, dead_id)
    if not retry_dead_letters(database, DeadFilter(ids=[dead_id])):
        raise JobRefused(
            f"message {dead_id} cannot be sent back: it is not whole, or came from nowhere; "
            f"look at it with: cronq dead show {dead_id}"
        )


def discard_dead_letter(database: Database, dead_id: str) -> None:
    """Take one off the list; raise `UnknownDeadLetter`."""
    if not discard_dead_letters(database, DeadFilter(ids=[dead_id])):
        raise UnknownDeadLetter(dead_id)


def _wish(database: Database, wish: str, conditions: list[ColumnElement[bool]]) -> list[str]:
    return _in_batches(
        database,
        lambda: select(dead_message.c.id).where(*conditions),
        lambda ids: update(dead_message).where(dead_message.c.id.in_(ids)).values(wish=wish),
    )


def _in_batches(
    database: Database, query: Callable[[], Select[Any]], change: Callable[[Sequence[str]], Any]
) -> list[str]:
    """Change what `query` finds until it finds nothing more; a change takes what it changed out of it."""
    changed: list[str] = []
    while True:
        with database.begin() as connection:
            ids = _locked_ids(connection, query())
            if ids:
                connection.execute(change(ids))
        changed += ids
        if len(ids) < BATCH:
            return changed


def _locked_ids(connection: Connection, query: Select[Any]) -> list[str]:
    return list(connection.execute(query.limit(BATCH).with_for_update()).scalars())


def _jobs(wanted: DeadFilter) -> list[ColumnElement[bool]]:
    conditions = [job.c.dead_at.is_not(None), *_common(wanted, job)]
    if wanted.schedule is not None:
        conditions.append(job.c.schedule_id == schedule_id(wanted.schedule))
    if wanted.tenant is not None:
        conditions.append(job.c.tenant == wanted.tenant)
    return conditions


def _messages(wanted: DeadFilter) -> list[ColumnElement[bool]]:
    if wanted.schedule is not None or wanted.tenant is not None:
        return [false()]
    return [dead_message.c.wish.is_(None), *_common(wanted, dead_message)]


def _older(table: Table, before: tuple[datetime, str] | None) -> list[ColumnElement[bool]]:
    if before is None:
        return []
    at, last = before
    return [(table.c.dead_at < at) | ((table.c.dead_at == at) & (table.c.id < last))]


def _common(wanted: DeadFilter, table: Table) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.ids is not None:
        conditions.append(table.c.id.in_(wanted.ids))
    if wanted.task is not None:
        conditions.append(table.c.task == wanted.task)
    if wanted.kind is not None:
        conditions.append(table.c.kind == wanted.kind)
    if wanted.since is not None:
        conditions.append(table.c.dead_at >= wanted.since)
    if wanted.until is not None:
        conditions.append(table.c.dead_at < wanted.until)
    return conditions


def _of_job(row: Row[Any]) -> DeadLetter:
    return DeadLetter(what="job", **row._asdict())


def _of_message(row: Row[Any]) -> DeadLetter:
    return DeadLetter(what="message", schedule=None, tenant=None, attempts=0, **row._asdict())
