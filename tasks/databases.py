"""The SQLite files that the work here keeps its books in: how each is opened."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


def open_database(
    variable: str, name: str, schema: str, *, isolation_level: str | None = "DEFERRED"
) -> sqlite3.Connection:
    """Open the file that an environment variable names, else `data/NAME`; make what `schema` says is missing.

    isolation_level: None makes each statement a transaction of its own.
    """
    path = Path(os.environ.get(variable) or Path("data", name))
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=30, isolation_level=isolation_level)  # type: ignore[arg-type]
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(schema)
    return connection


@contextmanager
def transaction(variable: str, name: str, schema: str) -> Iterator[sqlite3.Connection]:
    """Lend it; what was done to it is committed at the end, all or nothing."""
    with closing(open_database(variable, name, schema)) as connection, connection:
        yield connection
