"""Which deploy came last? The stamp of each source of schedules."""

from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select

from cronq.store.database import Database
from cronq.store.tables import deploy

_READ: Final = select(deploy.c.stamp).where(deploy.c.source == bindparam("source"))


def read_stamp(connection: Connection, source: str) -> str | None:
    """Return the stamp of `source`; None: it has none yet."""
    stamp: str | None = connection.execute(_READ, {"source": source}).scalar_one_or_none()
    return stamp


def write_stamp(database: Database, connection: Connection, source: str, stamp: str) -> None:
    """Let `stamp` be the one of `source`."""
    connection.execute(_write(database), {"source": source, "stamp": stamp})


@lru_cache(maxsize=8)
def _write(database: Database) -> Any:  # noqa: ANN401 - either dialect's Insert
    insert = database.insert(deploy).values(at=database.now())
    return insert.on_conflict_do_update(
        index_elements=[deploy.c.source], set_={"stamp": insert.excluded.stamp, "at": insert.excluded["at"]}
    )
