"""Claims under limits: what the leader counted before it sent the message is counted again, now for sure.

A leader that lost its lead without knowing may have sent more than there is room for, and workers that come
back may find more waiting than may start at once. A job that finds no room goes back to wait in SQL.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.exc import IntegrityError

from cronq.breaker import Breaker, Circuit
from cronq.limits import Limit
from cronq.store.attempts import Claim, claim_sql, claimed
from cronq.store.database import Database, Direct

Guard = tuple[str, Limit]
"""A key such as `tenant:acme`, and its limit."""


def claim_guarded(
    database: Database, job_id: str, guards: Sequence[Guard], *, token: str, worker: str, lease_s: float
) -> Claim | str | None:
    """Take the lease if there is room under each guard, as `claim` does; return the key where there is none.

    In one transaction that no other such claim under one of the keys can overtake.
    """
    values = {"id": job_id, "token": token, "worker": worker, "lease_s": lease_s}
    try:
        with database.direct(transaction=True) as run:
            _lock(database, run, guards)
            full = next(
                (key for key, limit in guards if not _has_room(database, run, job_id, key, limit)), None
            )
            if full is None:
                return claimed(run(claim_sql(database), values))
            return full if run(_send_back_sql(database), {"id": job_id}) else None
    except IntegrityError:
        return None  # another job of this schedule runs, and overlap is not allowed


def _lock(database: Database, run: Direct, guards: Sequence[Guard]) -> None:
    # On SQLite the transaction holds the one write lock.
    if database.dialect == "postgresql":
        for key in sorted(key for key, _limit in guards):
            run("SELECT pg_advisory_xact_lock(hashtext(:key))", {"key": f"cronq {key}"})


def _has_room(database: Database, run: Direct, job_id: str, key: str, limit: Limit) -> bool:
    condition, values = _concerns(key, limit)
    room = [each for each in (limit.concurrency, _let_by_breaker(run, key, limit)) if each is not None]
    if room:
        running = f"SELECT count(*) FROM cronq_job WHERE state = 'RUNNING' AND id <> :id AND {condition}"
        if run(running, {"id": job_id, **values})[0][0] >= min(room):
            return False
    if limit.starts_in_look is None:
        return True
    since = database.now_sql(f"-{limit.look_s}")
    started = f"""
        SELECT count(*) FROM cronq_job WHERE updated_at > {since} AND started_at > {since} AND {condition}
    """
    return bool(run(started, values)[0][0] < limit.starts_in_look)


def _let_by_breaker(run: Direct, key: str, limit: Limit) -> int | None:
    if limit.break_after is None:
        return None
    rows = run("SELECT state, trials FROM cronq_breaker WHERE key = :key", {"key": key})
    return Breaker(state=Circuit(rows[0][0]), trials=rows[0][1]).room if rows else None


def _concerns(key: str, limit: Limit) -> tuple[str, dict[str, Any]]:
    if limit.kind == "dependency":
        values = {f"task{number}": task for number, task in enumerate(limit.tasks)}
        return f"task IN ({', '.join(f':{name}' for name in values)})", values
    return f"{limit.kind} = :value", {"value": key.partition(":")[2]}


def _send_back_sql(database: Database) -> str:
    return f"""
        UPDATE cronq_job SET
            state = CASE WHEN state = 'PENDING' THEN 'SCHEDULED' ELSE state END,
            published_at = NULL, updated_at = {database.now_sql()}
        WHERE id = :id AND state IN ('PENDING', 'RETRYING') AND published_at IS NOT NULL
        RETURNING id
    """
