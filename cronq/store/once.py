"""What has an attempt of this job done already? Keys that its body asked to be remembered."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import literal, select

from cronq.job import State
from cronq.store.database import Database
from cronq.store.tables import job, once

MAX_KEY_CHARS = 255


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is known of a key: `value` means nothing unless it is `done`."""

    mine: bool  #: whether the asking worker still holds the lease
    done: bool
    value: Any


def recall(database: Database, job_id: str, token: str, key: str) -> Remembered:
    """Look up whether `key` of a job is done, and whether `token` is still the job's lease."""
    query = (
        select(_held(token), once.c.key, once.c.value)
        .select_from(job.outerjoin(once, (once.c.job_id == job.c.id) & (once.c.key == key)))
        .where(job.c.id == job_id)
    )
    with database.autocommit() as connection:
        row = connection.execute(query).one_or_none()
    return (
        Remembered(False, False, None)
        if row is None
        else Remembered(bool(row[0]), row[1] is not None, row[2])
    )


def remember(database: Database, job_id: str, token: str, key: str, value: Any) -> bool:  # noqa: ANN401
    """Write down that `key` of a job is done, with a JSON `value`; False: the lease is lost.

    To ask again with the same token is safe: what is written already stays, and is confirmed.
    """
    held = select(job.c.id, literal(key), literal(value, once.c.value.type), database.now()).where(
        job.c.id == job_id, _held(token)
    )
    statement = (
        database.insert(once)
        .from_select(["job_id", "key", "value", "at"], held)
        .on_conflict_do_nothing()
        .returning(once.c.key)
    )
    with database.autocommit() as connection:
        if connection.execute(statement).one_or_none() is not None:
            return True
    # Asked again because the first answer got lost: only the lease's holder can have written it.
    known = recall(database, job_id, token, key)
    return known.mine and known.done


def _held(token: str) -> Any:  # noqa: ANN401 - a condition
    return (job.c.lease_token == token) & (job.c.state == State.RUNNING)
