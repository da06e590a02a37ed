"""Opens the database: PostgreSQL, or one SQLite file. Knows what differs between the two."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ARRAY,
    JSON,
    ColumnElement,
    Connection,
    Engine,
    Select,
    Text,
    any_,
    bindparam,
    create_engine,
    event,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.schema import Table

from cronq.settings import hide_password
from cronq.store.short_way import Direct as Direct  # noqa: PLC0414
from cronq.store.short_way import ShortWay
from cronq.store.tables import UtcDateTime

BUSY_TIMEOUT_S = 5.0
SESSION = {
    "timezone": "UTC",
    "statement_timeout": "3000",
    "lock_timeout": "1000",
    # A process that freezes inside a transaction must not keep its locks from the others.
    "idle_in_transaction_session_timeout": "2000",
}
"""Of a PostgreSQL session; milliseconds."""
WAL_TRIES = 100
WAL_PAUSE_S = 0.05
WAL_PAGES = 4000
"""Pages (of 4 KiB) in SQLite's log before they are moved to the file, which waits for the disk."""
CONNECT_TIMEOUT_S = 3

_NOW = {
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f000', 'now'{plus})",
    "postgresql": "(clock_timestamp(){plus})",
}
_PLUS = {
    "sqlite": ", ({seconds}) || ' seconds'",
    "postgresql": " + make_interval(secs => {seconds})",
}


class Database:
    """One database; safe to share between threads, not across a fork.

    SQLite runs in WAL mode with `synchronous=NORMAL`: a killed process loses nothing; a host that loses
    power may lose the last transactions, but never half of one.
    """

    def __init__(self, url: str, *, pool_size: int = 3) -> None:
        self.url = hide_password(url)
        parsed = make_url(url)
        self.dialect = parsed.get_backend_name()
        self.engine = (
            _open_sqlite(parsed) if self.dialect == "sqlite" else _open_postgresql(parsed, pool_size)
        )
        short = (
            _open_sqlite(parsed, busy_s=0)
            if self.dialect == "sqlite"
            else _open_postgresql(parsed, pool_size, direct=True)
        )
        self._short = ShortWay(short, busy_s=BUSY_TIMEOUT_S)
        self._autocommit = self.engine.execution_options(
            **({"cronq_autocommit": True} if self.dialect == "sqlite" else {"isolation_level": "AUTOCOMMIT"})
        )

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """Run a transaction: committed at the end of the block, rolled back by an exception."""
        with self.engine.begin() as connection:
            yield connection

    @contextmanager
    def autocommit(self) -> Iterator[Connection]:
        """Run single statements, each its own transaction."""
        with self._autocommit.connect() as connection:
            yield connection

    @contextmanager
    def direct(self, *, transaction: bool = False) -> Iterator[Direct]:
        """Run statements by the short way; each its own transaction unless `transaction`.

        Names are written `:name`; errors are SQLAlchemy's, as everywhere else.
        """
        with self._short.open(transaction=transaction) as run:
            yield run

    def now_sql(self, plus_seconds: str | None = None) -> str:
        """Return SQL for the database's own clock, plus the seconds that the SQL `plus_seconds` gives."""
        plus = _PLUS[self.dialect].format(seconds=plus_seconds) if plus_seconds is not None else ""
        return _NOW[self.dialect].format(plus=plus)

    def now(self, plus_seconds: float | None = None) -> ColumnElement[datetime]:
        """Return the same as `now_sql` for statements built with SQLAlchemy."""
        seconds = None if plus_seconds is None else repr(float(plus_seconds))
        return literal_column(self.now_sql(seconds), UtcDateTime)

    def clock(self) -> datetime:
        """Ask the database what time it is."""
        with self.autocommit() as connection:
            return self.clock_in(connection)

    def clock_in(self, connection: Connection) -> datetime:
        """Ask the same within a transaction that is under way."""
        return connection.execute(_now(self)).scalar_one()

    def insert(self, table: Table) -> Any:  # noqa: ANN401 - both dialects' Insert, with on_conflict_*
        """Return an insert statement that can say what happens on a conflict."""
        return sqlite.insert(table) if self.dialect == "sqlite" else postgresql.insert(table)

    def among(self, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
        """Return the condition that `column` is in the list that the parameter `name` takes.

        It is one parameter, however many values it has: a thousand of them take longer to be written and
        read than the rows take to be found.
        """
        if self.dialect == "sqlite":
            listed = func.json_each(bindparam(name, type_=JSON)).table_valued("value")
            return column.in_(select(listed.c.value))
        return column == any_(bindparam(name, type_=ARRAY(Text)))

    def dispose(self) -> None:
        """Close every connection that is not in use."""
        self.engine.dispose()
        self._short.dispose()


@lru_cache(maxsize=8)
def _now(database: Database) -> Select[datetime]:
    return select(database.now())


AWAY = frozenset({"25006", "25P03", "57P01", "57P02", "57P03"})
"""SQLSTATEs of a PostgreSQL that takes no writes now (a standby, amid a failover), or that ended the session:
idle in a transaction, shut down, crashed, starting."""


def is_outage(error: BaseException) -> bool:
    """Tell whether `error` means that the database is away or busy, so that the same call may work later."""
    if isinstance(error, DBAPIError) and (
        error.connection_invalidated or getattr(error.orig, "sqlstate", None) in AWAY
    ):
        return True
    return isinstance(error, (OperationalError, InterfaceError))


def _open_postgresql(url: URL, pool_size: int, *, direct: bool = False) -> Engine:
    # A connection that only ever commits by itself needs no look at what it left behind.
    more: dict[str, Any] = {"isolation_level": "AUTOCOMMIT", "pool_reset_on_return": None} if direct else {}
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_recycle=1800,
        **more,
        connect_args={
            "connect_timeout": CONNECT_TIMEOUT_S,
            "options": " ".join(f"-c {name}={value}" for name, value in SESSION.items()),
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            # Those only watch an idle connection; an unanswered packet would be repeated for many minutes.
            "tcp_user_timeout": 10_000,
        },
    )


def _open_sqlite(url: URL, *, busy_s: float = BUSY_TIMEOUT_S) -> Engine:
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"timeout": busy_s, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # the code below, not the driver, says when a transaction begins
        _use_wal(connection)
        for pragma in ("synchronous=NORMAL", "foreign_keys=ON", f"wal_autocheckpoint={WAL_PAGES}"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if not connection.get_execution_options().get("cronq_autocommit"):
            # IMMEDIATE: the write lock is taken at once, so that no transaction fails half-way for it.
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL, once in its life; of several that try at once SQLite refuses all but one."""
    for left in reversed(range(WAL_TRIES)):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if left == 0:
                raise
            time.sleep(WAL_PAUSE_S)
        else:
            return
