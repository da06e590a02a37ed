"""Which limits are there? As declared and as set by hand, the same for every beat and every worker."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import bindparam, delete, select

from cronq.limits import Limits, limits_from
from cronq.store.database import Database
from cronq.store.tables import breaker, limit
from cronq.store.terms import Term, hold_term

BY_HAND: Final = "by hand"
"""The source of limits that an operator set: no deploy changes them."""


_DELETE: Final = delete(limit).where(limit.c.source == bindparam("source"))
_DECLARED: Final = select(limit.c.key).where(limit.c.source != BY_HAND)
_DELETE_BREAKERS: Final = delete(breaker).where(
    breaker.c.key.not_in(select(limit.c.key).where(limit.c.source != bindparam("source"))),
    breaker.c.key.not_in(bindparam("declared", expanding=True)),
)


def write_limits(
    database: Database, declared: Mapping[str, Mapping[str, Any]], *, term: Term, source: str
) -> list[str]:
    """Make the limits of `source` the declared ones; return the keys that another source declares already."""
    with database.begin() as connection:
        hold_term(connection, term)
        connection.execute(_DELETE, {"source": source})
        taken = set(connection.execute(_DECLARED).scalars())
        connection.execute(_DELETE_BREAKERS, {"source": source, "declared": list(declared)})
        rows = [
            {"key": key, "source": source, "definition": dict(given), "at": database.clock_in(connection)}
            for key, given in declared.items()
            if key not in taken
        ]
        if rows:
            connection.execute(limit.insert(), rows)
    return sorted(taken.intersection(declared))


def set_by_hand(database: Database, key: str, given: Mapping[str, Any] | None) -> bool:
    """Let `given` count for `key` whatever the deploys declare; None: no more. Return whether that is new.

    Raise `ValueError` for what is no limit.
    """
    if given is not None:
        limits_from({**read_definitions(database), key: given})
    with database.begin() as connection:
        gone = connection.execute(delete(limit).where(limit.c.key == key, limit.c.source == BY_HAND)).rowcount
        if given is None:
            return gone > 0
        now = database.clock_in(connection)
        connection.execute(limit.insert().values(key=key, source=BY_HAND, definition=dict(given), at=now))
    return gone == 0


_DEFINITIONS: Final = select(limit.c.key, limit.c.source, limit.c.definition).order_by(limit.c.key)


def read_definitions(database: Database) -> dict[str, dict[str, Any]]:
    """Return the limits as they were written, by key; of two for one key the one that was set by hand."""
    with database.autocommit() as connection:
        rows = connection.execute(_DEFINITIONS).all()
    declared = {row.key: row.definition for row in rows if row.source != BY_HAND}
    return declared | {row.key: row.definition for row in rows if row.source == BY_HAND}


def keys_by_hand(database: Database) -> set[str]:
    """Return the keys that were set by hand."""
    with database.autocommit() as connection:
        return {row.key for row in connection.execute(_DEFINITIONS) if row.source == BY_HAND}


def read_limits(database: Database) -> Limits:
    """Return all limits; raise `ValueError` for what a newer cronq wrote and this one cannot read."""
    return limits_from(read_definitions(database))
