"""Whose is the job now, and how did it end? Claim and settle.

Every statement is guarded by the lease's token, in the statement itself: a worker that lost its lease
changes nothing. All instants are the database's own clock.

`RETURNING` gives bare columns only: SQLite 3.40 answers `RETURNING x IS NOT NULL` wrongly for a nullable x.
"""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, func, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from cronq.job import Outcome, State
from cronq.store.database import Database
from cronq.store.tables import attempt, job

_JSON: Final = json.JSONEncoder(default=str)

EARLY_S: Final = 0.5
"""Seconds before its due time that a job may be claimed: what the publisher's clock may be ahead by."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a worker got with its lease."""

    attempt: int  #: counts from 1
    max_attempts: int | None
    crashes: int
    cancel_requested: bool
    earlier: int = (
        0  #: attempts made before an operator sent the dead letter back; `max_attempts` counts them
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """How an attempt ended, and what becomes of the job."""

    job_id: str
    token: str
    worker: str
    number: int
    outcome: Outcome
    state: State
    kind: str | None = None
    error: str | None = None
    retry_in_s: float | None = None  #: of `RETRYING`: seconds until the next attempt is due
    dead: bool = False
    result: Any = None
    progress: dict[str, Any] | None = None


def claim(database: Database, job_id: str, *, token: str, worker: str, lease_s: float) -> Claim | None:
    """Take the lease on a job, or return None: it is another's, not due, over, or unknown.

    A job whose lease ran out is not taken here: the rescue first writes down what became of that attempt.
    To ask again with the same token is safe: a claim whose answer got lost is confirmed, not refused; once it
    was rescued, that token is used up.
    """
    values = {"id": job_id, "token": token, "worker": worker, "lease_s": lease_s}
    try:
        with database.direct() as run:
            rows = run(claim_sql(database), values)
    except IntegrityError:
        # cronq_job_one_running_per_schedule: another job of this schedule runs, and overlap is not allowed.
        return None
    return claimed(rows)


@lru_cache(maxsize=8)
def claim_sql(database: Database) -> str:
    """Return the statement that takes a lease; its rows go to `claimed`."""
    # A claim that a crash of PostgreSQL itself loses is as if it had never been: the settlement that follows
    # is durable, and makes everything before it durable.
    relaxed = (
        "AND set_config('synchronous_commit', 'off', true) = 'off'"
        if database.dialect == "postgresql"
        else ""
    )
    return f"""
        UPDATE cronq_job SET
            attempts = attempts + CASE WHEN state = 'RUNNING' THEN 0 ELSE 1 END,
            state = 'RUNNING', lease_token = :token, worker = :worker,
            lease_until = {database.now_sql(":lease_s")}, waits_for = NULL,
            started_at = {database.now_sql()}, updated_at = {database.now_sql()},
            published_at = coalesce(published_at, {database.now_sql()})
        WHERE id = :id AND due_at <= {database.now_sql(str(EARLY_S))}
            AND (
                state IN ('SCHEDULED', 'PENDING', 'RETRYING') AND held_at IS NULL
                AND NOT EXISTS (SELECT 1 FROM cronq_attempt WHERE job_id = :id AND token = :token)
                OR state = 'RUNNING' AND lease_token = :token
            )
            {relaxed}
        RETURNING attempts, max_attempts + attempts_before, crashes, cancel_requested_at, attempts_before
    """


def claimed(rows: Sequence[Sequence[Any]]) -> Claim | None:
    """Return what the statement gave."""
    row = next(iter(rows), None)
    return None if row is None else Claim(row[0], row[1], row[2], row[3] is not None, row[4])


def settle(database: Database, settlement: Settlement, *, only_expired: bool = False) -> bool:
    """Write an attempt's outcome and the job's next state in one transaction; False if the lease is lost.

    only_expired: settle for a silent worker, and only if its lease ran out.
    """
    values = _values(settlement)
    update, insert = _settle_sql(database, settlement.state, dead=settlement.dead, only_expired=only_expired)
    if database.dialect == "postgresql":
        with database.direct() as run:
            return bool(run(_in_one(update), values))
    with database.direct(transaction=True) as run:
        settled = bool(run(update, values))
        if settled:
            run(insert, values)
    return settled


def age_s(database: Database, job_id: str, *, earlier: int) -> float:
    """Return the seconds since the first attempt after number `earlier` began, of a job that runs."""
    first = select(func.min(attempt.c.started_at)).where(
        attempt.c.job_id == job_id, attempt.c.number > earlier
    )
    query = select(database.now(), job.c.started_at, first.scalar_subquery()).where(job.c.id == job_id)
    with database.autocommit() as connection:
        row = connection.execute(query).one_or_none()
    return 0.0 if row is None else float((row[0] - (row[2] or row[1])).total_seconds())


def settle_in(database: Database, session: Session | Connection, settlement: Settlement) -> bool:
    """Do the same within the caller's own transaction, which decides whether it happened."""
    values = _values(settlement)
    update, insert = _settle_sql(database, settlement.state, dead=settlement.dead)
    settled = session.execute(text(update), values).one_or_none() is not None
    if settled:
        session.execute(text(insert), values)
    return settled


def is_completed_by(database: Database, job_id: str, token: str) -> bool:
    """Tell whether the attempt with the lease `token` is on record as the one that completed the job."""
    statement = text("""
        SELECT 1 FROM cronq_attempt WHERE job_id = :id AND token = :token AND outcome = 'COMPLETED'
    """)
    with database.autocommit() as connection:
        return connection.execute(statement, {"id": job_id, "token": token}).one_or_none() is not None


_INSERT: Final = """
    INSERT INTO cronq_attempt (job_id, token, number, worker, started_at, ended_at, outcome, kind, error)
    SELECT id, CAST(:token AS varchar), :number, CAST(:worker AS varchar), started_at, updated_at,
        CAST(:outcome AS varchar), CAST(:kind AS varchar), CAST(:error AS text)
"""


@lru_cache(maxsize=64)
def _settle_sql(
    database: Database, state: State, *, dead: bool, only_expired: bool = False
) -> tuple[str, str]:
    """Return the two statements of a transaction that settles a job to `state`."""
    now = database.now_sql()
    json_of = "CAST(:{} AS json)" if database.dialect == "postgresql" else ":{}"
    if state is State.RETRYING:
        moments = f"due_at = {database.now_sql(':retry_in_s')}, published_at = NULL, publishes = 0"
    else:
        moments = f"finished_at = {now}" + (f", dead_at = {now}" if dead else "")
    update = f"""
        UPDATE cronq_job SET
            state = CAST(:state AS varchar), kind = CAST(:kind AS varchar), error = CAST(:error AS text),
            updated_at = {now}, {moments},
            attempts = attempts - :back, crashes = crashes + :crash,
            result = {json_of.format("result")},
            progress = coalesce({json_of.format("progress")}, progress)
        WHERE id = :id AND lease_token = CAST(:token AS varchar) AND state = 'RUNNING'
            {f"AND lease_until < {now}" if only_expired else ""}
        RETURNING id, started_at, updated_at
    """
    return update, f"{_INSERT} FROM cronq_job WHERE id = :id"


@lru_cache(maxsize=64)
def _in_one(update: str) -> str:
    """Return the same as one statement, which is one transaction and one round trip on PostgreSQL."""
    return f"WITH done AS ({update}) {_INSERT} FROM done RETURNING job_id"


def storable(text_: str | None) -> str | None:
    """Return `text_` without what neither database stores: NUL, and halves of surrogate pairs."""
    if text_ is None:
        return None
    return text_.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def _values(settlement: Settlement) -> dict[str, Any]:
    return {
        "id": settlement.job_id,
        "token": settlement.token,
        "worker": settlement.worker,
        "number": settlement.number,
        "outcome": settlement.outcome.value,
        "state": settlement.state.value,
        "kind": settlement.kind,
        "error": storable(settlement.error),
        "result": json.dumps(settlement.result),
        "progress": None if settlement.progress is None else _JSON.encode(settlement.progress),
        "back": 1 if settlement.outcome is Outcome.HANDED_BACK else 0,
        "retry_in_s": settlement.retry_in_s or 0.0,
        "crash": 1 if settlement.outcome is Outcome.LOST else 0,
    }


def bury(database: Database, job_id: str, *, kind: str, error: str) -> bool:
    """End a job that no worker can run, without an attempt; False if it is not waiting any more."""
    statement = text(f"""
        UPDATE cronq_job SET state = 'FAILED', kind = CAST(:kind AS varchar), error = CAST(:error AS text),
            dead_at = {database.now_sql()},
            finished_at = {database.now_sql()}, updated_at = {database.now_sql()}
        WHERE id = :id AND state IN ('SCHEDULED', 'PENDING', 'RETRYING') RETURNING attempts
    """)
    insert = text(f"""
        INSERT INTO cronq_attempt (job_id, token, number, ended_at, outcome, kind, error)
        SELECT id, :token, attempts, {database.now_sql()}, 'FAILED',
            CAST(:kind AS varchar), CAST(:error AS text)
        FROM cronq_job WHERE id = :id
    """)
    values = {"id": job_id, "error": storable(error), "kind": kind}
    with database.begin() as connection:
        buried = connection.execute(statement, values).one_or_none() is not None
        if buried:
            connection.execute(insert, {**values, "token": str(uuid.uuid4())})
    return buried
