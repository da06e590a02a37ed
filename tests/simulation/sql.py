"""SQL for simulated processes: real statements on a real SQLite in memory, behind links that break.

A transaction is one step: what differs between SQLite and PostgreSQL inside of one is left to the contract
tests. Triggers tell the judge of every row that changes, once the change is committed.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, cast

from sqlalchemy import Connection, MetaData, create_engine
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import StaticPool

from cronq.store.database import Database, Direct
from cronq.store.tables import metadata

from .fast_sql import FastConnection
from .kernel import Kernel, Process

JOB_FIELDS: Final = (
    "id", "schedule_id", "fire_time", "item", "trigger", "state", "reason", "due_at", "attempts",
    "lease_token", "lease_until", "worker", "overlap", "exclusive", "planned_at", "cancel_requested_at",
)  # fmt: skip
TRIGGERS: Final = (
    ("cronq_job", "INSERT", JOB_FIELDS),
    ("cronq_job", "UPDATE", JOB_FIELDS),
    ("cronq_job", "DELETE", JOB_FIELDS),
    ("cronq_attempt", "INSERT", ("job_id", "token", "number", "outcome")),
    ("cronq_schedule", "UPDATE", ("id", "next_fire_at", "paused_at")),
    ("cronq_schedule", "INSERT", ("id", "next_fire_at", "paused_at")),
    ("cronq_leader", "INSERT", ("shard", "term", "holder")),
    ("cronq_leader", "UPDATE", ("shard", "term", "holder")),
)
Row = tuple[Any, ...]
Seen = tuple[str, str, Row]
"""(table, INSERT | UPDATE | DELETE, the fields of `TRIGGERS`)."""


class SqlServer:
    """The one database of a simulation; its tables are made once and emptied for the next one."""

    def __init__(self, without: Collection[str] = ()) -> None:
        """without: names of constraints and indexes that the tables are to lack."""
        self.engine = create_engine(
            "sqlite://",
            poolclass=StaticPool,
            isolation_level="AUTOCOMMIT",
            connect_args={"cached_statements": 1000},
        )
        self.connection: Connection = self.engine.connect()
        raw = self.connection.connection.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        self.raw = raw
        self.short: Connection = cast(Connection, FastConnection(self.connection, raw))
        self.raw.execute("PRAGMA foreign_keys=ON")
        _tables(without).create_all(self.connection)
        self.raw.create_function("sim_now", 1, self._now, deterministic=True)
        self.raw.create_function("sim_seen", -1, self._see)
        for table, verb, fields in TRIGGERS:
            of = "OLD" if verb == "DELETE" else "NEW"
            row = ", ".join(f"{of}.{name}" for name in fields)
            self.raw.execute(
                f"CREATE TEMP TRIGGER sim_{table}_{verb} AFTER {verb} ON {table} "
                f"BEGIN SELECT sim_seen('{table}', '{verb}', {row}); END"
            )
        self.kernel: Kernel
        self.clock_offset = 0.0
        self.pending: list[Seen] = []
        self.on_commit: Callable[[list[Seen]], None] = lambda _seen: None

    def reset(self, kernel: Kernel, on_commit: Callable[[list[Seen]], None]) -> None:
        """Begin a new simulation."""
        assert not self.raw.in_transaction
        self.kernel, self.clock_offset = kernel, 0.0
        for table in reversed(metadata.sorted_tables):
            self.raw.execute(f"DELETE FROM {table.name}")
        self.pending.clear()
        self.on_commit = on_commit

    def clock(self) -> float:
        return self.kernel.now + self.clock_offset

    def committed(self) -> None:
        seen, self.pending = self.pending, []
        if seen:
            self.on_commit(seen)

    def roll_back(self) -> None:
        if self.raw.in_transaction:
            self.raw.execute("ROLLBACK")
        self.pending.clear()

    def _now(self, plus: float | None) -> str | None:
        return None if plus is None else stamp(self.clock() + plus)

    def _see(self, table: str, verb: str, *row: Any) -> None:
        self.pending.append((table, verb, row))


def _tables(without: Collection[str]) -> MetaData:
    copy = MetaData()
    for table in metadata.sorted_tables:
        same = table.to_metadata(copy)
        same.constraints = {each for each in same.constraints if each.name not in without}
        same.indexes = {each for each in same.indexes if each.name not in without}
    return copy


def stamp(instant: float) -> str:
    """Return `instant` (seconds since the epoch) the way SQLite's rows have it."""
    return datetime.fromtimestamp(instant, UTC).isoformat(" ", "microseconds")[:26]


class SimulatedDatabase(Database):
    """One process's way to the server."""

    def __init__(self, server: SqlServer, process: Process) -> None:
        self.url, self.dialect = "sqlite://", "sqlite"
        self.engine = server.engine
        self._server, self._process = server, process

    def __eq__(self, other: object) -> bool:
        """Say that all ways to one server are the same: what cronq keeps for a database, it keeps for all."""
        return isinstance(other, SimulatedDatabase) and other._server is self._server

    def __hash__(self) -> int:
        return hash(id(self._server))

    def now_sql(self, plus_seconds: str | None = None) -> str:
        return f"sim_now({plus_seconds or 0})"

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        with self._transaction():
            yield self._server.short

    @contextmanager
    def autocommit(self) -> Iterator[Connection]:
        if self._process.in_transaction is not None:
            yield self._server.short  # a second connection, within a step that cannot be interrupted
            return
        self._ask()
        try:
            yield self._server.short
        finally:
            self._server.committed()
        self._answer()

    @contextmanager
    def direct(self, *, transaction: bool = False) -> Iterator[Direct]:
        if transaction:
            with self._transaction():
                yield self._run
        else:
            self._ask()
            try:
                yield self._run
            finally:
                self._server.committed()
            self._answer()

    def dispose(self) -> None:
        pass

    def _run(self, statement: str, values: Any) -> list[Row]:
        try:
            return self._server.raw.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise DBAPIError.instance(
                None, None, error, sqlite3.Error, dialect=self.engine.dialect
            ) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        server, process = self._server, self._process
        self._ask()
        ended: list[bool] = []

        def end() -> None:
            # Frozen in the middle: the server ends the session, as PostgreSQL does after two seconds.
            process.in_transaction = None
            server.roll_back()
            ended.append(True)

        server.raw.execute("BEGIN IMMEDIATE")
        process.in_transaction = end
        try:
            yield
            process.step()
            if ended:
                raise _away("the session was ended")  # noqa: TRY301 - it ends as any other fault in here does
        except BaseException:
            if not ended:
                server.roll_back()
            raise
        finally:
            process.in_transaction = None
        server.raw.execute("COMMIT")
        server.committed()
        self._answer()

    def _ask(self) -> None:
        kernel, process = self._server.kernel, self._process
        assert not self._server.raw.in_transaction, "a statement of one process inside another's transaction"
        kernel.linger(0.002)
        process.step()
        if not process.reaches("sql"):
            kernel.pause(kernel.random.choice((0.0, 0.3, 3.0)))
            raise _away("no answer")

    def _answer(self) -> None:
        kernel, process = self._server.kernel, self._process
        process.step()
        kernel.linger(0.002)
        if process.deaf or not process.reaches("sql"):
            process.deaf = False
            kernel.note("answer.lost", store="sql")
            raise _away("the connection broke before the answer came")


def _away(why: str) -> OperationalError:
    return OperationalError("", None, sqlite3.OperationalError(why))
