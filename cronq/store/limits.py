"""Which limits are there? As declared by the deploys, the same for every beat and every worker."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import delete, select

from cronq.limits import Limits, limits_from
from cronq.store.database import Database
from cronq.store.tables import breaker, limit
from cronq.store.terms import Term, hold_term


def write_limits(
    database: Database, declared: Mapping[str, Mapping[str, Any]], *, term: Term, source: str
) -> list[str]:
    """Make the limits of `source` the declared ones; return the keys that another source declares already."""
    with database.begin() as connection:
        hold_term(connection, term)
        connection.execute(delete(limit).where(limit.c.source == source))
        taken = set(connection.execute(select(limit.c.key)).scalars())
        gone = select(limit.c.key).where(limit.c.source != source)
        connection.execute(
            delete(breaker).where(breaker.c.key.not_in(gone), breaker.c.key.not_in(list(declared)))
        )
        rows = [
            {"key": key, "source": source, "definition": dict(given), "at": database.clock_in(connection)}
            for key, given in declared.items()
            if key not in taken
        ]
        if rows:
            connection.execute(limit.insert(), rows)
    return sorted(taken.intersection(declared))


_DEFINITIONS: Final = select(limit.c.key, limit.c.definition).order_by(limit.c.key)


def read_definitions(database: Database) -> dict[str, dict[str, Any]]:
    """Return the limits as they were written, by key."""
    with database.autocommit() as connection:
        return {row.key: row.definition for row in connection.execute(_DEFINITIONS)}


def read_limits(database: Database) -> Limits:
    """Return all limits; raise `ValueError` for what a newer cronq wrote and this one cannot read."""
    return limits_from(read_definitions(database))
