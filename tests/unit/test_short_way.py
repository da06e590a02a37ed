"""A statement of the short way waits for SQLite's write lock, but not for ever."""

import sqlite3
from pathlib import Path

import pytest

from cronq.store import short_way
from cronq.store.database import Database, is_outage

ADD = "INSERT INTO t VALUES (:x)"


@pytest.fixture
def holder(tmp_path: Path) -> sqlite3.Connection:
    holder = sqlite3.connect(tmp_path / "db", isolation_level=None)
    holder.execute("PRAGMA journal_mode=WAL")
    holder.execute("CREATE TABLE t (x)")
    return holder


@pytest.mark.parametrize("transaction", [False, True])
def test_a_statement_that_finds_the_lock_taken_goes_on_when_it_is_free(
    tmp_path, holder, monkeypatch, transaction
):
    database = Database(f"sqlite:///{tmp_path / 'db'}")
    holder.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(short_way.time, "sleep", lambda _pause: holder.execute("COMMIT"))
    with database.direct(transaction=transaction) as run:
        run(ADD, {"x": 1})
    assert holder.execute("SELECT x FROM t").fetchall() == [(1,)]


def test_a_lock_that_is_never_free_is_an_outage(tmp_path, holder, monkeypatch):
    monkeypatch.setattr("cronq.store.database.BUSY_TIMEOUT_S", 0.0)
    database = Database(f"sqlite:///{tmp_path / 'db'}")
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(Exception, match="locked") as refused, database.direct() as run:
        run(ADD, {"x": 1})
    assert is_outage(refused.value)
    holder.execute("ROLLBACK")
    with database.direct() as run:
        run(ADD, {"x": 2})
    assert holder.execute("SELECT x FROM t").fetchall() == [(2,)]


def add_twice(database: Database) -> None:
    with database.direct(transaction=True) as run:
        run(ADD, {"x": 1})
        run("INSERT INTO nowhere VALUES (:x)", {"x": 1})


def test_an_error_inside_a_transaction_undoes_it(tmp_path, holder):
    with pytest.raises(Exception, match="no such table"):
        add_twice(Database(f"sqlite:///{tmp_path / 'db'}"))
    assert holder.execute("SELECT x FROM t").fetchall() == []
