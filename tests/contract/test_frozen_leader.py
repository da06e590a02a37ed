"""Whose sessions does a new leader end on PostgreSQL? Those that lock the term's row for long."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from cronq.store import terms
from cronq.store.database import Database
from cronq.store.terms import hold_term

from .rows import Rows

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
def other(database_url: str) -> Iterator[Connection]:
    """Another process's transaction, which is not idle for too long."""
    elsewhere = Database(database_url)
    with elsewhere.engine.connect() as connection:
        connection.execute(text("SET idle_in_transaction_session_timeout = 0"))
        connection.commit()
        yield connection
        connection.invalidate()
    elsewhere.dispose()


def test_a_backup_that_reads_the_table_is_left_alone(
    database: Database, rows: Rows, other: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terms, "STUCK_S", 0.0)
    term = rows.begin_term("a")
    other.execute(text("SELECT * FROM cronq_leader"))  # what pg_dump holds for as long as it takes
    frozen = Database(database_url)
    with frozen.engine.connect() as connection:
        hold_term(connection, term)
        assert rows.begin_term("b").term == term.term + 1
        assert other.execute(text("SELECT 1")).scalar_one() == 1
        with pytest.raises(DBAPIError):
            connection.execute(text("SELECT 1"))
        connection.invalidate()
    frozen.dispose()
