"""Which errors of a database mean: wait, and try the same again."""

import psycopg.errors
import pytest
from sqlalchemy.exc import DBAPIError, InternalError, ProgrammingError

from cronq.store.database import is_outage


@pytest.mark.parametrize(
    ("error", "away"),
    [
        # A standby, or a primary amid a failover: an outcome must not be thrown away for it.
        (InternalError("UPDATE", {}, psycopg.errors.ReadOnlySqlTransaction()), True),
        (DBAPIError("UPDATE", {}, psycopg.errors.AdminShutdown()), True),
        (InternalError("UPDATE", {}, psycopg.errors.InFailedSqlTransaction()), False),
        (ProgrammingError("UPDATE", {}, psycopg.errors.UndefinedTable()), False),
    ],
)
def test_a_postgresql_that_takes_no_writes_is_away(error: DBAPIError, away: bool) -> None:
    assert is_outage(error) is away
