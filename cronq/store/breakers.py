"""Which dependencies are failing? Workers note how their calls went, one at a time for each dependency."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import select, update

from cronq.breaker import WELL, Breaker, Circuit, failed, tried, went_well
from cronq.limits import Limit
from cronq.store.database import Database
from cronq.store.tables import breaker


def note_failure(database: Database, key: str, limit: Limit, error: str) -> tuple[Breaker, Breaker]:
    """Note that a job of the dependency failed; return its breaker before and after."""
    assert limit.break_after is not None
    after, break_for_s = limit.break_after, limit.break_for_s
    return _move(
        database,
        key,
        lambda before, now: failed(before, after=after, break_for_s=break_for_s, now=now, error=error),
    )


def note_success(database: Database, key: str) -> tuple[Breaker, Breaker]:
    """Note that one went well. As long as all do, nothing is written."""
    known = read_breakers(database).get(key, WELL)
    if known == WELL:
        return WELL, WELL
    return _move(database, key, lambda before, _now: went_well(before))


def let_try(database: Database) -> bool:
    """Let one job try each dependency whose breaker's time is up; tell whether there was any."""
    due = [key for key, each in read_breakers(database).items() if each.state is Circuit.OPEN]
    moved = [_move(database, key, tried) for key in due]
    return any(before != after for before, after in moved)


def read_breakers(database: Database) -> dict[str, Breaker]:
    """Return the breakers of the dependencies that have failed at least once, by key."""
    with database.autocommit() as connection:
        return {row.key: _breaker(row._asdict()) for row in connection.execute(select(breaker))}


def _move(
    database: Database, key: str, step: Callable[[Breaker, datetime], Breaker]
) -> tuple[Breaker, Breaker]:
    with database.begin() as connection:
        now = database.clock_in(connection)
        fresh = {"key": key, "since": now, **_columns(WELL)}
        connection.execute(database.insert(breaker).values(fresh).on_conflict_do_nothing())
        row = connection.execute(select(breaker).where(breaker.c.key == key).with_for_update()).one()
        before = _breaker(row._asdict())
        after = step(before, now)
        if after != before:
            since = now if after.state is not before.state else row.since
            connection.execute(
                update(breaker).where(breaker.c.key == key).values(since=since, **_columns(after))
            )
    return before, after


def _columns(value: Breaker) -> dict[str, object]:
    return {name: getattr(value, name) for name in Breaker.__slots__}


def _breaker(row: dict[str, object]) -> Breaker:
    values = {name: row[name] for name in Breaker.__slots__}
    return Breaker(**{**values, "state": Circuit(str(row["state"]))})  # type: ignore[arg-type]
