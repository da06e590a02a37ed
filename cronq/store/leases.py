"""Who still holds a lease, whose runs out, whose has run out? Leases by their tokens and times.

A renewal is guarded by the token in the statement itself. All instants are the database's own clock.
"""

from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Row, TextClause, text

from cronq.store.database import Database

GRACE_S: Final = 10.0
"""Seconds that a job which was asked to stop has to do so by itself."""


class Stop(IntEnum):
    """What somebody wants of a running job."""

    NO = 0  #: it goes on
    ASK = 1  #: it is to stop by itself, at its next progress report
    END = 2  #: it had its time to do so: its process is to be ended


def renew(database: Database, tokens: Sequence[str], *, lease_s: float) -> dict[str, Stop]:
    """Prolong the leases `tokens` in one statement.

    Return those that are still held, each with what somebody wants of the job. A token that is missing from
    the answer is lost.
    """
    values: dict[str, Any] = {f"t{i}": token for i, token in enumerate(tokens)}
    names = ", ".join(f":{name}" for name in values)
    statement = f"""
        UPDATE cronq_job SET lease_until = {database.now_sql(":lease_s")}
        WHERE state = 'RUNNING' AND lease_token IN ({names})
        RETURNING lease_token, cancel_requested_at, cancel_requested_at <= {database.now_sql(f"-{GRACE_S}")}
    """
    with database.direct() as run:
        rows = run(statement, {**values, "lease_s": lease_s})
    return {row[0]: Stop.NO if row[1] is None else Stop.END if row[2] else Stop.ASK for row in rows}


def expiring(database: Database, *, worker_prefix: str, within_s: float) -> list[tuple[str, str, str]]:
    """Return (job id, worker, token) of one worker's leases that run out within `within_s` seconds, or have.

    One that ran out while SQL was away, and was not rescued, may still be renewed.
    """
    statement = text(f"""
        SELECT id, worker, lease_token FROM cronq_job
        WHERE state = 'RUNNING' AND lease_until < {database.now_sql(":within_s")}
            AND substr(worker, 1, :length) = :prefix
    """)
    values = {"within_s": within_s, "length": len(worker_prefix), "prefix": worker_prefix}
    with database.autocommit() as connection:
        return [(row[0], row[1], row[2]) for row in connection.execute(statement, values)]


def silent_jobs(database: Database, *, limit: int) -> list[Row[Any]]:
    """Return running jobs whose lease ran out, the longest silent first.

    One that somebody is writing to at this moment is left for the next look.

    Rows: id, lease_token, worker, attempts, max_attempts, crashes, schedule_id, cancel_requested_at.
    """
    with database.autocommit() as connection:
        return list(connection.execute(_silent(database), {"limit": limit}))


@lru_cache(maxsize=8)
def _silent(database: Database) -> TextClause:
    skip_locked = "FOR UPDATE SKIP LOCKED" if database.dialect == "postgresql" else ""
    return text(f"""
        SELECT id, lease_token, worker, attempts, max_attempts, crashes, schedule_id, cancel_requested_at
        FROM cronq_job WHERE state = 'RUNNING' AND lease_until < {database.now_sql()}
        ORDER BY lease_until LIMIT :limit {skip_locked}
    """)
