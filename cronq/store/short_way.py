"""The short way to the database: for the few statements that run several times a job.

SQLAlchemy's way costs as much again as the database does. Here a connection and a cursor are kept at hand,
and statements go straight to the driver.
"""

import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import PoolProxiedConnection

FIRST_PAUSE_S: Final = 0.0001
LONGEST_PAUSE_S: Final = 0.005
"""Between two tries to get SQLite's write lock."""

_BEGIN: Final = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "BEGIN"}

Direct = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]
"""Runs one statement that returns rows (on SQLite: or none) with its values, and returns them."""


@dataclass(frozen=True, slots=True)
class _Open:
    pooled: PoolProxiedConnection
    cursor: Any  #: either driver's


class ShortWay:
    """Connections of one database that go by the short way; safe to share between threads."""

    def __init__(self, engine: Engine, *, busy_s: float) -> None:
        """engine: its connections commit by themselves, SQLite's wait for no lock; this does, `busy_s`."""
        self._engine, self._busy_s = engine, busy_s
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._begin = _BEGIN[engine.dialect.name]
        self._driver_error: type[Exception] = engine.dialect.dbapi.Error  # type: ignore[union-attr]
        self._kept: list[_Open] = []

    @contextmanager
    def open(self, *, transaction: bool) -> Iterator[Direct]:
        """Run statements; each its own transaction unless `transaction`. Errors are SQLAlchemy's."""
        taken, usable = None, False
        try:
            taken = self._take()
            run = self._on_sqlite(taken.cursor) if self._is_sqlite else _on_postgresql(taken.cursor)
            if not transaction:
                yield run
            else:
                self._execute(taken.cursor, self._begin, {})
                try:
                    yield run
                except BaseException:
                    taken.cursor.execute("ROLLBACK")
                    raise
                taken.cursor.execute("COMMIT")
            usable = True
        except self._driver_error as error:
            dialect = self._engine.dialect
            gone = taken is None or dialect.is_disconnect(error, taken.pooled, None)  # type: ignore[arg-type]
            usable = not gone
            raise DBAPIError.instance(
                None, None, error, self._driver_error, connection_invalidated=gone, dialect=dialect
            ) from error
        finally:
            if taken is not None:
                self._put_back(taken, usable=usable)

    def dispose(self) -> None:
        """Close what is not in use."""
        while self._kept:
            self._kept.pop().pooled.close()
        self._engine.dispose()

    def _take(self) -> _Open:
        try:
            return self._kept.pop()
        except IndexError:
            pooled = self._engine.raw_connection()
            return _Open(pooled, pooled.cursor())

    def _put_back(self, taken: _Open, *, usable: bool) -> None:
        """Keep one at hand: to get one from the pool costs a third of a statement."""
        if not usable:
            taken.pooled.invalidate()
            taken.pooled.close()
        elif self._kept:
            taken.pooled.close()
        else:
            self._kept.append(taken)

    def _on_sqlite(self, cursor: sqlite3.Cursor) -> Direct:
        def run(statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
            self._execute(cursor, statement, values)
            return cursor.fetchall()

        return run

    def _execute(self, cursor: Any, statement: str, values: Mapping[str, Any]) -> None:  # noqa: ANN401
        """Run a statement that may find SQLite's write lock taken: its own pauses start at a millisecond.

        Another process has the lock for a tenth of that.
        """
        started, pause = time.monotonic(), FIRST_PAUSE_S
        while True:
            try:
                cursor.execute(statement, values)
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() - started > self._busy_s:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
            else:
                return


def _on_postgresql(cursor: Any) -> Direct:  # noqa: ANN401
    def run(statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        cursor.execute(_pyformat(statement), values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows

    return run


@lru_cache(maxsize=256)
def _pyformat(statement: str) -> str:
    """Return `statement` with psycopg's `%(name)s` for `:name`."""
    return re.sub(r"(?<!:):([a-z]\w*)", r"%(\1)s", statement)
