"""Who leads, in which term? The number that fences every write of a leader."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select, text
from sqlalchemy.exc import OperationalError

from cronq.errors import NotLeader
from cronq.store.database import Database
from cronq.store.tables import leader

STUCK_S = 1.0
"""Seconds in a transaction that took the term's row, after which its process counts as frozen."""
WAIT_S = 0.3
"""Seconds that a new leader waits for the term's row: a batch is planned in less. Then it looks whether the
row's holder is frozen; one that is not (it takes over a large deploy) is waited for by trying again."""


@dataclass(frozen=True, slots=True)
class Term:
    """One beat's time as leader of one shard."""

    shard: int
    term: int
    holder: str
    host: str
    pid: int
    since: datetime


def begin_term(database: Database, *, shard: int, holder: str, host: str, pid: int) -> Term:
    """Start a new term. From this commit on, no write of an earlier term can succeed."""
    try:
        return _begin_term(database, shard=shard, holder=holder, host=host, pid=pid)
    except OperationalError:
        if database.dialect != "postgresql" or not _end_stuck_transactions(database):
            raise
        return _begin_term(database, shard=shard, holder=holder, host=host, pid=pid)


def _begin_term(database: Database, *, shard: int, holder: str, host: str, pid: int) -> Term:
    values = {"shard": shard, "holder": holder, "host": host, "pid": pid}
    with database.begin() as connection:
        if database.dialect == "postgresql":
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {round(WAIT_S * 1000)}")
        return Term(**connection.execute(_next_term(database), values).one()._asdict())


@lru_cache(maxsize=8)
def _next_term(database: Database) -> Any:  # noqa: ANN401 - either dialect's Insert
    insert = database.insert(leader).values(term=1, since=database.now())
    taken_over = {name: insert.excluded[name] for name in ("holder", "host", "pid", "since")}
    return insert.on_conflict_do_update(
        index_elements=[leader.c.shard], set_={**taken_over, "term": leader.c.term + 1}
    ).returning(*leader.c)


def _end_stuck_transactions(database: Database) -> int:
    """End sessions of ours that have locked rows of the terms for long; return how many there were.

    A leader that froze while it planned still holds it. Its lock in Redis has run out, so its time is over,
    and PostgreSQL's own time-out for idle transactions need not have come round yet.
    """
    statement = text("""
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
            AND xact_start < clock_timestamp() - make_interval(secs => :stuck_s)
            AND pid IN (
                SELECT pid FROM pg_locks WHERE relation = 'cronq_leader'::regclass
                    -- A backup, which may take an hour, only reads.
                    AND mode IN ('RowShareLock', 'RowExclusiveLock')
            )
    """)
    with database.autocommit() as connection:
        return int(connection.execute(statement, {"stuck_s": STUCK_S}).scalar_one())


_READ: Final = select(leader).where(leader.c.shard == bindparam("shard"))


def read_term(database: Database, shard: int) -> Term | None:
    """Return the newest term, or None while nobody has ever led."""
    with database.autocommit() as connection:
        row = connection.execute(_READ, {"shard": shard}).one_or_none()
    return None if row is None else Term(**row._asdict())


_HOLD: Final = (
    select(leader.c.term)
    .where(leader.c.shard == bindparam("shard"), leader.c.term == bindparam("term"))
    .with_for_update(read=True)
)


def hold_term(connection: Connection, term: Term) -> None:
    """Raise `NotLeader` unless `term` is still the newest; until this transaction ends it stays so.

    On PostgreSQL the row lock makes a new leader's `begin_term` wait for the commit; on SQLite the
    transaction already holds the one write lock.
    """
    if connection.execute(_HOLD, {"shard": term.shard, "term": term.term}).one_or_none() is None:
        raise NotLeader(term.term)
